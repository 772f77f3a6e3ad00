"""The confirmatory contrast: the difference between the means of two sides, from every attempt of both.

The working model, which `core/study/confirmatory.py` prints, is linear: y = a + b x + u_task + v_person + e.
x, there called the side, is 1 on the first side; u, v and e are independent, with the variances that
restricted maximum likelihood chooses from a grid. The difference is b. It is a compromise between two other
differences: the difference between plain means is distorted if the sides have different tasks or persons, and
the difference within tasks and persons uses only those with attempts on both sides. Normality is not assumed:
the interval is the two-way jackknife's, with fixed variances (decision 156).

Sources: Laird & Ware, Random-effects models for longitudinal data, Biometrics 38(4), 1982; Patterson &
Thompson, Recovery of inter-block information, Biometrika 58(3), 1971.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from gistpoint.core.analysis.findings import Number, Shortfall
from gistpoint.core.analysis.intervals import (
    NO_PERSON,
    Floats,
    Integers,
    Kept,
    Scale,
    Spread,
    Units,
    jackknife,
)
from gistpoint.core.analysis.pooling import LEAST_ATTEMPTS_OF_RATE, too_few
from gistpoint.core.analysis.versus import Measure, independent_interval
from gistpoint.core.study.rows import AttemptRow

_RATIO_GRID = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1e4)
"""Candidates for the variance of attempts divided by that of tasks or persons.

With 1e4, tasks or persons practically don't differ.
"""
_LEAST_VARIANCE = 1e-12
"""The floor of the residual variance, so that it has a logarithm."""
_DIGITS = 12
"""The number of digits to which estimates are rounded: equal ones may differ in their last digits."""
_FIXED = 2
"""The number of fixed effects: the intercept and the difference."""


class VarianceRatios(NamedTuple):
    """The variance of single attempts, divided by the variances of tasks and of persons."""

    task: float
    person: float


def contrast_of(
    what: str,
    first: Sequence[AttemptRow],
    second: Sequence[AttemptRow],
    measure: Measure,
    *,
    interval: bool = True,
) -> Number | Shortfall:
    """Return the first side's mean minus the second's, by the working model.

    Returns a shortfall if a side has fewer attempts than a rate needs. `iid` is Wald's interval of the plain
    difference. Without `interval`, no refits are made.
    """
    found = contrast_with_spread(what, first, second, measure, interval=interval)
    return found if isinstance(found, Shortfall) else found[0]


def contrast_with_spread(
    what: str,
    first: Sequence[AttemptRow],
    second: Sequence[AttemptRow],
    measure: Measure,
    *,
    interval: bool = True,
) -> tuple[Number, Spread] | Shortfall:
    """Return the contrast as `contrast_of` does, with its refits and variances."""
    fewest = min(len(first), len(second))
    if short := too_few(what, ("attempts on each side", LEAST_ATTEMPTS_OF_RATE, fewest)):
        return short
    rows = [*first, *second]
    values = np.array([measure(row) for row in rows], dtype=float)
    is_first = np.arange(len(rows)) < len(first)
    spread = difference(Units.of(rows), values, is_first, interval=interval)
    ones, others = values[is_first], values[~is_first]
    plain = float(ones.mean() - others.mean())
    return spread.number(Scale.DIFFERENCE, iid=independent_interval(plain, ones, others)), spread


def difference(units: Units, values: Floats, is_first: Kept, *, interval: bool = True) -> Spread:
    """Return the difference between the rows where `is_first` is true and the other rows, with its variances.

    The variance over single attempts is NaN if a side has only one.
    """
    model = _WorkingModel.of(units, values, is_first)
    ratios = model.likeliest_ratios()
    # Without an interval, `jackknife` does not read this variance; any number prevents refits for it.
    row_variance = model.variance_of_rows(ratios) if interval and not units.no_interval else 0.0
    return jackknife(units, lambda kept: model.fit(ratios, kept), row_variance, interval=interval)


@dataclass(frozen=True)
class _WorkingModel:
    """The rows of a contrast, with those persons and tasks that have rows numbered from 0."""

    persons: Integers
    """The number of each row's person; `person_count`, which follows the last, for rows of models."""
    tasks: Integers
    side: Floats
    """1 for rows of the first side, 0 for those of the second."""
    values: Floats
    person_count: int
    task_count: int

    @classmethod
    def of(cls, units: Units, values: Floats, is_first: Kept) -> _WorkingModel:
        """Return the model of the rows."""
        # `units` may be a subset, with gaps in its numbers.
        persons = np.searchsorted(units.person_numbers, units.persons)
        persons = np.where(units.persons == NO_PERSON, units.person_count, persons)
        tasks = np.searchsorted(units.task_numbers, units.tasks)
        side = is_first.astype(float)
        return cls(persons, tasks, side, values, units.person_count, units.task_count)

    def fit(self, ratios: VarianceRatios, kept: Kept) -> float:
        """Return the difference estimated from the rows kept; NaN if a side has none."""
        sides = self.side[kept]
        if not len(sides) or sides.min() == sides.max():
            return float("nan")
        # Refits on equal attempts differ in their last digits, which must not count as a variance.
        return round(_Equations.of(self, kept).solved(ratios).difference, _DIGITS)

    def likeliest_ratios(self) -> VarianceRatios:
        """Return the ratios with the greatest restricted likelihood on the grid."""
        equations = _Equations.of(self, np.ones(len(self.values), dtype=bool))
        squares, degrees = float(self.values @ self.values), len(self.values) - _FIXED
        # If all rows are from models, the ratio for persons has no effect.
        of_persons = _RATIO_GRID if self.person_count else (_RATIO_GRID[-1],)

        def twice_log_likelihood(ratios: VarianceRatios) -> float:
            """Return twice the restricted log-likelihood, up to an additive constant."""
            solved = equations.solved(ratios)
            error = max((squares - solved.explained) / degrees, _LEAST_VARIANCE)
            log_ratios = self.task_count * np.log(ratios.task) + self.person_count * np.log(ratios.person)
            return float(log_ratios - degrees * np.log(error) - solved.log_determinant)

        pairs = product(_RATIO_GRID, of_persons)
        return max((VarianceRatios(*pair) for pair in pairs), key=twice_log_likelihood)

    def variance_of_rows(self, ratios: VarianceRatios) -> float:
        """Return the jackknife variance over single attempts of persons, without refits.

        With the design A and M = A'A + the ridge of the ratios, the estimates without row i differ by M^-1
        a_i e_i / (1 - h_i), where e_i is its residual and h_i its leverage, as in any ridge regression. The
        variance is NaN if a side has only one row, because no estimate is possible without it.
        """
        if 1 in (self.side.sum(), (1 - self.side).sum()):
            return float("nan")
        design = self._design()
        ridge = np.repeat([0.0, ratios.task, ratios.person], [_FIXED, self.task_count, self.person_count])
        inverse = np.linalg.inv(design.T @ design + np.diag(ridge))
        influence = design @ inverse
        leverage = (influence * design).sum(axis=1)
        estimates = inverse @ (design.T @ self.values)
        errors = self.values - design @ estimates
        of_people = self.persons < self.person_count
        changes = (influence[:, 1] * errors / (1 - leverage))[of_people].round(_DIGITS)
        count = len(changes)
        return float((count - 1) / count * (changes**2).sum()) if count else 0.0

    def _design(self) -> Floats:
        """Return the design matrix: the intercept, the side, then a column for each task and person."""
        rows = np.arange(len(self.values))
        # Rows of models, which have no person effect, get an additional column, which is dropped at the end.
        design = np.zeros((len(rows), _FIXED + self.task_count + self.person_count + 1))
        design[:, 0], design[:, 1] = 1.0, self.side
        design[rows, _FIXED + self.tasks] = 1.0
        design[rows, _FIXED + self.task_count + self.persons] = 1.0
        return design[:, :-1]


