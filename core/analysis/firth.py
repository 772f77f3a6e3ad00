"""Logistic regression by maximum likelihood, plain or with Firth's penalty for separated data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_STEPS = 200
_HALVINGS = 30
_LONGEST_STEP = 5.0
_SEPARATED_AT = 20.0
"""Log odds indistinguishable from certainty: a plain fit that reaches them has no finite maximum."""


@dataclass(frozen=True)
class LogitFit:
    """A fitted logistic regression."""

    coefficients: Floats
    covariance: Floats
    """The inverse of the Fisher information at the estimate."""
    log_likelihood: float
    """The log-likelihood without the penalty, even if the fit has it."""
    penalised: float
    """The log-likelihood with the penalty `0.5 * ln det I(b)`, even if the fit does not have it."""
    converged: bool
    firth: bool

    @property
    def standard_errors(self) -> Floats:
        """The standard errors for Wald's intervals and tests: square roots of the covariance's diagonal."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def aic(self) -> float:
        """Akaike's information criterion, 2 k - 2 LL, from the likelihood without the penalty."""
        return 2 * len(self.coefficients) - 2 * self.log_likelihood


def fit_logit(
    x: Floats, y: Floats, *, firth: bool = False, held: int | None = None, start: Floats | None = None
) -> LogitFit | None:
    """Fit the log odds of `y` (0 or 1) on the columns of `x`, one of which is the constant.

    `firth` adds Jeffreys' penalty `0.5 * ln det I(b)` (Firth 1993, Biometrika 80; Heinze & Schemper 2002,
    Statistics in Medicine 21). The method is Newton's with step halving. `held` is a column whose coefficient
    stays at 0 while the penalty remains that of all columns, as the penalised likelihood-ratio test requires.
    `start` are the coefficients to begin with, such as those of a fit of nearly the same rows; without it, 0.

    Returns None if the columns are linearly dependent, or if there are no more rows than columns. A plain fit
    of separated data has not `converged`.
    """
    rows, columns = x.shape
    if rows <= columns or np.linalg.matrix_rank(x) < columns:
        return None
    # A held column stays in the information, so that the penalty is the same in both models of the ratio
    # (Heinze & Schemper 2002).
    free = [column for column in range(columns) if column != held]
    at = np.zeros(columns) if start is None else start
    state = _State.at(x, y, at, firth)
    converged = False
    for _ in range(_STEPS):
        score = state.score
        if float(np.max(np.abs(score[free]))) < _TOLERANCE:
            converged = True
            break
        step = np.zeros(columns)
        step[free] = np.linalg.solve(state.information[np.ix_(free, free)], score[free])
        longest = float(np.max(np.abs(step)))
        step *= min(1.0, _LONGEST_STEP / longest)
        moved = _climb(x, y, at, step, state, firth)
        if moved is None:
            converged = longest < 1e-5
            break
        at, state = moved
        # Separated data have no maximum without the penalty: the fit stops here and has not converged.
        if not firth and float(np.max(np.abs(x @ at))) > _SEPARATED_AT:
            break
    covariance = np.asarray(np.linalg.inv(state.information), dtype=np.float64)
    return LogitFit(at, covariance, state.likelihood, state.penalised, converged, firth)


def fit_logit_or_firth(x: Floats, y: Floats) -> LogitFit | None:
    """Return the fit without the penalty, or with it if the plain fit does not converge.

    None if the columns are linearly dependent, or if there are no more rows than columns.
    """
    plain = fit_logit(x, y)
    # The plain fit comes first, as in the papers; the penalty is only for separated data (decision 86).
    return plain if plain is None or plain.converged else fit_logit(x, y, firth=True)


def penalised_ratio(x: Floats, y: Floats, column: int) -> float | None:
    """Return the penalised likelihood-ratio statistic of a column: chi-squared with one degree of freedom.

    Source: Heinze & Schemper 2002; as in `logistf`, the smaller model keeps the penalty of all columns. None
    if the columns are linearly dependent, or if there are no more rows than columns.
    """
    full, without = fit_logit(x, y, firth=True), fit_logit(x, y, firth=True, held=column)
    return None if full is None or without is None else max(0.0, 2 * (full.penalised - without.penalised))


def null_log_likelihood(y: Floats) -> float:
    """Return the log-likelihood of the constant alone: n (p ln p + (1 - p) ln(1 - p))."""
    share = float(np.mean(y))
    return sum(len(y) * part * float(np.log(part)) for part in (share, 1 - share) if part > 0)


def mcfadden(log_likelihood: float, null: float) -> float:
    """Return McFadden's R2, 1 - LL / LL0, with `null` as LL0 (McFadden 1974, Frontiers in Econometrics)."""
    return 1 - log_likelihood / null


def null_from_fit(aic: float, r_squared: float, parameters: int) -> float:
    """Return the null log-likelihood implied by a printed AIC and McFadden's R2.

    LL = k - AIC / 2 and LL0 = LL / (1 - R2), where k is the number of parameters.
    """
    return (parameters - aic / 2) / (1 - r_squared)


@dataclass(frozen=True)
class _State:
    """The log-likelihood, with and without the penalty, the score of the one used, and the information."""

    likelihood: float
    penalised: float
    score: Floats
    information: Floats

    @classmethod
    def at(cls, x: Floats, y: Floats, coefficients: Floats, firth: bool) -> _State:
        logits: Any = x @ coefficients
        chance = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        weight = np.maximum(chance * (1 - chance), 1e-300)
        information = x.T @ (x * weight[:, None])
        likelihood = float(np.sum(y * logits - np.logaddexp(0, logits)))
        sign, logarithm = np.linalg.slogdet(information)
        # A singular information matrix means that a coefficient runs to infinity: no step may end there.
        penalised = likelihood + 0.5 * float(logarithm) if sign > 0 else -np.inf
        score = x.T @ (y - chance)
        if firth:
            leverage = (
                weight * np.einsum("ij,ij->i", x, np.linalg.solve(information, x.T).T) if sign > 0 else weight
            )
            score = score + x.T @ (leverage * (0.5 - chance))
        return cls(likelihood, penalised, score, information)


def _climb(
    x: Floats, y: Floats, at: Floats, step: Floats, state: _State, firth: bool
) -> tuple[Floats, _State] | None:
    """Halve the step until it does not lower the likelihood, and return the point reached, with its state.

    None if each of 30 ever shorter steps lowers the likelihood or leads to singular information.
    """
    for _ in range(_HALVINGS):
        there = at + step
        moved = _State.at(x, y, there, firth)
        before, after = (state.penalised, moved.penalised) if firth else (state.likelihood, moved.likelihood)
        if np.isfinite(moved.penalised) and after >= before - 1e-12 * abs(before):
            return there, moved
        step = step / 2
    return None
