"""Waits briefly, when the program ends, for data that are still being sent to a store."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

END_S = 3.0
"""The maximum total time of all waits at the program's end, in seconds."""
_WITHIN_S = 10.0
"""Seconds after a wait during which further waits share its time limit."""
_waits: list[tuple[float, float]] = []
"""The time when each wait ended, and its duration, in seconds."""


def wait_briefly(wait: Callable[[float], object]) -> None:
    """Call `wait` with the remaining seconds: `END_S` minus the waits of the last ten seconds."""
    began = monotonic()
    _waits[:] = [(ended, took) for ended, took in _waits if began - ended < _WITHIN_S]
    wait(max(0.0, END_S - sum(took for _, took in _waits)))
    _waits.append((monotonic(), monotonic() - began))
