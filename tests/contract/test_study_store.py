"""The contract of every study store: one log, one set of journals, and nothing about erased people."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import build_task
from fakes import FakeClock
from postgres_server import PostgresServer
from study_folders import Machine
from team_studies import copy_at, new_study, serving

from gistpoint.core.study.ledger import Ledger, person_sha256
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Begun,
    Enrolled,
    Finished,
    StudyError,
    StudyOpened,
    StudyOperationKind,
    person,
    writer_sha8,
)
from gistpoint.core.study.ports import Publication, StudyStore
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.journal import read_journal
from gistpoint.sessions.studies.store import FolderStore

K = StudyOperationKind
Open = Callable[[str], StudyStore]
"""A function that opens the test's only store from a machine."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with serving() as made:
        yield made


@pytest.fixture(params=["folder", "team"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "folder":
        return lambda machine: FolderStore(tmp_path / "study", machine, FakeClock())
    address = request.getfixturevalue("server").address
    study = new_study(address)
    return lambda machine: copy_at(tmp_path, machine, study, address)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.at(tmp_path / "home")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_task(tmp_path / "tasks")


def test_what_one_machine_records_is_read_on_another(store: Open) -> None:
    here, there = store("aaaaaa"), store("bbbbbb")
    said = here.record("P07", person("P07"), K.ENROLLED, Enrolled(stratum="senior"))
    assert said.reviewer == "P07@aaaaaa"
    assert there.operations() == ()
    there.reload()
    assert there.operations() == (said,)
    assert Ledger(there.operations()).person("P07").stratum == "senior"
    opened = there.record(ORGANISER, STUDY, K.OPENED, StudyOpened(protocol="p"))
    here.reload()
    assert {operation.op for operation in here.operations()} == {said.op, opened.op}


def test_an_operation_is_kept_once_and_later_ones_have_later_times(store: Open) -> None:
    here = store("aaaaaa")
    first = here.record("P07", person("P07"), K.ENROLLED, Enrolled())
    assert here.append([first]) == 0
    second = here.record("P07", person("P07"), K.DECLINED)
    assert second.utc_ms > first.utc_ms
    again = store("aaaaaa")
    assert again.operations() == (first, second)
    assert again.record("P07", person("P07"), K.DECLINED).utc_ms > second.utc_ms


def test_two_processes_of_one_machine_count_what_they_have_read(store: Open) -> None:
    one, other = store("aaaaaa"), store("aaaaaa")
    said = [process.record("P07", person("P07"), K.DECLINED) for process in (one, other, one)]
    assert {operation.op for operation in one.operations()} == {operation.op for operation in said}
    for process in (one, other):
        assert process.operations_at(process.basis()) == process.operations()


@pytest.mark.parametrize("name", ["", ".b", "../x", "P 7", "P07@x", "=1+1", "-7", "Organiser", "x" * 65])
def test_a_name_that_can_be_no_code_is_refused(store: Open, name: str) -> None:
    with pytest.raises(StudyError, match="is not a valid code"):
        store("aaaaaa").record(name, person("P07"), K.ENROLLED, Enrolled())


def test_a_view_is_found_again_by_its_basis(store: Open) -> None:
    here, there = store("aaaaaa"), store("bbbbbb")
    views = []
    for number in range(6):
        who = there if number % 2 else here
        who.reload()
        who.record(f"P{number % 3}", person(f"P{number % 3}"), K.ENROLLED, Enrolled())
        views.append((who.basis(), who.operations()))
    late = store("cccccc")
    for basis, operations in views:
        assert late.operations_at(basis) == operations
    writers = {f"P{number % 3}@{'ab'[number % 2] * 6}" for number in range(6)}
    assert late.basis().keys() == {writer_sha8(writer) for writer in writers}


def test_a_journal_is_replaced_only_by_one_that_extends_it(store: Open, machine: Machine, task: Task) -> None:
    here = store("aaaaaa")
    attempt = machine.attempt(task, "P07")
    assert here.publish(attempt) is Publication.NEW
    assert here.publish(attempt) is Publication.SAME
    found = here.attempt(attempt.name)
    assert found is not None
    assert (found.writer, found.head) == ("P07@aaaaaa", read_journal(attempt / "journal.jsonl").head)
    before = shutil.copytree(attempt, attempt.parent.parent / "older" / attempt.name)
    machine.go_on(task, attempt)
    assert here.publish(attempt) is Publication.EXTENDED
    assert here.publish(before) is Publication.OLDER
    again = store("bbbbbb").attempt(attempt.name)
    assert again is not None
    assert again.journal.read_bytes() == (attempt / "journal.jsonl").read_bytes()


def test_two_journals_of_one_attempt_are_both_kept(
    store: Open, machine: Machine, task: Task, tmp_path: Path
) -> None:
    here = store("aaaaaa")
    attempt = machine.attempt(task, "P07")
    other = Machine.at(tmp_path / "other", FakeClock(1_790_000_009_000))
    copied = other.locations.attempts / attempt.name
    shutil.copytree(attempt, copied)
    machine.go_on(task, attempt)
    other.go_on(task, copied)
    assert here.publish(attempt) is Publication.NEW
    assert [here.publish(copied), here.publish(copied)] == [Publication.CONFLICT, Publication.CONFLICT]
    other.go_on(task, copied)
    assert here.publish(copied) is Publication.CONFLICT
    assert {found.journal.read_bytes() for found in here.attempts() if found.id == attempt.name} == {
        (place / "journal.jsonl").read_bytes() for place in (attempt, copied)
    }


def test_an_attempt_of_nobody_is_not_published(store: Open, machine: Machine, task: Task) -> None:
    with pytest.raises(StudyError, match="no participant"):
        store("aaaaaa").publish(machine.attempt(task, ""))


def test_nothing_is_left_of_who_is_erased_and_nothing_comes_back(
    store: Open, machine: Machine, task: Task, tmp_path: Path
) -> None:
    here, there = store("aaaaaa"), store("bbbbbb")
    for code in ("P07", "P08"):
        here.record(code, person(code), K.ENROLLED, Enrolled())
        attempt = machine.attempt(task, code, assignment=code)
        here.record(code, person(code), K.BEGUN, Begun(assignment=code, attempt=attempt.name))
        here.record(
            code, person(code), K.FINISHED, Finished(assignment=code, attempt=attempt.name, end="gave_up")
        )
        here.publish(attempt)
    there.reload()
    kept = [operation for operation in there.operations() if operation.reviewer.startswith("P07")]
    erasure = here.erase("P07")
    assert (len(erasure.logs), len(erasure.attempts)) == (1, 1)
    assert {operation.subject for operation in here.operations()} == {person("P08"), "erased"}
    assert [found.writer for found in here.attempts()] == ["P08@aaaaaa"]
    said = Ledger(here.operations()).erased[person_sha256("P07")]
    assert (dict(said.counts), said.logs) == ({"gave_up": 1}, (writer_sha8("P07@aaaaaa"),))
    there.reload()
    assert there.append(kept) == 3
    assert there.sweep().any
    here.reload()
    assert Ledger(here.operations()).people.keys() == {"P08"}
    for process in (here, there):
        assert not process.sweep().any
    assert {operation.subject for operation in here.operations()} == {person("P08"), "erased"}
    assert Ledger(here.operations()).erased[person_sha256("P07")].counts == {"gave_up": 1}
