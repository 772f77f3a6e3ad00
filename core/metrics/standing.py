"""Where a function lies among those of its library, metric by metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.metrics.table import CENTRALITY, COMPLEXITY, FunctionMetrics

Number = int | float


@dataclass(frozen=True, slots=True)
class Standing:
    """A function's value of one metric, and its percentile rank among the functions of the library, 0 to 100.

    The percentile is None where only the value is known.
    """

    metric: str
    value: Number
    percentile: float | None = None


def percentile_rank(values: Sequence[Number], value: Number) -> float:
    """Return the share of values below `value`, those equal to it counted half, times 100; ValueError for none."""
    if not values:
        raise ValueError("no values")
    below = sum(other < value for other in values)
    equal = sum(other == value for other in values)
    return 100 * (below + equal / 2) / len(values)


def standings(rows: Iterable[FunctionMetrics], functions: Iterable[str]) -> dict[str, tuple[Standing, ...]]:
    """Return each function's metrics with its rank among all rows; functions that have no row are left out."""
    known = list(rows)
    by_name = {row.function: row for row in known}
    columns: dict[str, list[Number]] = {}
    for column in (*COMPLEXITY, *CENTRALITY):
        cells = (row.cell(column) for row in known)
        columns[column] = [cell for cell in cells if isinstance(cell, int | float)]
    found: dict[str, tuple[Standing, ...]] = {}
    for name in functions:
        if (row := by_name.get(name)) is not None:
            found[name] = tuple(
                Standing(column, cell, percentile_rank(values, cell))
                for column, values in columns.items()
                if isinstance(cell := row.cell(column), int | float)
            )
    return found


def standings_to_json(found: Mapping[str, Iterable[Standing]]) -> dict[str, dict[str, dict[str, Number | None]]]:
    """Return the form in which standings lie in a task's answer: function, metric, `value` and `percentile`."""
    return {
        name: {s.metric: {"value": s.value, "percentile": s.percentile} for s in standing}
        for name, standing in found.items()
    }


def standings_from_json(metrics: Mapping[str, Any], function: str) -> tuple[Standing, ...]:
    """Return what a task's answer says of a function; metrics may also be plain numbers, without a percentile."""
    values = metrics.get(function)
    if not isinstance(values, Mapping):
        return ()
    found = (_standing(str(name), value) for name, value in values.items())
    return tuple(standing for standing in found if standing is not None)


def _standing(name: str, value: object) -> Standing | None:
    if isinstance(value, Mapping):
        inner, percentile = _number(value.get("value")), _number(value.get("percentile"))
        return None if inner is None else Standing(name, inner, percentile)
    plain = _number(value)
    return None if plain is None else Standing(name, plain)


def _number(value: object) -> Number | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
