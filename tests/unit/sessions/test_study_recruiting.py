"""People enrolled from a table, caps, assignments that time out, and the table of payments."""

from __future__ import annotations

import csv
import errno
import io
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from fakes import FakeClock
from small_study import do, participation, study_at, take_part
from small_study import opened as opened_for
from study_folders import Machine, declare

from gistpoint.core.errors import UserError
from gistpoint.core.logs import FileLock, wait_for
from gistpoint.core.study.operations import Returned, StudyError
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.steps import DoneStep, ReadyStep, RefusalReason, RefusedStep
from gistpoint.sessions.studies.consenting import copy_for, save_copy
from gistpoint.sessions.studies.course import AmendStudy, amend_study, open_for_people
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.lateness import return_late
from gistpoint.sessions.studies.paying import payments, payments_csv
from gistpoint.sessions.studies.people import (
    EnrolPeople,
    WithdrawPerson,
    enrol_people,
    withdraw_person,
)
from gistpoint.sessions.studies.recruiting import RECRUITS, recruits_of

PROLIFIC = "60abc1def2345678901234ef"


def opened(tmp_path: Path, participants: dict[str, Any] | None = None) -> StudyFolder:
    changes = {"participants": participants} if participants else None
    study = Machine.at(tmp_path / "home").open(declare(tmp_path / "shop", changes))
    open_for_people(study)
    return study


def table(tmp_path: Path, text: str) -> EnrolPeople:
    (tmp_path / "people.csv").write_text(text, encoding="utf-8", newline="")
    return EnrolPeople(table=str(tmp_path / "people.csv"))


def test_a_recruiters_identifiers_get_random_codes_and_stay_private(tmp_path: Path) -> None:
    study = opened(tmp_path, {"strata": ["junior", "senior"]})
    people = enrol_people(
        study, table(tmp_path, f"external,stratum\n{PROLIFIC},junior\nanna@example.org,senior\n")
    )
    assert [one.external for one in people.values()] == [PROLIFIC, "anna@example.org"]
    assert {who.stratum for who in study.ledger.people.values()} == {"junior", "senior"}
    private = study.root / "private" / RECRUITS
    named = [
        path for path in study.root.rglob("*") if path.is_file() and PROLIFIC.encode() in path.read_bytes()
    ]
    assert named == [private]
    assert not any(PROLIFIC in path.name for path in study.root.rglob("*"))
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert set(recruits_of(study.root).values()) == {PROLIFIC, "anna@example.org"}
    with pytest.raises(StudyError, match="already enrolled"):
        enrol_people(study, table(tmp_path, f"external,stratum\n{PROLIFIC},junior\n"))
    code = next(iter(people))
    withdraw_person(study, WithdrawPerson(code=code, erase=True))
    assert recruits_of(study.root) == {list(people)[1]: "anna@example.org"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,code\nAnna,P1\n", "which a study may not contain"),
        ("code\nP1\np1\n", "twice in the column 'code'"),
        ("external,code\n,\nx,\n,P2\n", ""),
        ("external,stratum\n,junior\n", "neither an external identifier nor a code"),
        ("code,role\nP1,boss\n", "'boss' is not a role"),
        ("code\n", "contains nobody"),
        ("external,stratum\rx,\ry,\r", ""),
        ("external,stratum\r\nx,\r\ny,\r\n", ""),
        (f"external\n{'x' * 131_073}\n", "can't be read: it is not CSV"),
        (f"{'x' * 131_073}\n", "can't be read: it is not CSV"),
        ("code\n" + "x" * 1_000_000, "longer than"),
        (f"code\n{PROLIFIC}\n", "looks like a Prolific id"),
    ],
)
def test_a_table_is_read_strictly(tmp_path: Path, text: str, said: str) -> None:
    study = opened(tmp_path)
    if not said:
        assert len(enrol_people(study, table(tmp_path, text))) == 2
        return
    with pytest.raises(StudyError, match=said):
        enrol_people(study, table(tmp_path, text))
    assert not study.ledger.people


def test_a_private_table_that_is_not_csv_is_refused(tmp_path: Path) -> None:
    study = opened(tmp_path)
    enrol_people(study, table(tmp_path, "external\nx\n"))
    (study.root / "private" / RECRUITS).write_text(f"external,code\n{'x' * 131_073},P1\n")
    with pytest.raises(StudyError, match="private table"):
        recruits_of(study.root)


@pytest.mark.parametrize(
    "code", [PROLIFIC, "A2XYZ3ABCDEF45", "123e4567-e89b-42d3-a456-426614174000", "4711815"]
)
def test_a_code_that_is_an_identity_elsewhere_is_refused(tmp_path: Path, code: str) -> None:
    with pytest.raises(StudyError, match="looks like"):
        enrol_people(opened(tmp_path), EnrolPeople(code=code))


