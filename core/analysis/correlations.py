"""Correlations of task metrics with each other and with success (Breakpoint, figure 12)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
from scipy.special import stdtr

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Findings, Matrix, Number, Plot
from gistpoint.core.analysis.firth import Floats
from gistpoint.core.analysis.intervals import Z_95, Kept, Scale, Spread, Units, jackknife
from gistpoint.core.analysis.pooling import (
    LEAST_TASKS_OF_CORRELATION,
    by_mode,
    primary_minutes,
    reported_mode,
    tasks_of,
)
from gistpoint.core.analysis.samples import FOUND, Pool, measuring, pools
from gistpoint.core.kinds.registry import modes_measuring
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks

_PERFECT = 1 - 1e-9
SOLVED, TIME = "solved", "log minutes"
NOTE = (
    "Pearson's r over tasks. Success is the mean over a task's attempts, time the mean logarithm of"
    " the minutes of the solved ones. Intervals of correlations with success and time are by the"
    " two-way jackknife; next to them are Fisher's, which treat tasks as independent and their means"
    " as known. The paper prints neither."
)


def metric_correlations(data: StudyData) -> Findings:
    """Return the correlations of all metrics with each other, mean success and mean log time, per mode."""
    found = FindingsBuilder()
    groups = measuring(data, FOUND)
    mode_pools = by_mode(pools(groups))
    of_mode: dict[str, dict[str, Mapping[str, float]]] = defaultdict(dict)
    for task in counted_tasks(data.study, data.tasks).values():
        if task.metrics:
            of_mode[reported_mode(task)][task.id] = task.metrics
    for mode in modes_measuring(FOUND):
        tasks = of_mode[mode]
        needs = ("tasks", LEAST_TASKS_OF_CORRELATION, len(tasks))
        if not tasks or found.too_few(f"Correlations of metrics ({mode})", needs):
            continue
        metrics = tuple(dict.fromkeys(chain.from_iterable(tasks.values())))
        columns: dict[str, Mapping[str, float]] = {
            name: {task: float(values[name]) for task, values in tasks.items() if name in values}
            for name in metrics
        }
        table = found.table(
            f"Success and time with metrics: {mode}", ("pool", "of", "with", "r", "tasks"), NOTE
        )
        for pool in mode_pools.get(mode, ()):
            columns |= _add_outcomes(found, table, pool, {metric: columns[metric] for metric in metrics})
        found.plot(Plot(f"bp-12-{mode}", f"Correlations: {mode}", "", "", (_matrix(columns),), NOTE))
        found.settings(groups)
    # The matrix of metrics is shown even if too few tasks have been attempted.
    return found.findings(without_rows=True)


def _add_outcomes(
    found: FindingsBuilder, table: TableBuilder, pool: Pool, metrics: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Add the correlations of success and time with metrics.

    Returns the means by task of each outcome that has enough tasks; the keys name the outcome and the pool.
    """
    columns: dict[str, Mapping[str, float]] = {}
    for outcome, rows in {SOLVED: pool.rows, TIME: _rows_with_times(pool) if pool.people else ()}.items():
        needs = ("tasks", LEAST_TASKS_OF_CORRELATION, tasks_of(rows))
        if not rows or found.too_few(f"Correlations with {outcome} ({pool.name})", needs):
            continue
        columns[f"{outcome}: {pool.label}"] = means_by_task(rows, outcome)
        known = _with_outcome(rows, outcome, metrics)
        for metric in (name for name in metrics if name in known):
            number = found.number(f"{pool.label}/{pool.mode}/{outcome}/{metric}", known[metric])
            table.row(pool.label, outcome, metric, number, number.tasks)
    return columns


