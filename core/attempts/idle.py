"""Time without any input: idle from the question on, unless the solver answers that it was work.

The question comes after `ASK_MS` beside the code, so that who thinks is not disturbed; after `COVER_MS` a cover comes,
behind which nobody can work. Each step is an event of its own, so that the fold knows what the time was also if nobody
answers, or if the process dies meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from gistpoint.core.attempts.clock import Activity, Clock

ASK_MS = 120_000
"""After so long without input the solver is asked."""
COVER_MS = 600_000
"""After so long without input the code is covered."""


class IdleStage(StrEnum):
    """What an `idle_prompt` event without an answer says."""

    ASKED = "asked"
    COVERED = "covered"
    INPUT = "input"


@dataclass(frozen=True, slots=True)
class Doubt:
    """Time without input that counts as idle and could still be claimed as work, by what had the focus."""

    spans: tuple[tuple[Activity, int], ...] = ()
    """Milliseconds that are over."""
    idle: bool = False
    """Whether nothing was pressed since the question came."""
    grows: Activity | None = None
    """What the span that goes on is claimed as; None once there was input, or the cover."""
    idle_before_ms: int = 0
    """What the clock counted as idle before that span."""

    def __bool__(self) -> bool:
        return bool(self.spans) or self.grows is not None

    def total_ms(self, clock: Clock) -> int:
        """Milliseconds in question as the clock stands."""
        return sum(ms for _, ms in self.stopped(clock, idle=self.idle).spans)

    def stopped(self, clock: Clock, *, idle: bool) -> Doubt:
        """Return the doubt with the span that went on at its end."""
        if self.grows is None:
            return replace(self, idle=idle)
        return Doubt((*self.spans, (self.grows, clock.idle - self.idle_before_ms)), idle)


NO_DOUBT = Doubt()


def asked(doubt: Doubt, clock: Clock, activity: Activity, since_mono_ms: int, mono_ms: int) -> tuple[Doubt, Clock]:
    """Return doubt and clock after the question: the time since the last input is idle."""
    span = min(max(0, mono_ms - since_mono_ms), clock.of(activity))
    before = doubt.stopped(clock, idle=True)
    return replace(before, grows=activity, idle_before_ms=clock.idle), _moved(clock, activity, -span)


def answered(doubt: Doubt, clock: Clock, data: Mapping[str, Any], activity: Activity) -> Clock:
    """Return the clock after an answer, which is about all of the time in doubt.

    Journals of earlier versions hold the answer alone: there, time becomes idle only when the solver says that it was.
    """
    answer = data.get("answer")
    if doubt:
        for claimed, ms in doubt.stopped(clock, idle=False).spans if answer == "worked" else ():
            clock = _moved(clock, claimed, ms)
        return clock
    span = max(0, int(data.get("idle_ms", 0))) if answer == "away" else 0
    return _moved(clock, activity, -min(span, clock.of(activity)))


def _moved(clock: Clock, activity: Activity, ms: int) -> Clock:
    """Move milliseconds from idle to an activity, or back where there are fewer than none."""
    return clock.add(activity, ms).add(Activity.IDLE, -ms)
