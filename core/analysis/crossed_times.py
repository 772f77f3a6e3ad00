"""Regression of censored log times with random effects of tasks and persons: the model of ratios of times.

The model is ln t = x b + u_task + v_person + sigma e, in which an attempt that did not solve its task is
censored at its time; u, v and e are independent and normal. exp(b) is the ratio of times for one unit of x.
Estimates maximise the joint likelihood of b, sigma, u and v; the ratios of the variances are chosen from a
grid, by Laplace's approximation to the restricted likelihood. Without censoring these are the best linear
unbiased estimates, and the likelihood is exact. An attempt counts even if nobody else tried its task, or if
nobody solved it.

Many fits, such as those without each person and each task, are computed as one batch of arrays, whose first
axis is the fit.

Sources: Olsen, Note on the uniqueness of the maximum likelihood estimator for the Tobit model, Econometrica
46(5), 1978; Breslow & Clayton, Approximate inference in generalized linear mixed models, JASA 88(421), 1993.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import log_ndtr

from gistpoint.core.analysis.contrast import VarianceRatios
from gistpoint.core.analysis.intervals import (
    NO_PERSON,
    Floats,
    Integers,
    Kept,
    Spread,
    Units,
    jackknife_of_fits,
)

GRID = (0.5, 3.0, 20.0, 1e4)
"""Candidates for the variance of attempts divided by that of tasks or persons; 1e4 means infinity."""
FINER = ((0.4, 1.0, 2.5), (0.63, 1.0, 1.6))
"""Factors by which the best pair is multiplied, for finer grids around it."""
_ROUNDS = 50
_HALVINGS = 20
_TOLERANCE = 1e-12
"""The gain in log-likelihood, for each row, below which a fit has converged."""
_UNCERTAIN = 20.0
"""A standard error of an effect, in units of sigma, that is reached only by an infinite effect."""
_LEAST_SIGMA = 1e-6
"""The standard deviation of attempts, in the outcome's unit, below which the outcome counts as constant."""
_HALF_LOG_2_PI = 0.9189385332046727


@dataclass(frozen=True)
class CrossedFits:
    """A batch of fits; where a fit was impossible, its effects, sigma and evidence are NaN."""

    columns: Floats
    """The effects of the columns, as (fits, columns)."""
    persons: Floats
    """The effects of persons, as (fits, persons)."""
    tasks: Floats
    """The effects of tasks, as (fits, tasks)."""
    sigma: Floats
    covariance: Floats
    """The covariance of the columns' effects, with tasks and persons as random: (fits, columns, columns)."""
    task_errors: Floats
    """The standard error of each task's effect, given all other parameters."""
    evidence: Floats
    """The logarithm of the restricted likelihood, by Laplace's approximation."""
    at: Floats
    """The point where another fit of the same attempts can start."""


@dataclass(frozen=True)
class TimeEffects:
    """Linear combinations of the effects on ln t, with their variances."""

    spread: Spread
    errors: Floats
    """Standard errors by the model."""
    sigma: float


def effects_on_times(
    units: Units, x: Floats, log_times: Floats, solved: Kept, sums: Floats, *, interval: bool = True
) -> TimeEffects | None:
    """Return the combinations `sums`, as (combinations, columns), of the effects of the columns `x`.

    The interval is the jackknife's with the model's variance as its floor and fixed ratios of variances
    (decision 160). Without `interval`, no refits are made. The result is None if the model can't be fitted,
    for example because an effect is infinite or nothing varies.
    """
    given = (units.persons, units.tasks, x, log_times, solved, sums)
    key = (*((array.shape, array.dtype.char, array.tobytes()) for array in given), interval)
    if key not in _KNOWN:
        if len(_KNOWN) >= _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[key] = _effects(units, x, log_times, solved, sums, interval=interval)
    return _KNOWN[key]


_MOST_KNOWN = 32
_KNOWN: dict[Hashable, TimeEffects | None] = {}
"""The most recent results, by data.

Each takes a third of a second, and a report needs the same ratio in several analyses: as declared, by the
tests alone, and under decisions that change no attempt.
"""


