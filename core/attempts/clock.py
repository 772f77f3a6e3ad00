"""The clocks of an attempt, derived from its events and never stored.

Time between two events of one process belongs to what had the focus. Between two processes nothing runs. A machine
that slept shows as the difference between the spans of the two clocks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.events import Pane

SLEEP_THRESHOLD_MS = 2_000
"""Smaller differences between the clocks are adjustments of the wall clock, not sleep."""


class Activity(StrEnum):
    """What a span of time is counted as."""

    READING = "reading"
    EXPLORING = "exploring"
    EDITING = "editing"
    WAITING = "waiting"
    PAUSED = "paused"
    IDLE = "idle"


ACTIVE = (Activity.READING, Activity.EXPLORING, Activity.EDITING)
"""The solver's own time: what a time limit is measured on. Waiting is the harness's."""

ACTIVITY_OF_PANE = {
    Pane.BRIEF: Activity.READING,
    Pane.TREE: Activity.EXPLORING,
    Pane.CODE: Activity.EXPLORING,
    Pane.CONSOLE: Activity.EXPLORING,
    Pane.RESULT: Activity.EXPLORING,
    Pane.EDITOR: Activity.EDITING,
    Pane.NOTES: Activity.EXPLORING,
}


@dataclass(frozen=True, slots=True)
class Clock:
    """Milliseconds by activity up to the last event, what runs since, and what the machine slept through."""

    reading: int = 0
    exploring: int = 0
    editing: int = 0
    waiting: int = 0
    paused: int = 0
    idle: int = 0
    asleep: int = 0
    away: int = 0
    """Between two processes, by the wall clock: the program was closed or had died."""
    running: Activity = Activity.READING
    mono_ms: int | None = None
    """Monotonic time of the last event of this process; None before the first."""
    utc_ms: int | None = None

    def of(self, activity: Activity) -> int:
        """Milliseconds counted as `activity`."""
        value: int = getattr(self, activity.value)
        return value

    @property
    def active(self) -> int:
        """Milliseconds of the solver's own time: reading, exploring and editing."""
        return self.reading + self.exploring + self.editing

    def at(self, mono_ms: int, utc_ms: int) -> Clock:
        """Return the clock as it stands at a later moment of the same process."""
        if self.mono_ms is None:
            return replace(self, mono_ms=mono_ms, utc_ms=utc_ms)
        span = max(0, mono_ms - self.mono_ms)
        wall = utc_ms - self.utc_ms if self.utc_ms is not None else span
        slept = wall - span if wall - span > SLEEP_THRESHOLD_MS else 0
        moved = replace(self, mono_ms=mono_ms, utc_ms=utc_ms, asleep=self.asleep + slept)
        return moved.add(self.running, span)

    def add(self, activity: Activity, ms: int) -> Clock:
        """Count `ms` more (or fewer) as `activity`."""
        changed: dict[str, Any] = {activity.value: max(0, self.of(activity) + ms)}
        return replace(self, **changed)

    def restarted(self, mono_ms: int, utc_ms: int) -> Clock:
        """Return the clock at the start of another process: nothing ran in between."""
        gap = max(0, utc_ms - self.utc_ms) if self.utc_ms is not None else 0
        return replace(self, mono_ms=mono_ms, utc_ms=utc_ms, away=self.away + gap)


class SystemTime:
    """The machine's clocks, as `core.ports.TimeSource`."""

    def utc_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def boot_id(self) -> str:
        """The kernel's boot id on Linux; elsewhere the minute of the boot."""
        return _boot_id()


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"boot-{round((time.time() - time.monotonic()) / 60)}"
