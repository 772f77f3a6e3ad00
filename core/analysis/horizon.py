"""The time horizon of a model: the human time of tasks that it solves half of the time, as METR fits it.

The fit minimizes (1 / 0.1) * sum of w * loss + b1 squared / 2, where the loss is the logistic one of success
on log2 of human minutes. The weights w are 1 / (runs of the task) * 1 / sqrt(tasks of the family), scaled to
a sum of 1; the family is the library.

METR treats human minutes as known. The recommended horizon treats them as estimates (`measured_horizon`);
METR's choices are printed next to it. Horizons and bounds beyond the longest task are not printed (decision
161).

Sources: Kwa et al., Measuring AI ability to complete long tasks (2025); METR's `eval-analysis-public`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Curve, Findings, Mark, Number, Plot, Points
from gistpoint.core.analysis.intervals import Floats, Integers, Kept, Scale, Units, jackknife
from gistpoint.core.analysis.measured_horizon import HorizonLink, HumanMinutes, Runs
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_TIMES,
    LEAST_TASKS_OF_HORIZON,
    PooledRows,
    groups,
    solved_of,
    tasks_of,
)
from gistpoint.core.analysis.printing import value_words
from gistpoint.core.analysis.survival import Times
from gistpoint.core.analysis.tasktimes import Minutes, task_times, unassisted
from gistpoint.core.analysis.timeratios import log_minutes
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

BOOTSTRAP = "bootstrap"
"""The name of METR's interval."""
PENALTY = 0.1
CHANCES = (0.5, 0.8)
BOOTSTRAPS = 1000
DISTRIBUTIONS = "distributions"
"""The name of human minutes that are treated as estimates."""
FITS = {
    "logit, not penalised": (HorizonLink.LOGIT, 0.0),
    "probit, not penalised": (HorizonLink.PROBIT, 0.0),
    "logit, penalised": (HorizonLink.LOGIT, PENALTY),
}
"""The fits with distributions of human minutes, as link and penalty; the first is recommended."""
RISES = "success does not decrease with the minutes"
BUCKETS = (1, 4, 16, 64, 256, 960)
"""Bounds, in human minutes, of the buckets that the plot shows as points."""


@dataclass(frozen=True)
class HorizonFit:
    """The log odds of success against log2 of minutes."""

    slope: float
    intercept: float

    def at(self, chance: float) -> float:
        """Return the human minutes at which success has the probability `chance`.

        NaN if success does not fall with time; infinite if the slope is so small that the minutes overflow.
        """
        if self.slope >= 0:
            return np.nan
        with np.errstate(over="ignore"):
            return float(np.exp2((np.log(chance / (1 - chance)) - self.intercept) / self.slope))


def fit_horizon(
    minutes: Floats, scores: Floats, weights: Floats, penalty: float = PENALTY
) -> HorizonFit | None:
    """Return the penalised logistic regression, fitted by Newton's method; a score is between 0 and 1.

    A fractional score counts partly as a success, and otherwise as a failure. None if there is no single
    finite maximum: if all scores are 0 or all are 1 and, without the penalty, if all times are equal or times
    separate successes from failures. Also None if 100 rounds don't reach it.
    """
    x = np.column_stack([np.log2(minutes), np.ones(len(minutes))])
    w = weights / weights.sum()
    scale, ridge = (1 / penalty, np.diag([1.0, 0.0])) if penalty else (1.0, np.zeros((2, 2)))

    def loss(at: Floats) -> float:
        logits = x @ at
        return float(scale * (w @ (np.logaddexp(0, logits) - scores * logits)) + at @ ridge @ at / 2)

    at = np.zeros(2)
    value, left = loss(at), np.inf
    for _ in range(100):
        chance = 1 / (1 + np.exp(-(x @ at)))
        slope = scale * (x.T @ (w * (chance - scores))) + ridge @ at
        curve = scale * (x.T * (w * chance * (1 - chance))) @ x + ridge
        try:
            step = np.linalg.solve(curve, -slope)
        except np.linalg.LinAlgError:
            return None
        left = np.abs(step).max()
        if left < 1e-12:
            break
        while loss(at + step) > value and np.abs(step).max() > 1e-12:
            step = step / 2
        at = at + step
        value = loss(at)
        # If times separate successes from failures, the maximum is at infinity.
        if np.abs(at).max() > 1e3:
            return None
    # Rounding may keep the steps above the bound in the loop, but not far above it.
    if left > 1e-6 * max(1.0, np.abs(at).max()):
        return None
    return HorizonFit(float(at[0]), float(at[1]))


