"""The share of runs with a label, from a model judge's labels on all and a person's labels on a random part.

The estimate is prediction-powered with a tuned weight: with n runs that a person labelled (y) and m that only
the judge labelled (f), it is mean(y) + w (mean of f over the m - mean of f over the n), where

- w = cov(y, f) / ((1 + n / m) var(f)), within [0, 1], with the covariance over the n runs (divided by n) and
  the variance over all runs; with w = 0 it is the mean of the person's labels.

A judge's errors hardly bias the estimate, because they are measured on the runs that the person labelled; a
small bias remains with few labels, because w is tuned on the same runs. A judge whose labels carry no
information gets a weight near 0. The interval is that of all estimates (`intervals.py`, decision 87): each
task is left out, w is tuned again, and the interval is symmetric in the log odds with effective degrees of
freedom. Its variance is at least that of independent runs with 0.25 labels added to each pair of answers:
otherwise a judge that agrees with a few labels by chance would seem never to be wrong (decision 174).

Sources: Angelopoulos, Bates, Fannjiang, Jordan & Zrnic, Prediction-powered inference, Science 382, 2023;
Angelopoulos, Duchi & Zrnic, PPI++: Efficient prediction-powered inference, 2023 (arXiv:2311.01453), section 6
for the weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, nan

import numpy as np

from gistpoint.core.analysis.intervals import Floats, Kept, Scale, Units, jackknife
from gistpoint.core.estimates import cohen_kappa
from gistpoint.core.text import plural

LEAST_EXPECTED = 5
"""The minimum expected numbers of labelled runs with the label, and of labelled runs without it."""
LEAST_LABELLED_TASKS = 5
"""The minimum number of tasks with a person's labels."""
ADDED = 0.25
"""The number of labels added to each pair of answers to compute the minimum of the variance."""

LABELLED, PRESENT, JUDGED, BOTH, ALONE, ALONE_JUDGED = range(6)
"""The columns of counts by task: labelled runs; those present by the person, the judge, and both; runs that
only the judge labelled, and those present among them."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """One run: its task, whether the judge found the label, and the person's label, None without one.

    `again` is the person's label at a second reading.
    """

    task: str
    judged: bool
    label: bool | None = None
    again: bool | None = None


@dataclass(frozen=True, slots=True)
class Prevalence:
    """The share of runs with a label and its 95% interval, or why the labels do not suffice for it."""

    runs: int
    tasks: int
    judged: int
    """The number of runs in which the judge found the label."""
    labels: int
    """The number of runs with a person's label."""
    present: int
    """The number of runs in which the person found the label."""
    value: float | None
    """The estimate; None without labels."""
    low: float | None
    high: float | None
    weight: float
    """The weight of the judge's labels, from 0 to 1."""
    squared_correlation: float | None
    """The squared correlation of judge and person over the labelled runs; None if either is constant."""
    too_few: str
    """The reason why no interval is given, in words; empty if one is given."""
    more_labels: int | None
    """The number of further labels that halve the interval or allow a first one; None if none suffices."""
    kappa: float | None = None
    """Cohen's kappa of judge and person."""
    kappa_again: float | None = None
    """Cohen's kappa of the person's two readings."""
    read_again: int = 0


def prevalence(runs: Sequence[JudgedRun], *, alone: bool = False) -> Prevalence:
    """Return the share of runs with a label. With `alone`, the judge's labels have the weight 0."""
    found = prevalence_of(counts_by_task(runs), alone=alone)
    twice = [(run.label, run.again) for run in runs if run.label is not None and run.again is not None]
    return replace(
        found,
        kappa=cohen_kappa((run.judged, run.label) for run in runs if run.label is not None),
        kappa_again=cohen_kappa(twice),
        read_again=len(twice),
    )


