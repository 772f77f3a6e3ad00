"""The program's end, which waits for everything that is still being sent to a store, but not for long."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

END_S = 3.0
"""The longest time that all waits at the program's end take together, in seconds."""
_WITHIN_S = 10.0
"""Seconds after a wait during which further waits share its time limit."""
_waits: list[tuple[float, float]] = []
"""When each wait ended, and how long it took, in seconds."""


def wait_briefly(wait: Callable[[float], object]) -> None:
    """Call `wait` with the seconds that are left: all of `END_S`, minus the waits of the last ten seconds."""
    began = monotonic()
    _waits[:] = [(ended, took) for ended, took in _waits if began - ended < _WITHIN_S]
    wait(max(0.0, END_S - sum(took for _, took in _waits)))
    _waits.append((monotonic(), monotonic() - began))
