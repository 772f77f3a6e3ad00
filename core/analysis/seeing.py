"""Describes in sentences what a plot shows, for all readers, including those who can't see it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from gistpoint.core.analysis.findings import Bars, Curve, Hexagons, Matrix, Plot, Points, Violins
from gistpoint.core.analysis.naming import in_words
from gistpoint.core.analysis.printing import value_words

Kind = TypeVar("Kind", Bars, Curve, Hexagons, Matrix, Points, Violins)
_MOST = 4
"""The maximum number of series that a sentence describes."""


def seen_in(plot: Plot) -> str:
    """Return a sentence on what a plot, or each of its panels, shows; empty if the plot has no values."""
    if plot.panels:
        return " ".join(filter(None, map(_of_panel, plot.panels)))
    for sentence in (_of_matrix, _of_hexagons, _of_bars, _of_curves, _of_violins, _of_points):
        if words := sentence(plot):
            return words
    return ""


def _marks(plot: Plot, kind: type[Kind]) -> list[Kind]:
    return [mark for mark in plot.marks if isinstance(mark, kind)]


def _of_bars(plot: Plot) -> str:
    bars = _marks(plot, Bars)
    found = [
        (value, _named(mark.series, label, bars))
        for mark in bars
        for label, value in zip(mark.labels, mark.values, strict=False)
        if value is not None and math.isfinite(value)
    ]
    if not found:
        return ""
    low, high = min(found), max(found)
    if len(found) == 1:
        return f"There is one value, {value_words(low[0])} ({low[1]})."
    if low[0] == high[0]:
        return f"All {len(found)} values are {value_words(low[0])}."
    return (
        f"The highest value is {value_words(high[0])} ({high[1]}), the lowest {value_words(low[0])}"
        f" ({low[1]})."
    )


def _named(series: str, label: str, bars: Sequence[Bars]) -> str:
    return ": ".join(part for part in (series if len(bars) > 1 else "", label) if part) or series


def _of_curves(plot: Plot) -> str:
    parts, ends = list[str](), list[float]()
    for curve in _marks(plot, Curve):
        known = [(x, y) for x, y in zip(curve.x, curve.y, strict=False) if math.isfinite(y)]
        if len(known) < 2 or curve.dashed:
            continue
        (start, first), (end, last) = known[0], known[-1]
        ends += [start, end]
        span = f"from {value_words(first)} to {value_words(last)}"
        way = f"rises {span}" if last > first else f"falls {span}"
        if last == first:
            way = f"stays at {value_words(first)}"
        parts.append(f"{curve.series or 'the curve'} {way}")
    if not parts:
        return ""
    over = f"From {value_words(min(ends))} to {value_words(max(ends))} on the axis of {plot.x_label or 'x'}"
    return f"{over}, {'; '.join(parts[:_MOST])}{_more(len(parts))}."


def _more(count: int) -> str:
    return f"; and {count - _MOST} more" if count > _MOST else ""


def _of_points(plot: Plot) -> str:
    found, parts = _marks(plot, Points), list[str]()
    for mark in found[:_MOST]:
        known = sorted(y for y in mark.y if math.isfinite(y))
        if len(known) == 1 and len(mark.x) == 1:
            parts.append(
                f"{mark.series or 'the point'} {value_words(known[0])} against {value_words(mark.x[0])}"
            )
        elif known:
            parts.append(
                f"{mark.series or 'the points'}: {len(known)} from {value_words(known[0])} to"
                f" {value_words(known[-1])}"
            )
    text = "; ".join(parts)
    axes = f"{plot.y_label} against {plot.x_label}" if plot.x_label else plot.y_label or "points"
    return f"{_capitalised(axes)}: {text}{_more(len(found))}." if text else ""


def _capitalised(words: str) -> str:
    """Return a string with its first letter capitalised."""
    shown = in_words(words)
    return f"{shown[:1].upper()}{shown[1:]}"


def _of_matrix(plot: Plot) -> str:
    cells = [
        (value, row, column)
        for matrix in _marks(plot, Matrix)
        for row, values in zip(matrix.rows, matrix.values, strict=False)
        for column, value in zip(matrix.columns, values, strict=False)
        if value is not None and math.isfinite(value) and row != column
    ]
    if not cells:
        return ""
    high, low = max(cells), min(cells)
    return (
        f"The highest of {len(cells)} values is {value_words(high[0])} ({high[1]}, {high[2]}), the lowest"
        f" {value_words(low[0])} ({low[1]}, {low[2]})."
    )


def _of_hexagons(plot: Plot) -> str:
    known = [z for mark in _marks(plot, Hexagons) for z in mark.z if math.isfinite(z)]
    if not known:
        return ""
    return f"The mean over all {len(known)} attempts is {value_words(sum(known) / len(known))}."


def _of_violins(plot: Plot) -> str:
    parts = [words for mark in _marks(plot, Violins) for words in _medians(mark)]
    return f"Medians: {'; '.join(parts)}." if parts else ""


def _medians(mark: Violins) -> Iterator[str]:
    for label, values in zip(mark.labels, mark.values, strict=False):
        if values:
            yield f"{label} {value_words(_median(values))} (n = {len(values)})"


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _of_panel(panel: Plot) -> str:
    words = seen_in(panel)
    return f"{_capitalised(panel.title)}: {words[0].lower()}{words[1:]}" if words else ""
