"""Finds all differences between this machine's files and the team's store, by the hashes of all lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.text import plural
from gistpoint.sessions.journal import JOURNAL, is_open
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.team.annotations import annotation_stores, operation_differences
from gistpoint.sessions.team.attempts import local_attempts
from gistpoint.sessions.team.conflicts import Conflict
from gistpoint.sessions.team.connecting import reaching
from gistpoint.sessions.team.lines import (
    BrokenChainError,
    JournalLine,
    branch_of,
    chained,
    cut_at,
    head_kept,
    header_of,
    is_of,
    safe_lines,
)
from gistpoint.sessions.team.opened import TeamStore
from gistpoint.sessions.team.silence import cancelled_by
from gistpoint.sessions.team.study_sharing import damaged_declarations, fetched_studies
from gistpoint.sessions.team.tasks import task_differences

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_AT_ONCE = 50
_COUNTED = text("SELECT id, seq, head, task, actor, participant, started_utc_ms FROM attempts ORDER BY id")
_LINES = text(
    "SELECT writer, number, line, sha256, encode(sha256(line), 'hex') AS found FROM lines "
    "WHERE file = 'attempts' AND writer = ANY(:ids) ORDER BY writer, number"
)
_ARCHIVES = text(
    "SELECT id, archive_sha256 FROM studies WHERE archive_sha256 <> '' AND archive_sha256 IS DISTINCT FROM ("
    "SELECT encode(sha256(string_agg(data, ''::bytea ORDER BY piece)), 'hex') FROM blobs "
    "WHERE sha256 = archive_sha256) ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class StoreDifference:
    """A difference between this machine's files and the store."""

    kind: str
    """The kind of difference.

    It is `missing here`, `missing there`, `line differs`, `extra line`, `broken chain`, `blob damaged`,
    `task differs`, `operation differs` or `study differs`.
    """
    conflict: Conflict

    def __str__(self) -> str:
        return f"{self.kind}: {self.conflict}"


@dataclass(frozen=True, slots=True)
class _OnStore:
    """A line in the store."""

    seq: int
    data: bytes
    sha256: str
    """The hash that is stored with the line."""
    found: str
    """The hash of the line's content."""


def check(
    store: TeamStore, locations: Locations, clock: TimeSource, run: RunContext
) -> list[StoreDifference]:
    """Return all differences between this machine's files and the store.

    Nothing is changed, except that unsent data of fetched studies are sent.

    Raises `UnreachableError` if the store does not answer, `TeamStoreError` if it refuses, and
    `CancelledError` when cancelled.
    """
    found: list[StoreDifference] = []
    with reaching(store.address), cancelled_by(run.cancel), store.engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")  # because others may add lines
        for kind, conflict in task_differences(connection, TaskStore(locations.tasks)):
            found.append(StoreDifference(kind, conflict))
        found += _attempts(connection, locations.attempts, store.machine, run)
        run.check()
        stores = annotation_stores(locations, clock)
        found += [
            StoreDifference(kind, conflict) for kind, conflict in operation_differences(connection, stores)
        ]
        damaged = {row.id: row.archive_sha256 for row in connection.execute(_ARCHIVES)}
        for name, words in damaged_declarations(connection, store.address):
            run.check()
            kind, sentence = "study differs", words
            if name in damaged:
                kind, sentence = "blob damaged", f"the blob {damaged[name][:12]} is damaged."
            found.append(StoreDifference(kind, Conflict(f"study {name}", words=sentence)))
    run.check()
    found += _studies(store, locations, clock)
    return found


def _studies(store: TeamStore, locations: Locations, clock: TimeSource) -> Iterator[StoreDifference]:
    """Yield how studies fetched from the store differ from it, or the reason why they can't be compared.

    `gistpoint study audit` compares any study.
    """
    for copy in fetched_studies(store.address, locations, clock):
        for words in copy.differences():
            yield StoreDifference("study differs", Conflict(f"study {copy.study}", words=words))
        if copy.away:
            words = f"it can't be compared: {copy.away}"
            yield StoreDifference("study differs", Conflict(f"study {copy.study}", words=words))


