"""The human time of each task, by three estimators that differ if not everybody solves it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.censored import fit_censored
from gistpoint.core.analysis.findings import Findings, Number, Plot, Points
from gistpoint.core.analysis.intervals import Z_95, Units
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_SURVIVAL,
    LEAST_SOLVED_OF_TIMES,
    PooledRows,
    counts_of,
    groups,
    solved_of,
)
from gistpoint.core.analysis.survival import Times, median_time
from gistpoint.core.analysis.timeratios import given_up, log_minutes, untimed
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

LEAST_REPEATS = 10
"""The minimum number of attempts at solved tasks, beyond one per task, for a common sigma."""
TASK_NAME = 12
"""The number of characters shown of a task's id."""


class Minutes(StrEnum):
    """An estimator of the minutes that people need for a task."""

    GEOMETRIC_MEAN = "geometric mean of the solved"
    """METR's choice; biased downward where some attempts fail."""
    LOG_NORMAL = "censored log-normal median"
    """One regression of ln t on tasks with a common sigma, so one solved attempt suffices for a task."""
    KAPLAN_MEIER = "Kaplan-Meier median"


@dataclass(frozen=True)
class TaskTime:
    """The estimates of one task's human time."""

    task: str
    attempts: int
    solved: int
    minutes: Mapping[Minutes, float]
    """The available estimates, in minutes."""
    longest: float
    """The longest time of an attempt, in minutes: a lower bound where nobody solved the task."""
    log_error: float | None = None
    """The standard error of the natural logarithm of the log-normal median; None without such a median."""

    @property
    def spread(self) -> float | None:
        """The ratio of the greatest estimate to the least; None for fewer than two."""
        estimates = list(self.minutes.values())
        return max(estimates) / min(estimates) if len(estimates) > 1 else None


def task_times(rows: Sequence[AttemptRow]) -> tuple[TaskTime, ...]:
    """Return the estimated times of the tasks in `rows` of people, ordered by task id.

    Rows without a time are left out.
    """
    timed = Times.of(rows).rows
    fitted = _log_normal(timed)
    found = []
    for task in sorted({row.task for row in timed}):
        times = Times.of([row for row in timed if row.task == task])
        minutes: dict[Minutes, float] = {}
        solved = int(times.solved.sum())
        if solved:
            minutes[Minutes.GEOMETRIC_MEAN] = float(np.exp(np.log(times.minutes[times.solved]).mean()))
        if task in fitted:
            minutes[Minutes.LOG_NORMAL] = float(np.exp(fitted[task][0]))
        median = median_time(times.minutes, times.ends)
        if solved >= LEAST_SOLVED_OF_SURVIVAL and np.isfinite(median):
            minutes[Minutes.KAPLAN_MEIER] = median
        error = fitted[task][1] if task in fitted else None
        found.append(TaskTime(task, len(times.rows), solved, minutes, float(times.minutes.max()), error))
    return tuple(found)


def _log_normal(rows: Sequence[AttemptRow]) -> dict[str, tuple[float, float]]:
    """Return the log median and its standard error of each task that somebody solved, by task id.

    They are estimated by a censored log-normal regression on tasks with one sigma. The result is empty if too
    few attempts are solved or repeated, or if the regression can't be fitted.
    """
    # A task that nobody solved has no finite median; its longest attempt is reported as a bound.
    solved_tasks = {row.task for row in rows if row.solved}
    kept = [row for row in rows if row.task in solved_tasks]
    free = len(kept) - len(solved_tasks)
    if len(solved_of(kept)) < LEAST_SOLVED_OF_TIMES or free < LEAST_REPEATS:
        return {}
    tasks = Units.of(kept).tasks
    solved = np.array([row.solved for row in kept], dtype=bool)
    # With one sigma for all tasks, a task with a single solved attempt has an estimate.
    fit = fit_censored(np.eye(len(solved_tasks))[tasks], log_minutes(kept), solved)
    if fit is None:
        return {}
    # The likelihood estimates a parameter per task; its variances are scaled by the lost degrees of freedom.
    errors = np.sqrt(np.diag(fit.covariance) * len(kept) / free)
    return {
        task: (float(fit.coefficients[n]), float(errors[n])) for n, task in enumerate(sorted(solved_tasks))
    }


