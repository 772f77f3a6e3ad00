"""Refits of a censored regression with a constant for each task, as one batch, for jackknife intervals.

The model is that of `censored`: ln t = task + x b + sigma e. The constants are eliminated from the equations
of a Newton step, because their block is diagonal: with dozens of tasks, they make up most of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from gistpoint.core.analysis.intervals import Floats, Integers, Kept

_ROUNDS = 100
_HALVINGS = 40
_TOLERANCE = 1e-8
_UNCERTAIN = 20.0
"""A standard error of a fitted value, in units of sigma, that is reached only by an infinite effect."""
_LARGEST = 200_000
"""The number of attempts in all fits of a batch, which bounds its memory."""
_HALF_LOG_2_PI = 0.9189385332046727


@dataclass(frozen=True)
class CensoredRows:
    """The attempts of a regression, each with the number of its constant."""

    x: Floats
    """The columns, without those of the constants."""
    log_times: Floats
    solved: Kept
    constants: Integers
    """The number of each attempt's constant, from 0 without gaps."""

    @property
    def count(self) -> int:
        """The number of constants."""
        return int(self.constants.max(initial=-1)) + 1

    def refits(self, kept: Kept, coefficients: Floats, constants: Floats, sigma: float) -> Floats:
        """Return the effects of the columns in refits of the rows kept, as (refits, columns).

        `kept` is (refits, attempts); the fits begin at the effects, constants and sigma of a fit of nearly
        the same attempts. The effects are NaN where `fit_censored` returns None.
        """
        start = np.concatenate([coefficients, [1.0], constants]) / sigma
        found = np.full((len(kept), self.x.shape[1]), np.nan)
        parts = max(1, kept.size // _LARGEST)
        with np.errstate(all="ignore"):
            for places in np.array_split(np.arange(len(kept)), parts):
                batch = _Batch(self, kept[places])
                reached = np.full((len(places), self.x.shape[1]), np.nan)
                going = np.flatnonzero((batch.rows > batch.free_columns) & (batch.successes > 0))
                batch.climb(going, np.repeat(start[None], len(places), axis=0), reached)
                found[places] = reached
        return found


class _Batch:
    """Fits in which b, 1 / sigma and the constants are divided by sigma; the first axis is the fit."""

    def __init__(self, data: CensoredRows, kept: Kept) -> None:
        self.data, self.kept = data, kept.astype(float)
        self.front = np.hstack([data.x, -data.log_times[:, None]])
        self.width = self.front.shape[1]
        self.pairs = (self.front[:, :, None] * self.front[:, None, :]).reshape(len(self.front), -1)
        self.of_constant = np.eye(data.count)[data.constants]
        self.crossed = (self.of_constant[:, :, None] * self.front[:, None, :]).reshape(len(self.front), -1)
        self.present = self.kept @ self.of_constant > 0
        self.rows = kept.sum(axis=1)
        self.free_columns = self.width - 1 + self.present.sum(axis=1)
        self.successes = (self.kept * data.solved).sum(axis=1)

    def climb(self, going: Integers, at: Floats, found: Floats) -> None:
        """Store the effects that Newton's method reaches in `found`."""
        value, pull, weight = self.likelihood(going, at[going])
        for _ in range(_ROUNDS):
            if not len(going):
                return
            step, gain, *equations = self.step(going, at[going], pull, weight)
            done = gain < _TOLERANCE**2 * self.rows[going]
            self.store(found, going[done], at, *(part[done] for part in equations))
            left = ~done & np.isfinite(gain)
            going, step, value = going[left], step[left], value[left]
            there, value, pull, weight, stuck = self.moved(going, at[going], step, value)
            at[going] = there
            if stuck.any():  # the maximum is reached up to rounding
                _, _, *equations = self.step(going[stuck], at[going[stuck]], pull[stuck], weight[stuck])
                self.store(found, going[stuck], at, *equations)
                going, value = going[~stuck], value[~stuck]
                pull, weight = pull[~stuck], weight[~stuck]

    def store(
        self, found: Floats, fits: Integers, at: Floats, reduced: Floats, mixed: Floats, diagonal: Floats
    ) -> None:
        """Store the effects of fits that have ended; those of a fit with an infinite effect stay NaN."""
        if len(fits):
            sound = fits[self.sound(fits, at[fits], reduced, mixed, diagonal)]
            found[sound] = at[sound, : self.width - 1] / at[sound, self.width - 1, None]

    def likelihood(self, fits: Integers, at: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log-likelihoods, and each attempt's slope and minus its curvature."""
        data, kept = self.data, self.kept[fits]
        inverse = at[:, self.width - 1]
        left = -(at[:, : self.width] @ self.front.T) - at[:, self.width :][:, data.constants]
        lost = ~data.solved
        tail = log_ndtr(-left[:, lost])
        terms = np.log(inverse)[:, None] - 0.5 * left**2 - _HALF_LOG_2_PI
        terms[:, lost] = tail
        mills = np.exp(-0.5 * left[:, lost] ** 2 - _HALF_LOG_2_PI - tail)
        pull, weight = left.copy(), np.ones_like(left)
        pull[:, lost] = mills
        weight[:, lost] = mills * (mills - left[:, lost])
        value = np.where(inverse > 0, (kept * terms).sum(axis=1), -np.inf)
        return value, kept * pull, kept * weight

    def step(
        self, fits: Integers, at: Floats, pull: Floats, weight: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the Newton steps and their gains, and the equations without the constants."""
        inverse, width = at[:, self.width - 1], self.width
        slope = pull @ self.front
        slope[:, -1] += self.successes[fits] / inverse
        of_constants = pull @ self.of_constant
        rest = (weight @ self.pairs).reshape(-1, width, width)
        rest[:, -1, -1] += self.successes[fits] / inverse**2
        mixed = (weight @ self.crossed).reshape(-1, self.data.count, width)
        # A constant without attempts does not change.
        diagonal = np.where(self.present[fits], weight @ self.of_constant, 1.0)
        through = mixed / diagonal[:, :, None]
        reduced = rest - mixed.transpose(0, 2, 1) @ through
        right = slope - (of_constants[:, None, :] @ through)[:, 0]
        front = _solved(reduced, right)
        own = (of_constants - (mixed @ front[:, :, None])[:, :, 0]) / diagonal
        gain = (front * slope).sum(axis=1) + (own * of_constants).sum(axis=1)
        return np.hstack([front, own]), gain, reduced, mixed, diagonal

    def moved(
        self, fits: Integers, at: Floats, step: Floats, value: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, Kept]:
        """Return the points after steps, halved until none lowers the likelihood, and which are stuck."""
        there = at + step
        values, pull, weight = self.likelihood(fits, there)
        for _ in range(_HALVINGS):
            worse = np.flatnonzero(~(values >= value))
            if not len(worse):
                break
            step[worse] /= 2
            there[worse] = at[worse] + step[worse]
            values[worse], pull[worse], weight[worse] = self.likelihood(fits[worse], there[worse])
        stuck = ~(values >= value)
        if stuck.any():
            there[stuck] = at[stuck]
            values[stuck], pull[stuck], weight[stuck] = self.likelihood(fits[stuck], at[stuck])
        return there, values, pull, weight, stuck

    def sound(self, fits: Integers, at: Floats, reduced: Floats, mixed: Floats, diagonal: Floats) -> Kept:
        """Return whether all effects are finite; an infinite one makes fitted values very uncertain."""
        covariance = _inverses(reduced)
        inverse = at[:, self.width - 1]
        fitted = (at[:, : self.width - 1] @ self.data.x.T + at[:, self.width :][:, self.data.constants]) / (
            inverse[:, None]
        )
        # The delta method, in units of sigma: derivatives of a fitted value by b, 1 / sigma and its constant.
        count, width = len(self.front), self.width
        turn = np.empty((len(fits), count, width))
        turn[:, :, : width - 1] = self.data.x
        turn[:, :, width - 1] = -fitted
        across = turn - (mixed / diagonal[:, :, None])[:, self.data.constants]
        variances = ((across @ covariance) * across).sum(axis=2) + 1 / diagonal[:, self.data.constants]
        reach = np.where(self.kept[fits] > 0, variances, -np.inf).max(axis=1)
        variances_of_effects = np.diagonal(covariance, axis1=1, axis2=2)[:, : width - 1]
        return np.asarray((reach <= _UNCERTAIN**2) & (variances_of_effects > 0).all(axis=1))


def _solved(matrices: Floats, right: Floats) -> Floats:
    """Return the solutions; NaN for a singular matrix."""
    return np.asarray((_inverses(matrices) @ right[:, :, None])[:, :, 0], dtype=float)


def _inverses(matrices: Floats) -> Floats:
    """Return the inverses of matrices; NaN for a singular matrix."""
    regular = np.isfinite(np.linalg.slogdet(matrices)[1])
    found = np.full_like(matrices, np.nan)
    found[regular] = np.linalg.inv(matrices[regular])
    return found