def _effects(
    units: Units, x: Floats, log_times: Floats, solved: Kept, sums: Floats, *, interval: bool
) -> TimeEffects | None:
    times = CrossedTimes.of(units, x, log_times, solved)
    found = times.likeliest()
    if found is None:
        return None
    ratios, fit = found
    full, by_model = sums @ fit.columns[0], np.diag(sums @ fit.covariance[0] @ sums.T)
    # If all times are equal, sigma shrinks towards 0 with any ratios, until the steps run out or the numbers
    # underflow.
    if not np.isfinite([*full, *by_model]).all() or not fit.sigma[0] > _LEAST_SIGMA:
        return None
    if units.no_interval or not interval:
        unknown = np.full_like(full, np.nan)
        spread = Spread(full, unknown, unknown, unknown, units, interval)
        return TimeEffects(spread, np.sqrt(by_model), float(fit.sigma[0]))

    def refitted(kept: Kept) -> Floats:
        return times.fits([ratios], kept, fit.at[0]).columns @ sums.T

    changes = changes_without_each(times, ratios, fit) @ sums.T
    by_rows = (len(changes) - 1) / len(changes) * (changes**2).sum(axis=0)
    spread = jackknife_of_fits(units, full, refitted, by_rows, by_model)
    return TimeEffects(spread, np.sqrt(by_model), float(fit.sigma[0]))


@dataclass(frozen=True)
class CrossedTimes:
    """Log times of attempts with the columns of a regression; persons and tasks are numbered without gaps."""

    x: Floats
    """The columns, with the constant: (attempts, columns)."""
    y: Floats
    solved: Kept
    persons: Integers
    """The number of each attempt's person; rows of models have the number after the last person's."""
    tasks: Integers
    person_count: int
    task_count: int

    @classmethod
    def of(cls, units: Units, x: Floats, log_times: Floats, solved: Kept) -> CrossedTimes:
        """Return the data of attempts; `x` contains the constant, and has a row for each attempt."""
        people = units.person_count
        persons = np.searchsorted(units.person_numbers, units.persons)
        persons = np.where(units.persons == NO_PERSON, people, persons)
        tasks = np.searchsorted(units.task_numbers, units.tasks)
        return cls(x, log_times, solved, persons, tasks, people, units.task_count)

    def likeliest(
        self, finer: Sequence[Sequence[float]] = FINER
    ) -> tuple[VarianceRatios, CrossedFits] | None:
        """Return the ratios with the greatest evidence and their fit; None if no fit is possible."""
        pairs = [VarianceRatios(*pair) for pair in product(GRID, GRID if self.person_count else GRID[-1:])]
        start, ratios = None, pairs[0]
        for steps in (*finer, (1.0,)):
            found = self.fits(pairs, start=start)
            if not np.isfinite(found.evidence).any():
                return None
            best = int(np.nanargmax(found.evidence))
            ratios, start = pairs[best], found.at[best]
            pairs = [
                VarianceRatios(ratios.task * one, ratios.person * other)
                for one, other in product(steps, steps)
            ]
        return ratios, self.fits([ratios], start=start)

    def fits(
        self,
        ratios: Sequence[VarianceRatios],
        kept: NDArray[np.bool_] | None = None,
        start: Floats | None = None,
    ) -> CrossedFits:
        """Return a fit for each pair of ratios, by Newton's method from `start`.

        `kept`, an array of shape (fits, attempts), marks the attempts that each fit uses; a single pair of
        ratios then applies to all fits. Without `kept`, every fit uses all attempts; without `start`, a
        least-squares fit is the start.
        """
        count = len(ratios) if kept is None else len(kept)
        rows = np.ones((count, len(self.y)), dtype=bool) if kept is None else kept
        ridges = np.broadcast_to(np.array(ratios, dtype=float), (count, 2))
        batch = _Batch(self, np.ascontiguousarray(rows.T, dtype=float), ridges[:, 0], ridges[:, 1])
        at = np.repeat((self._start() if start is None else start)[:, None], count, axis=1)
        with np.errstate(all="ignore"):
            return batch.climb(at)

    @cached_property
    def design(self) -> _Design:
        """The data shared by all fits of these attempts."""
        return _Design(self)

    def _start(self) -> Floats:
        plain = np.linalg.lstsq(self.x, self.y, rcond=None)[0]
        spread = max(float(np.std(self.y - self.x @ plain)), 0.1)
        return np.concatenate([plain / spread, [1 / spread], np.zeros(self.person_count + self.task_count)])


