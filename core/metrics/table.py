"""Measures functions as rows of metrics, sorts the rows, and writes them as CSV."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.callgraph import build_call_graph
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.csv_text import csv_line
from gistpoint.core.errors import UserError
from gistpoint.core.metrics.centrality import Centrality, measure_centrality
from gistpoint.core.metrics.complexity import Complexity, measure_complexity
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree

if TYPE_CHECKING:
    from gistpoint.core.callgraph import CallGraph

Number = int | float


@dataclass(frozen=True, slots=True)
class MetricRank:
    """A function's value of one metric, with its percentile rank in the library, from 0 to 100.

    The percentile is None if only the value is known.
    """

    metric: str
    value: Number
    percentile: float | None = None


def percentile_rank(values: Sequence[Number], value: Number) -> float:
    """Return the percentage of values at or below `value`. Raises `ValueError` if there are no values."""
    if not values:
        raise ValueError("no values")
    return 100 * sum(other <= value for other in values) / len(values)


def standings(rows: Iterable[FunctionMetrics], functions: Iterable[str]) -> dict[str, tuple[MetricRank, ...]]:
    """Return the ranks of each function's metrics among all rows, by function.

    Functions without a row are left out.
    """
    all_rows = list(rows)
    by_name = {row.function: row for row in all_rows}
    columns = {
        column: [cell for row in all_rows if isinstance(cell := row.cell(column), int | float)]
        for column in (*COMPLEXITY, *CENTRALITY)
    }
    return {name: tuple(_ranks(by_name[name], columns)) for name in functions if name in by_name}


def _ranks(row: FunctionMetrics, columns: Mapping[str, Sequence[Number]]) -> Iterator[MetricRank]:
    for column, values in columns.items():
        cell = row.cell(column)
        if isinstance(cell, int | float):
            yield MetricRank(column, cell, percentile_rank(values, cell))


def standings_from_json(metrics: Mapping[str, Any], function: str) -> tuple[MetricRank, ...]:
    """Return the metrics of a function that a task's answer records, under `functions` or at its top level.

    A metric may also be a plain number, without a percentile. Empty if the function has no metrics.
    """
    functions = metrics.get("functions")
    values = (functions if isinstance(functions, Mapping) else metrics).get(function)
    if not isinstance(values, Mapping):
        return ()
    return tuple(filter(None, (_standing(str(name), value) for name, value in values.items())))


def _standing(name: str, value: object) -> MetricRank | None:
    if isinstance(value, Mapping):
        inner, percentile = _recorded(value.get("value")), _recorded(value.get("percentile"))
        return None if inner is None else MetricRank(name, inner, percentile)
    plain = _recorded(value)
    return None if plain is None else MetricRank(name, plain)


def _recorded(value: object) -> Number | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


Cell = str | int | float | None

COMPLEXITY = tuple(field.name for field in fields(Complexity))
CENTRALITY = tuple(field.name for field in fields(Centrality))
COLUMNS = ("function", "kind", "line", *COMPLEXITY, *CENTRALITY)


class ColumnError(UserError):
    """There is no column of a requested name."""


@dataclass(frozen=True, slots=True)
class FunctionMetrics:
    """One function with its metrics; `complexity` is None if its file can't be measured."""

    function: str
    kind: str
    line: int
    complexity: Complexity | None
    centrality: Centrality

    def cell(self, column: str) -> Cell:
        """Return a column's value; None if it is unknown. Raises `ColumnError` if it is not in `COLUMNS`."""
        if column not in COLUMNS:
            raise ColumnError(f"There is no column {column!r}.", hint=f"Columns: {', '.join(COLUMNS)}.")
        holder: object = self
        if column in COMPLEXITY:
            holder = self.complexity
        elif column in CENTRALITY:
            holder = self.centrality
        value: Cell = getattr(holder, column) if holder is not None else None
        return value


def measure_functions(graph: CallGraph, files: Mapping[str, bytes]) -> list[FunctionMetrics]:
    """Return a row for every function of `graph`, in its order.

    Centrality is measured on the graph without module code, because no task can be about module code.
    """
    complexity = measure_complexity(files)
    centrality = measure_centrality(graph.to_networkx(modules=False))
    return [
        FunctionMetrics(
            node.id, node.kind, node.def_line, complexity.get((node.path, node.def_line)), centrality[node.id]
        )
        for node in graph.functions()
    ]


def with_complexity(
    rows: Iterable[FunctionMetrics], files: Mapping[str, bytes]
) -> tuple[FunctionMetrics, ...]:
    """Return the rows with their complexity measured again on `files`."""
    found = measure_complexity(files)
    return tuple(
        replace(row, complexity=found.get((row.function.partition("::")[0], row.line))) for row in rows
    )


def sort_rows(
    rows: Iterable[FunctionMetrics], column: str, *, descending: bool = True
) -> list[FunctionMetrics]:
    """Return the rows sorted by a column, from the greatest value if `descending`.

    Ties are sorted by name; rows without a value come last. Raises `ColumnError` for an unknown column.
    """
    named = sorted(rows, key=lambda row: row.function)
    # Sorting is stable, so equal values stay ordered by name in both directions.
    measured = [row for row in named if row.cell(column) is not None]
    unmeasured = [row for row in named if row.cell(column) is None]
    return sorted(measured, key=lambda row: _sortable(row.cell(column)), reverse=descending) + unmeasured


def _sortable(cell: Cell) -> tuple[float, str]:
    """Return a key that sorts numbers among numbers, and strings among strings."""
    return (0.0, cell) if isinstance(cell, str) else (float(cell or 0), "")


def rows_to_csv(rows: Iterable[FunctionMetrics], columns: Sequence[str] = COLUMNS) -> str:
    """Return the rows as CSV with a header; unknown values are empty, floats have full precision.

    Raises `ColumnError` for an unknown column.
    """
    lines = ([row.cell(column) for column in columns] for row in rows)
    return csv_line(columns) + "".join(map(csv_line, lines))


def percentile(values: Iterable[float], percent: float) -> float:
    """Return a percentile, interpolated linearly as by numpy's default. Raises `ValueError` if empty."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# Metrics of a library before a task corrupted it: the answer's functions are restored, then measured


FunctionValues = Mapping[str, float]
"""The metrics of one function by name."""


def original_metrics(
    corrupted: SourceTree, targets: tuple[Target, ...], test_files: Collection[str]
) -> dict[str, FunctionValues]:
    """Return the metrics of every function of a library without its tests, by `path::qualname`.

    Calls are those of the static call graph. Raises `CodeError` if a target does not fit into the tree.
    """
    tree, tests = repaired_tree(corrupted, targets), frozenset(test_files)
    own = {path: data for path, data in tree.read_all(".py") if not is_protected(path, tests)}
    rows = measure_functions(build_call_graph(own), own)
    return {row.function: dict(_numbers(row)) for row in rows}


def _numbers(row: FunctionMetrics) -> Iterator[tuple[str, float]]:
    for name in (*COMPLEXITY, *CENTRALITY):
        cell = row.cell(name)
        if isinstance(cell, int | float):
            yield name, float(cell)


def mean_metrics(of_library: Mapping[str, FunctionValues], targets: Collection[str]) -> dict[str, float]:
    """Return the mean of each metric over those of a task's targets that have it."""
    found: dict[str, list[float]] = {}
    for target in targets:
        for name, value in of_library.get(target, {}).items():
            found.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}
