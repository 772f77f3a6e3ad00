"""Each file of records keeps acknowledged records, sets partial ones aside and has one writer at a time."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes import FakeClock

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.events import NotesWritten
from gistpoint.core.chat import Usage
from gistpoint.core.errors import UserError
from gistpoint.core.generation.spending import SetSpending
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason, StateFile, StateFileError
from gistpoint.core.logs import files, is_held, take, torn_path
from gistpoint.core.study.operations import StudyOperation
from gistpoint.sessions.agentruns.jobs import AgentJob
from gistpoint.sessions.agentruns.store import AgentRunStore, RunSettings
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.reviews import ReviewOperation
from gistpoint.sessions.journal import JOURNAL, JournalWriter, read_journal
from gistpoint.sessions.replay.reporting import ReplayBatch, ReplayReport, VerdictRow
from gistpoint.sessions.studies.store import StudyLog

CRASHED = 9


@dataclass(frozen=True)
class Keeper:
    """A kind of record log in a folder, with functions to write and to read it."""

    file: str
    """The path of the log in the folder."""
    write: Callable[[Path, str], None]
    """A function that opens the log, appends one record and closes the log."""
    records: Callable[[Path], list[str]]
    """A function that returns the records that a reader finds."""
    header: bytes
    """The first line of a file that a newer program wrote."""

    def path(self, home: Path) -> Path:
        return home / self.file


def _write_event(home: Path, name: str) -> None:
    writer = JournalWriter(home / "attempt", FakeClock())
    writer.append(NotesWritten(name))
    writer.close()


def _events(home: Path) -> list[str]:
    content = read_journal(home / "attempt" / JOURNAL)
    assert content.fault == ""
    return [event.data.text for event in content.events if isinstance(event.data, NotesWritten)]


def _write_review(home: Path, name: str) -> None:
    operation = ReviewOperation(name, "r1", 5, "run", "comment", {"text": name})
    ReviewStore(home, FakeClock()).append([operation])


def _write_said(home: Path, name: str) -> None:
    StudyLog(home, FakeClock()).append([StudyOperation(name, "P1@aaaaaa", 5, "person:P1", "declined")])


def _said(home: Path) -> list[str]:
    log = StudyLog(home, FakeClock())
    assert sum(log.basis().values()) == len(log.book.operations) + 1
    assert log.at(log.basis()) == log.book.operations
    return [operation.op for operation in log.book.operations]


def _write_job(home: Path, name: str) -> None:
    settings = RunSettings(model="m", host="", agent=AgentSettings())
    AgentRunStore(home).open_or_create("r", settings, 0, "test").add([AgentJob(name, "task")], 0)


def _write_verdict(home: Path, name: str) -> None:
    with StateFile(home / "state.jsonl", {}) as state:
        state.add(CandidateVerdict(name, ("a.py::f",), Reason.HANGS))


def _verdicts(home: Path) -> list[str]:
    with StateFile(home / "state.jsonl", {}) as state:
        return list(state.verdicts)


def _spend(home: Path, name: str) -> None:
    meter = SetSpending(home / "spent.jsonl").conversation()
    meter._id = name
    meter.after(Usage(1, 0))


def _spent(home: Path) -> list[str]:
    with SetSpending(home / "spent.jsonl")._open() as (_, lines):
        return [line.id for line in lines]  # type: ignore[union-attr]  # nothing else was written


def _report(home: Path, name: str) -> None:
    home.mkdir(exist_ok=True)
    verdict = VerdictRow(result="solved", solved=True, suspicious=(), score=1.0)
    report = ReplayReport(
        run=name,
        task="t",
        backend="b",
        budgets={},
        notes=(),
        calls=(),
        then=verdict,
        now=verdict,
        same_verdict=True,
    )
    ReplayBatch([], home / "reports.jsonl", lambda line: None).take(name, report)


def _newer(name: str) -> bytes:
    return json.dumps({"format": name, "version": 99}).encode() + b"\n"


KEEPERS = {
    "journal": Keeper(f"attempt/{JOURNAL}", _write_event, _events, _newer("gistpoint.journal")),
    "side file": Keeper(
        "r1.jsonl",
        _write_review,
        lambda home: [operation.op for operation in ReviewStore(home, FakeClock()).book.operations],
        _newer("gistpoint.reviews"),
    ),
    "log of a study": Keeper("P1@aaaaaa.jsonl", _write_said, _said, _newer("gistpoint.study")),
    "jobs": Keeper(
        "r/jobs.jsonl",
        _write_job,
        lambda home: list(AgentRunStore(home).open("r").jobs),
        _newer("gistpoint.agent_jobs"),
    ),
    "verdicts": Keeper("state.jsonl", _write_verdict, _verdicts, _newer("gistpoint.campaign")),
    "spending": Keeper("spent.jsonl", _spend, _spent, _newer("gistpoint.spending")),
    "reports": Keeper(
        "reports.jsonl",
        _report,
        lambda home: list(ReplayBatch(list("abcdef"), home / "reports.jsonl", print).reports),
        _newer("gistpoint.replay"),
    ),
}


MANY = ["side file", "log of a study", "jobs", "spending", "reports"]
"""Logs that several processes write to in turn; each of the others has a single writer process."""


@pytest.fixture(params=KEEPERS)
def keeper(request: pytest.FixtureRequest) -> Keeper:
    return KEEPERS[request.param]


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off syncing to disk: these tests are not about power cuts, and a hundred cuts would be slow."""
    monkeypatch.setattr(files, "sync_file", lambda file: None)
    monkeypatch.setattr(os, "fsync", lambda file: None)


