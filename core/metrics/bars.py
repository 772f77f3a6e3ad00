"""The functions at one end of several metrics: the hard set, and whatever else bars on metrics tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.metrics.table import FunctionMetrics, percentile


class MetricEnd(StrEnum):
    """Which end of a metric is wanted."""

    HIGH = "high"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class MetricBar:
    """A metric of which functions at one end are wanted."""

    metric: str
    end: MetricEnd = MetricEnd.HIGH

    def __str__(self) -> str:
        return f"{self.metric}:{self.end}"


HARD = (MetricBar("cyclomatic"), MetricBar("degree"))
"""The metrics of the Breakpoint paper's hard set (figure 3)."""


def at_bars(
    candidates: Sequence[FunctionMetrics], bars: Sequence[MetricBar] = HARD, percent: float = 90
) -> list[FunctionMetrics]:
    """Return the candidates at or beyond every bar, in their order.

    A bar at the high end is the percentile `percent`, one at the low end the percentile 100 - `percent`, among the
    candidates alone, interpolated (the paper's hard set: the 90th of two metrics). Candidates without a value are
    beyond no bar.
    """
    values = {
        bar.metric: {
            row.function: float(cell) for row in candidates if isinstance(cell := row.cell(bar.metric), int | float)
        }
        for bar in bars
    }
    left = [row for row in candidates if all(row.function in values[bar.metric] for bar in bars)]
    for bar in bars:
        known = values[bar.metric]
        if not left:
            break
        high = bar.end is MetricEnd.HIGH
        limit = percentile((known[row.function] for row in left), percent if high else 100 - percent)
        values[bar.metric] = {
            name: value for name, value in known.items() if (value >= limit if high else value <= limit)
        }
    return [row for row in left if all(row.function in values[bar.metric] for bar in bars)]


TOP = 30
"""As many tasks of each axis are in the hard subset."""


def hard_subset(calls: Mapping[str, float], files: Mapping[str, float], top: int = TOP) -> tuple[set[str], set[str]]:
    """Return the tasks with the most calls and those with the most files; of equal ones the first by name."""

    def most(values: Mapping[str, float]) -> set[str]:
        return set(sorted(values, key=lambda task: (-values[task], task))[:top])

    return most(calls), most(files)
