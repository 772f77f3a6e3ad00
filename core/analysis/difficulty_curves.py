"""The probability of success of one solver as a curve over one metric (Breakpoint, figures 5 and 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import expit

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.difficulty import add_metric_by_mode
from gistpoint.core.analysis.findings import Curve, Findings, Number, Plot
from gistpoint.core.analysis.firth import Floats
from gistpoint.core.analysis.intervals import Scale
from gistpoint.core.analysis.pooling import PooledRows, by_mode
from gistpoint.core.analysis.regression import SuccessRegression, regress
from gistpoint.core.analysis.samples import (
    FOUND,
    Pool,
    StandardScores,
    alike_but_for,
    alone,
    measuring,
    pools,
    standard_scores,
)
from gistpoint.core.study.data import StudyData

RESAMPLES = 1_000
_POINTS = 25
WIDEST = 3.0
"""The largest absolute z score at which curves are drawn, as in the paper."""
_NEWTON_STEPS = 40
_RUNAWAY = 15.0
BUDGETS = ("tool_uses", "submissions", "steps", "time_limit_s")
"""The fields of a condition that hold budgets."""
NOTE = (
    "Each curve is a logit of success on one metric with Firth's penalty. Its band is the two-way"
    " jackknife's, point by point on the scale of log odds. The dashed lines are the paper's band:"
    " 1,000 resamples of attempts as if they were independent, each fitted without a penalty."
    " Resamples whose fit did not converge are left out, as in the paper's code; this makes its band"
    " narrower, so they are counted here."
)


def solver_curves(data: StudyData) -> Findings:
    """Return each group's probability of success as a curve over each metric (Breakpoint, figure 5)."""
    return _curves(data, "bp-5", [(group.label, group) for group in measuring(data, FOUND)])


def budget_curves(data: StudyData) -> Findings:
    """Return the curves of each solver that has several budgets, one per budget (Breakpoint, figure 9)."""
    found = []
    for series in budget_series(data, measuring(data, FOUND)):
        found += [(f"{series.label}, {budget}", group) for budget, group in series.members]
    return _curves(data, "bp-9", found)


@dataclass(frozen=True)
class BudgetSeries:
    """The groups of a solver in one mode whose conditions differ only in their budgets."""

    label: str
    mode: str
    members: tuple[tuple[str, PooledRows], ...]
    """Each budget, as "tool uses/submissions", with its group, in ascending order."""


def budget_series(data: StudyData, found: Iterable[PooledRows]) -> tuple[BudgetSeries, ...]:
    """Return the series of at least two budgets.

    Groups whose rows do not all have one known budget are left out, and so are series with several groups
    under one budget.
    """
    together: dict[tuple[str, str, str], dict[tuple[int, int], list[PooledRows]]] = {}
    for group in found:
        budgets = {(row.tool_use_budget, row.submission_budget) for row in group.rows}
        if len(budgets) != 1:
            continue
        tools, submissions = next(iter(budgets))
        if tools is None or submissions is None:
            continue
        alike = alike_but_for(data.study.condition_of(group.condition), *BUDGETS) or group.condition
        by_budget = together.setdefault((group.who, group.mode, alike), {})
        by_budget.setdefault((tools, submissions), []).append(group)
    names: dict[tuple[str, str], int] = defaultdict(int)
    series = []
    for (who, mode, _), by_budget in together.items():
        # Groups with the same budget and different settings can't share a line.
        if len(by_budget) < 2 or any(len(groups) > 1 for groups in by_budget.values()):
            continue
        names[(who, mode)] += 1
        number = names[(who, mode)]
        members = tuple((f"{a}/{b}", groups[0]) for (a, b), groups in sorted(by_budget.items()))
        series.append(BudgetSeries(who if number == 1 else f"{who} ({number})", mode, members))
    return tuple(series)


def _curves(data: StudyData, identity: str, groups: Sequence[tuple[str, PooledRows]]) -> Findings:
    found = FindingsBuilder()
    table = found.table(
        "Slopes",
        (
            "group",
            "mode",
            "metric",
            "slope (log odds)",
            "p (jackknife)",
            f"of {RESAMPLES} resamples not converged",
        ),
        NOTE,
    )
    scores = [one for metric in data.study.report.difficulty if (one := standard_scores(data, metric)).scores]
    # Each group has its own curve: only the regressions of section 4.1.2 pool models (decision 86).
    members_of = by_mode(alone(group, label) for label, group in groups)
    for metric, (mode, members) in product(scores, members_of.items()):
        marks: list[Curve] = []
        for complete in members:
            pool = complete.with_metrics([metric])
            if found.too_few(*pool.needs(f"The curve over {metric.metric}")):
                continue
            curve = _curve(data, pool, metric)
            if curve is None:
                continue
            marks += curve.marks
            slope = found.number(f"{complete.label}/{mode}/{metric.metric}", curve.slope)
            table.row(complete.label, mode, metric.metric, slope, curve.model.p(metric.metric), curve.failed)
        if marks:
            title = f"Chance of success by {metric.metric}: {mode}"
            axis = f"{metric.metric} (z)"
            name = f"{identity}-{metric.metric}-{mode}"
            found.plot(Plot(name, title, axis, "chance of success", tuple(marks), NOTE))
    if found.has_rows and identity == "bp-5":
        add_metric_by_mode(found, pools(measuring(data, FOUND)), scores)
    found.note(f"Units: {'; '.join(one.words for one in scores)}.")
    found.settings(group for _, group in groups)
    return found.findings()


