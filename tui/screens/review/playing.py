"""Plays a run: the next step comes when it came then, or sooner."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen
from textual.timer import Timer

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
STEADY_S = 1.0
"""Seconds for a step whose time is not known."""
LONGEST_S = 10.0
"""Longer waits are cut: whoever watches has not got the afternoon."""


class Player:
    """A timer that goes on to the next step."""

    def __init__(self, screen: Screen[None], seconds_of: Callable[[], float], go_on: Callable[[], bool]) -> None:
        """`seconds_of` the step in sight, 0 where unknown; `go_on` is False at the end."""
        self._screen, self._seconds_of, self._go_on = screen, seconds_of, go_on
        self._timer: Timer | None = None
        self._speed = SPEEDS.index(1.0)

    @property
    def playing(self) -> bool:
        """Whether the next step will come by itself."""
        return self._timer is not None

    @property
    def speed(self) -> float:
        """How many times as fast as recorded."""
        return SPEEDS[self._speed]

    def faster(self, by: int) -> None:
        """Play at another speed."""
        self._speed = min(max(0, self._speed + by), len(SPEEDS) - 1)
        if self.playing:
            self._schedule()

    def toggle(self) -> None:
        """Play, or pause."""
        if self.playing:
            self.stop()
        else:
            self._schedule()

    def stop(self) -> None:
        """Pause."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _schedule(self) -> None:
        self.stop()
        seconds = min(LONGEST_S, self._seconds_of() or STEADY_S) / self.speed
        self._timer = self._screen.set_timer(max(0.02, seconds), self._next)

    def _next(self) -> None:
        self._timer = None
        if self._go_on():
            self._schedule()