def pearson(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float | None:
    """Return Pearson's r; None if there are fewer than two pairs or one variable is constant."""
    one, other = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(one) < 2 or min(np.ptp(one), np.ptp(other)) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def pearson_p(r: float, count: int) -> float:
    """Return the two-sided p-value of r for n pairs, from t = r sqrt((n - 2) / (1 - r2)) with n - 2 df."""
    if abs(r) >= 1:
        return 0.0
    statistic = abs(r) * ((count - 2) / (1 - r * r)) ** 0.5
    return float(2 * stdtr(count - 2, -statistic))


def fisher_interval(r: float, count: int) -> tuple[float, float] | None:
    """Return the 95% interval of r by Fisher's z = artanh(r); None below four pairs or for a perfect r."""
    if count < 4 or abs(r) >= 1:
        return None
    middle, half = float(np.arctanh(r)), Z_95 / (count - 3) ** 0.5
    return float(np.tanh(middle - half)), float(np.tanh(middle + half))


def correlation(units: Units, r: Callable[[Kept], float], pairs: int | None = None) -> Number | None:
    """Return a correlation with its jackknife interval on Fisher's scale; None if it is undefined.

    `r` computes the correlation from the rows kept. With `pairs`, the number of independent pairs, Fisher's
    own interval is returned as `iid`. A perfect correlation has no interval.
    """
    return correlations(units, lambda kept: np.array([r(kept)]), pairs)[0]


def correlations(
    units: Units, r: Callable[[Kept], Floats], pairs: int | None = None
) -> tuple[Number | None, ...]:
    """Return several correlations as `correlation` does, from one set of refits; `r` computes all of them."""

    def estimate(kept: Kept) -> Floats:
        # On Fisher's scale the interval stays between -1 and 1.
        found = r(kept)
        defined = np.abs(found) < _PERFECT
        return np.where(defined, np.arctanh(np.where(defined, found, 0.0)), np.nan)

    full = r(np.ones(len(units.tasks), dtype=bool))
    spread = jackknife(units, estimate)
    return tuple(_number(spread, place, value, pairs) for place, value in enumerate(full.tolist()))


def _number(spread: Spread, place: int, r: float, pairs: int | None) -> Number | None:
    if not np.isfinite(r):
        return None
    # arctanh of 1 is infinite: a perfect correlation has no interval on Fisher's scale.
    if abs(r) >= _PERFECT:
        units, note = spread.units, "no interval: a perfect correlation"
        return Number(
            float(np.sign(r)),
            persons=units.person_count,
            tasks=units.task_count,
            rows=len(units.tasks),
            note=note,
        )
    return spread.number(Scale.FISHER, place, iid=None if pairs is None else fisher_interval(r, pairs))


def means_by_task(rows: Sequence[AttemptRow], outcome: str) -> dict[str, float]:
    """Return, by task id, the mean of `SOLVED` (0 or 1) or of `TIME` (natural logarithm of minutes)."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row.task, []).append(_outcome(row, outcome))
    return {task: float(np.mean(found)) for task, found in values.items()}


def _outcome(row: AttemptRow, outcome: str) -> float:
    return float(row.solved) if outcome == SOLVED else float(np.log(primary_minutes(row)))


def _rows_with_times(pool: Pool) -> tuple[AttemptRow, ...]:
    return tuple(row for row in pool.rows if row.solved and row.primary_s)


def _with_outcome(
    rows: Sequence[AttemptRow], outcome: str, metrics: Mapping[str, Mapping[str, float]]
) -> dict[str, Number]:
    """Return the correlations of an outcome's means by task with metrics, by the metrics' names."""
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    attempted = {row.task for row in rows}
    for metric, of in metrics.items():
        alike[frozenset(of.keys() & attempted)].append(metric)
    found: dict[str, Number] = {}
    for tasks, names in alike.items():
        if len(tasks) < LEAST_TASKS_OF_CORRELATION:
            continue
        measured = [row for row in rows if row.task in tasks]
        order = sorted(tasks)
        x = np.array([[metrics[name][task] for task in order] for name in names])
        values = np.array([_outcome(row, outcome) for row in measured])
        units = Units.of(measured)
        # Metrics of the same tasks share the means of each refit; the refits account for most of the work.
        numbers = correlations(units, _of_means(units, values, x), len(order))
        found |= {name: number for name, number in zip(names, numbers, strict=True) if number is not None}
    return found


def _of_means(units: Units, values: Floats, x: Floats) -> Callable[[Kept], Floats]:
    """Return a function from the rows kept to Pearson's r of each row of `x` with the tasks' mean values."""

    def of_kept(kept: Kept) -> Floats:
        counts = np.bincount(units.tasks[kept], minlength=x.shape[1])
        sums = np.bincount(units.tasks[kept], weights=values[kept], minlength=x.shape[1])
        there = counts > 0
        return _pearsons(x[:, there], sums[there] / counts[there])

    return of_kept


def _pearsons(x: Floats, y: Floats) -> Floats:
    """Return Pearson's r of each row of `x` with `y`; NaN for a constant."""
    if len(y) < 2:
        return np.full(len(x), np.nan)
    rows, column = x - x.mean(axis=1, keepdims=True), y - y.mean()
    constant = (np.ptp(x, axis=1) == 0) | (np.ptp(y) == 0)
    scale = np.sqrt((rows**2).sum(axis=1) * (column @ column))
    r = np.clip(rows @ column / np.where(constant, 1.0, scale), -1.0, 1.0)
    return np.where(constant, np.nan, r)


def _matrix(columns: Mapping[str, Mapping[str, float]]) -> Matrix:
    names = tuple(columns)
    values: list[tuple[float | None, ...]] = []
    counts: list[tuple[int, ...]] = []
    for one in names:
        shared = [[task for task in columns[one] if task in columns[other]] for other in names]
        counts.append(tuple(len(tasks) for tasks in shared))
        values.append(
            tuple(
                (
                    pearson([columns[one][task] for task in tasks], [columns[other][task] for task in tasks])
                    if len(tasks) >= LEAST_TASKS_OF_CORRELATION
                    else None
                )
                for other, tasks in zip(names, shared, strict=True)
            )
        )
    return Matrix(names, names, tuple(values), tuple(counts))
