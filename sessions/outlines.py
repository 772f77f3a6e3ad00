"""The part of attempts that lists show; an index keeps it, so that unchanged journals are not read again.

Only lists may use it; code that counts, exports or resumes attempts reads the journals (decisions 101, 179).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from gistpoint.core.attempts.clock import Clock
from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.parts import NOTHING_REPLACED, Ending, Handover, Pause
from gistpoint.core.attempts.state import AttemptState, Submission
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.sessions.attempt_summary import AttemptSummary, ListedAttempt, listed_attempt
from gistpoint.sessions.row_index import IndexedRow, RowIndex

_FORMAT = 7
Row = TypeVar("Row")


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
            header=self.header,
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
    """Return the part of a solver that shows to which job of a run its attempt belongs."""
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


class _AsListed(msgspec.Struct, frozen=True, array_like=True):
    """A row of the index for a long list, which leaves the outline undecoded."""

    listed: ListedAttempt
    """The row of a long list, without facts from other files."""
    outline: msgspec.Raw


class _AsOutline(msgspec.Struct, frozen=True, array_like=True):
    """The same row for other lists, which need only the outline."""

    listed: msgspec.Raw
    outline: Outline


class Outlines:
    """The known outlines of the attempts in one folder, by attempt id."""

    def __init__(self, index: Path | None, program: str) -> None:
        """`index` is the file of the index; None if outlines are only kept in this process.

        `program` is the version of gistpoint; outlines of other versions may differ and are ignored.
        """
        self._index = None if index is None else RowIndex(index, most_bytes=None)
        self._code = f"{_FORMAT}, {program} ".encode()
        """The version of the code that makes the rows, which is part of their states."""
        self._kept: dict[str, IndexedRow] = {}
        self._read: dict[str, tuple[bytes, Outline]] = {}
        self._as_listed = msgspec.msgpack.Decoder(_AsListed)
        self._as_outline = msgspec.msgpack.Decoder(_AsOutline)
        self._changed: dict[str, IndexedRow] = {}

    def prepare(self, attempt_ids: Iterable[str]) -> None:
        """Read the outlines of some attempts from the index, in place of those prepared before."""
        if self._index is not None:
            self._kept = self._index.some(name for name in attempt_ids if name not in self._read)

    def get(self, attempt_id: str, state: bytes, *, remember: bool) -> Outline | None:
        """Return the outline of an attempt; None if it is unknown or the attempt's files have changed.

        Only outlines that were prepared, or that this process remembers, are found.
        """
        known = self._read.get(attempt_id)
        if known is not None and known[0] == state:
            return known[1]
        row = self._row(attempt_id, state, self._as_outline)
        if row is None:
            return None
        if remember:
            self._read[attempt_id] = (state, row.outline)
        return row.outline

    def listed(self, attempt_id: str, state: bytes) -> ListedAttempt | None:
        """Return the row of a prepared attempt in a long list; None if it is unknown or out of date."""
        row = self._row(attempt_id, state, self._as_listed)
        return None if row is None else row.listed

    def _row(self, attempt_id: str, state: bytes, decoder: msgspec.msgpack.Decoder[Row]) -> Row | None:
        kept = self._kept.get(attempt_id)
        if kept is not None and kept.state == self._code + state:
            with suppress(msgspec.MsgspecError, RecursionError):
                return decoder.decode(kept.row)
        return None

    def put(
        self, summary: AttemptSummary, state: bytes, outline: Outline, *, keep: bool, remember: bool
    ) -> None:
        """Add an outline: with `remember`, to those in memory; with `keep`, to those that `save` will write.

        `summary` is that of the journal, without facts from other files.
        """
        attempt_id = summary.attempt_id
        if remember:
            self._read[attempt_id] = (state, outline)
        # An open attempt changes with every call, so its row would be out of date at once.
        if keep:
            row = msgspec.msgpack.encode((listed_attempt(summary), outline))
            self._changed[attempt_id] = IndexedRow(attempt_id, self._code + state, row)

    def forget_all_but(self, present: Collection[str]) -> None:
        """Forget all attempts that are not `present`."""
        present = frozenset(present)
        for attempt_id in self._read.keys() - present:
            del self._read[attempt_id]
        if self._index is not None:
            self._index.put_many((), self._index.all_keys() - present)

    def save(self) -> None:
        """Write the changed rows to the index, and close its file."""
        if self._index is not None:
            self._index.put_many(self._changed.values())
            self._index.close()
        self._changed.clear()