class _Solved(NamedTuple):
    difference: float
    explained: float
    """The part of the sum of squares explained by the model."""
    log_determinant: float


@dataclass(frozen=True)
class _Equations:
    """Henderson's equations for the intercept, the side, the persons and the tasks, without the ratios.

    `solved` adds the ratios, and eliminates the tasks, whose block is diagonal.
    """

    rest: Floats
    """The block of the intercept, the side and the persons."""
    mixed: Floats
    """The block with these as rows and the tasks as columns."""
    task_counts: Floats
    """The diagonal of the block of the tasks: the number of rows of each task."""
    sums: Floats
    """The right-hand side of `rest`: sums of values."""
    task_sums: Floats
    """The right-hand side of the tasks: the sum of each task's values."""

    @classmethod
    def of(cls, model: _WorkingModel, kept: Kept) -> _Equations:
        """Return the equations of the rows kept."""
        persons, tasks = model.persons[kept], model.tasks[kept]
        side, values = model.side[kept], model.values[kept]
        # The last row of each table is for models, which have no person effect.
        people, shape = model.person_count, (model.person_count + 1, model.task_count)
        cells = persons * model.task_count + tasks

        def table(weights: Floats | None = None) -> Floats:
            found = np.bincount(cells, weights=weights, minlength=shape[0] * shape[1])
            return np.asarray(found.reshape(shape), dtype=float)

        counts, sides, totals = table(), table(side), table(values)
        rest = np.zeros((_FIXED + people, _FIXED + people))
        rest[0, 0], rest[0, 1] = counts.sum(), sides.sum()
        rest[1, 0], rest[1, 1] = sides.sum(), sides.sum()
        rest[0, _FIXED:] = rest[_FIXED:, 0] = counts.sum(axis=1)[:people]
        rest[1, _FIXED:] = rest[_FIXED:, 1] = sides.sum(axis=1)[:people]
        rest[_FIXED:, _FIXED:] = np.diag(counts.sum(axis=1)[:people])
        mixed = np.vstack([counts.sum(axis=0), sides.sum(axis=0), counts[:people]])
        sums = np.concatenate([[values.sum(), side @ values], totals.sum(axis=1)[:people]])
        return cls(rest, mixed, counts.sum(axis=0), sums, totals.sum(axis=0))

    def solved(self, ratios: VarianceRatios) -> _Solved:
        """Return the solution for given ratios of variances."""
        diagonal = self.task_counts + ratios.task
        matrix = self.rest - (self.mixed / diagonal) @ self.mixed.T
        persons = np.arange(_FIXED, len(matrix))
        matrix[persons, persons] += ratios.person
        right = self.sums - self.mixed @ (self.task_sums / diagonal)
        found = np.asarray(np.linalg.solve(matrix, right), dtype=float)
        # y' A b, whose second part belongs to the eliminated tasks.
        explained = right @ found + (self.task_sums**2 / diagonal).sum()
        log_determinant = np.linalg.slogdet(matrix)[1] + np.log(diagonal).sum()
        return _Solved(float(found[1]), float(explained), float(log_determinant))
