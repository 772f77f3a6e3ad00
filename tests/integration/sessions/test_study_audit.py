"""The audit finds nothing in a folder merged from two machines, and names every later change."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from examples import CHOSEN, EXAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from small_study import opened as opened_study
from small_study import participation, study_at
from small_study import take_part as go_through
from study_folders import Machine, declare
from study_merging import DESIGN, merge_two, start, take_part, wrong
from study_merging import opened as open_tasks

from gistpoint.core.study.assigning import plan_tasks, planned_data
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import (
    ORGANISER,
    Begun,
    Consented,
    Enrolled,
    Finished,
    Planned,
    Remark,
    Sitting,
    StudyOperation,
    StudyOperationKind,
    person,
)
from gistpoint.core.study.operations import attempt as about
from gistpoint.core.study.steps import DoneStep
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.publishing import PUBLISHED
from gistpoint.sessions.studies.store import checksum, summed
from gistpoint.sessions.studies.writers import name_in

K = StudyOperationKind


@settings(max_examples=max(2, EXAMPLES[CHOSEN] // 25))
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.01, 0.1, 0.4]))
def test_two_machines_come_to_the_same_ledger_and_a_clean_audit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, share: float
) -> None:
    merge_two(tmp_path_factory.mktemp("two"), seed, share)


@pytest.mark.parametrize("kind", [K.CONSENTED, K.PLANNED])
def test_what_must_be_there_before_an_attempt_is_named(copied: StudyFolder, kind: StudyOperationKind) -> None:
    """Lines after the last plan's view can be cut without a trace, except those that an attempt requires."""
    copied.record("P4", person("P4"), K.ENROLLED, Enrolled())
    if kind is not K.CONSENTED:
        copied.record("P4", person("P4"), K.CONSENTED, Consented(text_sha256="c"))
    copied.record("P4", person("P4"), K.BEGUN, Begun(assignment="a" * 12, attempt="x"))
    assert ("no_consent" in {finding.name for finding in wrong(copied)}) == (kind is K.CONSENTED)
    assert "not_planned" in {finding.name for finding in wrong(copied)}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with two people and the journal of one planned attempt."""
    base = tmp_path_factory.mktemp("small")
    root = declare(base / "study", DESIGN)
    machine = Machine.at(base / "home")
    study = machine.open(root)
    start(study)
    for code in ("P1", "P2"):
        for stage in range(3):
            take_part(study, code, stage)
    given = study.ledger.person("P1").assignments[0]
    attempt = machine.attempt(study.task(given.task), "P1", assignment=given.id)
    study.record("P1", person("P1"), K.SITTING, Sitting(state="began"))
    study.record("P1", person("P1"), K.BEGUN, Begun(assignment=given.id, attempt=attempt.name))
    study.publish(attempt)
    assert list(audit(study)) == []
    return base


@pytest.fixture
def copied(small: Path, tmp_path: Path) -> StudyFolder:
    shutil.copytree(small, tmp_path / "all")
    return Machine.at(tmp_path / "all" / "home").open(tmp_path / "all" / "study")


def each_byte(study: StudyFolder, path: Path, begin: int, end: int, number: int) -> None:
    data, chance = path.read_bytes(), random.Random(7)
    for place in [begin, end - 1, *chance.sample(range(begin, end), number)]:
        other = chance.choice([byte for byte in range(256) if byte != data[place]])
        path.write_bytes(data[:place] + bytes([other]) + data[place + 1 :])
        found = wrong(study)
        assert found, (place, data[place : place + 1], bytes([other]))
        assert any(path.name.partition(".")[0] in f.where or path.parent.name in f.where for f in found), (
            found
        )
    path.write_bytes(data)
    assert wrong(study) == []


def test_a_changed_byte_of_a_plan_is_named(copied: StudyFolder) -> None:
    path = next((copied.root / "log").glob("P2@*.jsonl"))
    data = path.read_bytes()
    begin = data.rindex(b"\n", 0, data.index(b'"planned"')) + 1
    each_byte(copied, path, begin, data.index(b"\n", begin) + 1, 80)


def test_a_changed_byte_of_a_journal_is_named(copied: StudyFolder) -> None:
    (found,) = copied.attempts()
    data = found.journal.read_bytes()
    each_byte(copied, found.journal, 0, len(data), 40)
    each_byte(copied, found.journal, data.rindex(b"\n", 0, -1) + 1, len(data), 30)


def test_a_plan_that_does_not_follow_from_its_basis_is_named(copied: StudyFolder) -> None:
    copied.record("P3", person("P3"), K.ENROLLED, Enrolled())
    given = plan_tasks(copied.study, copied.tasks, copied.ledger, "P3")
    other = min(copied.tasks.keys() - {given[0].task})
    data = planned_data(given, basis=copied.basis(), protocol=copied.protocol)
    rows = ((data.assignments[0][0], other, *data.assignments[0][2:]), *data.assignments[1:])
    forged = type(data)(basis=data.basis, protocol=data.protocol, assignments=rows)  # type: ignore[arg-type]
    copied.record("P3", person("P3"), K.PLANNED, forged)
    assert [finding.name for finding in wrong(copied)] == ["plan_differs"]


def _cut(study: StudyFolder) -> None:
    path = next((study.root / "log").glob("P1@*.jsonl"))
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:2]) + b"\n")


def _removed(study: StudyFolder) -> None:
    next((study.root / "log").glob("P1@*.jsonl")).unlink()


def _renamed(study: StudyFolder) -> None:
    path = next((study.root / "log").glob("P2@*.jsonl"))
    path.rename(path.with_name("P2@zzzzzz.jsonl"))


def _of_another(study: StudyFolder) -> None:
    study.record("P2", person("P1"), K.DECLINED)


def _corrected_elsewhere(study: StudyFolder) -> None:
    (found,) = study.attempts()
    study.record(ORGANISER, about(found.id), K.NOTE, Remark(text="x"))


def _cut_journal(study: StudyFolder) -> None:
    (found,) = study.attempts()
    found.journal.write_bytes(found.journal.read_bytes().rsplit(b"\n", 2)[0] + b"\n")


def _no_note(study: StudyFolder) -> None:
    (found,) = study.attempts()
    (found.folder / PUBLISHED).unlink()


def _conflict(study: StudyFolder) -> None:
    (found,) = study.attempts()
    shutil.copytree(found.folder, found.folder.with_name(f"{found.id}~00000000"))


def _unknown(study: StudyFolder) -> None:
    (found,) = study.attempts()
    found.folder.rename(found.folder.with_name("0" * 20))


def _edited(study: StudyFolder) -> None:
    (study.root / "texts" / "rules.md").write_text("All is allowed.")


def _task_gone(study: StudyFolder) -> None:
    shutil.rmtree(next((study.root / "tasks").iterdir()))


def _repeated_uuid(study: StudyFolder) -> None:
    """Hide an operation of the organiser behind one with its uuid, in a file that comes first."""
    log = study.files.log
    hidden = next(one for one in log.book.operations if name_in(one.reviewer) == "organiser")
    hiding = summed(StudyOperation(hidden.op, "A0@m1", hidden.utc_ms, "person:A0", "sitting"))
    log.path_of("A0@m1").write_bytes(log.codec.header + log.codec.encode(hiding))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_cut, "log_cut"),
        (_repeated_uuid, "uuid_repeated"),
        (_removed, "log_cut"),
        (_renamed, "wrong_writer"),
        (_of_another, "wrong_place"),
        (_corrected_elsewhere, "wrong_place"),
        (_cut_journal, "journal_cut"),
        (_no_note, "note_missing"),
        (_conflict, "publish_conflict"),
        (_unknown, "not_in_log"),
        (_edited, "protocol_changed"),
        (_task_gone, "tasks_missing"),
    ],
)
def test_what_was_changed_is_named(
    copied: StudyFolder, change: Callable[[StudyFolder], None], name: str
) -> None:
    change(copied)
    again = Machine.at(copied.root.parent / "home").open(copied.root)
    assert name in {finding.name for finding in wrong(again)}


def test_a_line_that_is_being_written_is_a_note(copied: StudyFolder) -> None:
    path = next((copied.root / "log").glob("P1@*.jsonl"))
    path.write_bytes(path.read_bytes() + b'{"op":"7d')
    assert [(finding.name, finding.note) for finding in audit(copied)] == [("line_unreadable", True)]


def test_an_end_without_its_journal_is_a_note(copied: StudyFolder) -> None:
    (found,) = copied.attempts()
    given = copied.ledger.person("P1").assignments[0]
    data = Finished(assignment=given.id, attempt=found.id, end="gave_up", head=found.head)
    copied.record("P1", person("P1"), K.FINISHED, data)
    assert list(audit(copied)) == []
    shutil.rmtree(found.folder)
    assert [(finding.name, finding.note) for finding in audit(copied)] == [("not_published", True)]


def test_a_journal_that_the_log_does_not_end_so_is_named(copied: StudyFolder) -> None:
    (found,) = copied.attempts()
    given = copied.ledger.person("P1").assignments[0]
    data = Finished(assignment=given.id, attempt=found.id, end="gave_up", head="0" * 64)
    copied.record("P1", person("P1"), K.FINISHED, data)
    assert [finding.name for finding in wrong(copied)] == ["head_differs"]
    assert (found.folder / JOURNAL).is_file()


HOSTILE = (
    b'{"op":"x","reviewer":"P1@zz","utc_ms":1,"subject":"person:P1","kind":"note","data":{"text":NaN}}',
    b'{"op":"x","reviewer":"P1@zz","utc_ms":1,"subject":"person:P1","kind":"answers","data":{"values":{"a":1e999}}}',
    b'{"op":"x","reviewer":"P1@zz","utc_ms":1,"subject":"attempt:","kind":"\\u001b[31m","data":{}}',
    b'{"op":"x","reviewer":"P1@zz","utc_ms":1,"subject":"person:../..","kind":"planned","data":{"basis":{"a":-1}}}',
    b'{"op":"x","sum":{},"reviewer":"P1@zz","utc_ms":1,"subject":"\\ud800","kind":"begun","data":{"attempt":"a"}}',
    b'{"op":"x","sum":[1],"reviewer":"P1@zz","utc_ms":1,"subject":"study","kind":"amended","data":{"protocol":"a"}}',
    b"[" * 100_000,
    b"9" * 10_000,
    b"\xff\xfe\x00",
)


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_hostile_line_is_named(copied: StudyFolder, line: bytes, end: bytes) -> None:
    path = next((copied.root / "log").glob("P1@*.jsonl"))
    path.write_bytes(path.read_bytes() + line + end)
    assert any(path.name in finding.where for finding in audit(copied))
    copied.record("P1", person("P1"), K.DECLINED)
    assert copied.store.operations_at(copied.basis()) == copied.store.operations()


@pytest.mark.parametrize(
    "name", ["..@zz.jsonl", "%00.jsonl", "@.jsonl", "P1@zz.sync-conflict-2026.jsonl", "é" * 80 + ".jsonl"]
)
def test_a_file_of_a_strange_name_is_named(copied: StudyFolder, name: str) -> None:
    path = next((copied.root / "log").glob("P1@*.jsonl"))
    (path.parent / name).write_bytes(path.read_bytes())
    assert "wrong_writer" in {finding.name for finding in wrong(copied)}
    copied.erase("P2")
    assert copied.ledger.people.keys() == {"P1"}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"format":"gistpoint.published","version":1,"bytes":-5}', "\x00", '{"bytes": 1e99}'],
)
def test_a_hostile_note_of_a_journal_is_named(copied: StudyFolder, text: str) -> None:
    (found,) = copied.attempts()
    (found.folder / PUBLISHED).write_text(text)
    assert wrong(copied)
    copied.erase("P1")
    assert list(copied.attempts()) == []


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_line_that_is_gone_from_the_middle_is_named(copied: StudyFolder) -> None:
    path = next((copied.root / "log").glob("P1@*.jsonl"))
    lines = _lines(path)
    copied.record("P1", person("P1"), K.DECLINED)
    whole = _lines(path)
    for gone in range(1, len(lines)):
        path.write_bytes(b"".join(whole[:gone] + whole[gone + 1 :]))
        assert "line_missing" in {finding.name for finding in wrong(copied)}, gone
    path.write_bytes(b"".join(whole))
    assert wrong(copied) == []


def test_two_lines_in_another_order_are_named(copied: StudyFolder) -> None:
    path = next((copied.root / "log").glob("P2@*.jsonl"))
    lines = _lines(path)
    path.write_bytes(b"".join([*lines[:1], lines[2], lines[1], *lines[3:]]))
    assert "line_missing" in {finding.name for finding in wrong(copied)}


def test_a_log_without_links_opens_and_what_follows_is_linked(copied: StudyFolder) -> None:
    """An earlier version wrote no links; the lines of such a file can be continued."""
    for path in (copied.root / "log").glob("*.jsonl"):
        members = [json.loads(line) for line in _lines(path)]
        old = [{name: value for name, value in line.items() if name != "prev"} for line in members]
        path.write_bytes(b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in old))
    assert list(audit(copied)) == []
    copied.record("P2", person("P2"), K.DECLINED)
    copied.record("P2", person("P2"), K.SITTING, Sitting(state="ended"))
    assert list(audit(copied)) == []
    path = next((copied.root / "log").glob("P2@*.jsonl"))
    path.write_bytes(b"".join([*_lines(path)[:-2], _lines(path)[-1]]))
    assert [finding.name for finding in wrong(copied)] == ["line_missing"]


def _cut_and_linked_again(path: Path, kind: str) -> None:
    """Remove the operations of a kind, and link the remaining lines as this program does."""
    kept, last = list[bytes](), b""
    for line in _lines(path):
        members = json.loads(line)
        if members.get("kind") == kind:
            continue
        if last:
            members["prev"] = hashlib.sha256(last.rstrip(b"\n")).hexdigest()[:16]
            line = json.dumps(members, separators=(",", ":")).encode() + b"\n"
        kept.append(line)
        last = line
    path.write_bytes(b"".join(kept))


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("consented", "the consent"), ("answers", "the form 'task'"), ("sitting", "the rules")],
)
def test_a_step_that_is_missing_from_a_whole_log_is_named(tmp_path: Path, kind: str, missing: str) -> None:
    """Removing lines and linking the rest again leaves a log that no participant can have written."""
    machine = Machine.at(tmp_path / "home")
    root = study_at(tmp_path / "study")
    opened_study(machine.open(root))
    assert isinstance(go_through(participation(machine, root))[-1], DoneStep)
    study = machine.open(root)
    assert list(audit(study)) == []
    _cut_and_linked_again(next((root / "log").glob("P07@*.jsonl")), kind)
    found = [finding for finding in wrong(study) if finding.name == "step_missing"]
    assert any(missing in finding.sentence for finding in found), found
    assert not {"line_missing", "operation_changed"} & {finding.name for finding in wrong(study)}


def _erased_after_plans(tmp_path: Path) -> tuple[StudyFolder, dict[str, bytes]]:
    """Return a study in which P2 was erased after P3 to P5 were planned, and the earlier files."""
    study = open_tasks(declare(tmp_path / "a", DESIGN, tasks=False), tmp_path / "home", "aaaaaa")
    start(study)
    for code in ("P1", "P2", "P3", "P4", "P5"):
        for stage in range(3):
            take_part(study, code, stage)
    before = {path.name: path.read_bytes() for path in study.files.log.files()}
    study.erase("P2")
    return study, before


def _differing_without_residue(study: StudyFolder) -> list[str]:
    found = []
    for code, who in study.ledger.people.items():
        plan = who.facts.last(Planned)
        assert plan is not None
        known = Ledger(one for one in study.store.operations_at(plan.basis) if one.op != plan.op)
        again = plan_tasks(study.study, study.tasks, known, code)
        if tuple((one.id, one.task, one.condition, one.position) for one in again) != plan.assignments:
            found.append(code)
    return found


def test_plans_that_rest_on_an_erased_person_are_still_derived(tmp_path: Path) -> None:
    study, before = _erased_after_plans(tmp_path)
    assert list(audit(study)) == []
    residue = next(iter(study.ledger.erased.values())).residue
    assert len(residue) == 3
    assert not any(b"P2" in data for data in map(Path.read_bytes, study.files.log.files()))
    # Without the counts, the plan of a later person would be different.
    assert _differing_without_residue(study)
    (study.root / "log" / "P2@aaaaaa.jsonl").write_bytes(before["P2@aaaaaa.jsonl"])
    assert {finding.name for finding in audit(study)} == {"erased_leftover"}


def test_a_forged_plan_is_named_even_after_somebody_before_it_was_erased(tmp_path: Path) -> None:
    study, _ = _erased_after_plans(tmp_path)
    path = next((study.root / "log").glob("P4@*.jsonl"))
    kept = list[bytes]()
    for line in _lines(path):
        members = json.loads(line)
        if members.get("kind") == "planned":
            rows = members["data"]["assignments"]
            rows[0][1], rows[1][1] = rows[1][1], rows[0][1]
            members["sum"] = checksum(study.files.log.codec.decode(json.dumps(members).encode()))
        if kept:
            members["prev"] = hashlib.sha256(kept[-1].rstrip(b"\n")).hexdigest()[:16]
        kept.append(json.dumps(members, separators=(",", ":")).encode() + b"\n")
    path.write_bytes(b"".join(kept))
    assert [finding.name for finding in wrong(study)] == ["plan_differs"]


def test_two_writers_of_one_file_keep_its_chain(copied: StudyFolder) -> None:
    """Two programs on one machine may append to a person's file in turn; each links to the latest line."""
    other = Machine.at(copied.root.parent / "home").open(copied.root)

    def write(study: StudyFolder) -> None:
        for _ in range(15):
            study.record("P2", person("P2"), K.DECLINED)

    writers = [Thread(target=write, args=(study,)) for study in (copied, other)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    path = next((copied.root / "log").glob("P2@*.jsonl"))
    assert path.read_bytes().count(b'"declined"') == 30
    assert list(audit(copied)) == []
