"""Fidelity against the calls and files of a test, and on the hard subset (Gistify, section 4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

import numpy as np
from scipy.special import expit

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Curve, Findings, Number, Plot, Points
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife
from gistpoint.core.analysis.pooling import regression_needs, tasks_of
from gistpoint.core.analysis.regression import regress
from gistpoint.core.analysis.samples import FIDELITY, measuring
from gistpoint.core.analysis.task_means import kept_means, percent, share_over_tasks
from gistpoint.core.metrics.bars import TOP, hard_subset
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks

CALLS, FILES = "calls", "files"
LEAST_TASKS_OF_SUBSET = 2 * TOP
"""The minimum number of tasks for choosing a hard subset; a smaller set could consist of all tasks."""
_POINTS = 40
_BINS = 10
_TASKS_A_BIN = 3
CURVE_NOTE = (
    "A logit of fidelity on the number's logarithm with Firth's penalty, and its band by the two-way"
    " jackknife; points are means of equal parts of the tasks, at most ten. The paper shows bins and no fit."
)
HARD_NOTE = (
    "The hard subset consists of the 30 attempted tasks with the most calls and the 30 that touch the most"
    " files; ties are broken by name. The baseline is the solver's rate in each repository, weighted as in"
    " the subset; all rates are means over tasks. (The paper reports 57 tasks, but its repositories add up to"
    " 30 + 28 + 6 = 64.)"
)


def by_calls(data: StudyData) -> Findings:
    """Return fidelity as a curve over the number of function calls that the test makes."""
    return _curves(data, CALLS, "gi-calls")


def by_files(data: StudyData) -> Findings:
    """Return fidelity as a curve over the number of files that the test touches."""
    return _curves(data, FILES, "gi-files")


def _known(data: StudyData, metric: str) -> dict[str, float]:
    found = {
        task.id: task.metrics.get(metric, 0.0) for task in counted_tasks(data.study, data.tasks).values()
    }
    return {task: value for task, value in found.items() if value > 0}


def _curves(data: StudyData, metric: str, identity: str) -> Findings:
    found = FindingsBuilder()
    title, name = f"Fidelity against {metric}", f"ln {metric}"
    table = found.table(
        title, ("solver", "gists", f"slope on {name}", "p (Wald)", "p (jackknife)"), CURVE_NOTE
    )
    marks: list[Curve | Points] = []
    values = _known(data, metric)
    groups = measuring(data, FIDELITY)
    for group in groups:
        rows = [row for row in group.rows if row.task in values]
        if not rows or found.too_few(f"{title} ({group.label})", *regression_needs(rows)):
            continue
        x = [log(values[row.task]) for row in rows]
        at = np.linspace(min(x), max(x), _POINTS)
        grid = np.column_stack([np.ones(_POINTS), at])
        # Firth's penalty is always applied: if it were applied only to separated data, the curves of
        # different groups would not be comparable (decision 86).
        model = regress(rows, {name: x}, firth=True, grid=grid)
        if model is None:
            continue
        slope = found.number(group.label, model.coefficient(name))
        table.row(group.label, len(rows), slope, model.wald_p(name), model.p(name))
        band = tuple(_percents(bound) for bound in model.grid.bounds(Scale.LOGIT))
        low, high = band if np.isfinite(band).all() else ((), ())
        places, line = tuple(np.exp(at).tolist()), _percents(expit(model.grid.estimate))
        marks += _means_by_rank(group.label, rows, values), Curve(group.label, places, line, low, high)
    axis = "function calls" if metric == CALLS else "files touched"
    found.plot(Plot(identity, title, axis, "fidelity %", tuple(marks), CURVE_NOTE, log_x=True))
    found.settings(groups)
    return found.findings()


def _percents(chances: Sequence[float] | np.ndarray) -> tuple[float, ...]:
    return tuple(100 * float(value) for value in chances)


def _means_by_rank(label: str, rows: Sequence[AttemptRow], values: Mapping[str, float]) -> Points:
    """Return the mean fidelity, in percent, of equal parts of the tasks by rank of the metric."""
    tasks = sorted({row.task for row in rows}, key=lambda task: (values[task], task))
    parts = max(1, min(_BINS, len(tasks) // _TASKS_A_BIN))
    x, y = [], []
    for part in np.array_split(np.array(tasks), parts):
        members = {str(task) for task in part}
        x.append(float(np.exp(np.mean([log(values[task]) for task in members]))))
        y.append(100 * float(np.mean([row.solved for row in rows if row.task in members])))
    return Points(label, tuple(x), tuple(y))


def hard_gists(data: StudyData) -> Findings:
    """Return fidelity on the hard subset next to its repositories' baseline (Gistify, section 4.2)."""
    found = FindingsBuilder()
    table = found.table(
        "The hard subset",
        ("solver", "hard tasks", "fidelity on them %", "baseline %", "difference"),
        HARD_NOTE,
    )
    groups = measuring(data, FIDELITY)
    attempted = {row.task for group in groups for row in group.rows}
    calls, files = (
        {t: v for t, v in _known(data, metric).items() if t in attempted} for metric in (CALLS, FILES)
    )
    if not calls or not files:
        return Findings()
    with_both = len(calls.keys() & files.keys())
    if found.too_few("The hard subset", ("tasks with calls and files", LEAST_TASKS_OF_SUBSET, with_both)):
        return found.findings()
    by_calls_, by_files_ = hard_subset(calls, files)
    hard = by_calls_ | by_files_
    for group in groups:
        on_hard = group.on(hard).rows
        if not on_hard:
            continue
        weighted, gap = map(percent, against_repositories(group.rows, hard))
        numbers = {"hard": share_over_tasks(on_hard), "baseline": weighted, "difference": gap}
        table.row(group.label, tasks_of(on_hard), *found.numbers_of(group.label, numbers))
    sources = Counter(data.tasks[task].source for task in hard)
    parts = " + ".join(f"{count} {source}" for source, count in sources.most_common())
    found.note(
        f"{len(hard)} tasks of {with_both}: {TOP} by calls and {TOP} by files, "
        f"{len(by_calls_ & by_files_)} of them by both ({parts} = {sources.total()})."
    )
    found.settings(groups)
    return found.findings()


