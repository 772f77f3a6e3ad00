"""Logistic regressions of success on properties of tasks, with two-way jackknife intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, stdtr

from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.firth import Floats, LogitFit, fit_logit, refit_logit
from gistpoint.core.analysis.intervals import Z_95, Kept, Scale, Spread, Units, jackknife_of_fits
from gistpoint.core.study.rows import AttemptRow

FIRTH_NOTE = "Firth's penalty, because the data or a part of them are separated"


@dataclass(frozen=True)
class SuccessRegression:
    """A logistic regression of success on a constant and the named columns."""

    names: tuple[str, ...]
    fit: LogitFit
    spread: Spread
    """Jackknife variances of the coefficients, followed by those of the log odds on the grid."""
    penalty_asked: bool = False
    """Whether Firth's penalty was requested, rather than needed by the data."""

    def place(self, name: str) -> int:
        """Return the index of a column's coefficient; the constant has index 0."""
        return 1 + self.names.index(name)

    def wald_interval(self, name: str) -> tuple[float, float]:
        """Return Wald's 95% interval of a coefficient, which treats rows as independent, as papers do."""
        place = self.place(name)
        middle, half = float(self.fit.coefficients[place]), Z_95 * float(self.fit.standard_errors[place])
        return middle - half, middle + half

    def wald_p(self, name: str) -> float:
        """Return the two-sided p-value of Wald's test, which treats rows as independent."""
        place = self.place(name)
        return float(2 * ndtr(-abs(self.fit.coefficients[place] / self.fit.standard_errors[place])))

    def p(self, name: str) -> float | None:
        """Return the two-sided p-value from the jackknife's variance: t with min(persons, tasks) - 1 df.

        None if there is no variance.
        """
        variance = float(self.spread.variance[self.place(name)])
        if not np.isfinite(variance) or not self.spread.varies[self.place(name)]:
            return None
        statistic = abs(float(self.fit.coefficients[self.place(name)])) / variance**0.5
        return float(2 * stdtr(self.spread.units.fewest - 1, -statistic))

    def coefficient(self, name: str) -> Number:
        """Return a coefficient, in log odds per unit of its column, with its jackknife interval."""
        return self.spread.number(place=self.place(name), iid=self.wald_interval(name), note=self.note)

    def odds_change(self, name: str) -> Number:
        """Return exp(b) - 1, the relative change of the odds per unit of a column."""
        low, high = self.wald_interval(name)
        iid = float(np.exp(low)), float(np.exp(high))
        return shifted(self.spread.number(Scale.LOG, self.place(name), iid=iid, note=self.note), -1.0)

    @property
    def note(self) -> str:
        """A note if the data required Firth's penalty; empty otherwise."""
        return FIRTH_NOTE if self.fit.firth and not self.penalty_asked else ""

    @property
    def grid(self) -> Spread:
        """The log odds at the points of the grid, with their jackknife variances."""
        start = len(self.names) + 1
        spread = self.spread
        return Spread(
            spread.estimate[start:],
            spread.by_persons[start:],
            spread.by_tasks[start:],
            spread.by_rows[start:],
            spread.units,
        )


def shifted(number: Number, by: float) -> Number:
    """Return a number with its value and both of its intervals shifted by `by`."""

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
    """Return the logistic regression of success on columns; None if their effects can't be separated.

    Effects can't be separated if columns are linearly dependent, or if there are no more rows than
    coefficients. `grid` has a row for each point at which log odds are estimated: 1 for the constant, then a
    value for each column. Without `firth`, the fit is plain unless the data, or the data without one person
    or task, are separated; then the fit and all refits use the penalty.
    """
    y = np.array([float(row.solved) for row in rows])
    x = np.column_stack(
        [np.ones(len(rows)), *(np.asarray(values, dtype=float) for values in columns.values())]
    )
    points = np.zeros((0, x.shape[1])) if grid is None else grid
    units = Units.of(rows)
    # Either the fit and all refits have the penalty, or none has it: coefficients with and without it
    # estimate different quantities, and their differences would count as variance.
    for penalty in (True,) if firth else (False, True):
        fit = fit_logit(x, y, firth=penalty)
        if fit is None:
            return None
        # If the data as a whole are separated, the next round fits with the penalty (decision 86).
        if not (fit.converged or penalty):
            continue
        spread = _spread(units, x, y, points, fit)
        # A variance is infinite or undefined if the data without one person or task are separated.
        is_separated = not units.no_interval and not np.all(np.isfinite(spread.variance))
        if penalty or not is_separated:
            return SuccessRegression(tuple(columns), fit, spread, firth)
    return None


def _spread(units: Units, x: Floats, y: Floats, points: Floats, fit: LogitFit) -> Spread:
    def estimates(coefficients: Floats) -> Floats:
        return np.concatenate([coefficients, coefficients @ points.T], axis=-1)

    def refitted(kept: Kept) -> Floats:
        return estimates(refit_logit(fit, x, y, kept))

    model_variance = np.concatenate(
        [np.diag(fit.covariance), np.einsum("ij,jk,ik->i", points, fit.covariance, points)]
    )
    full = estimates(fit.coefficients if fit.converged else np.full_like(fit.coefficients, np.nan))
    return jackknife_of_fits(units, full, refitted, model_variance)


def likelihood_ratio_p(ratio: float, degrees: int = 1) -> float:
    """Return the p-value of twice a difference in log-likelihoods: chi-squared with `degrees` df."""
    return float(chdtrc(degrees, ratio))
