"""Tests whether one side solved harder tasks than the other (Breakpoint, 4.2.2-4.2.3, figures 13-14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from scipy.special import ndtri
from scipy.stats import mannwhitneyu  # type: ignore[attr-defined]  # exported by a star

from gistpoint.core.analysis.building import Cell, FindingsBuilder
from gistpoint.core.analysis.difficulty_curves import budget_series
from gistpoint.core.analysis.findings import Findings, Number, Plot, Violins
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_RANK_TEST,
    PooledRows,
    persons_of,
    regression_needs,
    too_few,
)
from gistpoint.core.analysis.regression import regress
from gistpoint.core.analysis.samples import FOUND, StandardScores, measuring, standard_scores
from gistpoint.core.analysis.task_means import discordant, exact_mcnemar, holm
from gistpoint.core.study.data import StudyData

NOTE = (
    "Mann-Whitney's test compares the metric of the tasks that each side solved at least once; r is"
    " z / sqrt(N) and d is Cohen's with the pooled standard deviation, both positive if the first side's"
    " tasks have the higher values. The paper quotes r for the first comparison and d for the second; both"
    " are given for both. The two sets of tasks overlap, so the test's samples are not independent. Next to"
    " it are the exact McNemar test by task, and the difference between the sides in the slope of success on"
    " the metric (a logit with the interval by the two-way jackknife). Adjusted p are Holm's over this table."
)


@dataclass(frozen=True)
class RankTest:
    """The Mann-Whitney test of two samples, with two effect sizes."""

    p: float
    r: float
    """z / sqrt(N), positive if the first sample has the higher values."""
    d: float | None
    """Cohen's d; None if nothing varies."""


def rank_test(one: Sequence[float], other: Sequence[float]) -> RankTest:
    """Return the two-sided Mann-Whitney test by scipy's default method: exact for small samples without ties.

    Mann & Whitney 1947, Annals of Mathematical Statistics 18. r is z / sqrt(N), with z from the two-sided p.
    """
    tested = mannwhitneyu(one, other, alternative="two-sided")
    p = float(tested.pvalue)
    sign = float(np.sign(float(tested.statistic) - len(one) * len(other) / 2))
    z = -float(ndtri(p / 2)) if p < 1 else 0.0
    return RankTest(p, sign * z / (len(one) + len(other)) ** 0.5, cohens_d(one, other))


