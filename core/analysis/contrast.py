"""The confirmatory contrast: the difference of two sides' means, from every attempt of both.

The working model, which `core/study/confirmatory.py` prints, is linear: y = a + b x + u_task + v_person + e.
x is 1 on the first side; u, v and e are independent, with the variances that restricted maximum likelihood
chooses from a grid. The difference is b. It lies between that of plain means, which is distorted if the sides
have different tasks and persons, and that within tasks and persons, which drops attempts at tasks of only one
side.
It does not assume normality: the interval is the two-way jackknife's, with fixed variances (decision 156).

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

_RATIOS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1e4)
"""Candidates for the ratio of the variance of attempts to that of tasks or persons; 1e4 means none."""
_LEAST_VARIANCE = 1e-12
_DIGITS = 12


class Ratios(NamedTuple):
    """The variance of single attempts divided by that of tasks and by that of persons."""

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
    """Return the first side's mean minus the second's; `iid` is Wald's interval of the plain difference.

    Returns a shortfall if a side has fewer attempts than a rate needs. Without `interval` nothing is
    refitted.
    """
    fewest = min(len(first), len(second))
    if short := too_few(what, ("attempts on each side", LEAST_ATTEMPTS_OF_RATE, fewest)):
        return short
    rows = [*first, *second]
    values = np.array([measure(row) for row in rows], dtype=float)
    side = np.arange(len(rows)) < len(first)
    spread = difference(Units.of(rows), values, side, interval=interval)
    plain = float(values[side].mean() - values[~side].mean())
    return spread.number(Scale.DIFFERENCE, iid=independent_interval(plain, values[side], values[~side]))


def difference(units: Units, values: Floats, side: Kept, *, interval: bool = True) -> Spread:
    """Return the mean of the rows where `side` is true minus that of the others, with its variances."""
    model = _WorkingModel.of(units, values, side)
    ratios = model.likeliest()
    rows = model.variance_of_rows(ratios) if interval and not units.no_interval else 0.0
    return jackknife(units, lambda kept: model.fit(ratios, kept), rows, interval=interval)


@dataclass(frozen=True)
class _WorkingModel:
    """The rows of a contrast, with persons and tasks numbered without gaps."""

    persons: Integers
    """Rows of models have the number after that of the last person."""
    tasks: Integers
    side: Floats
    values: Floats
    person_count: int
    task_count: int

    @classmethod
    def of(cls, units: Units, values: Floats, side: Kept) -> _WorkingModel:
        """Return the model of the rows."""
        people = units.person_count
        persons = np.searchsorted(units.person_numbers, units.persons)
        persons = np.where(units.persons == NO_PERSON, people, persons)
        tasks = np.searchsorted(units.task_numbers, units.tasks)
        return cls(persons, tasks, side.astype(float), values, people, units.task_count)

    def fit(self, ratios: Ratios, kept: Kept) -> float:
        """Return the difference estimated from the rows kept; NaN if a side has none."""
        chosen = self.side[kept]
        if not len(chosen) or chosen.min() == chosen.max():
            return float("nan")
        # Refits on equal attempts differ in their last digits, which must not count as a variance.
        return round(float(_Equations.of(self, kept).solved(ratios).fixed[1]), _DIGITS)

    def likeliest(self) -> Ratios:
        """Return the ratios with the greatest restricted likelihood on the grid."""
        equations = _Equations.of(self, np.ones(len(self.values), dtype=bool))
        squares, count = float(self.values @ self.values), len(self.values)
        of_persons = _RATIOS if self.person_count else (_RATIOS[-1],)

        def likelihood(ratios: Ratios) -> float:
            solved = equations.solved(ratios)
            error = max((squares - solved.explained) / (count - 2), _LEAST_VARIANCE)
            prior = self.task_count * np.log(ratios.task) + self.person_count * np.log(ratios.person)
            return float(prior - (count - 2) * np.log(error) - solved.log_determinant)

        return max((Ratios(*pair) for pair in product(_RATIOS, of_persons)), key=likelihood)

    def variance_of_rows(self, ratios: Ratios) -> float:
        """Return the jackknife variance over single attempts of persons, without refits.

        Leaving row i out changes the estimates by M^-1 a_i e_i / (1 - h_i), as in any ridge regression.
        """
        columns = 2 + self.person_count + self.task_count
        design = np.zeros((len(self.values), columns + 1))
        design[:, 0], design[:, 1] = 1.0, self.side
        places = np.arange(len(self.values))
        design[places, 2 + self.task_count + self.persons] = 1.0
        design[places, 2 + self.tasks] = 1.0
        design = design[:, :columns]
        ridge = np.repeat([0.0, ratios.task, ratios.person], [2, self.task_count, self.person_count])
        inverse = np.linalg.inv(design.T @ design + np.diag(ridge))
        influence = design @ inverse
        leverage = (influence * design).sum(axis=1)
        errors = self.values - design @ (inverse @ (design.T @ self.values))
        of_people = self.persons < self.person_count
        changes = (influence[:, 1] * errors / (1 - leverage))[of_people].round(_DIGITS)
        count = len(changes)
        return float((count - 1) / count * (changes**2).sum()) if count else 0.0


class _Solved(NamedTuple):
    fixed: Floats
    """The intercept and the difference."""
    explained: float
    log_determinant: float


@dataclass(frozen=True)
class _Equations:
    """Henderson's mixed-model equations, with the tasks eliminated: their block is diagonal."""

    rest: Floats
    """The equations of the intercept, the difference and the persons."""
    mixed: Floats
    """The coefficients that connect these equations with the tasks."""
    task_counts: Floats
    right: Floats
    of_tasks: Floats

    @classmethod
    def of(cls, model: _WorkingModel, kept: Kept) -> _Equations:
        """Return the equations of the rows kept."""
        persons, tasks = model.persons[kept], model.tasks[kept]
        side, values = model.side[kept], model.values[kept]
        people, shape = model.person_count, (model.person_count + 1, model.task_count)
        cells = persons * shape[1] + tasks

        def table(weights: Floats | None = None) -> Floats:
            found = np.bincount(cells, weights=weights, minlength=shape[0] * shape[1])
            return np.asarray(found.reshape(shape), dtype=float)

        counts, sides, sums = table(), table(side), table(values)
        rest = np.zeros((2 + people, 2 + people))
        rest[0, 0], rest[0, 1] = counts.sum(), sides.sum()
        rest[1, 0], rest[1, 1] = sides.sum(), sides.sum()
        rest[0, 2:] = rest[2:, 0] = counts.sum(axis=1)[:people]
        rest[1, 2:] = rest[2:, 1] = sides.sum(axis=1)[:people]
        rest[2:, 2:] = np.diag(counts.sum(axis=1)[:people])
        mixed = np.vstack([counts.sum(axis=0), sides.sum(axis=0), counts[:people]])
        right = np.concatenate([[values.sum(), side @ values], sums.sum(axis=1)[:people]])
        return cls(rest, mixed, counts.sum(axis=0), right, sums.sum(axis=0))

    def solved(self, ratios: Ratios) -> _Solved:
        """Return the solution for given ratios of variances."""
        tasks = self.task_counts + ratios.task
        matrix = self.rest - (self.mixed / tasks) @ self.mixed.T
        persons = np.arange(2, len(matrix))
        matrix[persons, persons] += ratios.person
        right = self.right - self.mixed @ (self.of_tasks / tasks)
        found = np.asarray(np.linalg.solve(matrix, right), dtype=float)
        # With the tasks eliminated, y' A b is what both parts of the right-hand side contribute.
        explained = right @ found + (self.of_tasks**2 / tasks).sum()
        log_determinant = np.linalg.slogdet(matrix)[1] + np.log(tasks).sum()
        return _Solved(found[:2], float(explained), float(log_determinant))
