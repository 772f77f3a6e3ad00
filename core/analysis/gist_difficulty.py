"""Fidelity against how much of the codebase a test runs, and on the hard subset (Gistify, section 4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

import numpy as np
from scipy.special import expit

from gistpoint.core.analysis.findings import (
    Curve,
    Findings,
    FindingsTable,
    Number,
    Plot,
    Points,
    Shortfall,
    Value,
)
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife
from gistpoint.core.analysis.pooling import keys_note, regression_needs, tasks_of, too_few
from gistpoint.core.analysis.regression import regress
from gistpoint.core.analysis.samples import FIDELITY, measuring
from gistpoint.core.analysis.task_means import percent, share_over_tasks
from gistpoint.core.metrics.bars import TOP, hard_subset
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

CALLS, FILES = "calls", "files"
LEAST_TASKS_OF_SUBSET = 2 * TOP
"""So that the subset is a part of the set."""
_POINTS = 40
_BINS = 10
_TASKS_A_BIN = 3
CURVE_NOTE = (
    "A logit of fidelity on the logarithm with Firth's penalty, and its band by the two-way jackknife; points are "
    "means of equal parts of the tasks, at most ten. The paper shows bins and no fit."
)
HARD_NOTE = (
    "The hard subset is the 30 tasks with the most calls together with the 30 that touch the most files, of the whole "
    "set; tasks that are equal are taken by name. The baseline is the solver's rate in each repository, weighted as "
    "the subset is. (The paper tells of 57 tasks, but its repositories add up to 30 + 28 + 6 = 64.)"
)


def by_calls(data: StudyData) -> Findings:
    """Draw fidelity against the number of function calls that the test makes."""
    return _curves(data, CALLS, "gi-calls")


def by_files(data: StudyData) -> Findings:
    """Draw fidelity against the number of files that the test touches."""
    return _curves(data, FILES, "gi-files")


def _known(data: StudyData, metric: str) -> dict[str, float]:
    found = {task.id: task.metrics.get(metric, 0.0) for task in data.tasks.values()}
    return {task: value for task, value in found.items() if value > 0}


def _curves(data: StudyData, metric: str, identity: str) -> Findings:
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    marks: list[Curve | Points] = []
    short: list[Shortfall] = []
    values = _known(data, metric)
    found = measuring(data, FIDELITY)
    for group in found:
        rows = [row for row in group.rows if row.task in values]
        if not rows:
            continue
        lack = too_few(f"Fidelity against {metric} ({group.label})", *regression_needs(rows))
        if lack is not None:
            short.append(lack)
            continue
        x = [log(values[row.task]) for row in rows]
        at = np.linspace(min(x), max(x), _POINTS)
        grid = np.column_stack([np.ones(_POINTS), at])
        model = regress(rows, {f"ln {metric}": x}, firth=True, grid=grid)
        if model is None:
            continue
        slope = model.coefficient(f"ln {metric}")
        numbers[group.label] = slope
        cells.append((group.label, len(rows), slope, model.wald_p(f"ln {metric}"), model.p(f"ln {metric}")))
        low, high = (_percents(bound) for bound in model.grid.bounds(Scale.LOGIT))
        banded = all(np.isfinite((*low, *high)))
        places = tuple(float(value) for value in np.exp(at))
        line = _percents(expit(model.grid.estimate))
        marks.append(_parts(group.label, rows, values))
        marks.append(Curve(group.label, places, line, low if banded else (), high if banded else ()))
    if not cells:
        return Findings(not_estimated=tuple(short))
    columns = ("solver", "gists", f"slope on ln {metric}", "p (Wald)", "p (jackknife)")
    title = f"Fidelity against {metric}"
    axis = "function calls" if metric == CALLS else "files touched"
    plot = Plot(identity, title, axis, "fidelity %", tuple(marks), CURVE_NOTE, log_x=True)
    note = keys_note(found)
    table = FindingsTable(title, columns, tuple(cells), CURVE_NOTE)
    return Findings(numbers, (table,), (plot,), (note,) if note else (), tuple(short))


def _percents(chances: Sequence[float] | np.ndarray) -> tuple[float, ...]:
    return tuple(100 * float(value) for value in chances)


def _parts(label: str, rows: Sequence[AttemptRow], values: Mapping[str, float]) -> Points:
    """Mean fidelity in equal parts of the tasks, by rank."""
    tasks = sorted({row.task for row in rows}, key=lambda task: (values[task], task))
    parts = max(1, min(_BINS, len(tasks) // _TASKS_A_BIN))
    x, y = [], []
    for part in np.array_split(np.array(tasks), parts):
        members = {str(task) for task in part}
        x.append(float(np.exp(np.mean([log(values[task]) for task in members]))))
        y.append(100 * float(np.mean([row.solved for row in rows if row.task in members])))
    return Points(label, tuple(x), tuple(y))


def hard_gists(data: StudyData) -> Findings:
    """Compare fidelity on the hard subset with the baseline of the same repositories (Gistify, section 4.2)."""
    found = measuring(data, FIDELITY)
    attempted = {row.task for group in found for row in group.rows}
    calls, files = ({t: v for t, v in _known(data, metric).items() if t in attempted} for metric in (CALLS, FILES))
    if not calls or not files:
        return Findings()
    whole = len(calls.keys() & files.keys())
    lack = too_few("The hard subset", ("tasks with calls and files", LEAST_TASKS_OF_SUBSET, whole))
    if lack is not None:
        return Findings(not_estimated=(lack,))
    by_calls_, by_files_ = hard_subset(calls, files)
    hard = by_calls_ | by_files_
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    for group in found:
        on_hard = group.on(hard).rows
        if not on_hard:
            continue
        rate = share_over_tasks(on_hard)
        weighted, gap = (percent(number) for number in against_repositories(group.rows, hard))
        key = group.label
        numbers |= {f"{key}/hard": rate, f"{key}/baseline": weighted, f"{key}/difference": gap}
        cells.append((key, tasks_of(on_hard), rate, weighted, gap))
    sources = Counter(data.tasks[task].source for task in hard)
    parts = " + ".join(f"{count} {source}" for source, count in sources.most_common())
    note = (
        f"{len(hard)} tasks of {whole}: {TOP} by calls and {TOP} by files, "
        f"{len(by_calls_ & by_files_)} of them by both ({parts} = {sources.total()})."
    )
    columns = ("solver", "hard tasks", "fidelity on them %", "baseline %", "difference")
    table = FindingsTable("The hard subset", columns, tuple(cells), HARD_NOTE)
    return Findings(numbers, (table,), notes=tuple(filter(None, (note, keys_note(found)))))


def against_repositories(rows: Sequence[AttemptRow], hard: set[str]) -> tuple[Number, Number]:
    """Return the rate expected of the subset from those of its repositories, and the subset's rate less it.

    The expected rate is the sum over repositories of their share of the subset's attempts times their rate.
    """
    units = Units.of(rows)
    solved = np.array([float(row.solved) for row in rows])
    of_hard = np.array([row.task in hard for row in rows])
    names = sorted({row.source for row in rows})
    source = np.array([names.index(row.source) for row in rows])

    def estimate(kept: Kept) -> list[float]:
        chosen = kept & of_hard
        if not chosen.any():
            return [np.nan, np.nan]
        counts = np.bincount(source[kept], minlength=len(names))
        sums = np.bincount(source[kept], weights=solved[kept], minlength=len(names))
        weights = np.bincount(source[chosen], minlength=len(names)) / chosen.sum()
        expected = float((weights * sums / np.maximum(counts, 1)).sum())
        return [expected, float(solved[chosen].mean()) - expected]

    spread = jackknife(units, estimate)
    return spread.number(Scale.PROBABILITY, 0), spread.number(Scale.DIFFERENCE, 1)
