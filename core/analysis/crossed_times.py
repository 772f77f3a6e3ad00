"""Regression of censored log times with random effects of tasks and persons: the model of ratios of times.

The model is ln t = x b + u_task + v_person + sigma e, in which an attempt that did not solve its task is
censored at its time; u, v and e are independent and normal. exp(b) is the ratio of times for one unit of x.
Estimates maximize the joint likelihood of b, sigma, u and v; the ratios of the variances are chosen from a
grid, by Laplace's approximation to the restricted likelihood. Without censoring these are the best linear
unbiased estimates, and the likelihood is exact. An attempt counts even if nobody else tried its task, or if
nobody solved it.

Many fits, such as those without each person and each task, are one batch of arrays: the first axis is the
fit.

Sources: Olsen, Note on the uniqueness of the maximum likelihood estimator for the Tobit model, Econometrica
46(5), 1978; Breslow & Clayton, Approximate inference in generalized linear mixed models, JASA 88(421), 1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import log_ndtr

from gistpoint.core.analysis.contrast import Ratios
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
"""Candidates for the ratio of the variance of attempts to that of tasks or persons; 1e4 means none."""
FINER = ((0.4, 1.0, 2.5), (0.63, 1.0, 1.6))
"""Factors of the best pair, for finer grids around it."""
_ROUNDS = 50
_HALVINGS = 20
_TOLERANCE = 1e-12
"""The gain in log-likelihood, for each row, below which a fit has converged."""
_UNCERTAIN = 20.0
"""A standard error of an effect, in units of sigma, that only an infinite effect reaches."""
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
    """The standard error of each task's effect, given everything else."""
    evidence: Floats
    """The logarithm of the restricted likelihood, by Laplace's approximation."""
    at: Floats
    """The point where the next fit can start: columns with 1 / sigma last, persons and tasks, over sigma."""


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
    (decision 160). Without `interval` nothing is refitted. None if the model can't be fitted, for example
    because an effect is infinite or nothing varies.
    """
    times = CrossedTimes.of(units, x, log_times, solved)
    found = times.likeliest()
    if found is None:
        return None
    ratios, fit = found
    full, by_model = sums @ fit.columns[0], np.diag(sums @ fit.covariance[0] @ sums.T)
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
    """Rows of models have the number after that of the last person."""
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

    def likeliest(self, finer: Sequence[Sequence[float]] = FINER) -> tuple[Ratios, CrossedFits] | None:
        """Return the ratios with the greatest evidence and their fit; None if none is possible."""
        pairs = [Ratios(*pair) for pair in product(GRID, GRID if self.person_count else GRID[-1:])]
        start, ratios = None, pairs[0]
        for steps in (*finer, (1.0,)):
            found = self.fits(pairs, start=start)
            if not np.isfinite(found.evidence).any():
                return None
            best = int(np.nanargmax(found.evidence))
            ratios, start = pairs[best], found.at[best]
            pairs = [Ratios(ratios.task * one, ratios.person * other) for one, other in product(steps, steps)]
        return ratios, self.fits([ratios], start=start)

    def fits(
        self, ratios: Sequence[Ratios], kept: NDArray[np.bool_] | None = None, start: Floats | None = None
    ) -> CrossedFits:
        """Return a fit for each pair of ratios, by Newton's method from `start`.

        `kept`, as (fits, attempts), has the rows of each fit; a single pair of ratios then applies to all
        fits.
        """
        count = len(ratios) if kept is None else len(kept)
        rows = np.ones((count, len(self.y)), dtype=bool) if kept is None else kept
        ridges = np.broadcast_to(np.array(ratios, dtype=float), (count, 2))
        batch = _Batch(self, rows.astype(float), ridges[:, 0], ridges[:, 1])
        at = np.tile(self._start() if start is None else start, (count, 1))
        with np.errstate(all="ignore"):
            return batch.climb(at)

    def _start(self) -> Floats:
        plain = np.linalg.lstsq(self.x, self.y, rcond=None)[0]
        spread = max(float(np.std(self.y - self.x @ plain)), 0.1)
        return np.concatenate([plain / spread, [1 / spread], np.zeros(self.person_count + self.task_count)])


class _Batch:
    """The penalised likelihoods of a batch of fits: b, u and v divided by sigma, and 1 / sigma.

    In these, each is concave (Olsen 1978), and u and v have ridge penalties.
    """

    def __init__(self, rows: CrossedTimes, kept: Floats, task_ridge: Floats, person_ridge: Floats) -> None:
        self.rows, self.kept = rows, kept
        self.task_ridge, self.person_ridge = task_ridge[:, None], person_ridge[:, None]
        count, people = len(rows.y), rows.person_count
        of_persons = np.zeros((count, people + 1))
        of_persons[np.arange(count), rows.persons] = 1.0
        self.front = np.hstack([rows.x, -rows.y[:, None], of_persons[:, :people]])
        self.of_tasks = np.zeros((count, rows.task_count))
        self.of_tasks[np.arange(count), rows.tasks] = 1.0
        places = rows.persons * rows.task_count + rows.tasks
        shape = ((people + 1) * rows.task_count, count)
        self.cells = csr_array((np.ones(count), (places, np.arange(count))), shape=shape)  # type: ignore[no-untyped-call]
        self.inverse_place = rows.x.shape[1]
        self.width = self.front.shape[1]
        # A flat prior on b, rather than on b / sigma, makes the likelihood the restricted one.
        self.free = (kept @ rows.solved) - rows.x.shape[1]
        self.ridge = np.zeros((len(kept), self.width))
        self.ridge[:, self.inverse_place + 1 :] = self.person_ridge

    def left(self, at: Floats) -> Floats:
        """Return the scaled residuals (y - fitted) / sigma, as (fits, attempts)."""
        return -(at[:, : self.width] @ self.front.T) - at[:, self.width :][:, self.rows.tasks]

    def value(self, at: Floats) -> Floats:
        """Return the penalised log-likelihood of each fit; minus infinity where 1 / sigma is not positive."""
        left, inverse = self.left(at), at[:, self.inverse_place]
        terms = np.where(self.rows.solved, -0.5 * left**2 - _HALF_LOG_2_PI, log_ndtr(-left))
        penalty = (self.ridge * at[:, : self.width] ** 2).sum(axis=1)
        penalty += (self.task_ridge * at[:, self.width :] ** 2).sum(axis=1)
        value = (self.kept * terms).sum(axis=1) + self.free * np.log(inverse) - penalty / 2
        return np.where((inverse > 0) & np.isfinite(value), value, -np.inf)

    def derivatives(self, at: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """Return the gradient and the negative Hessian, each in blocks, and the slope of each row.

        The blocks are front and tasks; and front, mixed and tasks.
        """
        left = self.left(at)
        mills = np.exp(-0.5 * left**2 - _HALF_LOG_2_PI - log_ndtr(-left))
        pull = self.kept * np.where(self.rows.solved, left, mills)
        weight = self.kept * np.where(self.rows.solved, 1.0, mills * (mills - left))
        slope = pull @ self.front - self.ridge * at[:, : self.width]
        slope[:, self.inverse_place] += self.free / at[:, self.inverse_place]
        of_tasks = pull @ self.of_tasks - self.task_ridge * at[:, self.width :]
        rest, mixed = self._products(weight)
        places = np.arange(self.width)
        rest[:, places, places] += self.ridge
        rest[:, self.inverse_place, self.inverse_place] += self.free / at[:, self.inverse_place] ** 2
        return slope, of_tasks, rest, mixed, weight @ self.of_tasks + self.task_ridge, pull

    def _products(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return the weighted products of the front's columns with each other, and with the tasks.

        Two persons have no attempt in common, so the block of persons is diagonal; that of persons and tasks
        has an entry for each attempt.
        """
        columns, people, tasks = self.inverse_place + 1, self.rows.person_count, self.rows.task_count
        weighted = self.front[:, :columns].T * weight[:, None, :]
        rest = np.zeros((len(weight), self.width, self.width))
        mixed = np.empty((len(weight), self.width, tasks))
        rest[:, :columns, :columns] = weighted @ self.front[:, :columns]
        rest[:, :columns, columns:] = weighted @ self.front[:, columns:]
        rest[:, columns:, :columns] = rest[:, :columns, columns:].transpose(0, 2, 1)
        places = np.arange(columns, self.width)
        rest[:, places, places] = weight @ self.front[:, columns:]
        mixed[:, :columns] = weighted @ self.of_tasks
        mixed[:, columns:] = (self.cells @ weight.T).T.reshape(len(weight), people + 1, tasks)[:, :people]
        return rest, mixed

    def climb(self, at: Floats) -> CrossedFits:
        """Return the fits that Newton's method reaches."""
        possible = self.free > 1
        value = self.value(at)
        done = ~possible
        for _ in range(_ROUNDS):
            slope, of_tasks, rest, mixed, diagonal, _ = self.derivatives(at)
            through = mixed / diagonal[:, None, :]
            reduced = rest - through @ mixed.transpose(0, 2, 1)
            right = slope - (through @ of_tasks[:, :, None])[:, :, 0]
            front = _solved(reduced, right)
            step = np.hstack([front, (of_tasks - (front[:, None, :] @ mixed)[:, 0]) / diagonal])
            gain = (step * np.hstack([slope, of_tasks])).sum(axis=1)
            possible &= np.isfinite(gain)
            done |= ~possible | (gain < _TOLERANCE * len(self.rows.y))
            if done.all():
                break
            at, value = self._moved(at, value, np.where(done[:, None], 0.0, step), done)
        return self._result(at, value, possible & done)

    def _moved(self, at: Floats, value: Floats, step: Floats, done: Kept) -> tuple[Floats, Floats]:
        """Return the points after a step, halved until it raises the likelihood, and their values."""
        there, moved, worse = at, value, done
        for _ in range(_HALVINGS):
            there = at + step
            moved = self.value(there)
            worse = ~done & ~(moved >= value)
            if not worse.any():
                break
            step = np.where(worse[:, None], step / 2, step)
        # If no step length raises the likelihood, the point is at the limit of rounding.
        return np.where(worse[:, None], at, there), np.where(worse, value, moved)

    def _result(self, at: Floats, value: Floats, possible: Kept) -> CrossedFits:
        columns = self.inverse_place
        _, _, rest, mixed, diagonal, _ = self.derivatives(at)
        reduced = rest - (mixed / diagonal[:, None, :]) @ mixed.transpose(0, 2, 1)
        inverse = _inverted(reduced)
        scale = 1 / at[:, columns]
        # The delta method: derivatives of b with respect to b / sigma and 1 / sigma.
        turn = np.zeros((len(at), columns, columns + 1))
        turn[:, :, :columns] = np.eye(columns) * scale[:, None, None]
        turn[:, :, columns] = -at[:, :columns] * scale[:, None] ** 2
        covariance = turn @ inverse[:, : columns + 1, : columns + 1] @ turn.transpose(0, 2, 1)
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        reach = (variances * (self.rows.x**2).max(axis=0)).max(axis=1)
        possible = possible & (variances > 0).all(axis=1) & (reach <= (_UNCERTAIN * scale) ** 2)
        # Laplace's approximation integrates over b, u and v, at the estimate of sigma.
        others = np.delete(np.arange(self.width), columns)
        effects = reduced[:, others][:, :, others]
        log_determinant = np.linalg.slogdet(effects)[1] + np.log(diagonal).sum(axis=1)
        prior = self.rows.person_count * np.log(self.person_ridge[:, 0])
        prior += self.rows.task_count * np.log(self.task_ridge[:, 0])
        evidence = value + (prior - log_determinant) / 2
        found = np.where(possible[:, None], at * scale[:, None], np.nan)
        return CrossedFits(
            found[:, :columns],
            found[:, columns + 1 : self.width],
            found[:, self.width :],
            np.where(possible, scale, np.nan),
            covariance,
            scale[:, None] / np.sqrt(diagonal),
            np.where(possible, evidence, np.nan),
            at,
        )

    def changes(self, at: Floats) -> Floats:
        """Return the changes of one fit's column effects if each attempt is left out, by one Newton step.

        Sigma stays as it is. Without censoring the changes are exact. The shape is (attempts, columns).
        """
        columns = self.inverse_place
        _, _, rest, mixed, diagonal, pull = self.derivatives(at)
        effects = np.delete(np.arange(self.width), columns)
        through = mixed[0, effects] / diagonal[0]
        inverse = np.linalg.inv(rest[0][np.ix_(effects, effects)] - through @ mixed[0, effects].T)
        design = self.front[:, effects] - through.T[self.rows.tasks]
        moved = design @ inverse
        left = self.left(at)[0]
        mills = np.exp(-0.5 * left**2 - _HALF_LOG_2_PI - log_ndtr(-left))
        weight = np.where(self.rows.solved, 1.0, mills * (mills - left))
        leverage = weight * ((moved * design).sum(axis=1) + 1 / diagonal[0][self.rows.tasks])
        change = -moved[:, :columns] * (pull[0] / (1 - leverage))[:, None] / at[0, columns]
        return np.asarray(change, dtype=float)

    def own_changes(self, at: Floats) -> Floats:
        """Return, by attempt, the change of its task's effect without it, with everything else fixed."""
        _, _, _, _, diagonal, pull = self.derivatives(at)
        left = self.left(at)[0]
        mills = np.exp(-0.5 * left**2 - _HALF_LOG_2_PI - log_ndtr(-left))
        weight = np.where(self.rows.solved, 1.0, mills * (mills - left))
        own = diagonal[0][self.rows.tasks]
        return np.asarray(-pull[0] / (own - weight) / at[0, self.inverse_place], dtype=float)


