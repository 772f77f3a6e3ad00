"""Estimates the probability that one run, any of k runs, or all k runs of a model solve a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.intervals import EXACT, Scale, Units, clopper_pearson, jackknife_of_mean
from gistpoint.core.analysis.pooling import LEAST_TASKS, PooledRows, groups
from gistpoint.core.study.data import StudyData


@dataclass(frozen=True, slots=True)
class RepeatedTask:
    """The runs of a model on one task."""

    task: str
    runs: int
    solved: int

    def one_of(self, k: int) -> float:
        """Return the unbiased estimate of pass@k: the probability that any of k runs solves the task.

        1 - C(n - c, k) / C(n, k) for c of n runs solved (Chen et al. 2021, equation 1); k is at most n.
        """
        return 1 - comb(self.runs - self.solved, k) / comb(self.runs, k)

    def all_of(self, k: int) -> float:
        """Return the unbiased estimate of the probability that all k runs solve a task: C(c, k) / C(n, k)."""
        return comb(self.solved, k) / comb(self.runs, k)


def repeated_tasks(group: PooledRows) -> tuple[RepeatedTask, ...]:
    """Return the tasks of a model with their numbers of runs, ordered by task."""
    runs, solved = (
        Counter(row.task for row in group.rows),
        Counter(row.task for row in group.rows if row.solved),
    )
    return tuple(RepeatedTask(task, count, solved[task]) for task, count in sorted(runs.items()))


def over_tasks(tasks: Sequence[RepeatedTask], values: Sequence[float]) -> Number:
    """Return the mean of one value per task with its jackknife interval over tasks.

    If all values are 0 or all are 1, the interval is the exact one (Clopper-Pearson).
    """
    units = Units.named([""] * len(tasks), [one.task for one in tasks])
    runs = sum(one.runs for one in tasks)
    # If all or none are solved, the jackknife's interval would have zero width (decision 87).
    if not units.no_interval and set(values) in ({0.0}, {1.0}):
        low, high = clopper_pearson(sum(values), len(values))
        return Number(values[0], low, high, tasks=len(tasks), rows=runs, note=EXACT)
    return jackknife_of_mean(units, values).number(Scale.PROBABILITY, rows=runs)


def repeated_runs(data: StudyData) -> Findings:
    """Return pass@1, pass@k and all-k of models with repeats (`pass-k`).

    k is the smallest number of runs among a model's tasks that were run more than once.
    """
    found = FindingsBuilder()
    table = found.table(
        "Repeated runs",
        (
            "model",
            "mode",
            "tasks with repeats",
            "tasks run once",
            "k",
            "pass@1",
            "pass@k",
            "all k",
            "pass@1, by the tests alone",
        ),
        "k is the least number of runs of a task that was run more than once; intervals are over tasks.",
    )
    for group in groups(data):
        repeated = () if group.people else repeated_tasks(group)
        tasks = [one for one in repeated if one.runs > 1]
        if not tasks:
            continue
        what = f"pass@k of {group.label}, {group.mode},"
        if found.too_few(what, ("tasks with repeats", LEAST_TASKS, len(tasks))):
            continue
        # With the smallest number of runs as k, pass@k has an unbiased estimate for every task.
        k = min(one.runs for one in tasks)
        numbers = {
            "pass@1": over_tasks(tasks, [one.one_of(1) for one in tasks]),
            f"pass@{k}": over_tasks(tasks, [one.one_of(k) for one in tasks]),
            f"all-{k}": over_tasks(tasks, [one.all_of(k) for one in tasks]),
        }
        paper = replace(group, rows=tuple(row.by_the_tests for row in group.rows))
        by_tests = [one for one in repeated_tasks(paper) if one.runs > 1]
        numbers["pass@1/tests"] = over_tasks(by_tests, [one.one_of(1) for one in by_tests])
        cells = found.numbers_of(f"{group.label}/{group.mode}", numbers)
        table.row(group.label, group.mode, len(tasks), len(repeated) - len(tasks), k, *cells)
    return found.findings()
