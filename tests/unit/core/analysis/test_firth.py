"""Logistic regression, plain and with Firth's penalty, against closed forms, statsmodels and Breakpoint."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import ndtr

from gistpoint.core.analysis.firth import (
    Floats,
    fit_logit,
    fit_logit_or_firth,
    mcfadden,
    null_from_fit,
    null_log_likelihood,
    penalised_ratio,
    refit_logit,
)
from gistpoint.core.analysis.regression import likelihood_ratio_p


def drawn(seed: int, count: int, *slopes: float) -> tuple[Floats, Floats]:
    """Return standard normal metrics, and successes with log odds 0.3 plus these slopes."""
    draw = np.random.default_rng(seed)
    x = np.column_stack([np.ones(count), *(draw.normal(size=count) for _ in slopes)])
    return x, (draw.random(count) < 1 / (1 + np.exp(-(x @ [0.3, *slopes])))).astype(float)


def test_the_plain_fit_is_that_of_statsmodels() -> None:
    x, y = drawn(1, 150, -0.7, 0.2)
    ours, theirs = fit_logit(x, y), sm.Logit(y, x).fit(disp=0)
    assert ours is not None
    assert ours.coefficients == pytest.approx(theirs.params, abs=1e-7)
    assert ours.standard_errors == pytest.approx(theirs.bse, abs=1e-7)
    assert ours.aic == pytest.approx(theirs.aic)
    assert mcfadden(ours.log_likelihood, null_log_likelihood(y)) == pytest.approx(theirs.prsquared)


@pytest.mark.parametrize(("solved", "of"), [(0, 10), (10, 10), (3, 8)])
def test_of_a_constant_alone_the_penalty_adds_half_a_success_and_half_a_failure(solved: int, of: int) -> None:
    y = np.array([1.0] * solved + [0.0] * (of - solved))
    made = fit_logit(np.ones((of, 1)), y, firth=True)
    assert made is not None
    assert made.converged
    assert made.coefficients[0] == pytest.approx(log((solved + 0.5) / (of - solved + 0.5)))


def test_of_a_table_of_four_the_penalty_adds_a_half_to_each_cell() -> None:
    """Firth 1993: in a saturated logit the penalised estimate is the log odds ratio of counts plus 1/2."""
    x = np.column_stack([np.ones(20), np.repeat([0.0, 1.0], 10)])
    y = np.array([0.0] * 10 + [1.0] * 3 + [0.0] * 7)
    made = fit_logit(x, y, firth=True)
    assert made is not None
    assert made.coefficients[1] == pytest.approx(log(3.5 / 7.5) - log(0.5 / 10.5))


def test_separated_data_have_an_estimate_with_the_penalty_alone() -> None:
    x = np.column_stack([np.ones(8), np.arange(8.0)])
    y = (np.arange(8) > 3).astype(float)
    plain, chosen = fit_logit(x, y), fit_logit_or_firth(x, y)
    assert plain is not None
    assert not plain.converged
    assert chosen is not None
    assert chosen.firth
    assert chosen.converged
    assert 0.5 < chosen.coefficients[1] < 2


def test_the_ratio_of_penalised_likelihoods_is_large_where_the_column_matters() -> None:
    x, y = drawn(5, 120, -1.2, 0.0)
    matters, does_not = penalised_ratio(x, y, 1), penalised_ratio(x, y, 2)
    assert matters is not None
    assert does_not is not None
    assert likelihood_ratio_p(matters) < 1e-4 < 0.05 < likelihood_ratio_p(does_not)


def test_the_smaller_model_of_the_ratio_is_at_the_maximum_of_the_penalised_likelihood() -> None:
    """The penalty is that of all columns, even if one coefficient is fixed."""

    def loss(free: Floats, x: Floats, y: Floats) -> float:
        logits = x @ np.array([free[0], 0.0, free[1]])
        chance = 1 / (1 + np.exp(-logits))
        _, penalty = np.linalg.slogdet(x.T @ (x * (chance * (1 - chance))[:, None]))
        return -float(np.sum(y * logits - np.logaddexp(0, logits)) + penalty / 2)

    for seed in (3, 4):
        x, y = drawn(seed, 30, -2.0, 0.5)
        best = minimize(loss, np.zeros(2), args=(x, y), tol=1e-10)
        whole, ratio = fit_logit(x, y, firth=True), penalised_ratio(x, y, 1)
        assert whole is not None
        assert ratio == pytest.approx(2 * (whole.penalised + best.fun), abs=1e-6)


def test_columns_that_depend_on_each_other_have_no_estimate() -> None:
    x = np.column_stack([np.ones(20), np.arange(20.0), 2 * np.arange(20.0)])
    assert fit_logit(x, (np.arange(20) % 2).astype(float), firth=True) is None


def test_the_penalty_takes_bias_away() -> None:
    """With 40 tasks and a true slope of -0.67 the plain estimate is too steep by a few hundredths."""
    fits = [drawn(seed, 40, -0.67) for seed in range(150)]
    plain = [
        made.coefficients[1] for x, y in fits if (made := fit_logit(x, y)) is not None and made.converged
    ]
    firth = [made.coefficients[1] for x, y in fits if (made := fit_logit(x, y, firth=True)) is not None]
    assert len(firth) == 150
    assert abs(np.mean(firth) + 0.67) < abs(np.mean(plain) + 0.67)
    assert np.mean(plain) < np.mean(firth)


PRINTED = {"lines": (4163.1, 0.216, 2), "harmonic": (4340.9, 0.183, 2), "both": (4141.4, 0.221, 3)}


@pytest.mark.parametrize(("aic", "r_squared", "parameters"), PRINTED.values(), ids=list(PRINTED))
def test_the_three_fits_that_breakpoint_prints_have_one_null_likelihood(
    aic: float, r_squared: float, parameters: int
) -> None:
    assert -2654.5 < null_from_fit(aic, r_squared, parameters) < -2651.5


def test_the_ratios_and_odds_that_breakpoint_prints() -> None:
    harmonic = 4163.1 - 4141.4 + 2
    lines = 4340.9 - 4141.4 + 2
    assert harmonic == pytest.approx(23.7)
    assert lines == pytest.approx(201.5)
    assert likelihood_ratio_p(harmonic) == pytest.approx(1.1e-6, rel=0.05)
    assert sqrt(harmonic) == pytest.approx(4.87, abs=0.005)
    assert 2 * ndtr(-sqrt(harmonic)) == pytest.approx(likelihood_ratio_p(harmonic))
    assert log(0.45) == pytest.approx(-0.7985, abs=1e-4)
    assert log(0.80) == pytest.approx(-0.2231, abs=1e-4)
    assert exp(log(0.45)) - 1 == pytest.approx(-0.55)
    assert -log(0.45) / sqrt(lines) == pytest.approx(0.056, abs=0.0005)
    assert -log(0.80) / sqrt(harmonic) == pytest.approx(0.046, abs=0.0005)


@pytest.mark.parametrize("firth", [False, True])
def test_a_fit_does_not_depend_on_where_it_starts(firth: bool) -> None:
    draw = np.random.default_rng(20270401)
    x = np.column_stack([np.ones(60), draw.normal(size=60)])
    y = (draw.random(60) < 1 / (1 + np.exp(-x @ [0.3, 0.8]))).astype(float)
    cold, warm = fit_logit(x, y, firth=firth), fit_logit(x, y, firth=firth, start=np.array([2.0, -1.0]))
    assert cold is not None
    assert warm is not None
    assert warm.coefficients == pytest.approx(cold.coefficients, abs=1e-7)
    assert warm.log_likelihood == pytest.approx(cold.log_likelihood)


@pytest.mark.parametrize("firth", [False, True])
def test_a_batch_of_refits_equals_single_fits(firth: bool) -> None:
    """The rows repeat, as those of attempts at the same task do; the last subsets have no estimate."""
    x, y = drawn(11, 24, -0.8, 0.5)
    x, y = np.repeat(x, 4, axis=0), np.tile(y, 4)
    x = np.column_stack([x, np.arange(len(y)) < 20])
    whole = fit_logit(x, y, firth=firth)
    assert whole is not None
    draw = np.random.default_rng(12)
    kept = draw.random((40, len(y))) < 0.8
    kept[-3] = np.arange(len(y)) >= 20  # the last column is 0
    kept[-2] = np.arange(len(y)) < 3  # fewer rows than columns
    kept[-1] = (y == 1) | (np.arange(len(y)) == 70)
    refits = refit_logit(whole, x, y, kept)
    for chosen, refit in zip(kept, refits, strict=True):
        alone = fit_logit(x[chosen], y[chosen], firth=firth, start=whole.coefficients)
        if alone is None or not alone.converged:
            assert np.isnan(refit).all()
        else:
            assert refit == pytest.approx(alone.coefficients, rel=1e-9)
    assert np.isnan(refits[-3:-1]).all()
    assert np.isnan(refits[-1]).all() != firth