def test_caps_by_stratum_and_in_all_count_who_still_takes_part(tmp_path: Path) -> None:
    study = opened(tmp_path, {"strata": ["junior", "senior"], "caps": {"junior": 2}, "cap": 3})
    codes = list(enrol_people(study, EnrolPeople(number=2, stratum="junior")))
    with pytest.raises(StudyError, match="at most 2 people of the stratum 'junior'"):
        enrol_people(study, EnrolPeople(number=1, stratum="junior"))
    with pytest.raises(StudyError, match="at most 3 people: 2 take part, so 2 more"):
        enrol_people(study, EnrolPeople(number=2, stratum="senior"))
    withdraw_person(study, WithdrawPerson(code=codes[0], keep=True))
    enrol_people(study, EnrolPeople(number=1, stratum="junior"))
    enrol_people(study, EnrolPeople(number=5, stratum="junior", role="qa"))


def running(tmp_path: Path, **changes: Any) -> tuple[Machine, Path]:
    machine = Machine.at(tmp_path / "home", FakeClock(1_790_000_000_000))
    design = {"tasks_per_person": 2, "per_source": 0, "return_after_hours": 24}
    root = study_at(tmp_path / "study", {"design": design, **changes})
    opened_for(machine.open(root), "P1", "P2")
    return machine, root


def until_ready(machine: Machine, root: Path, code: str) -> None:
    part = participation(machine, root, code)
    while not isinstance(step := part.step(), ReadyStep):
        assert do(part, step)


def test_open_tasks_of_who_does_not_come_back_are_freed_when_the_next_person_is_planned(
    tmp_path: Path,
) -> None:
    machine, root = running(tmp_path)
    until_ready(machine, root, "P1")
    clock = machine.clock
    assert isinstance(clock, FakeClock)
    clock.advance(23 * 3_600_000)
    assert return_late(machine.open(root)) == []
    clock.advance(2 * 3_600_000)
    until_ready(machine, root, "P2")
    first = machine.open(root).ledger.person("P1")
    assert [(fact.late, fact.why) for fact in first.facts.all(Returned)] == [
        (True, "no record for 24 hours")
    ] * 2
    back = participation(machine, root, "P1")
    while not isinstance(step := back.step(), DoneStep):
        assert do(back, step)
    assert not step.complete
    assert not machine.open(root).ledger.person("P1").is_complete


def paid(folder: StudyFolder, *, hidden: bool, rows: list[AttemptRow] | None = None) -> list[dict[str, str]]:
    found = payments(folder.study, folder.ledger, rows or [], {"P1": PROLIFIC}, hidden=hidden)
    return list(csv.DictReader(io.StringIO(payments_csv(found))))


PAY = {
    "completion": {"code": "C1ABC2"},
    "pay": {"currency": "EUR", "amount": 10.0, "per_hour": 6.0, "bonus_amount": 2.0, "bonus_for": "solved"},
}


def test_payments_have_minutes_and_completion_and_no_result(tmp_path: Path) -> None:
    machine, root = running(tmp_path, participants=PAY)
    assert isinstance(take_part(participation(machine, root, "P1"))[-1], DoneStep)
    folder = machine.open(root)
    first, second = paid(folder, hidden=True)
    assert (first["state"], first["completion"], first["external"]) == ("complete", "C1ABC2", PROLIFIC)
    assert (first["tasks"], first["given"], first["sittings"], first["bonus"]) == ("2", "2", "1", "")
    assert (second["state"], second["minutes"], second["base"], second["completion"]) == (
        "not begun",
        "0.0",
        "0.0",
        "",
    )
    records = [
        fact.utc_ms
        for facts in folder.ledger.person("P1").facts.by_kind.values()
        for fact in facts
        if type(fact).__name__ != "Enrolled"
    ]
    minutes = (max(records) - min(records)) / 60_000
    assert float(first["minutes"]) == pytest.approx(minutes, abs=0.06)
    assert float(first["base"]) == pytest.approx(10 + 6 * minutes / 60, abs=0.01)
    assert {"solved", "score", "end"}.isdisjoint(first)
    row = AttemptRow(attempt="x", study="s", task="t", participant="P1", solved=True, active_s=90.0)
    assert paid(folder, hidden=False, rows=[row])[0]["bonus"] == "2.0"
    assert paid(folder, hidden=False, rows=[row])[0]["task_minutes"] == "1.5"


def test_a_sitting_on_another_day_is_another_sitting(tmp_path: Path) -> None:
    machine, root = running(tmp_path, participants=PAY)
    until_ready(machine, root, "P1")
    clock = machine.clock
    assert isinstance(clock, FakeClock)
    clock.advance(5 * 3_600_000)
    take_part(participation(machine, root, "P1"))
    (first, _) = paid(machine.open(root), hidden=True)
    assert first["sittings"] == "2"
    assert float(first["minutes"]) < 60


