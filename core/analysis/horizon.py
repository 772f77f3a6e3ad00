"""The time horizon of a model: the human time of tasks that it solves half of the time, as METR fits it.

The fit minimises (1 / 0.1) * sum of w * loss + b1 squared / 2, where the loss is the logistic loss of success
on log2 of human minutes. The weights w are 1 / (runs of the task) * 1 / sqrt(tasks of the family), scaled to
a sum of 1; the family is the library.

METR treats human minutes as known. The recommended horizon treats them as estimates (`measured_horizon`);
METR's choices are printed next to it. Horizons and bounds below the shortest task or above the longest are
not printed (decision 161).

Sources: Kwa et al., Measuring AI ability to complete long tasks (2025); METR's `eval-analysis-public`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import expit

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.distinct import DistinctRows
from gistpoint.core.analysis.findings import Curve, Findings, Mark, Number, Plot, Points
from gistpoint.core.analysis.intervals import Floats, Integers, Kept, Scale, Units, jackknife_of_fits
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
_ROUNDS = 100
_LEAST_STEP = 1e-12
_RUNAWAY = 1e3
"""A coefficient that is reached only if the maximum is at infinity."""
DISTRIBUTIONS = "distributions"
"""The name of human minutes that are treated as estimates."""
FITS = {
    "logit, not penalised": (HorizonLink.LOGIT, 0.0),
    "probit, not penalised": (HorizonLink.PROBIT, 0.0),
    "logit, penalised": (HorizonLink.LOGIT, PENALTY),
}
"""The fits with distributions of human minutes, each as a link and a penalty; the first is recommended."""
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
    slope, intercept = fit_horizons(minutes, scores, weights[None], penalty)[0].tolist()
    return HorizonFit(slope, intercept) if np.isfinite(slope) else None


def fit_horizons(minutes: Floats, scores: Floats, weights: Floats, penalty: float = PENALTY) -> Floats:
    """Return the slope and intercept of each fit, or NaN for both where `fit_horizon` returns None.

    The row `weights[i]` contains the weight of each run in fit i. All fits are computed as one batch.
    """
    distinct = DistinctRows(np.column_stack([minutes, scores]))
    totals = distinct.sums(weights)
    sums = totals.sum(axis=1, keepdims=True)
    found = np.full((len(weights), 2), np.nan)
    going = np.flatnonzero(sums[:, 0] > 0)
    w = totals[going] / sums[going]
    x = np.column_stack([np.log2(distinct.rows[:, 0]), np.ones(len(distinct.rows))])
    scale, ridge = (1 / penalty, 1.0) if penalty else (1.0, 0.0)
    climb = _Climb(x, distinct.rows[:, 1], scale, np.array([ridge, 0.0]))
    at, left = climb.from_zero(w)
    # Because of rounding, the steps may never get below the loop's bound, but they come close to it.
    reached = left <= 1e-6 * np.maximum(1.0, np.abs(at).max(axis=1, initial=0.0))
    found[going[reached]] = at[reached]
    return found


@dataclass(frozen=True)
class _Climb:
    """Newton's method for a batch of weighted regressions of scores."""

    x: Floats
    """The log2 of minutes, and 1, of each distinct run."""
    scores: Floats
    scale: float
    ridge: Floats

    def from_zero(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients reached with weights `w`, as (fits, runs), and the size of the last step.

        The step size is NaN where the maximum is at infinity.
        """
        at, left = np.zeros((len(w), 2)), np.full(len(w), np.inf)
        value = self._loss(w, at)
        going = np.arange(len(w))
        for _ in range(_ROUNDS):
            step = self._step(w[going], at[going])
            left[going] = np.abs(step).max(axis=1)
            unfinished = ~(left[going] < _LEAST_STEP) & np.isfinite(left[going])
            going, step = going[unfinished], step[unfinished]
            if not len(going):
                break
            at[going], value[going] = self._lower(w[going], at[going], step, value[going])
            # If times separate successes from failures, the maximum is at infinity.
            runaway = np.abs(at[going]).max(axis=1) > _RUNAWAY
            left[going[runaway]] = np.nan
            going = going[~runaway]
        return at, left

    def _loss(self, w: Floats, at: Floats) -> Floats:
        logits = at @ self.x.T
        losses = (w * (np.logaddexp(0, logits) - self.scores * logits)).sum(axis=1)
        return np.asarray(self.scale * losses + at**2 @ self.ridge / 2, dtype=float)

    def _step(self, w: Floats, at: Floats) -> Floats:
        chance = expit(at @ self.x.T)
        slope = self.scale * (w * (chance - self.scores)) @ self.x + self.ridge * at
        pairs = (self.x[:, :, None] * self.x[:, None, :]).reshape(len(self.x), -1)
        curve = self.scale * (w * chance * (1 - chance)) @ pairs + np.diag(self.ridge).ravel()
        a, b, c = curve[:, 0], curve[:, 1], curve[:, 3]
        with np.errstate(divide="ignore", invalid="ignore"):
            raised = (
                np.column_stack([b * slope[:, 1] - c * slope[:, 0], b * slope[:, 0] - a * slope[:, 1]])
                / (a * c - b * b)[:, None]
            )
        return np.asarray(raised, dtype=float)

    def _lower(self, w: Floats, at: Floats, step: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Return the points after steps, halved until they do not raise the loss, and their losses."""
        there = at + step
        losses = self._loss(w, there)
        while (worse := (losses > value) & (np.abs(step).max(axis=1) > _LEAST_STEP)).any():
            step[worse] /= 2
            there[worse] = at[worse] + step[worse]
            losses[worse] = self._loss(w[worse], there[worse])
        return there, losses


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

    @cached_property
    def whole(self) -> Kept:
        """All runs."""
        return np.ones(len(self.rows), dtype=bool)

    def fit(self, penalty: float = PENALTY) -> HorizonFit | None:
        """Return the fit of all runs; None if there is no single finite maximum."""
        return fit_horizon(self.minutes, self.scores, self.weights, penalty) if self.rows else None

    def logs(self, times: Integers | Kept, penalty: float = PENALTY) -> Floats:
        """Return the logarithms of the horizons at `CHANCES` of refits, as (refits, chances).

        `times` contains how often each refit uses each run, as (refits, runs); a run keeps its weight among
        all runs. The logarithms are finite even if the minutes overflow or are 0, and NaN where there is no
        horizon.
        """
        fits = fit_horizons(self.minutes, self.scores, times * self.weights, penalty)
        slopes, intercepts = fits[:, :1], fits[:, 1:]
        chances = np.array(CHANCES)
        with np.errstate(divide="ignore", invalid="ignore"):
            doublings = (np.log(chances / (1 - chances)) - intercepts) / slopes
        return np.where(slopes < 0, doublings * np.log(2), np.nan)


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
    # The order follows from names and scores, so that the order of the rows does not affect the draws
    # (decision 206).
    families = [
        [sorted(tasks[task], key=lambda place: timed.scores[place]) for task in sorted(tasks)]
        for _, tasks in sorted(tree.items())
    ]
    rows = len(timed.rows)
    times = np.array([np.bincount(_drawn_rows(families, draw), minlength=rows) for _ in range(draws)])
    with np.errstate(over="ignore"):
        found = np.exp(timed.logs(times))
    known = [of_chance[np.isfinite(of_chance)] for of_chance in found.T]
    return tuple(_middle(values) if len(values) > draws / 2 else None for values in known)


def _drawn_rows(families: Sequence[Sequence[Sequence[int]]], draw: np.random.Generator) -> list[int]:
    """Return the rows of one draw: families, then tasks of each, then runs of each, all with replacement."""
    rows: list[int] = []
    for family in draw.integers(len(families), size=len(families)):
        tasks = families[family]
        for task in draw.integers(len(tasks), size=len(tasks)):
            runs = tasks[task]
            # Drawing from a single run consumes no random number, so leaving the run out changes no other
            # draw.
            if len(runs) == 1:
                rows.append(runs[0])
            else:
                rows.extend(runs[run] for run in draw.integers(len(runs), size=len(runs)))
    return rows


def _middle(values: Floats) -> tuple[float, float]:
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
        fit = timed.fit(penalty)
        if fit is None:
            continue
        # The bootstrap requires a thousand refits, so it is computed only for the figure that papers print.
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

    full = timed.logs(timed.whole[None], penalty)[0]
    # A model's run is left out only together with its task, never with a person.
    spread = jackknife_of_fits(units, full, lambda kept: timed.logs(kept, penalty), np.zeros_like(full))
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
        numbers.append(within_tasks(number, float(timed.minutes.min()), float(timed.minutes.max())))
    return numbers


def within_tasks(number: Number, shortest: float, longest: float) -> Number:
    """Return a horizon in minutes; outside the range of the model's tasks, only the direction is reported.

    A horizon or a bound is "below" the shortest task that the model ran or "above" the longest.
    """

    def words(value: float) -> str:
        return _side_of_range(value, shortest, longest)

    def bound(value: float) -> str:
        return words(value).partition(" minutes")[0] or f"at {value_words(value)}"

    low, high = number.low, number.high
    if number.value is not None and (note := words(number.value)):
        if low is not None and number.value > longest >= low:
            note += f"; the interval begins {bound(low)}"
        if high is not None and number.value < shortest <= high:
            note += f"; the interval ends {bound(high)}"
        return replace(number, value=None, low=None, high=None, iid=None, note=note)
    if low is not None and low < shortest:
        number = replace(number, low=shortest, below=True)
    if high is not None and high > longest:
        number = replace(number, high=longest, above=True)
    return _with_iid_within(number, words)


def _with_iid_within(number: Number, words: Callable[[float], str]) -> Number:
    """Return a horizon, with a note in place of `iid` if that interval leaves the tasks, going by `words`."""
    if number.iid is None or not any(map(words, number.iid)):
        return number
    one, other = (words(end) or f"at {value_words(end)}" for end in number.iid)
    comma = "," if one.startswith("below ") else ""
    note = f"the interval of the {number.iid_label} begins {one}{comma} and ends {other}"
    return replace(number, iid=None, note="; ".join(filter(None, (number.note, note))))


def _side_of_range(minutes: float, shortest: float, longest: float) -> str:
    """Return on which side of the tasks' range minutes lie, in words; empty if they lie within the range."""
    if minutes < shortest:
        return f"below {value_words(shortest)} minutes, the shortest task"
    return f"above {value_words(longest)} minutes, the longest task" if minutes > longest else ""


def _cell(number: Number) -> Number | str:
    """Return the cell of a horizon, in words if only its side of the model's tasks is known."""
    if number.value is not None or not number.note.startswith(("above ", "below ")):
        return number
    side = number.note.partition(" minutes")[0]
    begins, ends = (
        number.note.partition(f"the interval {verb} ")[2].removeprefix("at ") for verb in ("begins", "ends")
    )
    if begins:
        return f"{side} [{begins}, {side}]"
    return f"{side} [{side}, {ends}]" if ends else side


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
        # A task that nobody solved is not short merely because an attempt at it stopped early.
        shortest = float(measured.minutes.minutes[runs.tasks].min())
        longest = float(measured.minutes.longest[runs.tasks].max())
        for place in range(len(CHANCES)):
            number = spread.number(Scale.LOG, place, rows=measured.attempts + len(mine))
            if number.value is None:
                number = replace(number, low=None, high=None, note=RISES)
            numbers.append(within_tasks(number, shortest, longest))
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
    fit = fit or timed.fit()
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
