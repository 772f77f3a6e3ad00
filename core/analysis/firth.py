"""Logistic regression by maximum likelihood, plain or with Firth's penalty for separated data."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gistpoint.core.analysis.distinct import DistinctRows
from gistpoint.core.analysis.distinct import Floats as Floats

Integers = NDArray[np.int64]
Kept = NDArray[np.bool_]

_TOLERANCE = 1e-9
_STEPS = 200
_HALVINGS = 30
_LONGEST_STEP = 5.0
_SEPARATED_AT = 20.0
"""Log odds that are indistinguishable from certainty; a plain fit that reaches them has no maximum."""


@dataclass(frozen=True)
class LogitFit:
    """A fitted logistic regression."""

    coefficients: Floats
    covariance: Floats
    """The inverse of the Fisher information at the estimate."""
    log_likelihood: float
    """The log-likelihood without the penalty, even if the fit uses it."""
    penalised: float
    """The log-likelihood with the penalty `0.5 * ln det I(b)`, even if the fit does not use it."""
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
    `start` contains the initial coefficients, such as those of a fit of nearly the same rows; the default is
    0.

    Returns None if the columns are linearly dependent, or if there are no more rows than columns. A plain fit
    of separated data has not `converged`.
    """
    rows, columns = x.shape
    if rows <= columns or np.linalg.matrix_rank(x) < columns:
        return None
    counted = _Counts.of(x, y, np.ones((1, rows), dtype=bool))
    at = np.zeros(columns) if start is None else start
    ended = _newton_fits(counted, at[None], firth, held)
    state = ended.state
    covariance = np.asarray(np.linalg.inv(state.information[0]), dtype=np.float64)
    return LogitFit(
        state.at[0],
        covariance,
        float(state.likelihood[0]),
        float(state.penalised[0]),
        bool(ended.converged[0]),
        firth,
    )


def refit_logit(fit: LogitFit, x: Floats, y: Floats, kept: Kept) -> Floats:
    """Return the coefficients of refits, each on the rows that one line of `kept` marks as true.

    The shape is (refits, columns). All refits are computed as one batch, which starts at `fit` and uses its
    penalty. The coefficients are NaN where the rows' columns are linearly dependent, where there are no more
    rows than columns, and where a refit does not converge.
    """
    counted = _Counts.of(x, y, kept)
    found = np.full((len(kept), x.shape[1]), np.nan)
    possible = counted.independent
    if possible.any():
        start = np.repeat(fit.coefficients[None], int(possible.sum()), axis=0)
        ended = _newton_fits(counted.only(possible), start, fit.firth)
        found[possible] = np.where(ended.converged[:, None], ended.state.at, np.nan)
    return found


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
class _Counts:
    """The attempts and successes of each fit at each distinct row of the columns."""

    x: Floats
    """The distinct rows, as (rows, columns)."""
    attempts: Floats
    """How often each fit has a row: (fits, rows)."""
    successes: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, kept: Kept) -> _Counts:
        """Return the counts of the rows kept by each fit: `kept` is (fits, attempts)."""
        distinct = DistinctRows(x)
        return cls(distinct.rows, distinct.sums(kept), distinct.sums(kept * y))

    def only(self, chosen: Kept | Integers) -> _Counts:
        """Return the counts of the chosen fits."""
        return _Counts(self.x, self.attempts[chosen], self.successes[chosen])

    @property
    def independent(self) -> Kept:
        """Whether each fit has more attempts than columns, and linearly independent columns."""
        columns = self.x.shape[1]
        present = self.attempts > 0
        found = self.attempts.sum(axis=1) > columns
        # Most refits have the same distinct rows, so that few different matrices need their rank determined.
        patterns, pattern = np.unique(present, axis=0, return_inverse=True)
        ranks = np.array([np.linalg.matrix_rank(self.x[rows]) if rows.any() else 0 for rows in patterns])
        return np.asarray(found & (ranks[pattern.ravel()] == columns))


