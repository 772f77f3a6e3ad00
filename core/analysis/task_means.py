"""Means with equal weight for every task, and differences within tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtr

from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.intervals import Z_95, Floats, Kept, Scale, Spread, Units, jackknife, share
from gistpoint.core.analysis.pooling import LEAST_ATTEMPTS_OF_RATE, LEAST_TASKS
from gistpoint.core.study.rows import AttemptRow

Measure = Callable[[AttemptRow], float | None]


def mean_over_tasks(rows: Sequence[AttemptRow], measure: Measure) -> Number:
    """Return the mean over tasks of a percentage that is first averaged within each task.

    Rows without a value are left out; if no row has one, neither has the number. The interval is the two-way
    jackknife's; `iid` is the mean of the rows plus or minus 1.96 standard errors. Both are clipped to 0 and
    100.
    """
    measured = [(row, value) for row in rows if (value := measure(row)) is not None]
    if not measured:
        return Number(None, note="no attempts")
    values = np.array([value for _, value in measured], dtype=float)
    return _over_tasks(Units.of([row for row, _ in measured]), values).number(
        Scale.PERCENT, iid=_independent(values)
    )


def share_over_tasks(
    rows: Sequence[AttemptRow], succeeded: Callable[[AttemptRow], bool] = lambda row: row.solved
) -> Number:
    """Return the mean over tasks of the shares of rows within tasks that succeeded, in percent.

    `iid` is Wilson's interval over rows. If all or none succeeded, both intervals are exact, as for
    `intervals.share`; the number has no value if there are too few rows.
    """
    over_rows = share(rows, succeeded)
    values = np.array([float(succeeded(row)) for row in rows])
    if len(rows) < LEAST_ATTEMPTS_OF_RATE or np.ptp(values) == 0:
        return percent(over_rows)
    return percent(_over_tasks(Units.of(rows), values).number(Scale.PROBABILITY, iid=over_rows.iid))


def _over_tasks(units: Units, values: Floats) -> Spread:
    def estimate(kept: Kept) -> float:
        # Tasks are weighted equally, as in the paper's tables; a task without a row in a refit is left out.
        means = kept_means(units, kept, values)
        means = means[np.isfinite(means)]
        return float(means.mean()) if len(means) else np.nan

    return jackknife(units, estimate)


def kept_means(units: Units, kept: Kept, values: Floats) -> Floats:
    """Return the mean of each task's kept values, in the order of the tasks' ids; NaN where none is kept."""
    size = int(units.tasks.max()) + 1
    counts = np.bincount(units.tasks[kept], minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.bincount(units.tasks[kept], weights=values[kept], minlength=size) / counts)


def _independent(values: Floats) -> tuple[float, float] | None:
    if len(values) < 2 or np.ptp(values) == 0:
        return None
    middle, half = float(values.mean()), Z_95 * float(values.std(ddof=1)) / len(values) ** 0.5
    return middle - half, middle + half


def percent(number: Number) -> Number:
    """Return a number with its value and intervals multiplied by 100."""

    def scaled(value: float | None) -> float | None:
        return None if value is None else 100 * value

    iid = None if number.iid is None else (100 * number.iid[0], 100 * number.iid[1])
    return replace(
        number, value=scaled(number.value), low=scaled(number.low), high=scaled(number.high), iid=iid
    )


def solved(row: AttemptRow) -> float:
    """Return 1 for a solved attempt, otherwise 0."""
    return float(row.solved)


def difference_within_tasks(
    rows: Sequence[AttemptRow], others: Sequence[AttemptRow], measure: Measure = solved
) -> Number:
    """Return the mean over shared tasks of the first rows' mean minus the other rows' mean.

    Rows without a value are left out. The result is a difference between shares for `solved`, and between
    percentages, in points, for any other measure. Below `LEAST_TASKS` shared tasks there is no value, and the
    note gives the reason.
    """
    sides = [{row.task for row in side if measure(row) is not None} for side in (rows, others)]
    # Only shared tasks are compared, because otherwise the side with the easier tasks would look better.
    shared = sides[0] & sides[1]
    measured = [
        (row, value) for row in (*rows, *others) if row.task in shared and (value := measure(row)) is not None
    ]
    both = [row for row, _ in measured]
    if len(shared) < LEAST_TASKS:
        return Number(None, tasks=len(shared), rows=len(both), note=f"fewer than {LEAST_TASKS} shared tasks")
    count = sum(row.task in shared and measure(row) is not None for row in rows)
    of_first = np.arange(len(both)) < count
    values = np.array([value for _, value in measured], dtype=float)
    units = Units.of(both)

    def estimate(kept: Kept) -> float:
        gaps = kept_means(units, kept & of_first, values) - kept_means(units, kept & ~of_first, values)
        gaps = gaps[np.isfinite(gaps)]
        return float(gaps.mean()) if len(gaps) else np.nan

    return jackknife(units, estimate).number(Scale.DIFFERENCE if measure is solved else Scale.POINTS)


def discordant(rows: Sequence[AttemptRow], others: Sequence[AttemptRow]) -> tuple[int, int]:
    """Return the number of shared tasks for which the first rows' share solved is greater, and less."""
    sides: list[dict[str, list[float]]] = [{}, {}]
    for side, members in zip(sides, (rows, others), strict=True):
        for row in members:
            side.setdefault(row.task, []).append(float(row.solved))
    one, other = ({task: float(np.mean(values)) for task, values in side.items()} for side in sides)
    shared = one.keys() & other.keys()
    return sum(one[task] > other[task] for task in shared), sum(one[task] < other[task] for task in shared)


def exact_mcnemar(more: int, less: int) -> float:
    """Return the exact two-sided p-value of McNemar's test, from the numbers of discordant tasks.

    min(1, 2 P(X <= min(more, less))) for X binomial with more + less trials at 1/2 (McNemar 1947,
    Psychometrika 12); 1 if no task is discordant.
    """
    total = more + less
    return min(1.0, 2 * float(bdtr(min(more, less), total, 0.5))) if total else 1.0


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Return p values adjusted by Holm's step-down method, in their order.

    Holm 1979, Scandinavian Journal of Statistics 6.
    """
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda place: p[place])):
        highest = max(highest, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = highest
    return tuple(adjusted)
