"""Blind readings: kept next to the tasks, undone by operations, counted with intervals, compared."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from fakes import FakeClock

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, GlanceVerdict, ShownVersion
from gistpoint.core.estimates import wilson
from gistpoint.core.tasks.model import Target
from gistpoint.sessions.annotations.agreement import glance_agreement
from gistpoint.sessions.annotations.glance_rates import agreements, rate_rows, task_rates
from gistpoint.sessions.annotations.glance_reader import LONGEST_WORDS, BlindReply, GlanceReader, GlanceStore
from gistpoint.sessions.annotations.glances import CODEC, GlanceBook, GlanceError, GlanceOperationKind, fold

FAULT, DOUBTFUL, NOTHING = BlindAnswer.FAULT, BlindAnswer.DOUBTFUL, BlindAnswer.NOTHING
CORRUPTED, ORIGINAL = ShownVersion.CORRUPTED, ShownVersion.ORIGINAL
CODE = "def f(x):\n    y = x + 1\n    z = y\n    log(z)\n    return z\n"
NASTY = "why \x1b[31m [b]"


def item(number: int, *families: str) -> BlindItem:
    target = Target("f.py", f"f{number}", CODE, CODE.replace("+ 1", "- 1"))
    return BlindItem(f"{number:064}", "shop", target, families)


def reader(store: GlanceStore, name: str = "ada", round: int = 1) -> GlanceReader:
    return GlanceReader(store, name, round=round)


@pytest.fixture
def store(tmp_path: Path) -> GlanceStore:
    return GlanceStore(tmp_path / "glances", FakeClock())


def test_what_is_said_is_on_the_disk_and_can_be_taken_back(store: GlanceStore) -> None:
    ada, one = reader(store), item(1)
    wrong = ada.read(one, BlindReply(FAULT, 2, NASTY + "x" * LONGEST_WORDS, 900), CORRUPTED)
    ada.take_back(wrong.op)
    ada.read(one, BlindReply(DOUBTFUL, 5), CORRUPTED)
    ada.verdict(one, GlanceVerdict.BORDERLINE, " hm ")
    ada.verdict(one, GlanceVerdict.GOOD, "")
    again = GlanceStore(store.folder, FakeClock()).book.state(one.task, "ada")
    (reading,) = again.readings
    assert (reading.answer, reading.line, reading.hit, reading.seen) == (DOUBTFUL, 5, False, False)
    assert again.verdict("f.py::f1", 0, 1) is not None
    assert [given.verdict for given in again.verdicts] == [GlanceVerdict.BORDERLINE, GlanceVerdict.GOOD]
    lines = store.path_of("ada").read_bytes().splitlines()
    assert len(lines) == 6  # the header, two readings, the removal, two verdicts
    first = CODEC.decode(lines[1])
    assert first is not None
    assert first.data["words"] == (NASTY + "x" * LONGEST_WORDS)[:LONGEST_WORDS]
    with pytest.raises(GlanceError, match="only your own answers"):
        reader(store, "bob").take_back(wrong.op)
    found = store.book.operations
    folds = {fold(one.task, "ada", order) for order in permutations(found)}
    assert len(folds) == 1
    assert [operation.kind for operation in found[:2]] == [
        GlanceOperationKind.READING,
        GlanceOperationKind.DELETE,
    ]


def test_no_person_has_the_name_of_a_model(store: GlanceStore) -> None:
    with pytest.raises(GlanceError, match="reserved for models"):
        reader(store, "model x")
    assert GlanceReader(store, "x", by_model=True).name == "model x"


def test_the_first_reading_of_a_person_counts_and_every_one_of_a_model(store: GlanceStore) -> None:
    one, two = item(1, "boundary"), item(2, "boundary", "order")
    ada, bob = reader(store), reader(store, "bob")
    model = GlanceReader(store, "m", by_model=True)
    ada.read(one, BlindReply(FAULT, 2), CORRUPTED)  # seen
    ada.read(one, BlindReply(NOTHING), CORRUPTED)  # a second reading, which only counts for the agreement
    ada.read(two, BlindReply(FAULT, 5), CORRUPTED)  # another line
    bob.read(one, BlindReply(DOUBTFUL, 2), CORRUPTED)
    bob.read(two, BlindReply(FAULT, 2), ORIGINAL)  # a false alarm
    for answer in (FAULT, FAULT, NOTHING):
        model.read(one, BlindReply(answer, 2), CORRUPTED)
    rows = {(row.readers, row.by, row.name): row.rate.to_json() for row in rate_rows(store.book, [one, two])}
    people = rows["people", "all", ""]
    assert (people["read"], people["seen"], people["doubtful"]) == (3, 1, 1)
    assert tuple(people["interval"]) == wilson(1, 3)
    assert (people["untouched_read"], people["false_alarms"], people["false_alarm_rate"]) == (1, 1, 1.0)
    assert rows["people", "family", "order"]["read"] == 1
    assert rows["people", "task", two.task]["rate"] == 0.0
    assert (rows["model m", "all", ""]["read"], rows["model m", "all", ""]["seen"]) == (3, 2)
    assert rows["model m", "all", ""]["false_alarm_rate"] is None
    assert ("model m", "task", two.task) not in rows
    assert task_rates(store.book) == {one.task: 0.5, two.task: 0.0}


def test_people_go_before_models_where_the_rate_of_a_task_is_asked_for(store: GlanceStore) -> None:
    GlanceReader(store, "m", by_model=True).read(item(1), BlindReply(FAULT, 2), CORRUPTED)
    assert task_rates(store.book) == {item(1).task: 1.0}
    reader(store).read(item(1), BlindReply(NOTHING), CORRUPTED)
    assert task_rates(store.book) == {item(1).task: 0.0}


def test_agreement_of_two_readers_and_of_one_with_herself(store: GlanceStore) -> None:
    ada, bob = reader(store), reader(store, "bob")
    said = {1: (FAULT, FAULT), 2: (NOTHING, NOTHING), 3: (DOUBTFUL, FAULT), 4: (NOTHING, NOTHING)}
    for number, (one, other) in said.items():
        ada.read(item(number), BlindReply(one, 2), CORRUPTED)
        bob.read(item(number), BlindReply(other, 2), CORRUPTED)
    bob.read(item(5), BlindReply(NOTHING), ORIGINAL)
    ada.read(item(5), BlindReply(FAULT, 2), CORRUPTED)  # another version, so it is not compared
    tasks = [item(number).task for number in range(6)]
    found = glance_agreement(store.book, tasks, "ada", "bob")
    assert (found.functions, found.agreed) == (4, 3)
    assert found.kappa == pytest.approx((0.75 - 0.375) / (1 - 0.375))
    again = reader(store, round=2)
    for number, answer in ((1, FAULT), (2, DOUBTFUL)):
        again.read(item(number), BlindReply(answer, 2), CORRUPTED)
        ada.verdict(item(number), GlanceVerdict.GOOD, "")
        again.verdict(item(number), GlanceVerdict.GOOD if number == 1 else GlanceVerdict.BORDERLINE, "")
    herself = glance_agreement(store.book, tasks, "ada", "ada")
    assert (herself.functions, herself.agreed, herself.verdicts, herself.agreed_verdicts) == (2, 1, 2, 1)
    assert [(one.first, one.second) for one in agreements(store.book, tasks)] == [
        ("ada", "bob"),
        ("ada", "ada"),
    ]
    assert agreements(GlanceBook(), tasks) == []
