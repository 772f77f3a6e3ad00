"""Chooses the functions of a library that a campaign is about, and tells in which stratum of its set each counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gistpoint.core.errors import UserError
from gistpoint.core.generation.choice import Choice
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.metrics.bars import MetricBar, at_bars
from gistpoint.core.metrics.conditions import filter_rows
from gistpoint.core.metrics.table import percentile

_MOST_NAMED = 10


def require_defined(choice: Choice, defined: Collection[str]) -> None:
    """Raise `UserError` if the list of functions names one that the library does not define, with its line."""
    unknown = [(line, name) for name, line in choice.functions.items() if name not in defined]
    if unknown:
        listed = ", ".join(f"line {line}: {name[:200]}" for line, name in unknown[:_MOST_NAMED])
        more = f", and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        raise UserError(
            f"The library does not define {len(unknown)} of the functions in the list: {listed}{more}.",
            hint="`gistpoint code SOURCE --names` prints those that there are.",
        )


def meeting(library: SourceLibrary, names: Sequence[str], choice: Choice) -> list[str]:
    """Return the functions that meet every condition; percentiles are those of all functions of the library."""
    if not choice.where:
        return list(names)
    rows = [row for name in names if (row := library.by_name.get(name)) is not None]
    return [row.function for row in filter_rows(rows, choice.where, library.rows)]


def beyond(library: SourceLibrary, names: Sequence[str], bars: Sequence[MetricBar], percent: float) -> list[str]:
    """Return the functions at or beyond every bar, which are percentiles among these functions."""
    if not bars:
        return list(names)
    rows = [row for name in names if (row := library.by_name.get(name)) is not None]
    return [row.function for row in at_bars(rows, bars, percent)]


def cells(library: SourceLibrary, names: Sequence[str], choice: Choice) -> dict[str, str]:
    """Return the cell of each function on the plane of the two metrics, by quantiles among these functions.

    The cell is empty if tasks are not spread; a function for which a metric is unknown has none, and is left out.
    """
    if not choice.plane:
        return dict.fromkeys(names, "")
    points: dict[str, list[float]] = {}
    for name in names:
        row = library.by_name.get(name)
        values = [] if row is None else [row.cell(metric) for metric in choice.plane]
        point = [float(value) for value in values if isinstance(value, int | float)]
        if len(point) == len(choice.plane):
            points[name] = point
    shares = [100 * n / choice.bins for n in range(1, choice.bins)]
    edges = [[percentile(values, share) for share in shares] for values in zip(*points.values(), strict=True)]
    found: dict[str, str] = {}
    for name, point in points.items():
        places = [sum(value > edge for edge in inner) for value, inner in zip(point, edges, strict=True)]
        told = (_quantile(place, choice.bins) for place in places)
        found[name] = ", ".join(f"{metric} {text}" for metric, text in zip(choice.plane, told, strict=True))
    return found


def _quantile(place: int, bins: int) -> str:
    return ("low", "high")[place] if bins == 2 else f"{place + 1}/{bins}"