def crashing(act: Callable[[], None]) -> None:
    """Run `act` in a forked process, and require that the process exits with `CRASHED`."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == CRASHED


def kept(keeper: Keeper, home: Path, names: Iterable[str]) -> bytes:
    """Write records of these names and return the bytes of the log."""
    for name in names:
        keeper.write(home, name)
    return keeper.path(home).read_bytes()


def states_after_a_crash(keeper: Keeper, place: Path) -> Iterator[tuple[Path, bytes, bytes]]:
    """Yield a home for each part of a third record that may follow two acknowledged ones.

    Each comes with the log's bytes before the third record, and with that part of it.
    """
    before = kept(keeper, place / "home", "ab")
    shutil.copytree(place / "home", place / "twin")
    line = kept(keeper, place / "twin", "c").removeprefix(before)
    assert line.endswith(b"\n")
    for cut in range(len(line) + 1):
        home = place / "home" if cut == len(line) else shutil.copytree(place / "home", place / f"cut-{cut}")
        keeper.path(home).write_bytes(before + line[:cut])
        yield home, before, line[:cut]


def test_a_record_cut_anywhere_is_not_there_and_those_before_it_are(
    keeper: Keeper, tmp_path: Path, unsynced: None
) -> None:
    for home, before, part in states_after_a_crash(keeper, tmp_path):
        whole = part.endswith(b"\n")
        assert keeper.records(home) == (["a", "b", "c"] if whole else ["a", "b"]), part
        assert keeper.path(home).read_bytes() == before + part, "who only reads changes nothing"
        keeper.write(home, "d")
        assert keeper.records(home) == (["a", "b", "c", "d"] if whole else ["a", "b", "d"])
        after = keeper.path(home).read_bytes()
        assert after.startswith(before + (part if whole else b""))
        assert after.endswith(b"\n")
        torn = torn_path(keeper.path(home))
        assert (torn.read_bytes() if torn.exists() else b"") == (b"" if whole or not part else part + b"\n")


@pytest.mark.parametrize("keeper", [name for name in KEEPERS if name != "journal"], indirect=True)
def test_a_header_cut_anywhere_is_written_again(keeper: Keeper, tmp_path: Path, unsynced: None) -> None:
    first = kept(keeper, tmp_path, "a").partition(b"\n")[0]
    for cut in range(len(first) + 1):
        keeper.path(tmp_path).write_bytes(first[:cut])
        keeper.write(tmp_path, "b")
        assert keeper.records(tmp_path) == ["b"]


def test_a_process_that_dies_while_it_writes_loses_nothing_acknowledged_and_lets_go(
    keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(keeper, tmp_path, "ab")
    write = os.write

    def half(file: int, data: bytes) -> int:
        if b"c" in bytes(data) and os.fstat(file).st_ino == keeper.path(tmp_path).stat().st_ino:
            write(file, bytes(data)[: len(data) // 2])
            os._exit(CRASHED)
        return write(file, data)

    def die(file: int) -> None:
        if os.fstat(file).st_size > size:
            os._exit(CRASHED)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        crashing(lambda: keeper.write(tmp_path, "c"))
    assert keeper.records(tmp_path) == ["a", "b"]
    keeper.write(tmp_path, "d")
    size = keeper.path(tmp_path).stat().st_size
    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_file", die)
        crashing(lambda: keeper.write(tmp_path, "e"))
    assert keeper.records(tmp_path) == ["a", "b", "d", "e"], (
        "written and not synced: a killed process loses nothing"
    )
    keeper.write(tmp_path, "f")
    assert keeper.records(tmp_path) == ["a", "b", "d", "e", "f"]


def test_what_is_acknowledged_was_synced(
    keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, int]] = []
    sync = files.sync_file

    def noted(file: int) -> None:
        synced.append((os.fstat(file).st_ino, os.fstat(file).st_size))
        sync(file)

    monkeypatch.setattr(files, "sync_file", noted)
    for name in "abc":
        keeper.write(tmp_path, name)
        stat = keeper.path(tmp_path).stat()
        assert synced[-1] == (stat.st_ino, stat.st_size)


def test_a_file_of_a_newer_version_is_refused_and_stays_as_it_is(keeper: Keeper, tmp_path: Path) -> None:
    kept(keeper, tmp_path, "a")
    newer = keeper.header + b'{"what":"is"}\n{"half'
    keeper.path(tmp_path).write_bytes(newer)
    for _ in range(2):
        with pytest.raises(UserError, match=r"version 99.*Install a newer gistpoint"):
            keeper.write(tmp_path, "b")
    assert keeper.path(tmp_path).read_bytes() == newer
    assert not torn_path(keeper.path(tmp_path)).exists()


@pytest.mark.parametrize("keeper", MANY, indirect=True)
def test_two_processes_lose_nothing_of_each_other(keeper: Keeper, tmp_path: Path) -> None:
    keeper.write(tmp_path, "first")
    children = []
    for who in "xy":
        child = os.fork()
        if child == 0:
            try:
                for number in range(20):
                    keeper.write(tmp_path, f"{who}{number}")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    wanted = {"first", *(f"{who}{number}" for who in "xy" for number in range(20))}
    lines = keeper.path(tmp_path).read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert all(sum(f'"{name}"'.encode() in line for line in lines) for name in wanted)
    assert len(lines) == len(wanted) + (b'"format"' in lines[0])


@pytest.mark.parametrize("keeper", [name for name in KEEPERS if name not in MANY], indirect=True)
def test_a_second_writer_is_told_and_writes_nothing(keeper: Keeper, tmp_path: Path) -> None:
    before = kept(keeper, tmp_path, "a")
    path = keeper.path(tmp_path)
    lock = path.with_name("lock") if path.name == JOURNAL else path
    held = take(lock)
    assert held is not None
    with held, pytest.raises(UserError, match=r"is open in another window|Another process"):
        keeper.write(tmp_path, "b")
    assert path.read_bytes() == before
    assert not is_held(lock)
    keeper.write(tmp_path, "b")
    assert keeper.records(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        {"type": "verdict", "key": "k", "targets": [], "reason": "hangs", "kept": 5, "specimen": None},
        {"type": "verdict", "key": "k", "targets": [], "reason": "hangs", "kept": None, "specimen": "x"},
        {"type": "verdict", "key": "k"},
        {"type": "secret", "secret": 5},
        {"type": "task", "id": []},
        [],
    ],
    ids=str,
)
def test_a_damaged_line_of_a_campaign_is_named(line: object, tmp_path: Path) -> None:
    _write_verdict(tmp_path, "one")
    with (tmp_path / "state.jsonl").open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
    with pytest.raises(StateFileError, match=r"Line 4 of .* can't be read"):
        StateFile(tmp_path / "state.jsonl", {})
