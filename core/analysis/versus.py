"""Compares people and models on the same tasks by the mean difference between their rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, inf

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot, Shortfall
from gistpoint.core.analysis.intervals import Z_95, Floats, Kept, Scale, Units, jackknife
from gistpoint.core.analysis.pooling import LEAST_ATTEMPTS_OF_RATE, PooledRows, by_mode, groups, too_few
from gistpoint.core.analysis.task_means import holm
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

Measure = Callable[[AttemptRow], float]


def solved(row: AttemptRow) -> float:
    """Return 1 if an attempt is solved, otherwise 0."""
    return float(row.solved)


@dataclass(frozen=True)
class TaskDifference:
    """The mean, over the tasks that both sides attempted, of the first side's mean minus the second's."""

    number: Number
    better: int
    """The number of tasks for which the first side's mean is greater."""
    worse: int
    equal: int
    fewest: int
    """The number of attempts at these tasks on the side that has fewer."""

    @property
    def printed(self) -> Number:
        """The difference; without a value and interval if a side has too few attempts for a rate."""
        if self.fewest >= LEAST_ATTEMPTS_OF_RATE:
            return self.number
        words = f"a side has fewer than {LEAST_ATTEMPTS_OF_RATE} attempts"
        return Number(
            None,
            persons=self.number.persons,
            tasks=self.number.tasks,
            rows=self.number.rows,
            note=f"{words}; tasks better, equal, worse: {self.better}, {self.equal}, {self.worse}",
        )

    @property
    def sign_p(self) -> float:
        """The two-sided p-value of the exact sign test over tasks; ties are left out."""
        return sign_test(self.better, self.worse)


def difference_by_task(
    what: str,
    first: Sequence[AttemptRow],
    second: Sequence[AttemptRow],
    measure: Measure = solved,
    *,
    interval: bool = True,
) -> TaskDifference | Shortfall:
    """Return the mean difference between two sides over the tasks that both attempted, all weighted equally.

    The interval is the two-way jackknife's; `iid` is Wald's. Without `interval`, no refits are made and there
    is no interval. Returns a shortfall if no task was attempted by both.
    """
    shared = {row.task for row in first} & {row.task for row in second}
    if short := too_few(what, ("task attempted by both", 1, len(shared))):
        return short
    rows = [row for row in (*first, *second) if row.task in shared]
    side = np.array([place < len(first) for place in range(len(first) + len(second))])
    kept = np.array([row.task in shared for row in (*first, *second)])
    side = side[kept]
    units, values = Units.of(rows), np.array([measure(row) for row in rows])
    # Tasks are weighted equally, because otherwise a task with many attempts would dominate.
    by_task = differences(units, values, side, np.ones(len(rows), dtype=bool))

    def estimate(chosen: Kept) -> float:
        found = differences(units, values, side, chosen)
        return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")

    spread = jackknife(units, estimate, interval=interval)
    number = spread.number(
        Scale.DIFFERENCE, iid=independent_interval(float(spread.estimate[0]), values[side], values[~side])
    )
    # Equal means of floats can differ in the last digits, which must not count as better or worse.
    better, worse = int((by_task > 1e-12).sum()), int((by_task < -1e-12).sum())
    fewest = int(min(side.sum(), (~side).sum()))
    return TaskDifference(number, better, worse, len(shared) - better - worse, fewest)


def independent_interval(middle: float, first: Floats, second: Floats) -> tuple[float, float] | None:
    """Return the interval of a difference between means that treats attempts as independent.

    None if a side has fewer than two attempts, or if neither side's values vary.
    """
    if min(len(first), len(second)) < 2:
        return None
    half = Z_95 * float(np.sqrt(first.var() / len(first) + second.var() / len(second)))
    return (middle - half, middle + half) if half else None


