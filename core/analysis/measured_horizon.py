"""Horizons of models with human minutes that are estimates, from all attempts of people at all tasks.

People's log times follow the censored mixed model of `crossed_times` with a constant alone. Given its
constant, its variances and the effects of persons, each task has a posterior distribution of its log minutes,
even if nobody solved it: its attempts are lower bounds. With s of n runs solved, the likelihood of a model at
a task is the mean, over this distribution, of p^s (1 - p)^(n - s) with p = F(a + b log2 minutes). The error
of estimated minutes thus does not flatten the curve, as it would if the estimates were used as true minutes
(Carroll, Ruppert, Stefanski & Crainiceanu, Measurement Error in Nonlinear Models, 2006). The logarithms are
weighted as METR weights runs (`horizon`).

The interval is the two-way jackknife's over persons and tasks together: without a person, the minutes of all
tasks change; without a task, people's and models' attempts at it are gone (decision 161).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, log_ndtr, logit, ndtri

from gistpoint.core.analysis.contrast import VarianceRatios
from gistpoint.core.analysis.crossed_times import (
    CrossedFits,
    CrossedTimes,
    changes_without_each,
    own_changes,
)
from gistpoint.core.analysis.intervals import Floats, Integers, Kept, Spread, Units, jackknife_of_fits

_NODES = 25
_REACH = 4.5
"""The number of standard deviations that the grid of a posterior covers on each side."""
_CHUNK = 32
_ROUNDS = 100
_HALVINGS = 25
_TOLERANCE = 1e-12
_STEEPEST = 50.0
"""The slope per doubling above which minutes count as separating successes from failures."""
_HALF_LOG_2_PI = 0.9189385332046727


class HorizonLink(StrEnum):
    """The function F that turns a + b log2 minutes into a probability."""

    LOGIT = "logit"
    PROBIT = "probit"

    def logs(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ln F and ln (1 - F)."""
        if self is HorizonLink.LOGIT:
            return log_expit(at), log_expit(-at)
        return log_ndtr(at), log_ndtr(-at)

    def log_density(self, at: Floats, one: Floats, other: Floats) -> Floats:
        """Return the logarithm of the derivative of F; `one` and `other` are ln F and ln (1 - F)."""
        return one + other if self is HorizonLink.LOGIT else -0.5 * at**2 - _HALF_LOG_2_PI

    def inverse(self, chance: float) -> float:
        """Return the value at which F is `chance`."""
        return float(logit(chance) if self is HorizonLink.LOGIT else ndtri(chance))


