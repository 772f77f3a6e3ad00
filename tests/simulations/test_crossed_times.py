"""The regression of censored times with random tasks and persons, against other fits of the same model."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from statsmodels.regression.mixed_linear_model import MixedLM

from gistpoint.core.analysis.contrast import VarianceRatios
from gistpoint.core.analysis.crossed_times import CrossedTimes, changes_without_each, effects_on_times
from gistpoint.core.analysis.intervals import Units, jackknife
from gistpoint.core.analysis.power import PowerAssumptions, PowerDesign, power_of
from gistpoint.core.study.declaration import PrimaryOutcome


def drawn(
    seed: int, limit: float = np.inf, people: int = 8, each: int = 6, tasks: int = 12
) -> tuple[CrossedTimes, Units]:
    """Return times with an effect of -.4 of a condition, cut at a limit of the log time."""
    draw = np.random.default_rng(seed)
    persons = np.repeat(np.arange(people), each)
    given = draw.permutation(tasks)[np.arange(people * each) % tasks]
    side = (np.arange(people * each) // tasks + np.arange(people * each)) % 2
    logs = 3 + draw.normal(0, 0.5, people)[persons] + draw.normal(0, 0.8, tasks)[given] - 0.4 * side
    logs = logs + draw.normal(0, 0.6, len(logs))
    units = Units(persons, given)
    x = np.column_stack([np.ones(len(logs)), side])
    return CrossedTimes.of(units, x, np.minimum(logs, limit), logs < limit), units


@pytest.mark.parametrize("limit", [np.inf, 3.3])
def test_the_fit_is_the_maximum_of_the_stated_likelihood(limit: float) -> None:
    times, _ = drawn(1, limit)
    ratios, people, tasks = VarianceRatios(0.7, 2.0), times.person_count, times.task_count

    def loss(at: np.ndarray) -> float:
        b, v, u, sigma = at[:2], at[2 : 2 + people], at[2 + people : -1], np.exp(at[-1])
        left = (times.y - times.x @ b - v[times.persons] - u[times.tasks]) / sigma
        terms = np.where(times.solved, norm.logpdf(left) - np.log(sigma), norm.logsf(left)).sum()
        penalty = (ratios.person * v @ v + ratios.task * u @ u) / sigma**2 / 2
        return float(penalty - terms - 2 * np.log(sigma))

    theirs = minimize(loss, np.append(np.zeros(2 + people + tasks), 0.0), method="BFGS", tol=1e-9)
    ours = times.fits([ratios])
    assert ours.columns[0] == pytest.approx(theirs.x[:2], abs=1e-4)
    assert ours.persons[0] == pytest.approx(theirs.x[2 : 2 + people], abs=1e-4)
    assert ours.tasks[0] == pytest.approx(theirs.x[2 + people : -1], abs=1e-4)
    assert ours.sigma[0] == pytest.approx(np.exp(theirs.x[-1]), abs=1e-4)


def test_without_censoring_it_is_the_mixed_model_of_statsmodels() -> None:
    """The grid of variances is coarse, so estimates are compared in units of their standard error."""
    for seed in range(3):
        times, units = drawn(seed, people=20, each=10, tasks=24)
        frame = pd.DataFrame(
            {"y": times.y, "x": times.x[:, 1], "person": times.persons, "task": times.tasks, "all": 1}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = MixedLM.from_formula(
                "y ~ x", frame, groups="all", re_formula="0",
                vc_formula={"person": "0 + C(person)", "task": "0 + C(task)"},
            ).fit()  # fmt: skip
        ours = effects_on_times(units, times.x, times.y, times.solved, np.eye(2)[1:])
        assert ours is not None
        assert abs(ours.spread.estimate[0] - theirs.params["x"]) < 0.1 * theirs.bse["x"]
        assert ours.errors[0] == pytest.approx(theirs.bse["x"], rel=0.05)
        assert ours.sigma == pytest.approx(theirs.scale**0.5, rel=0.05)


def test_the_evidence_is_the_restricted_likelihood_but_for_a_constant() -> None:
    times, _ = drawn(2)
    n = len(times.y)
    pairs = [VarianceRatios(0.7, 2.0), VarianceRatios(2.0, 0.7), VarianceRatios(20.0, 6.0)]
    exact = []
    for ratios in pairs:
        covariance = np.eye(n) + (times.tasks[:, None] == times.tasks) / ratios.task
        covariance += (times.persons[:, None] == times.persons) / ratios.person
        inverse = np.linalg.inv(covariance)
        inner = times.x.T @ inverse @ times.x
        residual = times.y - times.x @ np.linalg.solve(inner, times.x.T @ inverse @ times.y)
        log_determinants = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(inner)[1]
        exact.append(-((n - 2) * np.log(residual @ inverse @ residual) + log_determinants) / 2)
    found = times.fits(pairs).evidence
    assert found - found[0] == pytest.approx(np.array(exact) - exact[0], abs=1e-6)


@pytest.mark.parametrize("limit", [np.inf, 3.6])
def test_the_variances_are_those_of_single_refits(limit: float) -> None:
    times, units = drawn(3, limit)
    found = effects_on_times(units, times.x, times.y, times.solved, np.eye(2)[1:])
    likeliest = times.likeliest()
    assert found is not None
    assert likeliest is not None
    ratios, fit = likeliest
    slow = jackknife(units, lambda kept: times.fits([ratios], kept[None]).columns[0, 1])
    assert found.spread.by_persons == pytest.approx(slow.by_persons, rel=1e-4)
    assert found.spread.by_tasks == pytest.approx(slow.by_tasks, rel=1e-4)
    assert found.spread.by_rows == pytest.approx(slow.by_rows, rel=0.02)
    kept = ~np.eye(len(times.y), dtype=bool)
    refits = times.fits([ratios], kept, fit.at[0]).columns - fit.columns
    tolerance = 1e-6 if np.isinf(limit) else 0.015
    assert changes_without_each(times, ratios, fit)[:, 1] == pytest.approx(refits[:, 1], abs=tolerance)


@pytest.mark.parametrize("limit", [np.inf, 3.3])
def test_persons_and_tasks_are_interchangeable(limit: float) -> None:
    """The side with more members is eliminated from the equations, which must not change a number."""
    times, _ = drawn(6, limit, people=20, each=5, tasks=9)
    swapped = CrossedTimes(
        times.x, times.y, times.solved, times.tasks, times.persons, times.task_count, times.person_count
    )
    ratios, turned = VarianceRatios(0.7, 2.0), VarianceRatios(2.0, 0.7)
    one, other = times.fits([ratios]), swapped.fits([turned])
    assert one.persons == pytest.approx(other.tasks, abs=1e-9)
    assert one.tasks == pytest.approx(other.persons, abs=1e-9)
    for name in ("columns", "sigma", "covariance", "evidence"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9), name
    changes = changes_without_each(times, ratios, one), changes_without_each(swapped, turned, other)
    assert changes[0] == pytest.approx(changes[1], abs=1e-9)


@pytest.mark.parametrize("people", [6, 20])
def test_a_fit_is_the_same_alone_and_in_a_batch(people: int) -> None:
    """A batch goes on with the fits that are not done, so it must not mix them up; one here is impossible."""
    times, _ = drawn(7, 3.3, people=people, each=6, tasks=12)
    kept = times.persons != np.arange(times.person_count)[:, None]
    nobody = ~times.solved | (times.persons < 0)
    kept = np.vstack([kept[:2], nobody, kept[2:]])
    ratios = VarianceRatios(3.0, 0.5)
    together = times.fits([ratios], kept)
    assert np.isnan(together.columns[2]).all()
    for place, rows in enumerate(kept):
        alone = times.fits([ratios], rows[None])
        for name in ("columns", "persons", "tasks", "sigma", "task_errors", "evidence"):
            if place != 2:
                expected = pytest.approx(getattr(alone, name)[0], abs=1e-9)
                assert getattr(together, name)[place] == expected, (place, name)


def test_equal_data_are_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times, units = drawn(8)
    first = effects_on_times(units, times.x, times.y, times.solved, np.eye(2)[1:])

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(CrossedTimes, "likeliest", never)
    assert effects_on_times(units, times.x.copy(), times.y, times.solved, np.eye(2)[1:]) is first
    with pytest.raises(AssertionError):
        effects_on_times(units, times.x, times.y + 1, times.solved, np.eye(2)[1:])


def test_an_effect_without_a_maximum_is_no_fit() -> None:
    times, units = drawn(4)
    nobody = times.solved & (times.x[:, 1] == 0)
    assert effects_on_times(units, times.x, times.y, nobody, np.eye(2)[1:]) is None
    same = np.full_like(times.y, 2.0)
    assert effects_on_times(units, times.x[:, :1], same, times.solved, np.eye(1)) is None


def test_attempts_at_tasks_that_nobody_solved_count() -> None:
    times, _ = drawn(5, 3.3)
    unsolved = times.tasks == times.tasks[0]
    found = CrossedTimes(
        times.x, times.y, times.solved & ~unsolved, times.persons, times.tasks, times.person_count,
        times.task_count,
    ).fits([VarianceRatios(0.7, 2.0)])  # fmt: skip
    assert found.tasks[0].argmax() == times.tasks[0]


def test_power_predicts_the_interval_of_the_report() -> None:
    """The report's function on outcomes drawn here; the tolerance is three standard errors of the means."""
    people, each, tasks, draws = 12, 4, 40, 24
    sd = 0.9 / 1.702
    halves = []
    for seed in range(draws):
        draw = np.random.default_rng((7, seed))
        persons = np.repeat(np.arange(people), each)
        given = draw.permutation(tasks)[np.arange(people * each) % tasks]
        side = ((np.arange(people * each) // tasks + np.arange(people * each) % tasks) % 2).astype(float)
        logs = draw.normal(0, 0.8 * sd, people)[persons] + draw.normal(0, 1.2 * sd, tasks)[given]
        logs = logs + draw.normal(0, 0.9, len(logs))
        place = np.concatenate([draw.permutation(each) for _ in range(people)]).astype(float)
        x = np.column_stack([np.ones(len(logs)), side, place - place.mean()])
        units = Units(persons, given)
        found = effects_on_times(units, x, np.minimum(logs, 0.72), logs < 0.72, np.eye(3)[1:2])
        assert found is not None
        halves.append(float(found.spread.half[0]))
    design = PowerDesign(
        people=people, each=each, tasks=tasks, outcome=PrimaryOutcome.TIME_RATIO, contrast=True
    )
    promised = power_of(design, PowerAssumptions(effect=1.0), 1, draws=draws).half_width
    error = np.std(halves) / np.sqrt(draws)
    assert promised is not None
    assert np.log(promised) == pytest.approx(np.mean(halves), abs=3 * 2**0.5 * error)
