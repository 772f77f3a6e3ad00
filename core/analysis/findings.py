"""The result of an analysis, as data: numbers by key, tables, plots, and what could not be estimated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import nan
from operator import attrgetter

Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class Number:
    """An estimate with its 95 % interval, and how many persons, tasks and rows it rests on."""

    value: float | None
    low: float | None = None
    high: float | None = None
    persons: int = 0
    tasks: int = 0
    rows: int = 0
    iid: tuple[float, float] | None = None
    """The interval that papers print, as if all rows were independent; or another, as `beside` says."""
    note: str = ""
    """Why there is no interval, or what it is on."""
    beside: str = "i.i.d."
    """What the interval `iid` is called."""


def or_nan(value: float | None) -> float:
    """Return a value as a figure draws it: NaN if it does not exist."""
    return nan if value is None else value


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What was not estimated: which number is too small, what it must be, what it is."""

    what: str
    short: str
    """As "persons", "tasks", "solved attempts a side"."""
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
    """A table; a cell is a `Number`, a value or a text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Number | Value, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars beside each other, one for each label, with whiskers."""

    series: str
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...] = ()
    highs: tuple[float | None, ...] = ()

    @classmethod
    def of(cls, series: str, shown: Mapping[str, Number]) -> Bars:
        """Return a bar with whiskers for each number, by label."""
        drawn = shown.values()
        values, lows, highs = (tuple(map(attrgetter(name), drawn)) for name in ("value", "low", "high"))
        return cls(series, tuple(shown), values, lows, highs)


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with a band; `steps` draws a step function, `dashed` a dashed one."""

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
        """Return a point with whiskers for each number; what a number does not have is NaN."""
        known = tuple(shown)
        numbers = [number for _, number in known]
        y, low, high = (
            tuple(map(or_nan, map(attrgetter(name), numbers))) for name in ("value", "low", "high")
        )
        return cls(series, tuple(float(x) for x, _ in known), y, low, high, tuple(labels))


@dataclass(frozen=True, slots=True)
class Hexagons:
    """The mean of `z` in hexagonal bins of x and y."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values by row and column, each with its count."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    counts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Violins:
    """Distributions beside each other."""

    labels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


Mark = Bars | Curve | Points | Hexagons | Matrix | Violins


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure as data; the report draws it."""

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


@dataclass(frozen=True, slots=True)
class Findings:
    """All that an analysis found."""

    numbers: Mapping[str, Number] = field(default_factory=dict)
    """By key, such as `people/remove`; with the analysis's id in front they are the keys of `results.json`.
    """
    tables: tuple[FindingsTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    """Departures from the papers, what was left out, what a reader must know."""
    not_estimated: tuple[Shortfall, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to print: no data of this kind."""
        return not (self.numbers or self.tables or self.plots or self.not_estimated)