class _GroupedAttempts:
    """The persons or the tasks of attempts, with sums over the attempts of each."""

    def __init__(self, places: Integers, count: int) -> None:
        """`places` contains the number of each attempt's person or task, or `count` if it has none."""
        self.places, self.count = places, count
        self.indicators = _indicators(places, count)

    def of_rows(self, values: Floats) -> Floats:
        """Return the value of each attempt's person or task, along the first axis; 0 if it has none."""
        return np.concatenate([values, np.zeros((1, *values.shape[1:]))])[self.places]


class _Design:
    """The data shared by all fits of the same attempts.

    Whichever of persons and tasks are more numerous are eliminated from the equations, because their block is
    diagonal and the cost of a step grows with the cube of the number that remains.
    """

    def __init__(self, rows: CrossedTimes) -> None:
        self.front = np.hstack([rows.x, -rows.y[:, None]])
        self.columns = rows.x.shape[1]
        self.persons = _GroupedAttempts(rows.persons, rows.person_count)
        self.tasks = _GroupedAttempts(rows.tasks, rows.task_count)
        self.persons_left = rows.person_count <= rows.task_count
        sides = (self.persons, self.tasks)
        self.left, self.gone = sides if self.persons_left else sides[::-1]
        self.width = self.front.shape[1] + self.left.count
        cells = self.left.places * (self.gone.count + 1) + self.gone.places
        self.cells = _indicators(cells, self.left.count * (self.gone.count + 1))
        self.solved, self.lost = np.flatnonzero(rows.solved), np.flatnonzero(~rows.solved)
        # Weighted by the attempts, the products of a row's columns add up to the columns' equations.
        self.pairs = (self.front[:, :, None] * self.front[:, None, :]).reshape(len(rows.y), -1)

    def dense(self) -> Floats:
        """Return the columns, except the one for 1 / sigma, and the indicators of the side that remains."""
        return np.hstack([self.front[:, : self.columns], self.left.of_rows(np.eye(self.left.count))])


def _indicators(places: Integers, count: int) -> csr_array:
    """Return the sums over the attempts at each place below `count`, as a matrix of zeros and ones."""
    known = np.flatnonzero(places < count)
    shape = (count, len(places))
    return csr_array((np.ones(len(known)), (places[known], known)), shape=shape)  # type: ignore[no-untyped-call]


class _Equations(NamedTuple):
    """The equations of a Newton step, with one side eliminated: the first axis is the fit."""

    reduced: Floats
    right: Floats
    mixed: Floats
    diagonal: Floats
    slope: Floats
    of_gone: Floats

    def solved(self, columns: int) -> tuple[Floats, Floats]:
        """Return the step, and the first rows and columns of the inverse of `reduced`."""
        count, width = self.right.shape
        asked = np.zeros((count, width, columns + 2))
        asked[:, :, 0] = self.right
        asked[:, np.arange(columns + 1), np.arange(1, columns + 2)] = 1.0
        found = _solved(self.reduced, asked)
        front = found[:, :, 0]
        step = np.hstack([front, (self.of_gone - (front[:, None, :] @ self.mixed)[:, 0]) / self.diagonal])
        return step, found[:, : columns + 1, 1:]


