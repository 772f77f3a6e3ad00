"""The part of attempts that lists show; an index stores it, so that unchanged journals are not read again.

Only lists may use it; code that counts, exports or resumes attempts reads the journals (decisions 101, 179).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from msgspec import structs

from gistpoint.core.attempts.clock import Clock
from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.parts import NOTHING_REPLACED, Ending, Handover, Pause
from gistpoint.core.attempts.state import NOT_STARTED, AttemptState, Submission
from gistpoint.core.decoding import decodable
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.sessions.attempt_summary import AttemptSummary, ListedAttempt, listed_attempt
from gistpoint.sessions.heads import HEADS
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.row_index import IndexedRow, RowIndex

_FORMAT = 9
_SAVED_EVERY_S = 5.0
"""The seconds between saves of rows while many journals are read."""


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """The part of an attempt that lists show, without calls, text and code."""

    started_utc_ms: int
    problem: str
    header: AttemptStarted
    budgets: Budgets
    remaining: Remaining
    submissions: tuple[Submission, ...]
    clock: Clock
    pause: Pause | None
    ending: Ending | None
    processes: int
    events: int
    calls: int
    handovers: tuple[Handover, ...]

    @classmethod
    def of(cls, summary: AttemptSummary) -> Outline:
        """Return the outline of an attempt."""
        state = summary.state
        header = structs.replace(state.header, brief="", extra={}, solver=_outlined_solver(state.header))
        return cls(
            summary.started_utc_ms,
            summary.problem,
            header,
            state.budgets,
            state.remaining,
            tuple(map(_outlined, state.submissions)),
            state.clock,
            state.pause,
            state.ending,
            state.processes,
            state.events,
            len(state.calls),
            state.handovers,
        )

    @property
    def state(self) -> AttemptState:
        """The state of the attempt, with defaults for fields that lists do not show."""
        return AttemptState(
            header=self.header if self.events else NOT_STARTED,
            budgets=self.budgets,
            remaining=self.remaining,
            submissions=self.submissions,
            clock=self.clock,
            pause=self.pause,
            ending=self.ending,
            of_kind=blank_state(self.header.mode),
            processes=self.processes,
            events=self.events,
            handovers=self.handovers,
        )


def _outlined_solver(header: AttemptStarted) -> dict[str, Any] | msgspec.UnsetType:
    """Return the part of a solver that identifies the job of a run to which its attempt belongs."""
    job = (header.solver or {}).get("job")
    return msgspec.UNSET if job is None else {"job": job}


def _outlined(submission: Submission) -> Submission:
    """Return a submission without its code and the ids of tests."""
    confirmation = submission.confirmation
    if confirmation is not None:
        confirmation = structs.replace(confirmation, contradiction=None, beyond=None)
    metrics: dict[str, Any] = {name: value for name, value in submission.metrics.items() if name != "lines"}
    without = replace(submission, replacement=NOTHING_REPLACED, gist="", failing=(), failures=(), changed=())
    return replace(without, metrics=metrics, confirmation=confirmation)


_OUTLINE = "outline"
"""The name of the cell with an attempt's outline."""