def changes_without_each(rows: CrossedTimes, ratios: Ratios, fit: CrossedFits) -> Floats:
    """Return the changes of the columns' effects if each attempt is left out, as (attempts, columns)."""
    return _batch_of_one(rows, ratios).changes(fit.at[:1])


def own_changes(rows: CrossedTimes, ratios: Ratios, fit: CrossedFits) -> Floats:
    """Return, by attempt, the change of its task's effect without the attempt, with everything else fixed."""
    return _batch_of_one(rows, ratios).own_changes(fit.at[:1])


def _batch_of_one(rows: CrossedTimes, ratios: Ratios) -> _Batch:
    return _Batch(rows, np.ones((1, len(rows.y))), np.array([ratios.task]), np.array([ratios.person]))


def _solved(matrices: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0], dtype=float)
    except np.linalg.LinAlgError:
        return (_inverted(matrices) @ right[:, :, None])[:, :, 0]


def _inverted(matrices: Floats) -> Floats:
    """Return the inverses of matrices; that of a singular matrix is NaN."""
    try:
        return np.asarray(np.linalg.inv(matrices), dtype=float)
    except np.linalg.LinAlgError:
        found = np.full_like(matrices, np.nan)
        for place, matrix in enumerate(matrices):
            if np.linalg.cond(matrix) < 1 / np.finfo(float).eps:
                found[place] = np.linalg.inv(matrix)
        return found
