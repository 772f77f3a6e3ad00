"""The result of an analysis as data: numbers by key, tables, plots, notes and shortfalls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite, nan
from operator import attrgetter

Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class Number:
    """An estimate with its 95% interval, and the numbers of persons, tasks and rows on which it is based."""

    value: float | None
    low: float | None = None
    high: float | None = None
    persons: int = 0
    tasks: int = 0
    rows: int = 0
    iid: tuple[float, float] | None = None
    """The interval that papers print, usually one that treats rows as independent; `iid_label` names it."""
    note: str = ""
    """The reason why there is no interval, or the basis of the interval."""
    iid_label: str = "i.i.d."
    """The label of the interval `iid`."""
    above: bool = False
    """Whether the upper bound is only known to be above `high`, because the data end there."""
    below: bool = False
    """Whether the lower bound is only known to be below `low`, because the data begin there."""


def or_nan(value: float | None) -> float:
    """Return the value; NaN if it is None, because plots need a number."""
    return nan if value is None else value


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An estimate that could not be made because a number, such as the number of persons, is too small."""

    what: str
    short: str
    """The name of the number, such as "persons", "tasks" or "solved attempts a side"."""
    needs: float
    has: float

    @property
    def words(self) -> str:
        """The sentence that a report prints in the estimate's place."""
        there = "is" if self.has == 1 else "are"
        needs = f"it needs at least {self.needs:g} {self.short}"
        return f"{self.what} is not estimated: {needs}, and there {there} {self.has:g}."


@dataclass(frozen=True, slots=True)
class FindingsTable:
    """A table whose cells are numbers, plain values or strings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Number | Value, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars with whiskers next to each other, one for each label."""

    series: str
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...] = ()
    highs: tuple[float | None, ...] = ()

    @classmethod
    def of(cls, series: str, shown: Mapping[str, Number]) -> Bars:
        """Return bars with whiskers, one for each number, by label."""
        drawn = shown.values()
        values, lows, highs = (tuple(map(attrgetter(name), drawn)) for name in ("value", "low", "high"))
        return cls(series, tuple(shown), values, lows, highs)


@dataclass(frozen=True, slots=True)
class Curve:
    """A line, with a band if it has bounds; a step function with `steps`, dashed with `dashed`."""

    series: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    steps: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """Points, with whiskers if there are intervals."""

    series: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, series: str, shown: Iterable[tuple[float, Number]], labels: Iterable[str] = ()) -> Points:
        """Return a point with whiskers for each (x, number); missing values and bounds are NaN."""
        known = tuple(shown)
        numbers = [number for _, number in known]
        y, low, high = (
            tuple(map(or_nan, map(attrgetter(name), numbers))) for name in ("value", "low", "high")
        )
        return cls(series, tuple(float(x) for x, _ in known), y, low, high, tuple(labels))


@dataclass(frozen=True, slots=True)
class Hexagons:
    """The mean of `z` in hexagonal bins of x and y; `label` names it."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[float, ...]
    label: str = "mean"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values by row and column, such as correlations, each with the number of tasks on which it is based."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    counts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Violins:
    """Distributions next to each other, by label."""

    labels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


Mark = Bars | Curve | Points | Hexagons | Matrix | Violins


def _is_drawn(mark: Mark) -> bool:
    """Return whether a mark has a finite value."""
    values: Iterable[float | None]
    match mark:
        case Bars():
            values = mark.values
        case Hexagons():
            values = mark.z
        case Matrix() | Violins():
            values = chain.from_iterable(mark.values)
        case _:
            values = mark.y
    return any(value is not None and isfinite(value) for value in values)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as data; the report draws it."""

    id: str
    title: str
    x_label: str
    y_label: str
    marks: tuple[Mark, ...]
    caption: str = ""
    log_x: bool = False
    log_y: bool = False
    at_risk: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Numbers at risk below the time axis, by series, at `risk_times`."""
    risk_times: tuple[float, ...] = ()
    panels: tuple[Plot, ...] = ()
    """Plots next to each other in place of `marks`, such as one for each metric and mode."""
    counts: tuple[int, int, int] | None = None
    """The persons, tasks and attempts behind the plot; None if the analysis's numbers have counts."""

    @property
    def has_values(self) -> bool:
        """Whether there is anything to draw: a finite value in a mark or in a panel."""
        return any(map(_is_drawn, self.marks)) or any(panel.has_values for panel in self.panels)

    @property
    def series(self) -> tuple[str, ...]:
        """The names of the series in a legend, in order, each once."""
        marks = (*self.marks, *(mark for panel in self.panels for mark in panel.marks))
        named = (mark.series for mark in marks if isinstance(mark, Bars | Curve | Points) and mark.series)
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of an analysis."""

    numbers: Mapping[str, Number] = field(default_factory=dict)
    """Numbers by key, such as `people/remove`; `results.json` prefixes the key with the analysis's id."""
    tables: tuple[FindingsTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    """Departures from the papers, omissions, and caveats for the reader."""
    not_estimated: tuple[Shortfall, ...] = ()

    @property
    def printed_tables(self) -> tuple[FindingsTable, ...]:
        """The tables; if there are none, one table of all numbers."""
        if self.tables or not self.numbers:
            return self.tables
        return (FindingsTable("Estimates", ("key", "estimate"), tuple(self.numbers.items())),)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to print: no number, table, plot or shortfall."""
        return not (self.numbers or self.tables or self.plots or self.not_estimated)