def differences(units: Units, values: Floats, side: Kept, kept: Kept) -> Floats:
    """Return, for each task, the first side's mean minus the second's; NaN where a side has no row."""
    size = int(units.tasks.max()) + 1
    means = []
    for chosen in (kept & side, kept & ~side):
        counts = np.bincount(units.tasks[chosen], minlength=size)
        with np.errstate(invalid="ignore"):
            means.append(np.bincount(units.tasks[chosen], weights=values[chosen], minlength=size) / counts)
    return np.asarray(means[0] - means[1], dtype=float)


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p-value of the exact sign test; ties are left out.

    min(1, 2 P(X <= min(better, worse))) for X binomial with better + worse trials at 1/2: equal to
    `task_means.exact_mcnemar`.
    """
    total = better + worse
    tail = sum(comb(total, count) for count in range(min(better, worse) + 1))
    return float(min(1.0, 2 * tail / 2**total))


def opponents(model: PooledRows, people: Sequence[PooledRows]) -> tuple[PooledRows, ...]:
    """Return the groups of people to compare a model with.

    These are the groups under the same budgets; if there are none, the groups under the same condition;
    otherwise all.
    """
    # Equal budgets come first: under other budgets, the difference could also be due to the budgets.
    budgets = {row.budget_key for row in model.rows}
    same = tuple(group for group in people if {row.budget_key for row in group.rows} == budgets)
    if same:
        return same
    alike = tuple(group for group in people if group.condition == model.condition)
    return alike or tuple(people)


def people_and_models(data: StudyData) -> Findings:
    """Return people's rates minus each model's on shared tasks, overall and by metric thirds (`versus`)."""
    found = FindingsBuilder()
    table = found.table("People minus model, on the tasks that both attempted", _COLUMNS, NOTE)
    parts = found.table(
        "Where people or models are better",
        ("mode", "people", "model", "metric", "third of the tasks", "difference"),
    )
    bars: dict[str, Number] = {}
    unlike = False
    all_groups = groups(data)
    for mode, members in by_mode(all_groups).items():
        results = ((one, model, found.estimated(_compared(one, model))) for one, model in _pairs(members))
        compared = [(one, model, result) for one, model, result in results if result is not None]
        adjusted = _adjusted([(one.label, result.sign_p) for one, _, result in compared])
        for (one, model, result), p in zip(compared, adjusted, strict=True):
            name = f"{one.label} minus {model.label}"
            number = found.number(f"{name}/{mode}", result.printed)
            if number.value is not None:
                bars[f"{name}, {mode}"] = number
            tasks = f"{result.better} / {result.equal} / {result.worse}"
            same = one.rows[0].budget_key == model.rows[0].budget_key
            unlike = unlike or not same
            table.row(
                mode,
                one.label,
                model.label,
                number,
                tasks,
                result.sign_p,
                p,
                "same" if same else "differ",
            )
            for metric, third, part in _terciles(data, one, model):
                found.number(f"{name}/{mode}/{metric}/{third}", part)
                parts.row(mode, one.label, model.label, metric, third, part)
    marks = (Bars.of("", bars),)
    found.plot(
        Plot(
            "versus",
            "People minus model",
            "",
            "difference in the shares solved",
            marks,
            "Whiskers: 95% intervals.",
        )
    )
    if unlike:
        found.settings(all_groups)
        found.note("If settings differ, the difference is also one of budgets, tools or briefs.")
    return found.findings()


_COLUMNS = (
    "mode",
    "people",
    "model",
    "difference",
    "tasks better / equal / worse",
    "p (sign test)",
    "Holm",
    "settings",
)
NOTE = (
    "The mean over tasks of the difference in rates. Holm's correction is over the models that the"
    " same people are compared with."
)


def _pairs(members: Sequence[PooledRows]) -> Iterator[tuple[PooledRows, PooledRows]]:
    """Yield each model of a mode with each group of people to compare it with."""
    people = [group for group in members if group.people]
    for model in members:
        if not model.people:
            yield from ((one, model) for one in opponents(model, people))


def _compared(one: PooledRows, model: PooledRows) -> TaskDifference | Shortfall:
    return difference_by_task(f"{one.label} minus {model.label}, {one.mode},", one.rows, model.rows)


def _adjusted(found: Sequence[tuple[str, float]]) -> list[float]:
    """Return p values adjusted by Holm's method within each family: comparisons with one group of people."""
    adjusted = [0.0] * len(found)
    for family in {label for label, _ in found}:
        places = [place for place, (label, _) in enumerate(found) if label == family]
        for place, p in zip(places, holm([found[place][1] for place in places]), strict=True):
            adjusted[place] = p
    return adjusted


def _terciles(data: StudyData, one: PooledRows, model: PooledRows) -> list[tuple[str, str, Number]]:
    """Return the difference in each third of the shared tasks, by the declared metrics.

    A metric is left out if its terciles coincide.
    """
    shown = []
    for metric in data.study.report.difficulty:
        metric_of = _metric(data, sorted(one.tasks & model.tasks), metric)
        cuts = np.quantile(list(metric_of.values()), (0, 1 / 3, 2 / 3, 1)) if metric_of else np.zeros(4)
        if len(set(cuts.tolist())) < len(cuts):
            continue
        # Thirds are open below; the lowest one is unbounded there, so it includes the smallest value.
        for place, (low, high) in enumerate(pairwise([-inf, *cuts.tolist()[1:]])):
            third = {task for task, value in metric_of.items() if low < value <= high}
            part = difference_by_task("", one.on(third).rows, model.on(third).rows)
            if isinstance(part, TaskDifference):
                shown.append((metric, ("lowest", "middle", "highest")[place], part.printed))
    return shown


def _metric(data: StudyData, tasks: Sequence[str], metric: str) -> Mapping[str, float]:
    return {
        task: data.tasks[task].metrics[metric]
        for task in tasks
        if task in data.tasks and metric in data.tasks[task].metrics
    }