def cohens_d(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the difference between the means over the pooled standard deviation; None if it is undefined.

    Cohen 1988, Statistical Power Analysis for the Behavioral Sciences. Variances are pooled with n1 + n2 - 2
    degrees of freedom.
    """
    first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    degrees = len(first) + len(second) - 2
    if degrees < 1:
        return None
    squares = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
    return float((first.mean() - second.mean()) / (squares / degrees) ** 0.5) if squares > 0 else None


def pairs_implied(p: float, r: float) -> float:
    """Return the sample size N implied by a printed two-sided p-value and r = z / sqrt(N)."""
    return (float(ndtri(p / 2)) / r) ** 2


def solved_by_solvers(data: StudyData) -> Findings:
    """Return a comparison of the solved tasks for each pair of solvers (Breakpoint, 4.2.2, figure 14).

    A pair shares a mode and a condition.
    """
    found = measuring(data, FOUND)
    pairs = [
        (one, other, one.label, other.label)
        for one, other in combinations(found, 2)
        if (one.mode, one.condition) == (other.mode, other.condition) and one.who != other.who
    ]
    return _compared(data, "bp-14", pairs)


def solved_by_budgets(data: StudyData) -> Findings:
    """Return the comparison of the tasks that a solver solved under its smallest and its largest budget.

    Breakpoint, section 4.2.3 and figure 13.
    """
    pairs = []
    for series in budget_series(data, measuring(data, FOUND)):
        (least, low), (greatest, high) = series.members[0], series.members[-1]
        pairs.append((high, low, f"{series.label}, {greatest}", f"{series.label}, {least}"))
    return _compared(data, "bp-13", pairs)


def _compared(
    data: StudyData, identity: str, pairs: Sequence[tuple[PooledRows, PooledRows, str, str]]
) -> Findings:
    found = FindingsBuilder()
    table = found.table("Metrics of solved tasks", _COLUMNS, NOTE)
    comparisons: list[tuple[tuple[Cell, ...], tuple[Cell, ...]]] = []
    ps: list[float] = []
    compared_values: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {}
    all_scores = (standard_scores(data, metric) for metric in data.study.report.difficulty)
    known = (scores for scores in all_scores if scores.scores)
    for scores, (one, other, name, against) in product(known, pairs):
        metric = scores.metric
        values = [_of_solved(data, group, metric) for group in (one, other)]
        needs = (
            (f"tasks solved by {name}", LEAST_SOLVED_OF_RANK_TEST, len(values[0])),
            (f"tasks solved by {against}", LEAST_SOLVED_OF_RANK_TEST, len(values[1])),
        )
        if found.too_few(
            f"The comparison of solved tasks by {metric} ({name} and {against}, {one.mode})", *needs
        ):
            continue
        # The paper's test treats two overlapping sets of tasks as independent samples, so McNemar's test by
        # task and the difference between slopes are shown next to it (decision 86).
        tested = rank_test(*values)
        more, less = discordant(one.rows, other.rows)
        slope = _difference_of_slopes(one, other, scores)
        # A test has no interval, but its numbers still record how many persons and tasks they are based on.
        rests_on = Number(
            None,
            persons=persons_of((*one.rows, *other.rows)),
            tasks=len(one.tasks | other.tasks),
            rows=len(one.rows) + len(other.rows),
            note=NO_INTERVAL,
        )
        found.numbers_of(
            f"{name} and {against}/{one.mode}/{metric}",
            {
                "difference of slopes": slope,
                "p": replace(rests_on, value=tested.p),
                "r": replace(rests_on, value=tested.r),
            },
        )
        ps.append(tested.p)
        before: tuple[Cell, ...] = (
            metric,
            one.mode,
            name,
            against,
            f"{len(values[0])} and {len(values[1])}",
            tested.p,
        )
        comparisons.append(
            (before, (tested.r, tested.d, f"{more} and {less}", exact_mcnemar(more, less), slope))
        )
        panel = compared_values.setdefault((metric, one.mode), {})
        panel |= {name: tuple(values[0]), against: tuple(values[1])}
    if compared_values:
        panels = tuple(
            Plot(f"{identity}-{metric}-{mode}", f"{metric}, {mode}", "", metric, (_violins(values),))
            for (metric, mode), values in compared_values.items()
        )
        found.plot(Plot(identity, "Metrics of the tasks that were solved", "", "", (), NOTE, panels=panels))
    # Holm's adjustment needs all p values, so the rows are added after the last comparison.
    for (left, right), p in zip(comparisons, holm(ps), strict=True):
        table.row(*left, p, *right)
    found.settings(group for pair in pairs for group in pair[:2])
    return found.findings()


def _violins(values: Mapping[str, tuple[float, ...]]) -> Violins:
    return Violins(tuple(values), tuple(values.values()))


_COLUMNS = (
    "metric",
    "mode",
    "first",
    "second",
    "tasks solved",
    "p (Mann-Whitney)",
    "p (Holm)",
    "r",
    "d",
    "tasks one did better",
    "p (McNemar)",
    "difference of slopes",
)
NO_INTERVAL = "a test, which has no interval"


def _of_solved(data: StudyData, group: PooledRows, metric: str) -> list[float]:
    """Return a metric of each task that a group solved at least once; tasks without it are left out."""
    solved = sorted({row.task for row in group.rows if row.solved})
    return [
        float(data.tasks[task].metrics[metric])
        for task in solved
        if task in data.tasks and metric in data.tasks[task].metrics
    ]


def _difference_of_slopes(one: PooledRows, other: PooledRows, scores: StandardScores) -> Number | None:
    """Return the first side's slope on the metric minus the other's, in log odds.

    None if there are too few data, or if the columns are linearly dependent.
    """
    rows = [row for row in (*one.rows, *other.rows) if row.task in scores.scores]
    if too_few("", *regression_needs(rows)) is not None:
        return None
    of_first = np.array([1.0] * sum(row.task in scores.scores for row in one.rows))
    side = np.concatenate([of_first, np.zeros(len(rows) - len(of_first))])
    z = np.array(scores.values(rows))
    model = regress(rows, {"first": side, scores.metric: z, "difference": side * z})
    return None if model is None else model.coefficient("difference")
