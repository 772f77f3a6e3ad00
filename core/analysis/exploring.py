"""Relates exploration before the first submission to success, among attempts at the same task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.intervals import Floats, Scale, Units
from gistpoint.core.analysis.pooling import LEAST_TASKS_OF_REGRESSION, groups, regression_needs
from gistpoint.core.analysis.regression import regress
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

VIEW, SEARCH, SUBMIT = "view", "search", "submit"
STEP = 10.0
"""The difference in the share of searches to which the odds ratio refers, in percentage points."""


def looks(row: AttemptRow) -> tuple[int, int]:
    """Return the numbers of views and of searches before the first submission, without refused calls."""
    made = [call for call in row.calls if not call.refused]
    first = min((call.number for call in made if call.kind == SUBMIT), default=inf)
    before = [call.kind for call in made if call.number < first]
    return before.count(VIEW), before.count(SEARCH)


def within(values: ArrayLike, tasks: Sequence[str]) -> tuple[Floats, Floats]:
    """Return each value's deviation from the mean of its task, and that mean, in the order of the values."""
    given = np.asarray(values, dtype=float)
    places = Units.named([""] * len(tasks), tasks).tasks
    means = (np.bincount(places, weights=given) / np.bincount(places))[places]
    return given - means, means


def exploration(data: StudyData) -> Findings:
    """Return odds ratios of solving, per information call and per 10 points of search share (`explore`).

    The logistic regression has the task means of both as covariates (Mundlak 1978), so the ratios are within
    tasks.
    """
    found = FindingsBuilder()
    table = found.table(
        "Exploration before the first submission, and success",
        ("who", "mode", "attempts", "odds per call", f"odds per {STEP:.0f} points more searches"),
        "Ratios of the odds of solving. Information calls are views and searches; the share of searches is"
        " among them, so attempts without any are left out. Each task's mean is a covariate (Mundlak 1978),"
        " so the ratios are within tasks.",
    )
    for group in groups(data):
        looked = _with_looks(group.rows)
        if not looked:
            continue
        rows = [row for row, _, _ in looked]
        what = f"Exploration and success of {group.label}, {group.mode},"
        attempts = Counter(row.task for row in rows)
        again = (
            "tasks attempted more than once",
            LEAST_TASKS_OF_REGRESSION,
            sum(n > 1 for n in attempts.values()),
        )
        if found.too_few(what, *regression_needs(rows), again):
            continue
        totals = np.array([views + searches for _, views, searches in looked], dtype=float)
        shares = np.array([100 / STEP * searches for _, _, searches in looked]) / totals
        columns = _columns({"calls": totals, "searches": shares}, [row.task for row in rows])
        fit = regress(rows, columns)
        if fit is None:
            found.not_estimated(what, "effect that can be separated from the other", 2, 0)
            continue
        numbers: dict[str, Number | None] = {}
        for name in ("calls", "searches"):
            low, high = np.exp(fit.wald_interval(name)).tolist()
            numbers[name] = fit.spread.number(Scale.LOG, fit.place(name), iid=(low, high), note=fit.note)
        table.row(
            group.label, group.mode, len(rows), *found.numbers_of(f"{group.label}/{group.mode}", numbers)
        )
    return found.findings()


def _with_looks(rows: Sequence[AttemptRow]) -> list[tuple[AttemptRow, int, int]]:
    """Return the attempts with at least one view or search, with the counts of both."""
    counted = [(row, *looks(row)) for row in rows if row.calls]
    return [(row, views, searches) for row, views, searches in counted if views + searches]


def _columns(values: Mapping[str, ArrayLike], tasks: Sequence[str]) -> dict[str, ArrayLike]:
    columns: dict[str, ArrayLike] = {}
    for name, given in values.items():
        inside, means = within(given, tasks)
        # The coefficient of the deviation from the task's mean is the effect within tasks; the mean absorbs
        # differences between tasks (Mundlak 1978).
        columns[name] = inside
        if len(set(np.round(means, 9).tolist())) > 1:
            columns[f"mean {name} of the task"] = means
    return columns
