"""Divides the time of a run into parts: each moment belongs to exactly one part (decision 183)."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from gistpoint.sessions.records.model import Run

LONGEST_S = 10 * 365 * 86_400.0
"""The duration in seconds above which a time counts as a clock error."""


class TimeParts(NamedTuple):
    """The seconds of a run, divided so that each moment is in exactly one part; None for a part not recorded.

    If several things happen at once, the moment is the model's before it is a tool's, and a tool's before it
    is the user's. `unknown` is the time during which none of them is known to have been at work.
    """

    model: float | None
    tools: float | None
    user: float
    unknown: float
    is_whole: bool
    """Whether the parts cover the whole run, because its beginning and end are known."""

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return (self.model or 0.0) + (self.tools or 0.0) + self.user + self.unknown


class _Moments:
    """A set of moments, represented by spans that are merged where they touch."""

    def __init__(self) -> None:
        self._starts, self._ends = array("d"), array("d")
        self.seconds = 0.0
        """The length of all spans."""

    def add(self, start: float, end: float) -> None:
        """Add a span; moments that are already in the set count once."""
        if end <= start:
            return
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        touched = range(first, last)
        if touched:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self.seconds += end - start - sum(self._ends[n] - self._starts[n] for n in touched)
        self._starts[first:last], self._ends[first:last] = array("d", [start]), array("d", [end])


class TimeDivision:
    """Divides the time of a run into parts, with nested sets of moments: each contains the one before it."""

    def __init__(self) -> None:
        self._model, self._with_tools, self._with_user = (_Moments() for _ in range(3))
        self._first, self._last = math.inf, -math.inf
        self._without_place = 0.0
        """The seconds of calls of which only the duration is known."""

    def reach(self, *times: float | None) -> None:
        """Extend the run's span to moments at which it was in progress."""
        for at in times:
            if at is not None and math.isfinite(at):
                self._first, self._last = min(self._first, at), max(self._last, at)

    def add_reply(self, start: float, end: float) -> None:
        """Add the wait for a reply."""
        self._add(start, end, self._model, self._with_tools, self._with_user)

    def add_calls(self, start: float | None, seconds: float) -> None:
        """Add the time of calls; `start` is None if it is unknown when they began."""
        if start is None:
            self._without_place += seconds
        else:
            self._add(start, start + seconds, self._with_tools, self._with_user)

    def add_user(self, start: float, end: float) -> None:
        """Add the wait for a message from the user."""
        self._add(start, end, self._with_user)

    def _add(self, start: float, end: float, *to: _Moments) -> None:
        self.reach(start, end)
        for moments in to:
            moments.add(start, end)

    def parts(self, run: Run | None, *, replies: bool, calls: bool) -> TimeParts:
        """Return the parts; `run` is the header, which may record how long the run took.

        `replies` is true if the time of any reply is known; `calls` is true if the time of any call is known
        or there were no calls.
        """
        length = self._length(run)
        known = self._with_user.seconds
        # Calls without a known position lie somewhere in otherwise unexplained time.
        room = math.inf if length is None else max(0.0, length - known)
        tools = min(self._without_place, room)
        return TimeParts(
            self._model.seconds if replies else None,
            self._with_tools.seconds - self._model.seconds + tools if calls else None,
            known - self._with_tools.seconds,
            0.0 if length is None else room - tools,
            length is not None,
        )

    def _length(self, run: Run | None) -> float | None:
        """Return the seconds from the beginning to the end of the run; None if they are unknown.

        A recorded duration takes precedence, because records that the harness wrote before the run began, or
        after it ended, are not part of the run.
        """
        first, last = self._first, self._last
        length = seconds_between(first, last) if first <= last else None
        duration = None if run is None else sound_seconds(run.duration_s)
        if run is None or duration is None:
            return length
        if "duration_s" not in run.derived:
            return max(duration, self._with_user.seconds)
        if length is None or run.started is None:
            return max(duration, length or 0.0)
        return seconds_between(min(first, run.started), max(last, run.started + duration))


def seconds_between(start: float | None, end: float | None) -> float | None:
    """Return the seconds between two times; None if one is unknown, or if clocks contradict each other."""
    return None if start is None or end is None else sound_seconds(end - start)


def sound_seconds(seconds: float | None) -> float | None:
    """Return a duration, or None if it is negative or longer than any run."""
    if seconds is None or not 0 <= seconds < LONGEST_S:
        return None
    return seconds