def counts_by_task(runs: Iterable[JudgedRun]) -> Floats:
    """Return the counts of each task, as (tasks, 6), with the columns `LABELLED` to `ALONE_JUDGED`."""
    found: dict[str, list[int]] = {}
    for run in runs:
        row = found.setdefault(run.task, [0] * 6)
        if run.label is None:
            row[ALONE] += 1
            row[ALONE_JUDGED] += run.judged
        else:
            row[LABELLED] += 1
            row[PRESENT] += run.label
            row[JUDGED] += run.judged
            row[BOTH] += run.label and run.judged
    return np.array([found[task] for task in sorted(found)], dtype=float).reshape(-1, 6)


def prevalence_of(counts: Floats, *, alone: bool = False) -> Prevalence:
    """Return the share of runs with a label, without any kappa, from the counts of each task."""
    total = counts.sum(axis=0)
    labels, present, runs = total[LABELLED], total[PRESENT], float(total[LABELLED] + total[ALONE])
    value, weight = _estimate(total, alone)
    low, high, variance = _interval(counts, alone) if labels else (nan, nan, nan)
    too_few = _too_few(counts, value, low)
    square = 0.0 if alone else _squared_correlation(total, ADDED)
    if too_few:
        judged = float(total[JUDGED] + total[ALONE_JUDGED])
        # If the estimate is 0 or 1, only the judge's share shows how rare the label may be.
        more = _for_a_first_interval(value if 0 < value < 1 else judged / max(runs, 1.0), labels, runs)
    else:
        more = _for_half_the_interval(counts, value, variance, square)
    own_square = _squared_correlation(total, 0)
    return Prevalence(
        runs=int(runs),
        tasks=len(counts),
        judged=int(total[JUDGED] + total[ALONE_JUDGED]),
        labels=int(labels),
        present=int(present),
        value=min(1.0, max(0.0, value)) if labels else None,
        low=None if too_few else low,
        high=None if too_few else high,
        weight=weight,
        squared_correlation=own_square if own_square == own_square else None,
        too_few=too_few,
        more_labels=more,
    )


def _estimate(total: Floats, alone: bool = False) -> tuple[float, float]:
    """Return the estimate and the weight from the counts over all tasks; NaN without labels."""
    n, present, judged, both, m, m_judged = total.tolist()
    if not n:
        return nan, 0.0
    if not m or alone:
        return present / n, 0.0
    share = (judged + m_judged) / (n + m)
    variance = share * (1 - share) * (n + m) / (n + m - 1)
    if not variance:
        return present / n, 0.0
    covariance = both / n - present / n * judged / n
    weight = min(1.0, max(0.0, covariance / ((1 + n / m) * variance)))
    return present / n + weight * (m_judged / m - judged / n), weight


def _interval(counts: Floats, alone: bool) -> tuple[float, float, float]:
    """Return both ends of the interval and the variance; NaN if the labels do not suffice."""
    places = np.arange(len(counts), dtype=np.int64)
    units = Units(np.full(len(counts), -1, dtype=np.int64), places)

    def of_kept(kept: Kept) -> float:
        return _estimate(kept @ counts, alone)[0]

    spread = jackknife(units, of_kept)
    total = counts.sum(axis=0)
    least = _independent_variance(total, _estimate(total, alone)[1])
    spread = replace(spread, by_tasks=np.maximum(spread.by_tasks, least))
    low, high = spread.bounds(Scale.PROBABILITY)
    return float(low[0]), float(high[0]), float(spread.variance[0])


def _pairs(total: Floats, added: float) -> Floats:
    """Return the counts of each pair of answers plus `added`: both, person alone, judge alone, neither."""
    n, present, judged, both = total[:ALONE]
    return np.array([both, present - both, judged - both, n - present - judged + both]) + added


