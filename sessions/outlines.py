"""The part of attempts that lists show; one file keeps it, so that unchanged journals are not read again.

Only lists may use it; code that counts, exports or resumes attempts reads the journals (decision 101).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from gistpoint.core.attempts.clock import Clock
from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.parts import NOTHING_REPLACED, Ending, Handover, Pause
from gistpoint.core.attempts.state import AttemptState, Submission
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.tasks.budgets import Budgets, Remaining

OUTLINES = "outlines"
"""The name of the file, next to the folders of the attempts."""
_FORMAT = 4

Versions = tuple[tuple[int, int, int], ...]
"""The versions of an attempt's files on disk: inode, size in bytes, time of the last change in ns."""


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """The part of an attempt that lists show, without calls, text and code."""

    versions: Versions
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
    def of(cls, state: AttemptState, versions: Versions, started_utc_ms: int, problem: str) -> Outline:
        """Return the outline of an attempt."""
        header = structs.replace(state.header, brief="", extra={}, solver=_outlined_solver(state.header))
        return cls(
            versions,
            started_utc_ms,
            problem,
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


class _File(msgspec.Struct, frozen=True):
    """The content of the file, in which each outline is decoded on demand."""

    format: int
    program: str
    """The version of gistpoint that computed the outlines."""
    outlines: dict[str, msgspec.Raw]


class Outlines:
    """The known outlines of the attempts in one folder, by attempt id."""

    def __init__(self, root: Path, program: str) -> None:
        """`program` is the version of gistpoint; outlines of other versions may differ and are ignored."""
        self._path, self._program = root / OUTLINES, program
        self._kept: dict[str, bytes | msgspec.Raw] = {}
        self._read: dict[str, Outline] = {}
        self._decoder = msgspec.msgpack.Decoder(Outline)
        self._changed = False
        with suppress(OSError, ValueError, RecursionError):  # all outlines can be computed again
            found = msgspec.msgpack.decode(read_regular(self._path), type=_File)
            if (found.format, found.program) == (_FORMAT, program):
                self._kept.update(found.outlines)

    def get(self, attempt_id: str, versions: Versions) -> Outline | None:
        """Return the outline of an attempt; None if it is unknown or the attempt's files have changed."""
        known = self._read.get(attempt_id)
        if known is None and attempt_id in self._kept:
            with suppress(msgspec.MsgspecError, RecursionError):
                known = self._read[attempt_id] = self._decoder.decode(self._kept[attempt_id])
        return known if known is not None and known.versions == versions else None

    def put(self, attempt_id: str, outline: Outline, *, keep: bool) -> None:
        """Remember an outline; with `keep`, `save` also writes it to disk."""
        self._read[attempt_id] = outline
        if keep:
            self._kept[attempt_id] = msgspec.msgpack.encode(outline)
            self._changed = True

    def forget_all_but(self, present: Iterable[str]) -> None:
        """Forget all attempts that are not `present`."""
        for attempt_id in self._kept.keys() - set(present):
            del self._kept[attempt_id]
            self._read.pop(attempt_id, None)
            self._changed = True

    def save(self) -> None:
        """Write the file if it is out of date; errors are ignored, since outlines can be computed again."""
        if not self._changed:
            return
        self._changed = False
        raw = {name: msgspec.Raw(kept) for name, kept in self._kept.items()}
        data = msgspec.msgpack.encode(_File(_FORMAT, self._program, raw))
        with suppress(OSError):
            replace_file(self._path, data, durable=False, mode=0o600)
