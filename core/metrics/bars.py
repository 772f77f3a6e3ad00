"""Selects functions, such as the hard set, by thresholds ("bars") on several metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.metrics.table import FunctionMetrics, percentile


class MetricEnd(StrEnum):
    """The end of a metric's range at which functions are selected."""

    HIGH = "high"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class MetricBar:
    """A threshold on one metric, at one end of its range."""

    metric: str
    end: MetricEnd = MetricEnd.HIGH

    def __str__(self) -> str:
        return f"{self.metric}:{self.end}"

    def percent_of(self, percent: float) -> float:
        """Return the percentile of the bar: `percent` at the high end, 100 - `percent` at the low end."""
        return percent if self.end is MetricEnd.HIGH else 100 - percent

    def is_met(self, value: float, limit: float) -> bool:
        """Return whether a value is at or beyond a limit."""
        return value >= limit if self.end is MetricEnd.HIGH else value <= limit


HARD = (MetricBar("cyclomatic"), MetricBar("degree"))
"""The metrics of the Breakpoint paper's hard set (figure 3)."""


def at_bars(
    candidates: Sequence[FunctionMetrics], bars: Sequence[MetricBar] = HARD, percent: float = 90
) -> list[FunctionMetrics]:
    """Return the candidates at or beyond every bar, in their order.

    A bar at the high end is the percentile `percent`, a bar at the low end the percentile 100 - `percent`,
    over the candidates with a value of every metric, interpolated. The paper's hard set uses the 90th
    percentiles of two metrics. Candidates without a value meet no bar.
    """
    values = {bar.metric: _known(candidates, bar.metric) for bar in bars}
    # Percentiles are over candidates with a value of every metric: otherwise each bar would have its own
    # population.
    left = [row.function for row in candidates if _is_in_all(row.function, values.values())]
    for bar in bars if left else ():
        measured = values[bar.metric]
        limit = percentile(map(measured.__getitem__, left), bar.percent_of(percent))
        values[bar.metric] = {name: value for name, value in measured.items() if bar.is_met(value, limit)}
    met = set(filter(lambda name: _is_in_all(name, values.values()), left))
    return [row for row in candidates if row.function in met]


def _known(rows: Sequence[FunctionMetrics], metric: str) -> dict[str, float]:
    cells = ((row.function, row.cell(metric)) for row in rows)
    return {name: float(cell) for name, cell in cells if isinstance(cell, int | float)}


def _is_in_all(name: str, found: Iterable[Mapping[str, float]]) -> bool:
    return all(name in values for values in found)


TOP = 30
"""The number of tasks by each criterion in the hard subset."""


def hard_subset(
    calls: Mapping[str, float], files: Mapping[str, float], top: int = TOP
) -> tuple[set[str], set[str]]:
    """Return the `top` tasks with the most calls, and the `top` with the most files; the id breaks ties."""

    def most(values: Mapping[str, float]) -> set[str]:
        return set(sorted(values, key=lambda task: (-values[task], task))[:top])

    return most(calls), most(files)