@dataclass(frozen=True)
class _Drawn:
    model: SuccessRegression
    marks: tuple[Curve, ...]
    slope: Number
    failed: int


def _curve(data: StudyData, pool: Pool, metric: StandardScores) -> _Drawn | None:
    z = metric.values(pool.rows)
    # A curve ends where its attempts end: beyond them, it would show only the model.
    places = np.linspace(max(min(z), -WIDEST), min(max(z), WIDEST), _POINTS)
    model = regress(
        pool.rows, {metric.metric: z}, firth=True, grid=np.column_stack([np.ones(_POINTS), places])
    )
    if model is None:
        return None
    chance = expit(model.grid.estimate)
    low, high = model.grid.bounds(Scale.LOGIT)
    at = _floats(places)
    banded = bool(np.all(np.isfinite(low) & np.isfinite(high)))
    marks = [
        Curve(
            pool.label, at, _floats(chance), _floats(low) if banded else (), _floats(high) if banded else ()
        )
    ]
    y = np.array([float(row.solved) for row in pool.rows])
    drawn, failed = resampled(np.array(z), y, data.study.seed, places)
    if len(drawn):
        lower, upper = np.quantile(expit(drawn), [0.025, 0.975], axis=0)
        # The lines share a name and thus a colour; the curve is last because the legend shows the last line.
        marks = [Curve(pool.label, at, _floats(line), dashed=True) for line in (lower, upper)] + marks
    return _Drawn(model, tuple(marks), model.coefficient(metric.metric), failed)


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def resampled(z: Floats, y: Floats, seed: int, places: Floats) -> tuple[Floats, int]:
    """Return the log odds at `places` of each converged bootstrap fit, and how many did not converge.

    Attempts are resampled with replacement. All resamples are fitted at once, by Newton's method without a
    penalty; a fit has diverged when it is singular, or a coefficient exceeds 15 in absolute value.
    """
    # The attempts are sorted, so that the order in which they are read has no effect on the draws (decision
    # 206).
    order = np.lexsort((y, z))
    z, y = z[order], y[order]
    draw = np.random.default_rng(seed)
    drawn = draw.multinomial(len(y), np.full(len(y), 1 / len(y)), size=RESAMPLES).astype(float)
    # Attempts at the same task have the same metric, so each resample is counted at the distinct values.
    z, first = np.unique(z, return_index=True)
    counts, solved = (np.add.reduceat(weights, first, axis=1) for weights in (drawn, drawn * y))
    constant, slope = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    settled = np.zeros(RESAMPLES, dtype=bool)
    alive = np.ones(RESAMPLES, dtype=bool)
    for _ in range(_NEWTON_STEPS):
        at = np.flatnonzero(alive)
        if not len(at):
            break
        chance = expit(constant[at, None] + slope[at, None] * z)
        gap, weight = solved[at] - counts[at] * chance, counts[at] * chance * (1 - chance)
        first, second = gap.sum(axis=1), gap @ z
        a, b, c = weight.sum(axis=1), weight @ z, weight @ z**2
        determinant = a * c - b * b
        sound = determinant > 1e-10
        safe = np.where(sound, determinant, 1.0)
        step_constant, step_slope = (c * first - b * second) / safe, (a * second - b * first) / safe
        constant[at] += np.where(sound, step_constant, 0.0)
        slope[at] += np.where(sound, step_slope, 0.0)
        done = sound & (np.abs(step_constant) < 1e-8) & (np.abs(step_slope) < 1e-8)
        away = ~sound | (np.abs(constant[at]) > _RUNAWAY) | (np.abs(slope[at]) > _RUNAWAY)
        settled[at[done & ~away]] = True
        alive[at[done | away]] = False
    log_odds = constant[settled, None] + slope[settled, None] * places
    return np.asarray(log_odds, dtype=np.float64), int(RESAMPLES - settled.sum())