def test_work_on_a_task_that_no_record_follows_is_paid(tmp_path: Path) -> None:
    machine, root = running(tmp_path, participants=PAY)
    until_ready(machine, root, "P1")
    part = participation(machine, root, "P1")
    step = part.step()
    assert isinstance(step, ReadyStep)
    part.close(part.begin(step))
    folder = machine.open(root)
    (begun,) = (fact for facts in folder.ledger.person("P1").begun.values() for fact in facts)
    worked = AttemptRow(
        attempt=begun.attempt, study="s", task="t", participant="P1", active_s=2400.0, waiting_s=600.0
    )
    before, after = (paid(folder, hidden=True, rows=rows)[0] for rows in ([], [worked]))
    # The program was killed in the task: the log ends where it began.
    assert float(after["minutes"]) - float(before["minutes"]) == pytest.approx(50, abs=0.11)
    assert float(after["base"]) - float(before["base"]) == pytest.approx(6 * 50 / 60, abs=0.02)
    clock = machine.clock
    assert isinstance(clock, FakeClock)
    # On the next day, the task is ended in a sitting of its own.
    clock.advance(20 * 3_600_000)
    take_part(participation(machine, root, "P1"))
    whole = machine.open(root)
    resumed = float(paid(whole, hidden=True)[0]["minutes"])
    longer = msgspec.structs.replace(worked, active_s=2400.0 + 60 * resumed)
    assert float(paid(whole, hidden=True, rows=[longer])[0]["minutes"]) > resumed + 40
    assert float(paid(whole, hidden=True, rows=[])[0]["minutes"]) == resumed


def test_another_version_of_the_program_is_refused_until_the_study_is_amended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine.at(tmp_path / "home")
    root = study_at(tmp_path / "study")
    study = machine.open(root)
    open_for_people(study)
    enrol_people(study, EnrolPeople(code="P1"))
    monkeypatch.setattr("gistpoint.sessions.studies.taking.__version__", "99.1")
    monkeypatch.setattr("gistpoint.sessions.studies.course.__version__", "99.1")
    step = participation(machine, root, "P1").step()
    assert isinstance(step, RefusedStep)
    assert step.reason is RefusalReason.VERSION_CHANGED
    assert "gistpoint 99.1" in step.words
    amend_study(machine.open(root), AmendStudy(why="an upgrade"))
    assert not isinstance(participation(machine, root, "P1").step(), RefusedStep)


def test_a_participants_copy_names_nobody_and_is_what_they_agreed_to(tmp_path: Path) -> None:
    machine, root = running(tmp_path)
    take_part(participation(machine, root, "P1"))
    folder = machine.open(root)
    text = copy_for(folder, "P1")
    assert "[x] Yes   (needed)" in text
    assert "Agreed to on 2026-09-2" in text
    first, second = (save_copy(folder, tmp_path, [True]) for _ in range(2))
    assert first != second
    assert "P1" not in first.name + second.name
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    (root / "texts" / "consent.md").write_text("Another text.", encoding="utf-8")
    with pytest.raises(StudyError, match="has changed since"):
        copy_for(machine.open(root), "P1")
    with pytest.raises(StudyError, match="has not agreed"):
        copy_for(folder, "P2")


@pytest.mark.parametrize("act", [lambda root: recruits_of(root)])
def test_a_private_table_that_can_not_be_read_is_an_error(
    tmp_path: Path, act: Callable[[Path], object]
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / RECRUITS).write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="can't be read"):
        act(tmp_path)


def test_enrolling_on_a_full_disk_leaves_no_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = opened(tmp_path)

    def full(file: int, data: bytes, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("gistpoint.core.logs.files.append_whole", full)
        with pytest.raises(StudyError, match="No space left"):
            enrol_people(study, EnrolPeople(code="ZZ1"))
    assert list((study.root / "log").glob("ZZ1@*")) == []
    enrol_people(study, EnrolPeople(code="ZZ1"))
    assert list(study.ledger.people) == ["ZZ1"]


def test_a_writer_that_waited_for_a_deleted_file_writes_to_the_new_one(tmp_path: Path) -> None:
    path, got = tmp_path / "log", list[FileLock]()
    first = wait_for(path)
    waiting = Thread(target=lambda: got.append(wait_for(path)))
    waiting.start()
    while not _is_opened_twice(path):
        pass
    path.unlink()
    first.release()
    waiting.join(60)
    os.write(got[0].file, b"kept")
    assert path.read_bytes() == b"kept"
    got[0].release()


def _is_opened_twice(path: Path) -> bool:
    """Whether this process has opened a file a second time, as a writer that waits for its lock has."""
    links = list[str]()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.append(str(entry.readlink()))
    return links.count(str(path)) == 2
