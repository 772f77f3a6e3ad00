"""The formatting of numbers, intervals and shortfalls, in reports and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gistpoint.core.analysis.findings import (
    Bars,
    Findings,
    FindingsTable,
    Matrix,
    Number,
    Plot,
    Shortfall,
    Value,
    Violins,
)
from gistpoint.core.text import visible_line

NOTHING = "–"
"""The text for a value that does not exist."""


def value_words(value: Value) -> str:
    """Return a value as text: an integer in full, a string on one line, None and NaN as `NOTHING`.

    Other numbers have three significant digits, at most three of them after the point; from 1,000 on, all
    digits before the point are shown, and below 0.001, two significant digits. Infinity is `∞`.
    """
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return visible_line(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10_000 else f"{value:,}"
    if not math.isfinite(value):
        if math.isnan(value):
            return NOTHING
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if 0 < size < 0.001:
        return f"{value:.1e}"
    digits = next(digits for least, digits in _DIGITS if size >= least)
    return f"{value:.{digits}f}"


_DIGITS = ((100, 0), (10, 1), (1, 2), (0.001, 3), (0, 2))
"""The number of decimals by the absolute value from which it applies; `value_words` states the rule."""


def interval_words(number: Number) -> str:
    """Return the interval as `[0.51, 0.75]` or `[below 3.2, above 59.0]`; empty if there is none."""
    if number.low is None or number.high is None:
        return ""
    low = f"{'below ' if number.below else ''}{value_words(number.low)}"
    return f"[{low}, {'above ' if number.above else ''}{value_words(number.high)}]"


def iid_words(number: Number) -> str:
    """Return the interval `iid`, preceded by its label; empty if there is none."""
    if number.iid is None:
        return ""
    return f"{number.iid_label} [{value_words(number.iid[0])}, {value_words(number.iid[1])}]"


def intervals_words(number: Number) -> list[str]:
    """Return the existing intervals of a number: the one over persons and tasks, and `iid`."""
    return [words for words in (interval_words(number), iid_words(number)) if words]


def number_words(number: Number) -> str:
    """Return an estimate on one line, with its intervals, extent and note."""
    extent = Extent(number.persons, number.tasks, number.rows).words
    parts = [
        value_words(number.value),
        *intervals_words(number),
        f"({extent})" if extent else "",
        visible_line(number.note),
    ]
    return " ".join(part for part in parts if part)


def shortfall_words(found: Sequence[Shortfall]) -> list[str]:
    """Return sentences on why numbers were not estimated, one for all numbers that share a reason."""
    alike: dict[tuple[str, float, float], list[Shortfall]] = {}
    for one in found:
        alike.setdefault((one.short, one.needs, one.has), []).append(one)
    sentences = []
    for (short, needs, has), members in alike.items():
        if len(members) == 1:
            sentences.append(members[0].words)
            continue
        there = "is" if has == 1 else "are"
        what = "; ".join(one.what.rstrip(",") for one in members)
        sentences.append(
            f"{len(members)} are not estimated, as each needs at least {needs:g} {short}, and there {there}"
            f" {has:g}: {what}."
        )
    return sentences


@dataclass(frozen=True, slots=True)
class Extent:
    """The numbers of persons, tasks and attempts behind a number, a table or a plot."""

    persons: int = 0
    tasks: int = 0
    rows: int = 0
    at_most: bool = False
    """Whether these counts are the greatest of several, because the numbers have different extents."""

    @property
    def words(self) -> str:
        """The counts in words, as in `8 persons, 16 tasks, 64 attempts`; counts of 0 are left out."""
        counts = ((self.persons, "person"), (self.tasks, "task"), (self.rows, "attempt"))
        words = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts if count)
        return f"a number rests on up to {words}" if words and self.at_most else words

    @classmethod
    def of(cls, numbers: Iterable[Number]) -> Extent:
        """Return the greatest counts among the numbers."""
        extents = {(number.persons, number.tasks, number.rows) for number in numbers}
        persons, tasks, rows = (max((counts[place] for counts in extents), default=0) for place in range(3))
        return cls(persons, tasks, rows, at_most=len(extents) > 1)


def extent_of_table(table: FindingsTable, findings: Findings, of_study: Extent) -> Extent:
    """Return the extent of a table's numbers, or the extent of the analysis if the table has no numbers."""
    numbers = [cell for row in table.rows for cell in row if isinstance(cell, Number)]
    return Extent.of(numbers) if numbers else extent_of(findings, of_study)


def extent_of_plot(plot: Plot, findings: Findings, of_study: Extent) -> Extent:
    """Return a plot's own counts, or else the extent of its series' numbers, or else that of the analysis.

    The key of a number begins with the name of its series; one part of it can be the mode, which also ends
    the id of the plot.
    """
    if plot.counts is not None:
        return Extent(*plot.counts)
    names = {*plot.series, *_labels(plot)}
    own = {key: number for key, number in findings.numbers.items() if key.split("/")[0] in names}
    of_mode = {
        key: number
        for key, number in own.items()
        if any(plot.id.endswith(f"-{part}") for part in key.split("/")[1:])
    }
    found = Extent.of((of_mode or own).values())
    return found if found.tasks else extent_of(findings, of_study)


def _labels(plot: Plot) -> Iterator[str]:
    """Yield the names of bars, rows of matrices and violins, in a plot and its panels."""
    for mark in chain(plot.marks, *(panel.marks for panel in plot.panels)):
        match mark:
            case Bars() | Violins():
                yield from mark.labels
            case Matrix():
                yield from mark.rows


def extent_of(findings: Findings, of_study: Extent) -> Extent:
    """Return the extent of an analysis's numbers, or the extent of the study if they involve no task."""
    found = Extent.of(findings.numbers.values())
    return found if found.tasks else of_study
