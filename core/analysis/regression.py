"""Regressions of success on properties of tasks, with intervals that know that persons and tasks repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, stdtr

from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.firth import Floats, LogitFit, fit_logit
from gistpoint.core.analysis.intervals import Kept, Scale, Spread, Units, jackknife
from gistpoint.core.study.rows import AttemptRow

_Z = 1.959963984540054
FIRTH_NOTE = "Firth's penalty, because the data or a part of them are separated"


@dataclass(frozen=True)
class SuccessRegression:
    """A logit of success: a constant, then the named columns."""

    names: tuple[str, ...]
    fit: LogitFit
    spread: Spread
    """Of the coefficients, and after them of the log odds on the grid; by the two-way jackknife."""
    penalty_asked: bool = False
    """Whether the fit has Firth's penalty whatever the data."""

    def place(self, name: str) -> int:
        """Return the place of a column's coefficient; that of the constant is 0."""
        return 1 + self.names.index(name)

    def wald(self, name: str) -> tuple[float, float]:
        """Return the interval that papers print: as if the rows were independent."""
        place = self.place(name)
        middle, half = float(self.fit.coefficients[place]), _Z * float(self.fit.standard_errors[place])
        return middle - half, middle + half

    def wald_p(self, name: str) -> float:
        """Return the two-sided p of Wald's test: as if the rows were independent."""
        place = self.place(name)
        return float(2 * ndtr(-abs(self.fit.coefficients[place] / self.fit.standard_errors[place])))

    def p(self, name: str) -> float | None:
        """Return the two-sided p by the jackknife's variance, with t(min(persons, tasks) - 1)."""
        variance = float(self.spread.variance[self.place(name)])
        if not np.isfinite(variance) or variance <= 0:
            return None
        statistic = abs(float(self.fit.coefficients[self.place(name)])) / variance**0.5
        return float(2 * stdtr(self.spread.units.fewest - 1, -statistic))

    def coefficient(self, name: str) -> Number:
        """Return a coefficient: log odds for each unit of its column."""
        return self.spread.number(place=self.place(name), iid=self.wald(name), note=self.note)

    def odds_change(self, name: str) -> Number:
        """Return exp(b) - 1: by which share the odds change with each unit of a column."""
        low, high = self.wald(name)
        iid = float(np.exp(low)), float(np.exp(high))
        return shifted(self.spread.number(Scale.LOG, self.place(name), iid=iid, note=self.note), -1.0)

    @property
    def note(self) -> str:
        """What is unusual about the fit."""
        return FIRTH_NOTE if self.fit.firth and not self.penalty_asked else ""

    @property
    def grid(self) -> Spread:
        """The log odds on the grid."""
        start = len(self.names) + 1
        whole = self.spread
        return Spread(
            whole.estimate[start:],
            whole.by_persons[start:],
            whole.by_tasks[start:],
            whole.by_rows[start:],
            whole.units,
        )


def shifted(number: Number, by: float) -> Number:
    """Return a number with something added to it and to its bounds."""

    def moved(value: float | None) -> float | None:
        return None if value is None else value + by

    iid = None if number.iid is None else (number.iid[0] + by, number.iid[1] + by)
    return replace(number, value=moved(number.value), low=moved(number.low), high=moved(number.high), iid=iid)


def regress(
    rows: Sequence[AttemptRow],
    columns: Mapping[str, ArrayLike],
    *,
    firth: bool = False,
    grid: Floats | None = None,
) -> SuccessRegression | None:
    """Regress success on columns; None if their effects can't be separated.

    `grid` has a row for each point at which the log odds are wanted: the constant's 1, then a value for each
    column. Without `firth` the fit is plain, unless the data, or the data without one person or task, are
    separated: then the fit and all refits have the penalty.
    """
    y = np.array([float(row.solved) for row in rows])
    x = np.column_stack(
        [np.ones(len(rows)), *(np.asarray(values, dtype=float) for values in columns.values())]
    )
    points = np.zeros((0, x.shape[1])) if grid is None else grid
    units = Units.of(rows)
    # The fit and all refits have the penalty or none has: coefficients with and without it are not of one
    # quantity, and their differences would count as variance.
    for penalty in (True,) if firth else (False, True):
        fit = fit_logit(x, y, firth=penalty)
        if fit is None:
            return None
        # Separated as a whole: the next round fits with the penalty (decision 86).
        if not (fit.converged or penalty):
            continue
        spread = _spread(units, x, y, points, fit)
        # A variance that is not finite comes from a refit that is separated without one person or task.
        if penalty or units.no_interval or bool(np.all(np.isfinite(spread.variance))):
            return SuccessRegression(tuple(columns), fit, spread, firth)
    return None


def _spread(units: Units, x: Floats, y: Floats, points: Floats, fit: LogitFit) -> Spread:
    def estimate(kept: Kept) -> Floats:
        made = fit_logit(x[kept], y[kept], firth=fit.firth)
        if made is None or not made.converged:
            return np.full(x.shape[1] + len(points), np.nan)
        return np.concatenate([made.coefficients, points @ made.coefficients])

    own = np.concatenate([np.diag(fit.covariance), np.einsum("ij,jk,ik->i", points, fit.covariance, points)])
    return jackknife(units, estimate, own)


def likelihood_ratio_p(ratio: float, degrees: int = 1) -> float:
    """Return the p of twice a difference of log-likelihoods."""
    return float(chdtrc(degrees, ratio))