def _attempts(connection: Connection, root: Path, machine: str, run: RunContext) -> Iterator[StoreDifference]:
    mine = {place.name: place for place in local_attempts(root)}
    rows = {row.id: row for row in connection.execute(_COUNTED)}
    names = sorted(rows.keys() | mine.keys())
    for start in range(0, len(names), _AT_ONCE):
        run.check()
        run.progress(RunProgress(names[start], start, len(names), step="comparing attempts"))
        batch = names[start : start + _AT_ONCE]
        there: dict[str, list[_OnStore]] = {name: [] for name in batch}
        for row in connection.execute(_LINES, {"ids": batch}):
            there[row.writer].append(_OnStore(row.number, bytes(row.line), row.sha256, row.found))
        for name in batch:
            counted = (rows[name].seq, rows[name].head) if name in rows else None
            yield from _attempt(name, mine.get(name), there[name], counted, machine)
            if name in rows and there[name]:
                yield from _header(name, rows[name], there[name])


def _header(name: str, row: Row[Any], there: list[_OnStore]) -> Iterator[StoreDifference]:
    """Yield the differences between an attempt's columns in the store and its first line there."""
    what, first = f"attempt {name}", there[0].data
    if not is_of(first, name):
        yield StoreDifference(
            "line differs", Conflict(what, 1, words="the store's first line begins another attempt.")
        )
    columns = ("task", "actor", "participant", "started_utc_ms")
    if header_of(first) != {name: getattr(row, name) for name in columns}:
        words = "the store's data about it (task, solver, start) differ from its lines."
        yield StoreDifference("line differs", Conflict(what, words=words))


def _attempt(
    name: str, folder: Path | None, there: list[_OnStore], counted: tuple[int, str] | None, machine: str
) -> Iterator[StoreDifference]:
    """Yield the differences between an attempt's lines here and in the store.

    Faults in either chain of hashes and in the store's count are included. A branch on this machine that is
    only in the store is not a difference.
    """
    what = f"attempt {name}"
    here, faults = ([], []) if folder is None else _here(what, folder)
    yield from faults
    yield from _on_store(what, there, counted)
    if counted is None:
        yield StoreDifference(
            "missing there", Conflict(what, words=f"the store has none of its lines (here: {len(here)}).")
        )
    elif folder is None:
        if branch_of(name)[1].partition("-")[0] != machine:
            yield StoreDifference(
                "missing here",
                Conflict(what, words=f"it is only on the store, with {plural(len(there), 'line')}."),
            )
    elif not faults:
        yield from _compared(what, here, there, counted[0])


def _here(what: str, folder: Path) -> tuple[list[JournalLine], list[StoreDifference]]:
    """Return the lines of this machine's journal, and its faults; no lines if it is damaged or unreadable."""
    kept = None if is_open(folder) else head_kept(folder)
    try:
        lines = safe_lines(folder)
    except BrokenChainError as error:
        return [], [
            StoreDifference("broken chain", Conflict(what, error.at, words=f"the {JOURNAL} here is damaged."))
        ]
    except OSError:
        return [], []
    if at := cut_at(lines, kept):
        words = f"the {JOURNAL} here was changed or cut off."
        return lines, [StoreDifference("broken chain", Conflict(what, at, words=words))]
    return lines, []


def _compared(
    what: str, here: list[JournalLine], there: list[_OnStore], counted: int
) -> Iterator[StoreDifference]:
    lines = {line.seq: line.found for line in there}
    for line in here:
        found = lines.pop(line.seq, "")
        if not found:
            yield StoreDifference(
                "missing there", Conflict(what, line.seq, words="this line is missing in the store.")
            )
        elif found != line.sha256:
            yield StoreDifference("line differs", Conflict(what, line.seq, line.sha256, found))
    for seq in sorted(lines):
        kind = "extra line" if seq > counted else "missing here"
        yield StoreDifference(kind, Conflict(what, seq, words="this line is only on the store."))


def _on_store(what: str, there: list[_OnStore], counted: tuple[int, str] | None) -> Iterator[StoreDifference]:
    """Yield the faults of an attempt's lines in the store, without comparing them with others."""
    for line in there:
        if line.sha256 != line.found:
            words = "on the store, this line does not have the hash that is stored with it."
            yield StoreDifference("line differs", Conflict(what, line.seq, words=words))
    try:
        chained(line.data for line in there)
    except BrokenChainError as error:
        yield StoreDifference(
            "broken chain", Conflict(what, error.at, words="the chain of hashes breaks on the store.")
        )
    last = (there[-1].seq, there[-1].found) if there else (0, "")
    if counted is not None and counted != last:
        words = f"the store counts {counted[0]} lines but has {last[0]}, or has a different last one."
        yield StoreDifference(
            "extra line" if last[0] > counted[0] else "missing there", Conflict(what, last[0], words=words)
        )
