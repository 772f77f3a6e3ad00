"""Strata of tasks by the number of failing tests, in which sets and studies are reported (decision 142)."""

from __future__ import annotations

FAILING_STRATA = ("1", "2-4", "5-40", "41+")
"""The strata in order; the paper's tasks are those of the last two."""
_UP_TO = (1, 4, 40)


def failing_stratum(failing: int) -> str:
    """Return the stratum of a task with this number of failing tests; empty if no test fails."""
    if failing < 1:
        return ""
    return FAILING_STRATA[sum(failing > most for most in _UP_TO)]