@dataclass(frozen=True)
class _State:
    """The point of each fit with its log-likelihoods, the score of the one used, and the information."""

    at: Floats
    likelihood: Floats
    penalised: Floats
    score: Floats
    information: Floats

    @classmethod
    def of(cls, counts: _Counts, at: Floats, firth: bool) -> _State:
        """Return the state of the fits at the coefficients `at`, as (fits, columns)."""
        x, columns = counts.x, counts.x.shape[1]
        logits = at @ x.T
        chance = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        weight = counts.attempts * np.maximum(chance * (1 - chance), 1e-300)
        pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        information = (weight @ pairs).reshape(-1, columns, columns)
        likelihood = (counts.successes * logits - counts.attempts * np.logaddexp(0, logits)).sum(axis=1)
        sign, logarithm = np.linalg.slogdet(information)
        # A singular information matrix means that a coefficient diverges, so no step may end there.
        penalised = np.where(sign > 0, likelihood + 0.5 * logarithm, -np.inf)
        gap = counts.successes - counts.attempts * chance
        if firth:
            leverage = weight.copy()
            regular = sign > 0
            inner = x @ np.linalg.inv(information[regular])
            leverage[regular] *= (inner * x).sum(axis=2)
            gap = gap + leverage * (0.5 - chance)
        return cls(at, likelihood, penalised, gap @ x, information)

    def replaced(self, places: Integers, other: _State) -> _State:
        """Return the state with the fits at `places` replaced by those of another."""
        found = []
        for field in fields(self):
            values = getattr(self, field.name).copy()
            values[places] = getattr(other, field.name)
            found.append(values)
        return _State(*found)

    def only(self, chosen: Kept | Integers) -> _State:
        """Return the states of the chosen fits."""
        return _State(*(getattr(self, field.name)[chosen] for field in fields(self)))


@dataclass(frozen=True)
class _FitEnds:
    """The point at which Newton's method ended for each fit, and whether it converged."""

    state: _State
    converged: Kept


def _newton_fits(counts: _Counts, start: Floats, firth: bool, held: int | None = None) -> _FitEnds:
    """Return the fits that Newton's method reaches; the coefficient of the column `held` stays at 0."""
    # A held column stays in the information, so that the penalty is the same in both models of the ratio
    # (Heinze & Schemper 2002).
    free = np.array([column for column in range(counts.x.shape[1]) if column != held])
    state = _State.of(counts, start, firth)
    converged = np.zeros(len(start), dtype=bool)
    going = np.arange(len(start))
    for _ in range(_STEPS):
        here = state.only(going)
        done = np.abs(here.score[:, free]).max(axis=1) < _TOLERANCE
        converged[going[done]] = True
        going, here = going[~done], here.only(~done)
        if not len(going):
            break
        step = np.zeros_like(here.at)
        information = here.information[:, free[:, None], free]
        step[:, free] = np.linalg.solve(information, here.score[:, free, None])[:, :, 0]
        longest = np.abs(step).max(axis=1)
        step *= np.minimum(1.0, _LONGEST_STEP / longest)[:, None]
        moved, stuck = _states_after_steps(counts.only(going), here, step, firth)
        state = state.replaced(going, moved)
        # If a short step lowers the likelihood, the maximum is reached up to rounding.
        converged[going[stuck]] = longest[stuck] < 1e-5
        left = ~stuck
        if not firth:
            # Separated data have no maximum without the penalty: the fit stops here and has not converged.
            reach = np.abs(moved.at @ counts.x.T)
            left &= ~((reach > _SEPARATED_AT) & (counts.attempts[going] > 0)).any(axis=1)
        going = going[left]
    return _FitEnds(state, converged)


def _states_after_steps(counts: _Counts, state: _State, step: Floats, firth: bool) -> tuple[_State, Kept]:
    """Return the states after steps, halved until they do not lower the likelihood, and which fits are stuck.

    A fit is stuck, and does not move, if each of 30 successively shorter steps lowers the likelihood or leads
    to singular information.
    """
    found, pending = state, np.arange(len(step))
    for _ in range(_HALVINGS):
        there = _State.of(counts.only(pending), state.at[pending] + step[pending], firth)
        before = (state.penalised if firth else state.likelihood)[pending]
        after = there.penalised if firth else there.likelihood
        good = np.isfinite(there.penalised) & (after >= before - 1e-12 * np.abs(before))
        found = found.replaced(pending[good], there.only(good))
        pending = pending[~good]
        if not len(pending):
            break
        step[pending] /= 2
    stuck = np.zeros(len(step), dtype=bool)
    stuck[pending] = True
    return found, stuck