class Outlines:
    """The known rows and outlines of the attempts in one folder, by attempt id.

    In the index, the row of an attempt is its `ListedAttempt`, without facts from other files. The outline is
    a cell, which is not read for long lists.
    """

    def __init__(self, index: Path | None, program: str) -> None:
        """`index` is the file of the index; None if outlines are only kept in this process.

        `program` is the version of gistpoint; outlines of other versions may differ and are ignored.
        """
        self._index = None if index is None else RowIndex(index, most_bytes=None)
        self._code = f"{_FORMAT}, {program} ".encode()
        """The version of the code that makes the rows, which is part of their states."""
        self._kept: dict[str, IndexedRow] = {}
        self._read: dict[str, tuple[bytes, Outline]] = {}
        self._kept_outlines: dict[str, IndexedRow] = {}
        self._met: set[str] = set()
        """The keys of the rows that `prepare_range` has read since the last call to `save`."""
        self._as_listed = msgspec.msgpack.Decoder(decodable(ListedAttempt))
        self._as_outline = msgspec.msgpack.Decoder(decodable(Outline))
        self._changed: dict[str, tuple[IndexedRow, bytes]] = {}
        """The rows and outlines to be written by `save`."""
        self._saved = monotonic()

    def prepare(self, attempt_ids: Iterable[str]) -> None:
        """Read the rows of some attempts from the index, in place of those prepared before."""
        self._kept_outlines = {}
        if self._index is not None:
            self._kept = self._index.some(name for name in attempt_ids if name not in self._read)

    def prepare_range(self, attempt_ids: Sequence[str], *, outlines: bool) -> None:
        """Read the rows or the outlines of neighbours in a sorted list, with one query."""
        self._kept = self._kept_outlines = {}
        # The index rejects names with half a surrogate pair, which are not printable.
        wanted = [name for name in attempt_ids if name not in self._read and name.isprintable()]
        if self._index is None or not wanted:
            return
        if outlines:
            self._kept_outlines = self._index.between(min(wanted), max(wanted), _OUTLINE)
        else:
            self._kept = self._index.between(min(wanted), max(wanted))
        self._met.update(self._kept_outlines if outlines else self._kept)

    def get(self, attempt_id: str, state: bytes, *, remember: bool) -> Outline | None:
        """Return the outline of an attempt; None if it is unknown or the attempt's files have changed.

        An outline that was not prepared is looked up in the index.
        """
        known = self._read.get(attempt_id)
        if known is not None and known[0] == state:
            return known[1]
        if (data := self._outline_data(attempt_id, self._code + state)) is None:
            return None
        try:
            outline = self._as_outline.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if remember:
            self._read[attempt_id] = (state, outline)
        return outline

    def _outline_data(self, attempt_id: str, state: bytes) -> bytes | None:
        kept = self._kept_outlines.get(attempt_id)
        if kept is not None:
            return kept.row if kept.state == state else None
        return None if self._index is None else self._index.cell(attempt_id, state, _OUTLINE)

    def listed(self, attempt_id: str, state: bytes) -> ListedAttempt | None:
        """Return the row of a prepared attempt in a long list; None if it is unknown or out of date."""
        kept = self._kept.get(attempt_id)
        if kept is None or kept.state != self._code + state:
            return None
        try:
            return self._as_listed.decode(kept.row)
        except (msgspec.MsgspecError, RecursionError):
            return None

    def put(
        self, summary: AttemptSummary, state: bytes, outline: Outline, *, keep: bool, remember: bool
    ) -> None:
        """Add an outline: with `remember`, to those in memory; with `keep`, to those that `save` will write.

        While many are added, they are saved every few seconds.

        `summary` is that of the journal, without facts from other files.
        """
        attempt_id = summary.attempt_id
        if remember:
            self._read[attempt_id] = (state, outline)
        # An open attempt changes with every call, so its row would be out of date at once.
        if keep:
            row = msgspec.msgpack.encode(listed_attempt(summary))
            listed = IndexedRow(attempt_id, self._code + state, row)
            self._changed[attempt_id] = (listed, msgspec.msgpack.encode(outline))
            if monotonic() - self._saved > _SAVED_EVERY_S:
                self.save()

    def forget_all_but(self, present: Collection[str]) -> None:
        """Forget all attempts that are not `present`."""
        present = frozenset(present)
        for attempt_id in self._read.keys() - present:
            del self._read[attempt_id]
        if self._index is not None:
            has_met_all = self._index.count() == len(self._met)
            self._index.put_many((), (self._met if has_met_all else self._index.all_keys()) - present)

    def save(self) -> None:
        """Write the changed rows to the index, and close its file."""
        if self._index is not None:
            cells = [(row.key, _OUTLINE, outline) for row, outline in self._changed.values()]
            self._index.put_many((row for row, _ in self._changed.values()), cells=cells)
            self._index.close()
        self._changed.clear()
        self._met.clear()
        self._saved = monotonic()


_STAT, _TWO_STATS = struct.Struct("QQQ"), struct.Struct("QQQQQQ")
_NO_FILE = b"\0"
_NO_FOLDER = -1
_FOLDER = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""The flags to open a folder for the paths in it, on Linux also one that can't be listed."""


def state_on_disk(root: str, name: str) -> bytes:
    """Return the state of the journal and head of the attempt with this name; empty if it has no journal.

    It contains the inode, size and time of change of both.
    """
    with StatesOnDisk(root) as states:
        return states.of(name)


class StatesOnDisk:
    """The states of the attempts in a folder, as `state_on_disk` returns them.

    The folder stays open, so that the system looks up a short path for each of a hundred thousand files.
    """

    def __init__(self, root: str) -> None:
        """`root` is the path of the folder; without a folder, no attempt has a journal."""
        self._root, self._heads = _opened_folder(root), _opened_folder(f"{root}/{HEADS}")

    def __enter__(self) -> StatesOnDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        for folder in {self._root, self._heads} - {_NO_FOLDER}:
            os.close(folder)

    def of(self, name: str) -> bytes:
        """Return the state of the journal and head of an attempt; empty if the attempt has no journal."""
        try:
            journal = os.stat(f"{name}/{JOURNAL}", dir_fd=self._root)
        except OSError:
            return b""
        try:
            head = os.stat(name, dir_fd=self._heads)
        except OSError:
            return _STAT.pack(journal.st_ino, journal.st_size, journal.st_ctime_ns) + _NO_FILE
        return _TWO_STATS.pack(
            journal.st_ino,
            journal.st_size,
            journal.st_ctime_ns,
            head.st_ino,
            head.st_size,
            head.st_ctime_ns,
        )


def _opened_folder(path: str) -> int:
    try:
        return os.open(path, _FOLDER)
    except OSError:
        return _NO_FOLDER


_FIRST_PART, _PART = 64, 4_096


def growing_parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the names in batches: a small one, so that the first rows appear at once, then large ones."""
    yield names[:_FIRST_PART]
    for start in range(_FIRST_PART, len(names), _PART):
        yield names[start : start + _PART]
