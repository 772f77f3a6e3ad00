"""The rows that the papers' analyses use and pool, and the z scores of their tasks' metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, pstdev

import msgspec

from gistpoint.core.analysis.pooling import PooledRows, as_reported, groups_of, regression_needs
from gistpoint.core.kinds.registry import modes_measuring
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks

FOUND, FIDELITY = "found", "fidelity"
"""The measures by which analyses choose rows: `FOUND` for functions to be found, `FIDELITY` for gists."""


def measuring(data: StudyData, measure: str) -> tuple[PooledRows, ...]:
    """Return the groups of rows whose kind of task has a measure, ordered by reported mode.

    The modes that have `FOUND` are removal, discovery, and discovery of several corruptions.
    """
    modes = modes_measuring(measure)
    found = groups_of(row for row in as_reported(data).rows if row.mode in modes)
    return tuple(sorted(found, key=lambda group: modes.index(group.mode)))


@dataclass(frozen=True)
class Pool:
    """Rows that are analysed together: a group of people, or all models of a condition, as in the papers."""

    label: str
    mode: str
    people: bool
    rows: tuple[AttemptRow, ...]
    solver_of: tuple[str, ...]
    """The label of each row's group."""

    @property
    def name(self) -> str:
        """The label and the mode, in words."""
        return f"{self.label}, {self.mode}"

    @property
    def solver_means(self) -> tuple[float, ...]:
        """For each row, the share of its solver's attempts in the pool that were solved."""
        outcomes: dict[str, list[float]] = defaultdict(list)
        # The mean is that of the solver's group, never of a person: with four to eight attempts, a person's
        # own share contains the outcome to be explained (decision 86).
        for row, solver in zip(self.rows, self.solver_of, strict=True):
            outcomes[solver].append(float(row.solved))
        means = {solver: fmean(values) for solver, values in outcomes.items()}
        return tuple(means[solver] for solver in self.solver_of)

    def with_metrics(self, scores: Sequence[StandardScores]) -> Pool:
        """Return the pool without rows whose task has no value for one of the metrics."""
        kept = [place for place, row in enumerate(self.rows) if all(row.task in one.scores for one in scores)]
        rows, solvers = (
            tuple(self.rows[place] for place in kept),
            tuple(self.solver_of[place] for place in kept),
        )
        return Pool(self.label, self.mode, self.people, rows, solvers)

    def needs(self, what: str) -> tuple[str, *tuple[tuple[str, float, float], ...]]:
        """Return the name of a regression of the pool and its needs, as arguments for `too_few`."""
        return (f"{what} ({self.name})", *regression_needs(self.rows))


def alone(group: PooledRows, label: str = "") -> Pool:
    """Return a pool of one group, under its own label or the given one."""
    label = label or group.label
    return Pool(label, group.mode, group.people, group.rows, (label,) * len(group.rows))


def pools(found: Iterable[PooledRows]) -> tuple[Pool, ...]:
    """Return a pool for each group of people, and one for the models of each mode and condition.

    Simulated models are not pooled with real ones.
    """
    known = tuple(found)
    # People are pooled only with people of their own condition; models of one condition are pooled as in the
    # paper (decision 86).
    found_pools: list[Pool] = []
    together: dict[tuple[str, str, bool], list[PooledRows]] = defaultdict(list)
    for group in known:
        if group.people:
            found_pools.append(alone(group))
            continue
        simulated = any(row.simulated for row in group.rows)
        together[group.mode, group.condition, simulated].append(group)
    several = len({condition for _, condition, _ in together}) > 1
    for (mode, condition, simulated), members in together.items():
        label = "simulated models" if simulated else "models"
        if several:
            label = f"{label}, {condition}"
        parts = [alone(group) for group in members]
        rows = chain.from_iterable(part.rows for part in parts)
        solvers = chain.from_iterable(part.solver_of for part in parts)
        found_pools.append(Pool(label, mode, False, tuple(rows), tuple(solvers)))
    return tuple(found_pools)


@dataclass(frozen=True)
class StandardScores:
    """The z scores of a metric over a study's tasks."""

    metric: str
    mean: float
    sd: float
    scores: Mapping[str, float]
    """The score of each task, by id."""

    def values(self, rows: Iterable[AttemptRow]) -> list[float]:
        """Return the score of each row's task."""
        return [self.scores[row.task] for row in rows]

    @property
    def words(self) -> str:
        """The unit of the scores, in words."""
        over = f"over {len(self.scores)} tasks"
        return f"{self.metric}: mean {self.mean:.4g}, standard deviation {self.sd:.4g} {over}"


def standard_scores(data: StudyData, metric: str) -> StandardScores:
    """Return the z scores of a metric over the study's tasks with functions to be found, except for training.

    They use the population standard deviation. Tasks without the metric have no score; if all values are
    equal, no task has one.
    """
    modes = modes_measuring(FOUND)
    values = {
        task.id: float(task.metrics[metric])
        for task in counted_tasks(data.study, data.tasks).values()
        if task.mode in modes and metric in task.metrics
    }
    if not values:
        return StandardScores(metric, 0.0, 0.0, {})
    # The scale is over all tasks, attempted or not, so a slope has the same unit in each group and mode
    # (decision 86).
    mean, sd = fmean(values.values()), pstdev(values.values())
    scores = {task: (value - mean) / sd for task, value in values.items()} if sd > 0 else {}
    return StandardScores(metric, mean, sd, scores)


def alike_but_for(condition: Condition | None, *fields: str) -> str:
    """Return a key that is equal for conditions that differ only in `fields`; empty for None.

    Differences in ids, in descriptions and in whether people are given the condition don't count either.
    """
    if condition is None:
        return ""
    fields_of = msgspec.to_builtins(condition)
    return repr(sorted((k, v) for k, v in fields_of.items() if k not in {"id", "words", "people", *fields}))
