"""Regressions of success: Wald's figures equal those of statsmodels; the jackknife's follow its formula."""

from __future__ import annotations

from math import exp
from random import Random

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t
from study_rows import attempt_row

from gistpoint.core.analysis.firth import fit_logit
from gistpoint.core.analysis.regression import regress
from gistpoint.core.study.rows import AttemptRow


def drawn(tasks: int = 30, people: int = 5) -> tuple[list[AttemptRow], list[float]]:
    draw = Random(8)
    z = [draw.gauss(0, 1) for _ in range(tasks)]
    rows, metric = [], []
    for person in range(people):
        for task in draw.sample(range(tasks), tasks // 2):
            rows.append(
                attempt_row(f"P{person}", f"t{task}", draw.random() < 1 / (1 + exp(-(0.3 - 0.8 * z[task]))))
            )
            metric.append(z[task])
    return rows, metric


def test_walds_interval_and_p_are_those_of_statsmodels() -> None:
    rows, z = drawn()
    model = regress(rows, {"z": z})
    assert model is not None
    x = sm.add_constant(np.array(z))
    theirs = sm.Logit(np.array([float(row.solved) for row in rows]), x).fit(disp=0)
    assert model.coefficient("z").value == pytest.approx(theirs.params[1])
    assert model.wald_interval("z") == pytest.approx(tuple(theirs.conf_int()[1]), abs=1e-7)
    assert model.wald_p("z") == pytest.approx(theirs.pvalues[1])


def test_the_jackknifes_variance_and_p_follow_the_formula() -> None:
    rows, z = drawn()
    model = regress(rows, {"z": z})
    assert model is not None
    x, y = np.column_stack([np.ones(len(z)), z]), np.array([float(row.solved) for row in rows])
    whole = fit_logit(x, y)
    assert whole is not None

    def variance(names: list[str]) -> float:
        left_out = sorted(set(names))
        gaps = []
        for name in left_out:
            kept = np.array([other != name for other in names])
            refit = fit_logit(x[kept], y[kept])
            assert refit is not None
            gaps.append(refit.coefficients[1] - whole.coefficients[1])
        return float((len(left_out) - 1) / len(left_out) * np.sum(np.square(gaps)))

    by_person, by_task = variance([row.participant for row in rows]), variance([row.task for row in rows])
    expected = max(by_person + by_task - whole.covariance[1, 1], by_person, by_task)
    number = model.coefficient("z")
    assert number.low is not None
    assert number.value is not None
    assert number.value - number.low == pytest.approx(t.ppf(0.975, 4) * expected**0.5)
    assert model.p("z") == pytest.approx(2 * t.sf(abs(number.value) / expected**0.5, 4))


def test_the_change_of_the_odds_is_that_of_the_coefficient() -> None:
    rows, z = drawn()
    model = regress(rows, {"z": z})
    assert model is not None
    b, change = model.coefficient("z"), model.odds_change("z")
    told = [(b.value, change.value), (b.low, change.low), (b.high, change.high)]
    for one, other in [*told, *zip(b.iid or (), change.iid or (), strict=True)]:
        assert one is not None
        assert other == pytest.approx(exp(one) - 1)


def test_the_log_odds_on_a_grid_are_those_of_the_coefficients() -> None:
    rows, z = drawn()
    model = regress(rows, {"z": z}, firth=True, grid=np.array([[1.0, -1.0], [1.0, 2.0]]))
    assert model is not None
    constant, slope = model.fit.coefficients
    assert model.grid.estimate == pytest.approx([constant - slope, constant + 2 * slope])


def test_columns_that_say_the_same_have_no_regression() -> None:
    rows, z = drawn()
    assert regress(rows, {"z": z, "again": z}) is None