@dataclass(frozen=True)
class HumanMinutes:
    """The distributions of tasks' log2 minutes, by all attempts and without each person and task."""

    units: Units
    """The persons and tasks of the attempts, numbered from 0 without gaps."""
    nodes: Floats
    """The values of log2 minutes, as (fits, tasks, nodes); the first fit is of all attempts."""
    weights: Floats
    """The probability of each value; their sum is 1 for each fit and task."""
    changes: Floats
    """The change of each task's log2 minutes without each attempt, as (attempts, tasks)."""
    longest: Floats
    """The known duration of each task: its median, or its longest attempt if nobody solved it."""

    @classmethod
    def of(cls, units: Units, log_minutes: Floats, solved: Kept) -> HumanMinutes | None:
        """Return the distributions estimated from people's attempts; None if no model can be fitted."""
        times = CrossedTimes.of(units, np.ones((len(log_minutes), 1)), log_minutes, solved)
        found = times.likeliest()
        if found is None:
            return None
        ratios, fit = found
        people = times.persons != np.arange(times.person_count)[:, None]
        tasks = times.tasks != np.arange(times.task_count)[:, None]
        kept = np.vstack([np.ones((1, len(log_minutes)), dtype=bool), people, tasks])
        parts = [
            _posterior(times, ratios, times.fits([ratios], chosen, fit.at[0]), chosen)
            for chosen in np.array_split(kept, max(1, len(kept) // _CHUNK))
        ]
        nodes, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        medians = (nodes[0] * weights[0]).sum(axis=1)
        own = np.zeros(times.task_count, dtype=bool)
        own[times.tasks[solved]] = True
        attempts = np.full(times.task_count, -np.inf)
        np.maximum.at(attempts, times.tasks, log_minutes / np.log(2))
        longest = np.exp2(np.where(own, medians, attempts))
        changes = _changes_of_tasks(times, ratios, fit)
        return cls(Units(times.persons, times.tasks), nodes, weights, changes, longest)

    @property
    def minutes(self) -> Floats:
        """The minutes of each task: the geometric mean of its distribution."""
        return np.asarray(np.exp2((self.nodes[0] * self.weights[0]).sum(axis=1)), dtype=float)


def _changes_of_tasks(times: CrossedTimes, ratios: VarianceRatios, fit: CrossedFits) -> Floats:
    """Return the change of each task's log2 minutes without each attempt, for fixed sigma and persons.

    The constant moves all tasks, and an attempt moves its own task's effect.
    """
    common = changes_without_each(times, ratios, fit)[:, :1]
    changes = np.repeat(common, times.task_count, axis=1)
    changes[np.arange(len(times.y)), times.tasks] += own_changes(times, ratios, fit)
    return np.asarray(changes / np.log(2), dtype=float)


def _posterior(
    times: CrossedTimes, ratios: VarianceRatios, fits: CrossedFits, kept: Kept
) -> tuple[Floats, Floats]:
    """Return the values of log2 minutes and their probabilities, each as (fits, tasks, nodes)."""
    prior = (fits.sigma / ratios.task**0.5)[:, None]
    of_tasks = np.eye(times.task_count)[times.tasks]
    lost = (kept & times.solved) @ of_tasks == 0
    # If nobody solved a task, its distribution has a long tail, at most as wide as that of all tasks.
    width = np.where(lost, prior, np.minimum(fits.task_errors, prior))
    steps = np.linspace(-_REACH, _REACH, _NODES)
    effects = fits.tasks[:, :, None] + width[:, :, None] * steps
    people = np.hstack([fits.persons, np.zeros((len(kept), 1))])
    base = times.y - fits.columns[:, :1] - people[:, times.persons]
    left = (base[:, :, None] - effects[:, times.tasks]) / fits.sigma[:, None, None]
    terms = np.where(times.solved[:, None], -0.5 * left**2, log_ndtr(-left)) * kept[:, :, None]
    logs = of_tasks.T @ terms - 0.5 * (effects / prior[:, :, None]) ** 2
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    minutes = (fits.columns[:, :1, None] + effects) / np.log(2)
    return minutes, weights / weights.sum(axis=2, keepdims=True)


@dataclass(frozen=True)
class Runs:
    """A model's runs at tasks of `HumanMinutes`, counted by task."""

    tasks: Integers
    solved: Floats
    """The number of solved runs of each task."""
    counts: Floats
    weights: Floats
    """The weight of each task."""

    def spread(
        self,
        minutes: HumanMinutes,
        chances: Sequence[float],
        link: HorizonLink = HorizonLink.LOGIT,
        penalty: float = 0.0,
        *,
        interval: bool = True,
    ) -> tuple[Floats, Spread]:
        """Return the slope and the intercept, and the natural logarithm of the horizon at each chance.

        Without `interval`, no refits are made. All are NaN if there is no single finite maximum; a horizon is
        also NaN if success does not fall with time.
        """
        people = minutes.units.person_count
        mine = 1 + people + self.tasks
        chosen = np.concatenate([np.arange(1 + people), mine])
        kept = np.ones((len(chosen), len(self.tasks)))
        kept[1 + people :] -= np.eye(len(self.tasks))
        nodes, weights = minutes.nodes[:, self.tasks], minutes.weights[:, self.tasks]
        full = self._fit(nodes[:1], weights[:1], kept[:1], link, penalty, np.zeros((1, 2)))
        at = horizons_at(full, chances, link)[0]
        rows = np.isin(minutes.units.tasks, self.tasks)
        units = Units(minutes.units.persons[rows], minutes.units.tasks[rows])
        if units.no_interval or not interval or not np.isfinite(at).any():
            unknown = np.full_like(at, np.nan)
            return full[0], Spread(at, unknown, unknown, unknown, units, interval)

        def refitted(_: Kept) -> Floats:
            start = np.repeat(full, len(chosen) - 1, axis=0)
            fits = self._fit(nodes[chosen[1:]], weights[chosen[1:]], kept[1:], link, penalty, start)
            found = horizons_at(fits, chances, link)
            # A person who attempted none of these tasks has no unit.
            return np.vstack([found[:people][units.person_numbers], found[people:]])

        by_rows = self._variance_of_rows(minutes, nodes, weights, full, chances, link, penalty)
        return full[0], jackknife_of_fits(units, at, refitted, by_rows, None)

    def _variance_of_rows(
        self,
        minutes: HumanMinutes,
        nodes: Floats,
        weights: Floats,
        full: Floats,
        chances: Sequence[float],
        link: HorizonLink,
        penalty: float,
    ) -> Floats:
        """Return V_A: the contribution of noise in people's single attempts, by the delta method."""
        small = 0.01
        count = len(self.tasks)
        moved = nodes[:1] + small * np.eye(count)[:, :, None]
        fits = self._fit(
            moved,
            np.repeat(weights[:1], count, axis=0),
            np.ones((count, count)),
            link,
            penalty,
            np.repeat(full, count, axis=0),
        )
        slopes = (horizons_at(fits, chances, link) - horizons_at(full, chances, link)) / small
        changes = minutes.changes[:, self.tasks] @ slopes
        return np.asarray((len(changes) - 1) / len(changes) * (changes**2).sum(axis=0), dtype=float)

    def _fit(
        self, nodes: Floats, weights: Floats, kept: Floats, link: HorizonLink, penalty: float, start: Floats
    ) -> Floats:
        """Return the slope and the intercept of each fit, by Newton's method."""
        share = kept * self.weights
        share = share / share.sum(axis=1, keepdims=True) / self.counts
        scale, ridge = (1 / penalty, 1.0) if penalty else (float(len(self.tasks)), 0.0)
        logs_of_nodes = np.log(np.maximum(weights, 1e-300))
        marginal = _Marginal(self, link, scale, ridge, share, nodes, logs_of_nodes)
        with np.errstate(all="ignore"):
            return _newton_maximum(marginal, start)


class _Point(NamedTuple):
    """A point of each fit, with its value and the quantities for the derivatives at each node."""

    at: Floats
    value: Floats
    parts: Floats
    """The probability of the node, given the runs."""
    to_solved: Floats
    """f / F, with the density f."""
    to_lost: Floats
    """f / (1 - F)."""

    def only(self, chosen: Kept | Integers) -> _Point:
        """Return the points of the chosen fits."""
        return _Point(*(array[chosen] for array in self))


@dataclass(frozen=True)
class _Marginal:
    """The penalised likelihoods of a batch of fits, with the minutes integrated over their distributions."""

    runs: Runs
    link: HorizonLink
    scale: float
    ridge: float
    share: Floats
    """The weight of each task in each fit."""
    nodes: Floats
    logs_of_nodes: Floats

    def only(self, chosen: Kept | Integers) -> _Marginal:
        """Return the likelihoods of the chosen fits."""
        of_fits = (array[chosen] for array in (self.share, self.nodes, self.logs_of_nodes))
        return _Marginal(self.runs, self.link, self.scale, self.ridge, *of_fits)

    def point(self, at: Floats) -> _Point:
        """Return the points at these slopes and intercepts, as (fits, 2)."""
        solved, counts = self.runs.solved[:, None], self.runs.counts[:, None]
        places = at[:, :1, None] * self.nodes + at[:, 1:, None]
        one, other = self.link.logs(places)
        density = self.link.log_density(places, one, other)
        logs = self.logs_of_nodes + solved * one + (counts - solved) * other
        top = logs.max(axis=2, keepdims=True)
        parts = np.exp(logs - top)
        total = parts.sum(axis=2, keepdims=True)
        mean = (self.share * (top + np.log(total))[:, :, 0]).sum(axis=1)
        value = self.scale * mean - self.ridge * at[:, 0] ** 2 / 2
        return _Point(at, value, parts / total, np.exp(density - one), np.exp(density - other))

    def derivatives(self, point: _Point) -> tuple[Floats, Floats]:
        """Return the slope of the likelihood, as (fits, 2), and the information: its negative curvature."""
        solved, counts = self.runs.solved[:, None], self.runs.counts[:, None]
        pull = solved * point.to_solved - (counts - solved) * point.to_lost
        expected = counts * point.to_solved * point.to_lost
        by_intercept, by_slope, _ = self._moments(point.parts * pull)
        slope = self.scale * np.column_stack(
            [(self.share * one).sum(axis=1) for one in (by_slope, by_intercept)]
        )
        slope[:, 0] -= self.ridge * point.at[:, 0]
        inner = self._moments(point.parts * (expected - pull**2))
        outer = (by_intercept**2, by_intercept * by_slope, by_slope**2)
        information = self._information([one + other for one, other in zip(inner, outer, strict=True)])
        information[:, 0, 0] += self.ridge
        # Where the likelihood is not concave, the information of known minutes leads uphill.
        bent = np.linalg.eigvalsh(np.nan_to_num(information))[:, 0] <= 1e-9
        if bent.any():
            information[bent] = self._information(self._moments(point.parts * expected))[bent]
        return slope, information

    def _moments(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the sums over nodes of values, and of their products with log2 minutes and its square."""
        products = values * self.nodes
        return values.sum(axis=2), products.sum(axis=2), np.einsum("ftn,ftn->ft", products, self.nodes)

    def _information(self, moments: Sequence[Floats]) -> Floats:
        """Return the matrices of these moments, as (fits, 2, 2), with the slope before the intercept."""
        plain, first, second = (self.scale * (self.share * moment).sum(axis=1) for moment in moments)
        return np.stack([np.stack([second, first], axis=1), np.stack([first, plain], axis=1)], axis=1)


def _newton_maximum(marginal: _Marginal, start: Floats) -> Floats:
    """Return the slopes and intercepts that Newton's method reaches; NaN without a single finite maximum."""
    found = np.full_like(start, np.nan)
    point = marginal.point(start)
    going = np.flatnonzero(np.isfinite(point.value))
    marginal, point = marginal.only(going), point.only(going)
    for _ in range(_ROUNDS):
        if not len(going):
            break
        slope, information = marginal.derivatives(point)
        determinant = information[:, 0, 0] * information[:, 1, 1] - information[:, 0, 1] ** 2
        step = (
            np.column_stack(
                [
                    information[:, 1, 1] * slope[:, 0] - information[:, 0, 1] * slope[:, 1],
                    information[:, 0, 0] * slope[:, 1] - information[:, 0, 1] * slope[:, 0],
                ]
            )
            / determinant[:, None]
        )
        gain = (step * slope).sum(axis=1)
        lost = ~np.isfinite(gain) | (np.abs(point.at[:, 0]) > _STEEPEST)
        done = ~lost & (gain < _TOLERANCE)
        found[going[done]] = point.at[done]
        # Finished and impossible fits are left out of further rounds.
        left = ~(lost | done)
        if not left.all():
            going, step, marginal, point = going[left], step[left], marginal.only(left), point.only(left)
        point = _points_after_step(marginal, point, step)
    return found


def _points_after_step(marginal: _Marginal, point: _Point, step: Floats) -> _Point:
    """Return the points after a step, halved until it does not lower the likelihood."""
    there = point
    for _ in range(_HALVINGS):
        there = marginal.point(point.at + step)
        worse = ~(there.value >= point.value - 1e-13)
        if not worse.any():
            break
        step[worse] /= 2
    return there


def horizons_at(fits: Floats, chances: Sequence[float], link: HorizonLink) -> Floats:
    """Return the natural logarithms of the minutes at the chances: (fits, chances); NaN if success rises."""
    slopes, intercepts = fits[:, :1], fits[:, 1:]
    with np.errstate(all="ignore"):
        found = (np.array([link.inverse(chance) for chance in chances]) - intercepts) / slopes * np.log(2)
    return np.where(slopes < 0, found, np.nan)