def run_weights(tasks: Sequence[str], families: Sequence[str]) -> Floats:
    """Return METR's `invsqrt_task_weight` of each run.

    A run's weight is 1 / (runs of the task) * 1 / sqrt(tasks of the family).
    """
    runs = Counter(tasks)
    of_family: dict[str, set[str]] = defaultdict(set)
    for task, family in zip(tasks, families, strict=True):
        of_family[family].add(task)
    found = [
        1 / runs[task] / np.sqrt(len(of_family[family])) for task, family in zip(tasks, families, strict=True)
    ]
    return np.array(found, dtype=float)


@dataclass(frozen=True)
class Timed:
    """Runs of a model, with the human minutes of their tasks."""

    rows: tuple[AttemptRow, ...]
    minutes: Floats

    @classmethod
    def of(cls, rows: Sequence[AttemptRow], minutes: Mapping[str, float]) -> Timed:
        """Return the rows whose tasks have human minutes; `minutes` is by task id."""
        kept = tuple(row for row in rows if row.task in minutes)
        return cls(kept, np.array([minutes[row.task] for row in kept], dtype=float))

    @cached_property
    def scores(self) -> Floats:
        """The score of each run: 1 if it is solved, otherwise 0."""
        return np.array([float(row.solved) for row in self.rows])

    @cached_property
    def weights(self) -> Floats:
        """METR's weights of the runs."""
        return run_weights([row.task for row in self.rows], [row.source for row in self.rows])

    def fit(self, chosen: Integers | Kept, penalty: float = PENALTY) -> HorizonFit | None:
        """Return the fit of the chosen rows, each as often as chosen, with the weights it has among all rows.

        None if no row is chosen, or if the fit has no single finite maximum.
        """
        scores = self.scores[chosen]
        return (
            fit_horizon(self.minutes[chosen], scores, self.weights[chosen], penalty) if len(scores) else None
        )


def bootstrap(timed: Timed, seed: int, draws: int = BOOTSTRAPS) -> tuple[tuple[float, float] | None, ...]:
    """Return METR's bootstrap intervals of the horizons at `CHANCES`, in minutes.

    They are the 2.5% and 97.5% quantiles over hierarchical draws with replacement: families, then tasks of
    each, then runs of each. Draws without a horizon are left out; an interval is None if half of the draws or
    more have none.
    """
    draw = np.random.default_rng(seed)
    tree: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(timed.rows):
        tree[row.source][row.task].append(place)
    families = [list(tasks.values()) for tasks in tree.values()]
    found: list[list[float]] = [[] for _ in CHANCES]
    for _ in range(draws):
        fit = timed.fit(np.array(_drawn_rows(families, draw), dtype=np.int64))
        for kept, chance in zip(found, CHANCES, strict=True):
            if fit is not None and np.isfinite(horizon := fit.at(chance)):
                kept.append(horizon)
    return tuple(_middle(values) if len(values) > draws / 2 else None for values in found)


def _drawn_rows(families: Sequence[Sequence[Sequence[int]]], draw: np.random.Generator) -> list[int]:
    """Return the rows of one draw: families, then tasks of each, then runs of each, all with replacement."""
    rows: list[int] = []
    for family in draw.integers(len(families), size=len(families)):
        tasks = families[family]
        for task in draw.integers(len(tasks), size=len(tasks)):
            runs = tasks[task]
            # A draw from one run takes no random number, so leaving it out changes no other draw.
            if len(runs) == 1:
                rows.append(runs[0])
            else:
                rows.extend(runs[run] for run in draw.integers(len(runs), size=len(runs)))
    return rows