def against_repositories(rows: Sequence[AttemptRow], hard: set[str]) -> tuple[Number, Number]:
    """Return the hard subset's expected rate by its repositories, and its actual rate minus that.

    The expected rate is the sum over repositories of their share of the subset's tasks times their rate over
    all of their tasks. Rates are means over tasks, as in `share_over_tasks`, so that the actual rate minus
    the expected one is the difference. Both numbers are fractions of 1 and have jackknife intervals.
    """
    units = Units.of(rows)
    solved = np.array([float(row.solved) for row in rows])
    sources = {row.task: row.source for row in rows}
    tasks = sorted(sources)
    names = sorted(set(sources.values()))
    source = np.array([names.index(sources[task]) for task in tasks])
    of_hard = np.array([task in hard for task in tasks])

    def estimate(kept: Kept) -> list[float]:
        rates = kept_means(units, kept, solved)
        known = np.isfinite(rates)
        chosen = known & of_hard
        if not chosen.any():
            return [np.nan, np.nan]
        counts = np.bincount(source[known], minlength=len(names))
        sums = np.bincount(source[known], weights=rates[known], minlength=len(names))
        weights = np.bincount(source[chosen], minlength=len(names)) / chosen.sum()
        expected = float((weights * sums / np.maximum(counts, 1)).sum())
        return [expected, float(rates[chosen].mean()) - expected]

    spread = jackknife(units, estimate)
    return spread.number(Scale.PROBABILITY, 0), spread.number(Scale.DIFFERENCE, 1)