def _independent_variance(total: Floats, weight: float) -> float:
    """Return the variance of the estimate if runs were independent, with `ADDED` labels for each pair."""
    pairs = _pairs(total, ADDED)
    rectified = np.array([1 - weight, 1.0, -weight, 0.0])
    mean = (pairs * rectified).sum() / pairs.sum()
    variance = (pairs * (rectified - mean) ** 2).sum() / pairs.sum()
    n, m = total[LABELLED], total[ALONE]
    found = variance / max(n - 1, 1)
    if m:
        share = (total[JUDGED] + total[ALONE_JUDGED]) / (n + m)
        found += weight**2 * share * (1 - share) / m
    return float(found)


def _squared_correlation(total: Floats, added: float) -> float:
    """Return the squared correlation of judge and person over the labelled runs; NaN if one is constant."""
    both, person, judge, neither = _pairs(total, added).tolist()
    product = (both + person) * (both + judge) * (neither + person) * (neither + judge)
    return float((both * neither - person * judge) ** 2 / product) if product else nan


def _too_few(counts: Floats, value: float, low: float) -> str:
    """Return the reason why the labels do not suffice for an interval, in words; empty if they suffice."""
    labels = counts[:, LABELLED].sum()
    if not labels:
        return "no labels"
    tasks = int((counts[:, LABELLED] > 0).sum())
    if tasks < LEAST_LABELLED_TASKS:
        return f"labels in {plural(tasks, 'task')}, and {LEAST_LABELLED_TASKS} tasks are needed"
    for share, what in ((value, "with"), (1 - value, "without")):
        expected = max(0.0, share * labels)
        # A share such as 0.1 is not exact in binary: 50 labels expect 5 runs with it, not 4.999...
        if expected < LEAST_EXPECTED - 1e-9:
            return (
                f"among {labels:g} labels, {expected:.1f} runs {what} the label are expected, and"
                f" {LEAST_EXPECTED} are needed"
            )
    return "" if low == low else "the estimate depends on a single task"


def _for_a_first_interval(value: float, labels: float, runs: float) -> int | None:
    """Return the number of further labels that a first interval needs; None if there are too few runs."""
    rarer = min(value, 1 - value)
    if not rarer > 0:
        return None
    needed = max(ceil(LEAST_EXPECTED / rarer - 1e-9 - labels), 1)
    return needed if labels + needed <= runs else None


def _for_half_the_interval(counts: Floats, value: float, variance: float, square: float) -> int | None:
    """Return the number of further labels that halve the interval; None if more than all runs are needed.

    With s = q (1 - q) for the estimate q, n labels and N runs, the variance is s (1 - r²) / n + s r² / N plus
    the contribution of tasks, and further labels reduce only the first term. The contribution of tasks is the
    smaller of two noisy values, from the judge's many labels and from the estimate's own variance.
    """
    total, one = counts.sum(axis=0), value * (1 - value)
    labels, runs = float(total[LABELLED]), float(total[LABELLED] + total[ALONE])
    now, remains = one * (1 - square) / labels, one * square / runs
    remains += min(max(0.0, variance - now - remains), _between_tasks(counts))
    reducible = (now + remains) / 4 - remains
    needed = one * (1 - square) / reducible if reducible > 0 else runs + 1
    return max(ceil(needed - labels), 1) if needed <= runs else None


def _between_tasks(counts: Floats) -> float:
    """Return the variance that differences between tasks add to a share, by the judge's labels."""
    total = counts.sum(axis=0)
    runs, judged = total[LABELLED] + total[ALONE], total[JUDGED] + total[ALONE_JUDGED]
    share = judged / runs
    sums = counts[:, JUDGED] + counts[:, ALONE_JUDGED] - share * (counts[:, LABELLED] + counts[:, ALONE])
    clustered = (sums**2).sum() / runs**2 * len(counts) / max(len(counts) - 1, 1)
    both, person, judge, neither = _pairs(total, ADDED).tolist()
    # The less reliable a judge is, the smaller the differences between tasks appear in its labels.
    slope = both / (both + person) - judge / (judge + neither)
    return float(max(0.0, clustered - share * (1 - share) / runs) / slope**2) if slope else float("inf")