class _Batch:
    """The penalised likelihoods of a batch of fits: b, u and v divided by sigma, and 1 / sigma.

    In these parameters, each likelihood is concave (Olsen 1978), and u and v have ridge penalties. The last
    axis of the arrays is the fit, so that the sums over attempts are over whole rows of memory.
    """

    def __init__(self, rows: CrossedTimes, kept: Floats, task_ridge: Floats, person_ridge: Floats) -> None:
        self.rows, self.kept, self.design = rows, kept, rows.design
        self.task_ridge, self.person_ridge = task_ridge, person_ridge
        # A flat prior on b, rather than on b / sigma, makes the likelihood the restricted one.
        self.free = kept[rows.solved].sum(axis=0) - rows.x.shape[1]
        ridges = (person_ridge, task_ridge)
        left, gone = ridges if self.design.persons_left else ridges[::-1]
        self.ridge = np.zeros((self.design.width + self.design.gone.count, len(task_ridge)))
        self.ridge[self.design.columns + 1 : self.design.width] = left
        self.ridge[self.design.width :] = gone

    def only(self, chosen: Kept) -> _Batch:
        """Return the batch of the chosen fits."""
        return _Batch(self.rows, self.kept[:, chosen], self.task_ridge[chosen], self.person_ridge[chosen])

    def left_over(self, at: Floats) -> Floats:
        """Return the scaled residuals (y - fitted) / sigma, as (attempts, fits)."""
        design = self.design
        columns = design.front.shape[1]
        fitted = design.front @ at[:columns]
        fitted += design.left.of_rows(at[columns : design.width])
        fitted += design.gone.of_rows(at[design.width :])
        return -fitted

    def value(self, at: Floats, left: Floats, logs: Floats) -> Floats:
        """Return the penalised log-likelihood of each fit; minus infinity where 1 / sigma is not positive.

        `left` are the residuals at the point, and `logs` the logarithms of the probabilities of censored
        attempts.
        """
        design, inverse = self.design, at[self.design.columns]
        terms = np.empty_like(left)
        terms[design.solved] = -0.5 * left[design.solved] ** 2 - _HALF_LOG_2_PI
        terms[design.lost] = logs
        value = (self.kept * terms).sum(axis=0) + self.free * np.log(inverse)
        value -= (self.ridge * at**2).sum(axis=0) / 2
        return np.where((inverse > 0) & np.isfinite(value), value, -np.inf)

    def point(self, at: Floats) -> _Point:
        """Return a point with the data for its value and for the equations of the step from it."""
        left = self.left_over(at)
        # Computing the distribution's tail is slowest, so it is computed only for unsolved attempts.
        logs = log_ndtr(-left[self.design.lost])
        return _Point(at, left, logs, self.value(at, left, logs))

    def pull_and_weight(self, point: _Point) -> tuple[Floats, Floats]:
        """Return the slope and negative curvature of the log-likelihood in each attempt's fitted value."""
        lost = self.design.lost
        left = point.left[lost]
        mills = np.exp(-0.5 * left**2 - _HALF_LOG_2_PI - point.logs)
        pull, weight = point.left.copy(), np.ones_like(point.left)
        pull[lost] = mills
        weight[lost] = mills * (mills - left)
        return self.kept * pull, self.kept * weight

    def equations(self, point: _Point) -> _Equations:
        """Return the equations of the Newton step from a point."""
        design, at = self.design, point.at
        columns, fits = design.front.shape[1], at.shape[1]
        pull, weight = self.pull_and_weight(point)
        slope = np.concatenate(
            [design.front.T @ pull, design.left.indicators @ pull, design.gone.indicators @ pull]
        )
        slope -= self.ridge * at
        slope[columns - 1] += self.free / at[columns - 1]
        sums = np.concatenate([np.ones((len(weight), 1)), design.front], axis=1)[:, :, None]
        weighted = (sums * weight[:, None, :]).reshape(len(weight), -1)
        of_left = (design.left.indicators @ weighted).reshape(-1, columns + 1, fits)
        of_gone = (design.gone.indicators @ weighted).reshape(-1, columns + 1, fits)
        cells = (design.cells @ weight).reshape(design.left.count, design.gone.count + 1, fits)
        rest = np.zeros((fits, design.width, design.width))
        rest[:, :columns, :columns] = (weight.T @ design.pairs).reshape(fits, columns, columns)
        rest[:, columns:, :columns] = of_left[:, 1:].transpose(2, 0, 1)
        rest[:, :columns, columns:] = of_left[:, 1:].transpose(2, 1, 0)
        # No attempt belongs to two persons or to two tasks, so both blocks are diagonal.
        places = np.arange(columns, design.width)
        rest[:, places, places] = of_left[:, 0].T
        rest[:, np.arange(design.width), np.arange(design.width)] += self.ridge[: design.width].T
        rest[:, columns - 1, columns - 1] += self.free / at[columns - 1] ** 2
        mixed = np.empty((fits, design.width, design.gone.count))
        mixed[:, :columns] = of_gone[:, 1:].transpose(2, 1, 0)
        mixed[:, columns:] = cells[:, :-1].transpose(2, 0, 1)
        diagonal = (of_gone[:, 0] + self.ridge[design.width :]).T
        through = mixed / diagonal[:, None, :]
        reduced = rest - through @ mixed.transpose(0, 2, 1)
        front, gone = slope[: design.width].T, slope[design.width :].T
        right = front - (through @ gone[:, :, None])[:, :, 0]
        return _Equations(reduced, right, mixed, diagonal, slope.T, gone)

    def climb(self, at: Floats) -> CrossedFits:
        """Return the fits that Newton's method reaches."""
        found = _FitResults(self, at)
        going = np.flatnonzero(self.free > 1)
        batch = self.only(self.free > 1)
        point = batch.point(at[:, going])
        for _ in range(_ROUNDS):
            if not len(going):
                break
            equations = batch.equations(point)
            step, inverse = equations.solved(self.design.columns)
            gain = (step * equations.slope).sum(axis=1)
            done = gain < _TOLERANCE * len(self.rows.y)
            found.add(batch, going, done, point, equations, inverse)
            # Finished and impossible fits are left out of further rounds.
            left = ~done & np.isfinite(gain)
            going, step = going[left], step[left].T
            if not left.all():
                batch, point = batch.only(left), point.only(left)
            point = batch.moved(point, step)
        return found.fits()

    def moved(self, point: _Point, step: Floats) -> _Point:
        """Return the points after a step, halved until it raises the likelihood."""
        there = point
        worse = np.zeros(len(point.value), dtype=bool)
        for _ in range(_HALVINGS):
            there = self.point(point.at + step)
            worse = ~(there.value >= point.value)
            if not worse.any():
                return there
            step = np.where(worse, step / 2, step)
        # If no step length raises the likelihood, the point is at the limit of rounding.
        return _Point(*(np.where(worse, old, new) for old, new in zip(point, there, strict=True)))

    def changes(self, at: Floats) -> Floats:
        """Return the changes of one fit's column effects without each attempt, by one Newton step.

        Sigma is held fixed. Without censoring, the changes are exact. The shape is (attempts, columns).
        """
        point = self.point(at.T)
        equations = self.equations(point)
        pull, weight = self.pull_and_weight(point)
        columns = self.design.columns
        effects = np.delete(np.arange(self.design.width), columns)
        inverse = np.linalg.inv(equations.reduced[0][np.ix_(effects, effects)])
        gone = self.design.gone
        through = equations.mixed[0, effects] / equations.diagonal[0]
        design = self.design.dense() - gone.of_rows(through.T)
        moved = design @ inverse
        own = gone.of_rows(1 / equations.diagonal[0])
        leverage = weight[:, 0] * ((moved * design).sum(axis=1) + own)
        change = -moved[:, :columns] * (pull[:, 0] / (1 - leverage))[:, None] / at[0, columns]
        return np.asarray(change, dtype=float)

    def own_changes(self, at: Floats) -> Floats:
        """Return, by attempt, the change of its task's effect without it, with all else fixed."""
        pull, weight = self.pull_and_weight(self.point(at.T))
        tasks = self.design.tasks
        own = tasks.of_rows(tasks.indicators @ weight + self.task_ridge) - weight
        return np.asarray((-pull / own)[:, 0] / at[0, self.design.columns], dtype=float)


