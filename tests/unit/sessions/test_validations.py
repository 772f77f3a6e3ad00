"""Validations: kept next to the tasks, undone by operations, merged without loss, and compared."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.kinds.repair.trials import run_trial
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.sessions.annotations.agreement import verdict_agreement
from gistpoint.sessions.annotations.rows import VALIDATION_COLUMNS, csv_lines, jsonl_lines, validation_rows
from gistpoint.sessions.annotations.validations import (
    CODEC,
    TaskStatus,
    TaskVerdict,
    ValidationBook,
    ValidationError,
    ValidationOperation,
    ValidationOperationKind,
    fold,
    progress,
    totals,
)
from gistpoint.sessions.annotations.validator import Draft, Drafts, ValidationStore, Validator
from gistpoint.sessions.tasks import TaskStore, read_set

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64
NASTY = "why \x1b[31m\ud800 [b]"


def at_work(folder: Path, name: str = "ada", clock: FakeClock | None = None) -> Validator:
    return Validator(ValidationStore(folder, clock or FakeClock()), name)


def test_the_closed_list_of_verdicts() -> None:
    assert [verdict.value for verdict in TaskVerdict] == [
        "accept",
        "reject_unsolvable",
        "reject_unspecified",
        "reject_unfair_tests",
        "reject_leak",
        "reject_flaky",
        "reject_too_easy",
        "reject_duplicate",
        "needs_discussion",
    ]
    assert TaskVerdict.REJECT_TOO_EASY.words == "too easy"


def test_all_that_was_said_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    validator = at_work(tmp_path / "v")
    validator.seen(task.id)
    validator.seen(task.id)
    trial = run_trial(judge, TrialSubject.CORRUPTED)
    first = validator.trial(task.id, replace(trial, odd=tuple(f"t::{n}" for n in range(300))))
    fix = {
        "shop/prices.py::discount": "def discount(price, percent):\n    return price - price * percent // 100\n"
    }
    validator.trial(task.id, run_trial(judge, TrialSubject.FIX, fix))
    check = validator.check(
        task.id, [CheckFinding("tree", False, "a leak"), CheckFinding("brief", True, "")], "fake"
    )
    validator.comment(task.id, f"  {NASTY} ")
    validator.verdict(task.id, TaskVerdict.REJECT_LEAK)
    again = at_work(tmp_path / "v").validation(task.id)
    assert again == validator.validation(task.id)
    assert again.seen
    assert [comment.text for comment in again.comments] == [NASTY]
    assert again.verdict is not None
    assert again.verdict.verdict is TaskVerdict.REJECT_LEAK
    assert again.verdict.evidence == (first.op, again.trials[1].op, check.op)
    corrupted, fixed = again.trials
    assert (corrupted.subject, len(corrupted.odd), corrupted.odd_count) == (TrialSubject.CORRUPTED, 200, 300)
    assert (fixed.solved, fixed.score, fixed.failing) == (True, 1.0, 0)
    assert again.check is not None
    assert not again.check.clean
    lines = (tmp_path / "v" / "ada.jsonl").read_bytes().splitlines()
    assert json.loads(lines[0]) == {"format": "gistpoint.validations", "version": 1}
    assert [json.loads(line)["kind"] for line in lines[1:]] == [
        "seen", "trial", "trial", "check", "comment", "verdict",
    ]  # fmt: skip
    assert not list(task.folder.rglob("*.jsonl"))


def test_undo_takes_back_the_last_that_stands_and_is_an_operation_itself(tmp_path: Path) -> None:
    validator = at_work(tmp_path)
    validator.seen(ONE)
    validator.verdict(ONE, TaskVerdict.ACCEPT)
    validator.comment(ONE, "on second thoughts")
    validator.verdict(ONE, TaskVerdict.REJECT_TOO_EASY)
    said = []
    while (gone := validator.undo(ONE)) is not None:
        said.append(
            (gone.kind, validator.validation(ONE).verdict and validator.validation(ONE).verdict.verdict)
        )  # type: ignore[union-attr]
    assert said == [("verdict", "accept"), ("comment", "accept"), ("verdict", None)]
    assert at_work(tmp_path).validation(ONE).seen
    assert [operation.kind for operation in validator.store.book.operations].count("delete") == 3


def test_what_can_not_be_said_is_refused(tmp_path: Path) -> None:
    validator = at_work(tmp_path)
    for text in ("", "  \n", "x" * 20_001):
        with pytest.raises(ValidationError):
            validator.comment(ONE, text)
    with pytest.raises(ValidationError):
        at_work(tmp_path, " \n")
    assert validator.undo(ONE) is None
    assert not list(tmp_path.glob("*.jsonl"))


KINDS = [kind.value for kind in ValidationOperationKind] + ["of_tomorrow"]
DATA = st.fixed_dictionaries(
    {},
    optional={
        "verdict": st.sampled_from([*(verdict.value for verdict in TaskVerdict), "nonsense", 3]),
        "text": st.text(max_size=5),
        "subject": st.sampled_from(["corrupted", "fix", "x"]),
        "target": st.sampled_from(["op-1", "op-2", "op-3"]),
        "odd": st.lists(st.one_of(st.text(max_size=3), st.integers())),
        "score": st.one_of(st.floats(0, 1), st.text(max_size=2), st.booleans()),
        "findings": st.one_of(
            st.lists(st.one_of(st.none(), st.just({"name": "tree", "passed": True}))), st.none()
        ),
    },
)
OPERATIONS = st.lists(
    st.builds(
        ValidationOperation,
        op=st.integers(1, 6).map("op-{}".format),
        reviewer=st.sampled_from(["ada", "bob"]),
        utc_ms=st.integers(0, 50),
        subject=st.sampled_from([ONE, TWO]),
        kind=st.sampled_from(KINDS),
        data=DATA,
    ),
    max_size=5,
    unique_by=lambda operation: operation.op,
)


@given(OPERATIONS)
def test_folding_depends_on_the_set_alone_and_lines_read_back(operations: list[ValidationOperation]) -> None:
    assert [CODEC.decode(CODEC.encode(operation)) for operation in operations] == operations
    folded = {
        tuple(ValidationBook(order).states()) for order in permutations(operations)
    }  # the result does not depend on the order
    assert len(folded) == 1
    book = ValidationBook()
    assert [book.add(operation) for operation in [*operations, *operations]].count(True) == len(operations)
    for operation in operations:
        fold(operation.subject, operation.reviewer, operations)


def test_a_line_has_the_stored_names(tmp_path: Path) -> None:
    at_work(tmp_path).verdict(ONE, TaskVerdict.ACCEPT)
    (line,) = (tmp_path / "ada.jsonl").read_bytes().splitlines()[1:]
    assert {name: value for name, value in json.loads(line).items() if name not in ("op", "utc_ms")} == {
        "reviewer": "ada", "task": ONE, "kind": "verdict", "data": {"verdict": "accept", "evidence": []},
    }  # fmt: skip


def test_merging_is_a_union_and_keeps_what_a_newer_program_wrote(tmp_path: Path) -> None:
    one, other = at_work(tmp_path / "a", "ada"), at_work(tmp_path / "b", "bob")
    one.verdict(ONE, TaskVerdict.ACCEPT)
    other.verdict(ONE, TaskVerdict.REJECT_FLAKY)
    new = ValidationOperation("newer", "bob", 9, TWO, "of_tomorrow", {"x": 1}, {"y": [2]})
    other.store.append([new])
    merged = one.store.merge([tmp_path / "b"])
    assert (merged.added, merged.known) == (2, 0)
    assert one.store.merge([tmp_path / "b"]).known == 2
    assert ValidationStore(tmp_path / "a", FakeClock()).book.get("newer") == new
    assert one.store.book.state(ONE, "bob").verdict is not None


def judged(folder: Path) -> ValidationStore:
    store = ValidationStore(folder, FakeClock())
    ada, bob = Validator(store, "ada"), Validator(store, "bob")
    both = [(ONE, "accept", "accept"), (TWO, "reject_leak", "accept"), (THREE, "reject_leak", "reject_flaky")]
    for task, first, second in both:
        ada.verdict(task, TaskVerdict(first))
        bob.verdict(task, TaskVerdict(second))
    ada.verdict("4" * 64, TaskVerdict.NEEDS_DISCUSSION)
    bob.comment("5" * 64, "seen, no verdict")
    return store


def test_agreement_of_two_validators_by_hand(tmp_path: Path) -> None:
    found = verdict_agreement(judged(tmp_path).book, [ONE, TWO, THREE, "4" * 64], "ada", "bob")
    # ada: accept, leak, leak; bob: accept, accept, flaky. p_o = 1/3, p_e = (1*2)/9: (3-2)/(9-2) = 1/7
    assert (found.tasks, found.agreed, found.kappa) == (3, 1, pytest.approx(1 / 7))
    # accepted or not: p_o = 2/3, p_e = (1*2 + 2*1)/9: (6-4)/(9-4) = 2/5
    assert (found.agreed_accept, found.kappa_accept) == (2, pytest.approx(0.4))
    assert [(d.task, d.first, d.second) for d in found.disagreements] == [
        (TWO, "reject_leak", "accept"),
        (THREE, "reject_leak", "reject_flaky"),
    ]
    assert found.observed == pytest.approx(1 / 3)
    assert verdict_agreement(judged(tmp_path / "x").book, [ONE], "ada", "nobody").observed is None


def test_where_each_task_stands(tmp_path: Path) -> None:
    tasks = [ONE, TWO, THREE, "4" * 64, "5" * 64, "6" * 64]
    found = progress(judged(tmp_path).book, tasks)
    assert [row.standing.value for row in found] == [
        "accepted", "disputed", "rejected", "discussion", "unjudged", "unjudged",
    ]  # fmt: skip
    assert (found[4].seen, found[4].comments, found[5].seen) == (1, 1, 0)
    assert totals(found)[TaskStatus.UNJUDGED] == 2


def test_exports_hold_what_stands_of_the_tasks_asked_for(tmp_path: Path) -> None:
    store = judged(tmp_path)
    ada = Validator(store, "ada")
    ada.comment(ONE, 'a "quoted"\n,line')
    ada.undo(TWO)
    read = list(
        csv.DictReader(
            io.StringIO("".join(csv_lines(validation_rows(store.book, [ONE, TWO]), VALIDATION_COLUMNS)))
        )
    )
    assert [(row["task"][0], row["reviewer"], row["kind"], row["verdict"], row["text"]) for row in read] == [
        ("1", "ada", "verdict", "accept", ""),
        ("1", "ada", "comment", "", 'a "quoted"\n,line'),
        ("1", "bob", "verdict", "accept", ""),
        ("2", "bob", "verdict", "accept", ""),
    ]
    lines = [json.loads(line) for line in jsonl_lines(validation_rows(store.book, ["5" * 64]))]
    assert [(line["kind"], line["text"]) for line in lines] == [("comment", "seen, no verdict")]


def test_drafts_stay_until_they_are_said(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path, "a/da")
    assert drafts.read(ONE) == Draft()
    draft = Draft(NASTY, {"a.py::f": "def f():\n    \x0c\ud800"})
    drafts.write(ONE, draft)
    assert Drafts(tmp_path, "a/da").read(ONE) == draft
    assert Drafts(tmp_path, "ada").read(ONE) == Draft()
    path = next(drafts.folder.glob("*.json"))
    path.write_text("[1")
    assert drafts.read(ONE) == Draft()
    assert path.with_suffix(".damaged").read_text() == "[1"
    drafts.write(ONE, draft)
    for part in (Draft(comment="c"), Draft(fixes={"a.py::f": "x"})):
        drafts.write(ONE, part)
        assert drafts.read(ONE) == part
    drafts.write(ONE, Draft())
    assert not path.exists()


def test_a_damaged_draft_that_can_not_be_renamed_is_left_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = Drafts(tmp_path, "ada")
    drafts.write(ONE, Draft("x"))
    path = next(drafts.folder.glob("*.json"))
    path.write_text("[1")
    (path.with_suffix(".damaged") / "x").mkdir(parents=True)
    assert drafts.read(ONE) == Draft()
    monkeypatch.setattr(Path, "replace", _refuse)
    assert drafts.read(ONE) == Draft()
    assert path.read_text() == "[1"


def _refuse(*_: object) -> None:
    raise PermissionError(1, "no")


def test_a_set_is_a_folder_a_list_single_tasks_or_all(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "tasks"
    tasks = [build_task(folder, extra_files={"n.txt": str(n)}) for n in range(3)]
    store = TaskStore(folder)
    ids = [task.id for task in tasks]
    assert {task.id for task in read_set([], store).tasks} == set(ids)
    assert {task.id for task in read_set([str(folder)], TaskStore(tmp_path / "none")).tasks} == set(ids)
    assert [task.id for task in read_set([ids[1][:20], str(tasks[0].folder)], store).tasks] == [
        ids[1],
        ids[0],
    ]
    listing = folder / "set.txt"
    listing.write_text(f"# a set\n{tasks[2].folder.name}  # beside it\n{ids[0]}\n\n{ids[0]}\nnonsense\n")
    found = read_set([str(listing)], store)
    assert [task.id for task in found.tasks] == [ids[2], ids[0]]
    assert found.problems[0].startswith("set.txt, line 6")
    (tasks[0].folder / "task.toml").write_text("nonsense")
    assert len(read_set([str(folder)], store).problems) == 1
    (tmp_path / "empty").mkdir()
    for name in (str(tmp_path / "empty"), "nonsense"):
        with pytest.raises(TaskError):
            read_set([name], store)


def disagreeing(folder: Path) -> ValidationStore:
    """Return a store of two validators: they disagree on ONE and agree on TWO; one would discuss THREE."""
    clock = FakeClock()
    for name, verdicts in {
        "ada": (TaskVerdict.ACCEPT, TaskVerdict.ACCEPT, TaskVerdict.NEEDS_DISCUSSION),
        "bob": (TaskVerdict.REJECT_LEAK, TaskVerdict.ACCEPT, TaskVerdict.ACCEPT),
    }.items():
        validator = at_work(folder, name, clock)
        for task, verdict in zip((ONE, TWO, THREE), verdicts, strict=True):
            validator.verdict(task, verdict)
    return ValidationStore(folder, clock)


def test_a_decision_holds_until_a_verdict_that_it_decided_changes(tmp_path: Path) -> None:
    store = disagreeing(tmp_path)
    assert [row.standing for row in progress(store.book, (ONE, TWO, THREE))] == [
        TaskStatus.DISPUTED, TaskStatus.ACCEPTED, TaskStatus.DISCUSSION,
    ]  # fmt: skip
    judge = Validator(store, "cleo")
    judge.reveal(ONE)
    judge.adjudicate(ONE, TaskVerdict.REJECT_LEAK)
    (row,) = progress(store.book, [ONE])
    assert (row.standing, row.decided, row.decided_by) == (
        TaskStatus.REJECTED,
        TaskVerdict.REJECT_LEAK,
        "cleo",
    )
    assert row.verdicts == {"ada": TaskVerdict.ACCEPT, "bob": TaskVerdict.REJECT_LEAK}
    Validator(store, "bob").verdict(ONE, TaskVerdict.REJECT_FLAKY)
    (row,) = progress(store.book, [ONE])
    assert (row.standing, row.decided) == (TaskStatus.DISPUTED, None)
    judge.adjudicate(ONE, TaskVerdict.ACCEPT)
    assert progress(store.book, [ONE])[0].standing is TaskStatus.ACCEPTED
    Validator(store, "dan").verdict(ONE, TaskVerdict.ACCEPT)
    assert progress(store.book, [ONE])[0].decided is None
    judge.adjudicate(ONE, TaskVerdict.ACCEPT)
    judge.undo(ONE)
    assert progress(store.book, [ONE])[0].standing is TaskStatus.DISPUTED
    again = ValidationStore(tmp_path, FakeClock())
    assert progress(again.book, [ONE]) == progress(store.book, [ONE])


def test_a_verdict_given_after_those_of_others_were_shown_is_left_out_of_the_agreement(
    tmp_path: Path,
) -> None:
    store = disagreeing(tmp_path)
    before = verdict_agreement(store.book, [ONE, TWO], "ada", "bob")
    ada = Validator(store, "ada")
    shown = ada.reveal(ONE)
    assert [one.reviewer for one in shown] == ["ada", "bob"]
    ada.verdict(ONE, TaskVerdict.REJECT_LEAK)
    assert progress(store.book, [ONE])[0].standing is TaskStatus.REJECTED
    assert verdict_agreement(store.book, [ONE, TWO], "ada", "bob") == before
    cleo = Validator(store, "cleo")
    cleo.reveal(ONE)
    cleo.verdict(ONE, TaskVerdict.REJECT_LEAK)
    assert verdict_agreement(store.book, [ONE], "cleo", "bob").tasks == 0


def test_a_task_without_a_verdict_is_not_decided(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="nothing to decide"):
        at_work(tmp_path).adjudicate(ONE, TaskVerdict.ACCEPT)


def test_a_decision_is_a_row_of_the_export(tmp_path: Path) -> None:
    store = disagreeing(tmp_path)
    Validator(store, "cleo").adjudicate(ONE, TaskVerdict.REJECT_LEAK)
    lines = csv_lines(validation_rows(store.book, [ONE]), VALIDATION_COLUMNS)
    rows = list(csv.DictReader(io.StringIO("".join(lines))))
    (decision,) = [row for row in rows if row["kind"] == "adjudication"]
    assert (decision["reviewer"], decision["verdict"]) == ("cleo", "reject_leak")
    assert set(decision["decides"].split()) == {row["op"] for row in rows if row["kind"] == "verdict"}
