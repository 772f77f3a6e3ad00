"""The confirmatory contrast against a dense mixed model, refits, and the power analysis."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.mixed_linear_model import MixedLM
from study_rows import attempt_row

from gistpoint.core.analysis.contrast import VarianceRatios, _WorkingModel, contrast_of, difference
from gistpoint.core.analysis.findings import Number, Shortfall
from gistpoint.core.analysis.intervals import NO_PERSON, Units, jackknife
from gistpoint.core.analysis.power import PowerAssumptions, PowerDesign, power_of
from gistpoint.core.analysis.versus import solved


def drawn(seed: int, people: int = 8, each: int = 5, tasks: int = 12, models: int = 0) -> _WorkingModel:
    """Return a working model of attempts by persons and, if `models` is not 0, a model; the effect is .3."""
    draw = np.random.default_rng(seed)
    persons = np.concatenate([np.repeat(np.arange(people), each), np.full(models, NO_PERSON)])
    given_tasks = np.concatenate([draw.integers(0, tasks, people * each), np.arange(models) % tasks])
    side = draw.random(len(persons)) < 0.5
    values = draw.normal(0, 0.5, tasks)[given_tasks] + draw.normal(0, 0.4, people + 1)[persons]
    return _WorkingModel.of(
        Units(persons, given_tasks), values + 0.3 * side + draw.normal(0, 0.5, len(side)), side
    )


def dense(model: _WorkingModel, ratios: VarianceRatios, kept: np.ndarray) -> float:
    """Return the generalised least squares estimate with the whole covariance matrix."""
    persons, tasks = model.persons[kept], model.tasks[kept]
    same_person = (persons[:, None] == persons) & (persons < model.person_count)
    covariance = np.eye(len(tasks)) + (tasks[:, None] == tasks) / ratios.task + same_person / ratios.person
    design = np.column_stack([np.ones(len(tasks)), model.side[kept]])
    weighted = np.linalg.solve(covariance, design)
    return float(np.linalg.solve(design.T @ weighted, weighted.T @ model.values[kept])[1])


@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 7]),
    st.sampled_from([VarianceRatios(2, 4), VarianceRatios(0.5, 1e4)]),
)
def test_the_equations_give_generalised_least_squares(seed: int, models: int, ratios: VarianceRatios) -> None:
    model = drawn(seed, models=models)
    kept = np.random.default_rng(seed).random(len(model.values)) < 0.9
    if np.ptp(model.side[kept]):
        assert model.fit(ratios, kept) == pytest.approx(dense(model, ratios, kept), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_variance_of_single_attempts_is_that_of_refits(seed: int) -> None:
    model = drawn(seed)
    ratios = model.likeliest_ratios()
    slow = jackknife(Units(model.persons, model.tasks), lambda kept: model.fit(ratios, kept))
    assert model.variance_of_rows(ratios) == pytest.approx(float(slow.by_rows[0]), rel=1e-6)


def test_a_side_of_one_attempt_has_no_variance_over_single_attempts() -> None:
    persons, tasks = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 1, 2, 3, 2, 3])
    values = np.array([1.0, 0, 1, 0, 1, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spread = difference(Units(persons, tasks), values, np.arange(8) == 0)
    assert np.isfinite(spread.estimate).all()
    assert np.isnan(spread.by_rows).all()


def test_the_variances_are_near_those_of_statsmodels() -> None:
    """The grid is coarse, so the estimates are compared, in units of their standard error."""
    for seed in range(3):
        model = drawn(seed, people=20, each=10, tasks=25)
        frame = pd.DataFrame(
            {"y": model.values, "x": model.side, "person": model.persons, "task": model.tasks, "all": 1}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = MixedLM.from_formula(
                "y ~ x", frame, groups="all", re_formula="0",
                vc_formula={"person": "0 + C(person)", "task": "0 + C(task)"},
            ).fit()  # fmt: skip
        ours = model.fit(model.likeliest_ratios(), np.ones(len(model.values), dtype=bool))
        assert abs(ours - theirs.params["x"]) < 0.1 * theirs.bse["x"]


def test_all_attempts_count_even_at_tasks_of_one_side() -> None:
    first = [attempt_row(f"P{n}", f"t{n}", n < 6, condition="help") for n in range(8)]
    second = [attempt_row(f"P{n}", f"t{n + 8}", n < 2, condition="alone") for n in range(8)]
    found = contrast_of("help minus alone", first, second, solved)
    assert isinstance(found, Number)
    assert found.value == pytest.approx(0.5)
    assert (found.rows, found.tasks, found.persons) == (16, 16, 8)


def test_a_side_with_too_few_attempts_has_no_contrast() -> None:
    rows = [attempt_row(f"P{n}", f"t{n}") for n in range(6)]
    found = contrast_of("a minus b", rows, rows[:4], solved)
    assert isinstance(found, Shortfall)
    assert (
        found.words
        == "a minus b is not estimated: it needs at least 5 attempts on each side, and there are 4."
    )


def test_equal_attempts_have_no_interval_of_zero_width() -> None:
    first = [attempt_row(f"P{n}", f"t{n % 4}", True) for n in range(8)]
    second = [attempt_row(f"P{n}", f"t{n % 4}", False) for n in range(8)]
    found = contrast_of("a minus b", first, second, solved)
    assert isinstance(found, Number)
    assert found.value == pytest.approx(1.0)
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize(("people", "each", "tasks"), [(12, 4, 40), (24, 6, 24)])
def test_power_predicts_the_interval_that_the_report_prints(people: int, each: int, tasks: int) -> None:
    """Thin designs have few tasks under both conditions; the attempts are drawn here, not by the product."""
    halves = []
    for seed in range(40):
        draw = np.random.default_rng(seed)
        persons, places = np.repeat(np.arange(people), each), np.arange(people * each)
        given_tasks = draw.permutation(tasks)[places % tasks]
        side = (places // tasks + places % tasks) % 2 == 1
        latent = 0.8 * draw.standard_normal(people)[persons] + 1.2 * draw.standard_normal(tasks)[given_tasks]
        succeeded = draw.random(len(latent)) < 1 / (1 + np.exp(-latent))
        rows = [
            attempt_row(f"P{p}", f"t{t}", bool(s))
            for p, t, s in zip(persons, given_tasks, succeeded, strict=True)
        ]
        sides = [[row for row, here in zip(rows, side == one, strict=True) if here] for one in (True, False)]
        found = contrast_of("", sides[0], sides[1], solved)
        assert isinstance(found, Number)
        assert found.low is not None
        assert found.high is not None
        halves.append((found.high - found.low) / 2)
    design = PowerDesign(people=people, each=each, tasks=tasks, contrast=True)
    predicted = power_of(design, PowerAssumptions(rate=0.5, ability=0.8, task=1.2), 1, draws=40).half_width
    error = float(np.std(halves) / np.sqrt(len(halves)))
    assert predicted == pytest.approx(np.mean(halves), abs=4 * error)


def test_an_interval_that_was_not_requested_is_not_computed() -> None:
    model = drawn(1)
    units = Units(model.persons, model.tasks)
    assert np.isnan(difference(units, model.values, model.side > 0, interval=False).by_rows).all()