class _Point(NamedTuple):
    """A point of each fit, as (effects, fits), with its residuals and its value."""

    at: Floats
    left: Floats
    logs: Floats
    value: Floats

    def only(self, chosen: Kept) -> _Point:
        """Return the points of the chosen fits."""
        return _Point(*(array[..., chosen] for array in self))


class _FitResults:
    """The results of a batch of fits, which are NaN until a fit is done."""

    def __init__(self, batch: _Batch, at: Floats) -> None:
        self._rows, self._design, self._at = batch.rows, batch.design, at.copy()
        count, columns = at.shape[1], batch.design.columns
        self._effects = np.full((count, len(at)), np.nan)
        self._sigma, self._evidence = np.full(count, np.nan), np.full(count, np.nan)
        self._covariance = np.full((count, columns, columns), np.nan)
        self._task_errors = np.full((count, batch.design.tasks.count), np.nan)

    def add(
        self,
        batch: _Batch,
        going: Integers,
        done: Kept,
        point: _Point,
        equations: _Equations,
        inverse: Floats,
    ) -> None:
        """Add the fits that are done; `going` contains the number of each fit in the batch."""
        self._at[:, going] = point.at
        if not done.any():
            return
        design, columns = self._design, self._design.columns
        at, inverse = point.at.T[done], inverse[done]
        scale = 1 / at[:, columns]
        # The delta method: derivatives of b with respect to b / sigma and 1 / sigma.
        turn = np.zeros((len(at), columns, columns + 1))
        turn[:, :, :columns] = np.eye(columns) * scale[:, None, None]
        turn[:, :, columns] = -at[:, :columns] * scale[:, None] ** 2
        covariance = turn @ inverse @ turn.transpose(0, 2, 1)
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        reach = (variances * (self._rows.x**2).max(axis=0)).max(axis=1)
        possible = (variances > 0).all(axis=1) & (reach <= (_UNCERTAIN * scale) ** 2)
        # Laplace's approximation integrates over b, u and v, at the estimate of sigma.
        diagonal = equations.diagonal[done]
        others = np.delete(np.arange(design.width), columns)
        effects = equations.reduced[done][:, others][:, :, others]
        log_determinant = np.linalg.slogdet(effects)[1] + np.log(diagonal).sum(axis=1)
        prior = self._rows.person_count * np.log(batch.person_ridge[done])
        prior += self._rows.task_count * np.log(batch.task_ridge[done])
        evidence = point.value[done] + (prior - log_determinant) / 2
        _, weight = batch.pull_and_weight(point)
        of_tasks = (design.tasks.indicators @ weight[:, done] + batch.task_ridge[done]).T
        places = going[done]
        self._effects[places] = np.where(possible[:, None], at * scale[:, None], np.nan)
        self._sigma[places] = np.where(possible, scale, np.nan)
        self._evidence[places] = np.where(possible, evidence, np.nan)
        self._covariance[places] = covariance
        self._task_errors[places] = scale[:, None] / np.sqrt(of_tasks)

    def fits(self) -> CrossedFits:
        """Return the fits."""
        design = self._design
        first = self._effects[:, design.columns + 1 : design.width]
        second = self._effects[:, design.width :]
        persons, tasks = (first, second) if design.persons_left else (second, first)
        return CrossedFits(
            self._effects[:, : design.columns],
            persons,
            tasks,
            self._sigma,
            self._covariance,
            self._task_errors,
            self._evidence,
            self._at.T,
        )