def unassisted(data: StudyData, found: Iterable[PooledRows]) -> list[AttemptRow]:
    """Return the rows of people under the study's first condition, which define the human times of tasks."""
    first = next((condition.id for condition in data.study.conditions_of_people), "")
    return [row for group in found if group.people and group.condition == first for row in group.rows]


def times_of_tasks(data: StudyData) -> Findings:
    """Return each task's human minutes, by condition of people (`time-tasks`)."""
    found = FindingsBuilder()
    conditions: dict[str, list[AttemptRow]] = defaultdict(list)
    for group in groups(data):
        if group.people:
            conditions[group.condition] += group.rows
    for condition, rows in conditions.items():
        times = task_times(rows)
        if times:
            _add_times(found, condition, rows, times)
    found.note(
        "The geometric mean of solved attempts is too low if somebody failed; the others take"
        " failures into account."
    )
    found.note(*given_up(row for rows in conditions.values() for row in rows), *untimed(data))
    return found.findings()


def _add_times(
    found: FindingsBuilder, condition: str, rows: Sequence[AttemptRow], times: Sequence[TaskTime]
) -> None:
    """Add the table and the plot of a condition's tasks."""
    solved = [one for one in times if one.solved]
    needs = (
        ("solved attempts", LEAST_SOLVED_OF_TIMES, sum(one.solved for one in solved)),
        (
            "further attempts at tasks that somebody solved",
            LEAST_REPEATS,
            sum(one.attempts - 1 for one in solved),
        ),
    )
    found.too_few(f"The log-normal median of the tasks, {condition},", *needs)
    title = f"Minutes of each task, {condition}"
    columns = ("task", "attempts", "solved", *Minutes, "greatest / least", "nobody solved it")
    table = found.table(
        title, columns, "Each estimate is for one task, so there are no intervals over tasks."
    )
    for one in times:
        numbers = _numbers(one)
        found.numbers_of(f"{condition}/{one.task}", numbers)
        bound = "" if one.solved else f"more than {one.longest:.3g}"
        minutes = map(numbers.get, Minutes)
        table.row(one.task[:TASK_NAME], one.attempts, one.solved, *minutes, one.spread, bound)
    found.plot(_plot(condition, times, counts_of(rows)))


def _numbers(one: TaskTime) -> dict[Minutes, Number]:
    numbers = {}
    for kind, value in one.minutes.items():
        iid = None
        if kind is Minutes.LOG_NORMAL and one.log_error is not None:
            half = float(np.exp(Z_95 * one.log_error))
            iid = value / half, value * half
        numbers[kind] = Number(value, persons=one.attempts, tasks=1, rows=one.attempts, iid=iid)
    return numbers


def _plot(condition: str, found: Sequence[TaskTime], counts: tuple[int, int, int]) -> Plot:
    ordered = sorted(found, key=lambda one: one.minutes.get(Minutes.LOG_NORMAL, one.longest))
    placed = [(float(place), one) for place, one in enumerate(ordered, start=1)]
    series = {
        kind.value: [(place, one.minutes[kind]) for place, one in placed if kind in one.minutes]
        for kind in Minutes
    }
    series["not solved by anybody: longest attempt"] = [
        (place, one.longest) for place, one in placed if not one.solved
    ]
    marks = [Points(name, *zip(*points, strict=True)) for name, points in series.items() if points]
    title = f"Minutes of each task, {condition}"
    return Plot(
        f"time-tasks-{condition}",
        title,
        "tasks, by their time",
        "minutes",
        tuple(marks),
        log_y=True,
        counts=counts,
    )
