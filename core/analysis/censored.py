"""Regression of log times with normal errors and right censoring, by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from gistpoint.core.analysis.intervals import Floats, Kept

_ROUNDS = 100
_HALVINGS = 40
_TOLERANCE = 1e-8
_UNCERTAIN = 20.0
"""A standard error of a fitted value, in units of sigma, that is reached only by an infinite effect."""
_HALF_LOG_2_PI = 0.9189385332046727


@dataclass(frozen=True)
class CensoredFit:
    """The maximum-likelihood fit of ln t = x b + sigma e with normal e."""

    coefficients: Floats
    sigma: float
    covariance: Floats
    """The covariance of the coefficients, from the observed information."""
    log_likelihood: float
    """The log-likelihood of the log times."""


def fit_censored(
    x: Floats, log_times: Floats, solved: Kept, start: CensoredFit | None = None
) -> CensoredFit | None:
    """Return the fit of log times on the columns of `x`; unsolved attempts are censored at their time.

    The method is Newton's on (b / sigma, 1 / sigma), in which the log-likelihood is concave (Olsen 1978,
    Econometrica 46); `start` is an earlier fit from which it begins. None if there are no more rows than
    columns, if the columns are dependent, if nothing is solved, if nothing varies, or if the method does not
    converge, for example because the maximum is at infinity.
    """
    rows, columns = x.shape
    if rows <= columns or not solved.any():
        return None
    # In b / sigma and 1 / sigma the likelihood has a single maximum (Olsen 1978), so the start affects the
    # running time and not the result.
    at = _start(x, log_times, solved) if start is None else np.append(start.coefficients, 1.0) / start.sigma
    both = np.column_stack([x, -log_times])
    value, slope, curve = _likelihood(x, log_times, solved, at, both)
    for _ in range(_ROUNDS):
        try:
            step = np.linalg.solve(-curve, slope)
        except np.linalg.LinAlgError:
            return None
        if slope @ step < _TOLERANCE**2 * rows:
            break
        for _ in range(_HALVINGS):
            there = at + step
            # A step is halved if it makes 1 / sigma non-positive, or if it lowers the likelihood.
            if there[-1] > 0:
                moved = _likelihood(x, log_times, solved, there, both)
                if moved[0] >= value:
                    break
            step = step / 2
        else:
            break
        at, (value, slope, curve) = there, moved
    else:
        return None
    return _original_scale(x, at, value, curve)


def _start(x: Floats, log_times: Floats, solved: Kept) -> Floats:
    plain = np.linalg.lstsq(x, log_times, rcond=None)[0]
    spread = float(np.std(log_times - x @ plain)) or 1.0
    return np.append(plain, 1.0) / max(spread, 0.1)


def _likelihood(x: Floats, y: Floats, solved: Kept, at: Floats, both: Floats) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood at (b / sigma, 1 / sigma), its gradient and its Hessian.

    `both` consists of the columns of `x`, followed by -y.
    """
    inverse = at[-1]
    left = inverse * y - x @ at[:-1]
    tail = log_ndtr(-left)
    mills = np.exp(-0.5 * left**2 - _HALF_LOG_2_PI - tail)
    value = np.where(solved, np.log(inverse) - 0.5 * left**2 - _HALF_LOG_2_PI, tail).sum()
    pull = np.where(solved, left, mills)
    weight = np.where(solved, 1.0, mills * (mills - left))
    slope = both.T @ pull
    slope[-1] += solved.sum() / inverse
    curve = -(both * weight[:, None]).T @ both
    curve[-1, -1] -= solved.sum() / inverse**2
    return float(value), slope, curve


def _original_scale(x: Floats, at: Floats, value: float, curve: Floats) -> CensoredFit | None:
    try:
        covariance = np.linalg.inv(-curve)
    except np.linalg.LinAlgError:
        return None
    sigma = 1.0 / at[-1]
    coefficients: Floats = np.asarray(at[:-1] * sigma, dtype=np.float64)
    # The delta method: derivatives of b with respect to b / sigma and 1 / sigma.
    turn: NDArray[np.float64] = np.column_stack([np.eye(len(coefficients)) * sigma, -coefficients * sigma])
    of_effects: Floats = np.asarray(turn @ covariance @ turn.T, dtype=np.float64)
    if not np.isfinite(of_effects).all() or (np.diag(of_effects) <= 0).any():
        return None
    # An infinite effect appears as a finite one whose fitted values are more uncertain than data can make
    # them.
    if ((x @ of_effects) * x).sum(axis=1).max() > (_UNCERTAIN * sigma) ** 2:
        return None
    return CensoredFit(coefficients, float(sigma), of_effects, value)