def changes_without_each(rows: CrossedTimes, ratios: VarianceRatios, fit: CrossedFits) -> Floats:
    """Return the changes of the columns' effects if each attempt is left out in turn: (attempts, columns)."""
    return _batch_of_one(rows, ratios).changes(fit.at[:1])


def own_changes(rows: CrossedTimes, ratios: VarianceRatios, fit: CrossedFits) -> Floats:
    """Return, by attempt, the change of its task's effect without the attempt, with all else fixed."""
    return _batch_of_one(rows, ratios).own_changes(fit.at[:1])


def _batch_of_one(rows: CrossedTimes, ratios: VarianceRatios) -> _Batch:
    return _Batch(rows, np.ones((len(rows.y), 1)), np.array([ratios.task]), np.array([ratios.person]))


def _solved(matrices: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrices, right), dtype=float)
    except np.linalg.LinAlgError:
        return np.asarray(_inverted(matrices) @ right, dtype=float)


def _inverted(matrices: Floats) -> Floats:
    """Return the inverses of matrices; NaN for a singular matrix."""
    try:
        return np.asarray(np.linalg.inv(matrices), dtype=float)
    except np.linalg.LinAlgError:
        found = np.full_like(matrices, np.nan)
        for place, matrix in enumerate(matrices):
            if np.linalg.cond(matrix) < 1 / np.finfo(float).eps:
                found[place] = np.linalg.inv(matrix)
        return found