def _middle(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def horizons(data: StudyData) -> Findings:
    """Return the horizons of models, measured by the times of people in this study (`horizon`)."""
    all_groups = groups(data)
    times = task_times(unassisted(data, all_groups))
    models: dict[tuple[str, str, str], list[AttemptRow]] = defaultdict(list)
    for group in all_groups:
        if not group.people:
            models[(group.who, group.condition, group.settings)].extend(group.rows)
    found = FindingsBuilder()
    table = found.table(
        "Time horizons",
        ("model", "human minutes", "fit", "slope per doubling", "intercept", "p50, minutes", "p80, minutes"),
        f"'{DISTRIBUTIONS}' uses all attempts of people at all tasks, with censored ones as lower bounds,"
        " and its interval is over persons and tasks. It comes first; another link and METR's penalty show"
        " how much they matter. The rows below take the minutes as known, and their intervals are over tasks"
        " alone: METR's own choice (geometric mean of solved attempts, penalised), other human minutes, and"
        f" no penalty. The interval after '{BOOTSTRAP}' is METR's own, over libraries, tasks and runs.",
    )
    measured = MeasuredMinutes.of(data, all_groups)
    marks: list[Mark] = []
    for key, rows in models.items():
        label = _label(key, models)
        if measured is not None:
            marks += _add_measured(found, table, label, measured, rows)
        for kind in Minutes:
            timed = Timed.of(rows, {one.task: one.minutes[kind] for one in times if kind in one.minutes})
            if found.too_few(f"The horizon of {label} ({kind})", *_needs(timed)):
                continue
            if kind is Minutes.GEOMETRIC_MEAN and measured is None:
                marks += _marks(label, timed)
            _add_fits(found, table, label, kind, timed, data.study.seed)
    title = "Success against human minutes"
    found.plot(Plot("horizon", title, "human minutes", "share solved", tuple(marks), log_x=True))
    found.note(
        "Human minutes are those of people under the study's first condition.",
        "A person's own horizon would reflect giving up and limits rather than inability, so it is not"
        " fitted.",
    )
    return found.findings()


def _label(key: tuple[str, str, str], models: Collection[tuple[str, str, str]]) -> str:
    """Return a model's name, with the parts of its condition and settings that distinguish it."""
    who, condition, settings = key
    label = f"{who}, {condition}" if len({under for _, under, _ in models}) > 1 else who
    alike = [other for name, under, other in models if (name, under) == (who, condition)]
    return f"{label} ({settings or alike.index(settings) + 1})" if len(alike) > 1 else label


def _add_fits(
    found: FindingsBuilder, table: TableBuilder, label: str, kind: Minutes, timed: Timed, seed: int
) -> None:
    """Add the fits with and without METR's penalty; METR's interval is added only for METR's own choices."""
    for name, penalty in {"penalised": PENALTY, "not penalised": 0.0}.items():
        fit = timed.fit(np.ones(len(timed.rows), dtype=bool), penalty)
        if fit is None:
            continue
        # The bootstrap takes a thousand refits, so it is computed only for the figure that papers print.
        is_metrs = kind is Minutes.GEOMETRIC_MEAN and penalty > 0
        p50, p80 = _horizons(timed, fit, penalty, bootstrap(timed, seed) if is_metrs else None)
        found.numbers_of(f"{label}/{kind}/{name}", {"p50": p50, "p80": p80})
        table.row(label, kind.value, name, fit.slope, fit.intercept, _cell(p50), _cell(p80))


def _needs(timed: Timed) -> tuple[tuple[str, float, float], ...]:
    solved = len(solved_of(timed.rows))
    return (
        ("tasks with human minutes", LEAST_TASKS_OF_HORIZON, tasks_of(timed.rows)),
        ("solved run", 1, solved),
        ("run not solved", 1, len(timed.rows) - solved),
    )


def _horizons(
    timed: Timed,
    whole: HorizonFit,
    penalty: float,
    printed: Sequence[tuple[float, float] | None] | None,
) -> list[Number]:
    """Return the horizons at `CHANCES` in minutes, with jackknife intervals over tasks on the log scale.

    `whole` is the fit of all rows. A horizon without a finite value has a note with the reason.
    """
    units = Units.of(timed.rows)

    def estimate(kept: Kept) -> list[float]:
        fit = timed.fit(kept, penalty)
        return [np.nan if fit is None else float(np.log(fit.at(chance))) for chance in CHANCES]

    spread = jackknife(units, estimate)
    numbers = []
    for place in range(len(CHANCES)):
        number = spread.number(Scale.LOG, place, iid=printed[place] if printed else None)
        # METR's interval is labelled with its method: it does not treat runs as independent.
        number = replace(number, iid_label=BOOTSTRAP)
        if number.value is None:
            note = "the estimate is too large to be shown"
            if whole.slope >= 0:
                note = RISES
            number = Number(None, tasks=units.task_count, rows=len(timed.rows), note=note)
        numbers.append(within_tasks(number, float(timed.minutes.max())))
    return numbers


def within_tasks(number: Number, longest: float) -> Number:
    """Return a horizon in minutes; beyond the longest task, it is only reported as "above"."""
    words = f"above {value_words(longest)} minutes, the longest task"
    if number.value is not None and number.value > longest:
        begins = ""
        if number.low is not None and number.low <= longest:
            begins = f"; the interval begins at {value_words(number.low)}"
        return replace(number, value=None, low=None, high=None, iid=None, note=words + begins)
    if number.high is not None and number.high > longest:
        number = replace(number, high=longest, above=True)
    if number.iid is not None and number.iid[1] > longest:
        note = (
            f"the interval of the {number.iid_label} begins at {value_words(number.iid[0])} and ends {words}"
        )
        number = replace(number, iid=None, note="; ".join(filter(None, (number.note, note))))
    return number


def _cell(number: Number) -> Number | str:
    """Return the cell of a horizon, in words if it is only known to be above the longest task."""
    beyond = number.value is None and number.note.startswith("above ")
    return number.note.partition(" minutes")[0] if beyond else number


@dataclass(frozen=True)
class MeasuredMinutes:
    """The human minutes of tasks as distributions, with the tasks' ids in the order of their numbers."""

    tasks: tuple[str, ...]
    minutes: HumanMinutes
    attempts: int

    @classmethod
    def of(cls, data: StudyData, found: Sequence[PooledRows]) -> MeasuredMinutes | None:
        """Return the minutes of people without assistance; None if too few are solved, or no model fits."""
        rows = Times.of(unassisted(data, found)).rows
        solved = np.array([row.solved for row in rows], dtype=bool)
        if solved.sum() < LEAST_SOLVED_OF_TIMES:
            return None
        minutes = HumanMinutes.of(Units.of(rows), log_minutes(rows), solved)
        names = tuple(sorted({row.task for row in rows}))
        return None if minutes is None else cls(names, minutes, len(rows))

    def runs(self, rows: Sequence[AttemptRow]) -> tuple[list[AttemptRow], Runs]:
        """Return a model's rows at these tasks, and their counts by task."""
        mine = [row for row in rows if row.task in self.tasks]
        places = np.array([self.tasks.index(row.task) for row in mine], dtype=np.int64)
        weights = run_weights([row.task for row in mine], [row.source for row in mine])
        solved = np.array([float(row.solved) for row in mine])
        tasks = np.unique(places)
        of_tasks, runs, total = (
            np.bincount(places, of)[tasks].astype(float) for of in (solved, np.ones(len(mine)), weights)
        )
        return mine, Runs(tasks, of_tasks, runs, total)


def _add_measured(
    found: FindingsBuilder,
    table: TableBuilder,
    label: str,
    measured: MeasuredMinutes,
    rows: Sequence[AttemptRow],
) -> list[Mark]:
    """Add a model's horizons with human minutes as distributions; return the marks of its plot, if any."""
    mine, runs = measured.runs(rows)
    solved = len(solved_of(mine))
    needs = (
        ("tasks with human minutes", LEAST_TASKS_OF_HORIZON, tasks_of(mine)),
        ("solved run", 1, solved),
        ("run not solved", 1, len(mine) - solved),
    )
    if found.too_few(f"The horizon of {label} ({DISTRIBUTIONS})", *needs):
        return []
    marks: list[Mark] = []
    for name, (link, penalty) in FITS.items():
        (slope, intercept), spread = runs.spread(measured.minutes, CHANCES, link, penalty)
        if not np.isfinite(slope):
            continue
        numbers = []
        for place in range(len(CHANCES)):
            number = spread.number(Scale.LOG, place, rows=measured.attempts + len(mine))
            if number.value is None:
                number = replace(number, low=None, high=None, note=RISES)
            numbers.append(within_tasks(number, measured.minutes.longest))
        p50, p80 = numbers
        found.numbers_of(f"{label}/{DISTRIBUTIONS}/{name}", {"p50": p50, "p80": p80})
        table.row(label, DISTRIBUTIONS, name, float(slope), float(intercept), _cell(p50), _cell(p80))
        if not marks:
            fit = HorizonFit(float(slope), float(intercept))
            minutes = {measured.tasks[task]: float(measured.minutes.minutes[task]) for task in runs.tasks}
            marks = _marks(label, Timed.of(mine, minutes), fit)
    return marks


def _marks(label: str, timed: Timed, fit: HorizonFit | None = None) -> list[Mark]:
    """Return the marks of a plot: the curve of a fit, and the share solved in each bucket of minutes.

    Without a fit, the curve is METR's. Empty if no curve can be fitted.
    """
    fit = fit or timed.fit(np.ones(len(timed.rows), dtype=bool))
    if fit is None:
        return []
    x = np.geomspace(timed.minutes.min(), timed.minutes.max(), 50)
    y = 1 / (1 + np.exp(-(fit.intercept + fit.slope * np.log2(x))))
    points = []
    for low, high in pairwise(BUCKETS):
        inside = (timed.minutes >= low) & (timed.minutes < high)
        if inside.any():
            points.append((float(np.sqrt(low * high)), float(timed.scores[inside].mean())))
    across, up = tuple(x for x, _ in points), tuple(y for _, y in points)
    return [Curve(label, tuple(x.tolist()), tuple(y.tolist())), Points(label, across, up)]
