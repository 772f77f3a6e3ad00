"""A study's folder: its tasks, the files of its log, and refused people."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from builders import build_task
from study_folders import Machine, copy_of, declare

from gistpoint.core.errors import UserError
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.logs import torn_path
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Enrolled,
    StudyError,
    StudyOpened,
    StudyOperationKind,
    person,
)
from gistpoint.core.study.ports import Publication
from gistpoint.core.tasks.model import Mode
from gistpoint.sandbox.housekeeping import kept
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.machine import machine_of
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.syncing import synchronise

K = StudyOperationKind


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.at(tmp_path / "home")


def test_a_machine_keeps_its_six_characters(tmp_path: Path) -> None:
    name = machine_of(tmp_path / "a")
    assert machine_of(tmp_path / "a") == name
    assert len(name) == 6
    assert name != machine_of(tmp_path / "b")
    (tmp_path / "a" / "machine").write_text("../../x")
    with pytest.raises(UserError, match="six characters"):
        machine_of(tmp_path / "a")


def test_tasks_are_read_with_what_their_answers_say(tmp_path: Path, machine: Machine) -> None:
    study = machine.open(declare(tmp_path / "s"))
    assert {(task.mode, task.targets, task.source) for task in study.tasks.values()} == {
        ("remove", ("shop/prices.py::discount",), "shop"),
        ("discovery", ("shop/prices.py::discount",), "shop"),
    }
    task = next(iter(study.tasks.values()))
    assert (task.tool_uses, task.submissions, task.corruptions) == (16, 4, 1)
    assert "read_file" in task.tools
    assert study.task(task.id).id == task.id
    with pytest.raises(StudyError, match="no task 0123"):
        study.task("0123456789abcdef")


def test_archives_are_tasks_and_unpacked_once(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s", tasks=False)
    task = build_task(tmp_path / "made")
    (root / "tasks").mkdir()
    pack_task(task.folder, root / "tasks" / "one.tar.zst")
    assert machine.open(root).tasks.keys() == {task.id}
    folder = machine.open(root).task(task.id).folder
    before = folder.stat().st_mtime_ns
    assert machine.open(root).task(task.id).folder == folder
    assert folder.stat().st_mtime_ns == before


def test_an_unpacked_archive_is_in_use_while_its_study_is(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s", tasks=False)
    task = build_task(tmp_path / "made")
    (root / "tasks").mkdir()
    pack_task(task.folder, root / "tasks" / "one.tar.zst")
    place = machine.open(root).task(task.id).folder.parent
    cache, month = place.parent.parent, 30 * 24 * 3600
    os.utime(place, (0, 0))
    # What programs left elsewhere is listed, too.
    assert str(place) in {item.place for item in kept(cache, unused_s=month)}
    assert machine.open(root).tasks.keys() == {task.id}
    assert str(place) not in {item.place for item in kept(cache, unused_s=month)}


def test_a_damaged_archive_is_a_problem_and_leaves_the_other_tasks(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s", tasks=False)
    task = build_task(tmp_path / "made")
    (root / "tasks").mkdir()
    pack_task(task.folder, root / "tasks" / "two.tar.zst")
    (root / "tasks" / "one.tar.zst").write_bytes((root / "tasks" / "two.tar.zst").read_bytes()[:200])
    study = machine.open(root)
    assert study.tasks.keys() == {task.id}
    (problem,) = study.read.problems
    assert problem.startswith("one.tar.zst: ")


def test_a_list_names_tasks(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s", {"tasks": "tasks.txt"}, tasks=False)
    task = build_task(root / "kept", Mode.DISCOVERY)
    (root / "tasks.txt").write_text(f"# ours\nkept/{task.folder.name}\n")
    assert machine.open(root).tasks.keys() == {task.id}
    (root / "tasks.txt").write_text("no-such-task\n")
    with pytest.raises(StudyError, match=r"tasks.txt, line 1"):
        _ = machine.open(root).tasks


def test_no_tasks_at_all_are_told(tmp_path: Path, machine: Machine) -> None:
    with pytest.raises(StudyError, match="the key 'tasks' names 'tasks'"):
        _ = machine.open(declare(tmp_path / "s", tasks=False)).tasks


def test_a_torn_line_has_no_number_and_takes_none_from_the_next(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s")
    study = machine.open(root)
    study.record("P07", person("P07"), K.ENROLLED, Enrolled())
    (path,) = (root / "log").iterdir()
    with path.open("ab") as file:
        file.write(b'{"op": "torn')
    study.reload()
    assert list(study.basis().values()) == [2]
    assert "was cut off" in study.files.problems[0]
    said = study.record("P07", person("P07"), K.DECLINED)
    assert list(study.basis().values()) == [3]
    assert study.store.operations_at(study.basis())[-1] == said
    assert torn_path(path).read_bytes() == b'{"op": "torn\n'
    study.reload()
    assert study.files.problems == ()
    assert study.ledger.person("P07").declined


def test_what_another_process_adds_to_a_file_is_read_with_the_next_record(
    tmp_path: Path, machine: Machine
) -> None:
    root = declare(tmp_path / "s")
    here, there = machine.open(root), machine.open(root)
    here.record("P07", person("P07"), K.ENROLLED, Enrolled())
    there.record("P07", person("P07"), K.DECLINED)
    assert list(there.basis().values()) == [3]
    assert {said.kind for said in there.files.operations()} == {K.ENROLLED.value, K.DECLINED.value}


def test_what_was_torn_off_a_persons_file_is_erased_with_it(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s")
    study = machine.open(root)
    study.record("P07", person("P07"), K.ENROLLED, Enrolled())
    (path,) = (root / "log").iterdir()
    with path.open("ab") as file:
        file.write(b'{"op": "torn')
    study.record("P07", person("P07"), K.DECLINED)
    assert torn_path(path).exists()
    assert len(study.erase("P07").logs) == 1
    assert [found.name.partition("@")[0] for found in (root / "log").iterdir()] == [ORGANISER]
    torn_path(path).write_bytes(b"it came back\n")
    assert synchronise(machine.open(root)).erased.any
    assert not torn_path(path).exists()


def test_two_copies_of_a_file_become_the_same_bytes(tmp_path: Path, machine: Machine) -> None:
    root = declare(tmp_path / "s")
    study = machine.open(root)
    other = copy_of(root, tmp_path / "other")
    there = machine.open(other)
    for kind in (K.ENROLLED, K.DECLINED):
        there.record("P07", person("P07"), kind)
        (path,) = (other / "log").glob("*.jsonl")
        with path.open("ab") as file:
            file.write(b'{"op": "being written')
        assert synchronise(study, other).lines == (2 if kind == K.ENROLLED else 1)
        assert (root / "log" / path.name).read_bytes() == path.read_bytes().removesuffix(
            b'{"op": "being written'
        )


@pytest.mark.parametrize("name", ["log/P1@aaaaaa.jsonl", "reviews/P1.jsonl"])
def test_a_copy_whose_files_cannot_be_read_is_refused_in_a_sentence(
    name: str, tmp_path: Path, machine: Machine
) -> None:
    study = machine.open(declare(tmp_path / "s", tasks=False))
    other = declare(tmp_path / "other", tasks=False)
    (other / name).mkdir(parents=True)
    with pytest.raises(StudyError, match=f"{name} can't be used: ") as caught:
        synchronise(study, other)
    assert "synchronise again" in caught.value.hint


def test_a_copy_of_a_newer_version_is_refused_before_anything_of_it_is_taken(
    tmp_path: Path, machine: Machine
) -> None:
    root = declare(tmp_path / "s")
    study = machine.open(root)
    study.record("P07", person("P07"), K.ENROLLED, Enrolled())
    (path,) = (root / "log").iterdir()
    before = path.read_bytes()
    other = copy_of(root, tmp_path / "other")
    newer = before.replace(b'"version": 1', b'"version": 2') + b'{"new":"line"}\n'
    (other / "log" / path.name).write_bytes(newer)
    with pytest.raises(
        StudyError, match=r"is version 2 of gistpoint\.study, but this version of gistpoint knows version 1"
    ):
        synchronise(study, other)
    assert path.read_bytes() == before
    path.write_bytes(newer)
    with pytest.raises(StudyError, match="Install a newer gistpoint"):
        machine.open(root).reload()


def test_the_ledger_is_folded_again_after_each_record(tmp_path: Path, machine: Machine) -> None:
    study = machine.open(declare(tmp_path / "s"))
    before = study.ledger
    assert study.ledger is before
    study.record(ORGANISER, STUDY, K.OPENED, StudyOpened(protocol="p", tasks=tuple(study.tasks)))
    assert before.opened is None
    assert study.ledger.protocol == "p"


def test_people_and_simulation_are_not_mixed(tmp_path: Path, machine: Machine) -> None:
    people = machine.open(declare(tmp_path / "people"))
    simulated = machine.open(declare(tmp_path / "simulated", {"simulated": True}))
    people.require_people()
    simulated.require_simulated()
    with pytest.raises(StudyError, match="simulated study: people can't take part"):
        simulated.require_people()
    with pytest.raises(StudyError, match="nothing simulated"):
        people.require_simulated()


def test_publishing_goes_on_wherever_it_was_killed(tmp_path: Path, machine: Machine) -> None:
    study = machine.open(declare(tmp_path / "s"))
    task = study.task(min(study.tasks))
    attempt = machine.attempt(task, "P07")
    place = study.files.published / attempt.name
    part = place.with_name(f".{attempt.name}.tmp")
    part.mkdir(parents=True)
    (part / JOURNAL).write_bytes(b"{")
    place.mkdir()
    assert list(study.attempts()) == []
    assert study.publish(attempt) is Publication.NEW
    machine.go_on(task, attempt)
    shutil.copy(attempt / JOURNAL, place / JOURNAL)
    (found,) = study.attempts()
    assert found.bytes < len((place / JOURNAL).read_bytes())
    assert [finding.name for finding in audit(study) if not finding.note] == ["not_in_log"]
    assert study.publish(attempt) is Publication.SAME
    (found,) = study.attempts()
    assert found.bytes == len((place / JOURNAL).read_bytes())
    assert [path.name for path in study.files.published.iterdir()] == [attempt.name]


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path, machine: Machine) -> None:
    study = machine.open(declare(tmp_path / "s"))
    attempt = machine.attempt(study.task(min(study.tasks)), "P07")
    study.files.published.write_text("a file in the place of the folder")
    with pytest.raises(StudyError, match="can't be published") as told:
        study.publish(attempt)
    assert "gistpoint study sync" in told.value.hint
