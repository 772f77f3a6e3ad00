"""The clocks of an attempt, derived from its events and never stored.

Time between two events of one process counts as the running activity: the focused pane's, waiting for a call,
or a pause. Between two processes, no clock runs. Sleep appears as the difference between the wall clock and
the monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from gistpoint.core.attempts.events import Pane

ASK_MS = 120_000
"""The time without input after which the solver is asked, in milliseconds."""
COVER_MS = 600_000
"""The time without input after which the code is hidden, in milliseconds."""


class IdleStage(StrEnum):
    """The stage recorded by an `idle_prompt` event without an answer."""

    ASKED = "asked"
    COVERED = "covered"
    INPUT = "input"


@dataclass(frozen=True, slots=True)
class Doubt:
    """Time without input, by activity, that counts as idle but that the solver can still claim as work."""

    spans: tuple[tuple[ClockActivity, int], ...] = ()
    """The milliseconds of ended spans, each with the activity that had the focus."""
    idle: bool = False
    """Whether there has been no input since the question appeared."""
    grows: ClockActivity | None = None
    """The activity of the current span; None after input or after the code was hidden."""
    idle_before_ms: int = 0
    """The clock's idle time before the current span, in milliseconds."""

    def __bool__(self) -> bool:
        return bool(self.spans) or self.grows is not None

    def total_ms(self, clock: Clock) -> int:
        """Return the total time in doubt at the current state of the clock, in milliseconds."""
        return sum(ms for _, ms in self.stopped(clock, idle=self.idle).spans)

    def stopped(self, clock: Clock, *, idle: bool) -> Doubt:
        """Return the doubt with its current span ended; `idle` is true if there is still no input."""
        if self.grows is None:
            return replace(self, idle=idle)
        return Doubt((*self.spans, (self.grows, clock.idle - self.idle_before_ms)), idle)


NO_DOUBT = Doubt()


def asked(
    doubt: Doubt, clock: Clock, activity: ClockActivity, since_mono_ms: int, mono_ms: int
) -> tuple[Doubt, Clock]:
    """Return the doubt and the clock after the question: the time since the last input counts as idle.

    It stays idle until the solver claims it as work, even if nobody ever answers (decision 52).
    """
    span = min(max(0, mono_ms - since_mono_ms), clock.of(activity))
    before = doubt.stopped(clock, idle=True)
    return replace(before, grows=activity, idle_before_ms=clock.idle), _reassigned(clock, activity, -span)


def answered(doubt: Doubt, clock: Clock, answer: str, idle_ms: int, activity: ClockActivity) -> Clock:
    """Return the clock after an answer, which applies to all of the time in doubt.

    Journals of earlier versions contain only the answer; there, time becomes idle only if the solver says so.
    """
    if doubt:
        for claimed, ms in doubt.stopped(clock, idle=False).spans if answer == "worked" else ():
            clock = _reassigned(clock, claimed, ms)
        return clock
    span = max(0, idle_ms) if answer == "away" else 0
    return _reassigned(clock, activity, -min(span, clock.of(activity)))


def _reassigned(clock: Clock, activity: ClockActivity, ms: int) -> Clock:
    """Return the clock with `ms` milliseconds moved from idle to an activity, or back if `ms` is negative."""
    return clock.add(activity, ms).add(ClockActivity.IDLE, -ms)


SLEEP_THRESHOLD_MS = 2_000
"""Smaller differences between the clocks, in milliseconds, count as adjustments of the wall clock."""


class ClockActivity(StrEnum):
    """The activity to which a span of time is attributed."""

    READING = "reading"
    EXPLORING = "exploring"
    EDITING = "editing"
    WAITING = "waiting"
    PAUSED = "paused"
    IDLE = "idle"
    THINKING = "thinking"
    """A model's time from a request to its reply."""


ACTIVE = (ClockActivity.READING, ClockActivity.EXPLORING, ClockActivity.EDITING, ClockActivity.THINKING)
"""The solver's own time, on which time limits are measured.

Waiting is the harness's time: a slow machine must not cost the solver anything (decision 4).
"""

# The focus decides what the solver is doing; nothing else is observed (decision 4).
ACTIVITY_OF_PANE = {
    Pane.BRIEF: ClockActivity.READING,
    Pane.TREE: ClockActivity.EXPLORING,
    Pane.CODE: ClockActivity.EXPLORING,
    Pane.CONSOLE: ClockActivity.EXPLORING,
    Pane.RESULT: ClockActivity.EXPLORING,
    Pane.EDITOR: ClockActivity.EDITING,
    Pane.NOTES: ClockActivity.EXPLORING,
    Pane.ASSIST: ClockActivity.EXPLORING,
    Pane.GIST_HELP: ClockActivity.EXPLORING,
    Pane.MODEL: ClockActivity.THINKING,
}


class Clock(Struct, frozen=True):
    """The milliseconds by activity up to the last event, the running activity, and the machine's sleep."""

    reading: int = 0
    exploring: int = 0
    editing: int = 0
    waiting: int = 0
    paused: int = 0
    idle: int = 0
    thinking: int = 0
    asleep: int = 0
    away: int = 0
    """The wall-clock time between processes, when the program was closed or had died."""
    running: ClockActivity = ClockActivity.READING
    mono_ms: int | None = None
    """The monotonic time of this process's last event; None before the first."""
    utc_ms: int | None = None

    def of(self, activity: ClockActivity) -> int:
        """Return the milliseconds counted as `activity`."""
        value: int = getattr(self, activity)  # a member equals its value, and `.value` is slow
        return value

    @property
    def total(self) -> int:
        """All milliseconds, except those between two processes."""
        return sum(map(self.of, ClockActivity))

    @property
    def active(self) -> int:
        """The milliseconds of the solver's own time: reading, exploring, editing, and a model's thinking."""
        return self.reading + self.exploring + self.editing + self.thinking

    def at(self, mono_ms: int, utc_ms: int) -> Clock:
        """Return the clock at a later time in the same process."""
        if self.mono_ms is None:
            return structs.replace(self, mono_ms=mono_ms, utc_ms=utc_ms)
        span = max(0, mono_ms - self.mono_ms)
        wall = utc_ms - self.utc_ms if self.utc_ms is not None else span
        slept = wall - span if wall - span > SLEEP_THRESHOLD_MS else 0
        moved = structs.replace(self, mono_ms=mono_ms, utc_ms=utc_ms, asleep=self.asleep + slept)
        return moved.add(self.running, span)

    def add(self, activity: ClockActivity, ms: int) -> Clock:
        """Return the clock with `ms` milliseconds added to an activity; the result is at least 0."""
        changed: dict[str, Any] = {activity: max(0, self.of(activity) + ms)}
        return structs.replace(self, **changed)

    def unanswered(self, ms: int) -> Clock:
        """Return the clock with up to `ms` milliseconds of thinking counted as paused instead."""
        moved = min(max(0, ms), self.thinking)
        return self.add(ClockActivity.THINKING, -moved).add(ClockActivity.PAUSED, moved) if moved else self

    def restarted(self, mono_ms: int, utc_ms: int) -> Clock:
        """Return the clock at the start of a new process; the time in between counts only as `away`."""
        gap = max(0, utc_ms - self.utc_ms) if self.utc_ms is not None else 0
        return structs.replace(self, mono_ms=mono_ms, utc_ms=utc_ms, away=self.away + gap)
