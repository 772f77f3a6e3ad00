"""Cox's model and the mixed model against statsmodels and against simulated parameters."""

from __future__ import annotations

import warnings
from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.cox import PartialLikelihood, hazard_ratio
from gistpoint.core.analysis.findings import Findings
from gistpoint.core.analysis.mixed import fit_mixed
from gistpoint.core.analysis.timeratios import people
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition

TWO = declared(condition=(Condition(id="alone"), Condition(id="assisted")))
WORLD = World(people=12, tasks=12, per_person=8, effect=log(0.5), assisted=True, cap=50)


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def test_cox_and_log_rank_are_those_of_statsmodels() -> None:
    from lifelines import CoxPHFitter
    from lifelines.statistics import logrank_test
    from statsmodels.duration.hazard_regression import PHReg
    from statsmodels.duration.survfunc import survdiff

    rows = people(WORLD.data(1))
    minutes = np.array([(row.primary_s or 0) / 60 for row in rows])
    solved = np.array([row.solved for row in rows])
    x = np.array([float(row.condition == "assisted") for row in rows])
    tasks = np.array([row.task for row in rows])
    theirs = PHReg(minutes, x[:, None], status=solved.astype(int), strata=tasks, ties="efron").fit()
    frame = pd.DataFrame({"minutes": minutes, "solved": solved, "x": x, "task": tasks})
    ours = CoxPHFitter().fit(frame, "minutes", "solved", strata=["task"])
    assert ours.params_["x"] == pytest.approx(theirs.params[0], abs=1e-4), "lifelines stops early"
    found = hazard_ratio(rows, "assisted", "alone")
    assert isinstance(found, tuple)
    assert found[0].value == pytest.approx(exp(theirs.params[0]), rel=1e-6)
    assert PartialLikelihood.of(rows).fit(x)[1] == pytest.approx(theirs.bse[0] ** 2, rel=1e-5)  # type: ignore[index]
    both = logrank_test(minutes[x == 1], minutes[x == 0], solved[x == 1], solved[x == 0])
    assert both.test_statistic == pytest.approx(survdiff(minutes, solved.astype(int), x)[0], rel=1e-6)


def test_ties_are_efron_s() -> None:
    from statsmodels.duration.hazard_regression import PHReg

    draw = np.random.default_rng(2)
    x, minutes = draw.integers(0, 2, 60).astype(float), draw.integers(1, 8, 60)
    rows = [attempt_row(f"P{n}", f"t{n % 3}", n % 4 > 0, minutes=int(m)) for n, m in enumerate(minutes)]
    status, tasks = np.arange(60) % 4 > 0, np.arange(60) % 3
    theirs = PHReg(minutes, x[:, None], status=status.astype(int), strata=tasks, ties="efron").fit()
    ours = PartialLikelihood.of(rows).fit(x)
    assert ours is not None
    assert ours[0] == pytest.approx(theirs.params[0], abs=1e-6)


def test_the_test_of_proportionality_is_a_score_test() -> None:
    """The derivatives are numerical, of the partial likelihood with an effect b + c (rank of the time)."""
    rows = people(WORLD.data(3))
    minutes = np.array([(row.primary_s or 0) / 60 for row in rows])
    solved, x = (
        np.array([row.solved for row in rows]),
        np.array([row.condition == "assisted" for row in rows]),
    )
    tasks = np.array([row.task for row in rows])
    ranks = dict(zip(sorted(minutes[solved]), range(1, solved.sum() + 1), strict=True))

    def value(b: float, c: float) -> float:
        total = 0.0
        for place in np.flatnonzero(solved):
            effect = b + c * ranks[minutes[place]]
            risk = (tasks == tasks[place]) & (minutes >= minutes[place])
            total += effect * x[place] - np.log(np.exp(effect * x[risk]).sum())
        return total

    partial = PartialLikelihood.of(rows)
    b, _ = partial.fit(x.astype(float))  # type: ignore[misc]
    h, k = 1e-3, 1e-4
    score = (value(b, k) - value(b, -k)) / (2 * k)
    bb = (value(b + h, 0) - 2 * value(b, 0) + value(b - h, 0)) / h**2
    cc = (value(b, k) - 2 * value(b, 0) + value(b, -k)) / k**2
    bc = (value(b + h, k) - value(b + h, -k) - value(b - h, k) + value(b - h, -k)) / (4 * h * k)
    statistic = score**2 / -(cc - bc**2 / bb)
    assert partial.proportionality(x.astype(float), b) == pytest.approx(chi2.sf(statistic, 1), rel=1e-3)


def test_the_test_of_proportionality_is_near_that_of_lifelines_with_many_attempts_at_a_task() -> None:
    from lifelines import CoxPHFitter
    from lifelines.statistics import proportional_hazard_test

    draw = np.random.default_rng(5)
    x = draw.integers(0, 2, 300).astype(float)
    minutes = draw.exponential(20, 300) * np.where(x == 1, 0.7, 1.0)
    rows = [attempt_row(f"P{n}", "t", minutes=float(m)) for n, m in enumerate(minutes)]
    frame = pd.DataFrame({"minutes": minutes, "solved": True, "x": x})
    fit = CoxPHFitter().fit(frame, "minutes", "solved")
    theirs = proportional_hazard_test(fit, frame, time_transform="rank").p_value[0]
    partial = PartialLikelihood.of(rows)
    assert partial.proportionality(x, partial.fit(x)[0]) == pytest.approx(theirs, abs=0.05)  # type: ignore[index]


def test_fits_at_once_are_fits_one_by_one() -> None:
    rows = people(WORLD.data(2))
    x = np.array([float(row.condition == "assisted") for row in rows])
    names = np.array([row.participant for row in rows])
    kept = names != np.unique(names)[:, None]
    found, variances = PartialLikelihood.of(rows).fits(x, kept)
    for place, chosen in enumerate(kept):
        alone = PartialLikelihood.of([row for row, keep in zip(rows, chosen, strict=True) if keep]).fit(
            x[chosen]
        )
        assert alone == pytest.approx((found[place], variances[place]), abs=1e-8)


def test_rates_of_solving_of_a_study() -> None:
    found = run("time-cox", WORLD.data(1, study=TWO))
    number = found.numbers["assisted to alone"]
    assert number.value is not None
    assert number.low is not None
    assert number.low > 1, "half the time is a higher rate"
    assert number.iid is not None
    assert "closer to 1" in found.notes[0]


def test_too_few_solved_have_no_ratio_of_rates() -> None:
    names = ("alone", "assisted")
    rows = [attempt_row(f"P{n}", "t", n < 9, minutes=5 + n, condition=names[n % 2]) for n in range(12)]
    (short,) = run("time-cox", study_data(rows, study=TWO)).not_estimated
    assert short.words.endswith("at least 10 solved attempts at tasks of both conditions, and there are 9.")
    apart = [attempt_row(f"P{n}", f"t{n % 2}", minutes=5 + n, condition=names[n % 2]) for n in range(12)]
    (short,) = run("time-cox", study_data(apart, study=TWO)).not_estimated
    assert short.has == 0
    never = [
        attempt_row(f"P{n}", f"t{n // 4}", n % 2 == 0, minutes=5 + n, condition=names[n % 2])
        for n in range(40)
    ]
    assert "more than one of the ways" in run("time-cox", study_data(never, study=TWO)).not_estimated[0].words


def test_the_mixed_model_finds_both_spreads() -> None:
    """Persons have a spread of .4, tasks .6, noise .6, and nobody is censored."""
    world = World(people=40, tasks=40, per_person=12, effect=-0.5, assisted=True, cap=1e9)
    fit = fit_mixed(people(world.data(5)), ["assisted"])
    assert fit is not None
    assert fit.person_sd == pytest.approx(0.4, abs=0.12)
    assert fit.task_sd == pytest.approx(0.6, abs=0.2)
    assert fit.sigma == pytest.approx(0.6, abs=0.05)
    effect, error = fit.effects["assisted"]
    assert abs(effect + 0.5) < 2.5 * error


def test_the_spread_of_a_study_is_descriptive() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run("time-mixed", WORLD.data(1, study=TWO))
    assert set(found.numbers) == {"sd/persons", "sd/tasks", "sd/rest", "assisted to alone"}
    assert all(number.low is None for number in found.numbers.values())
    few = [attempt_row(f"P{n % 2}", f"t{n}", minutes=5 + n) for n in range(12)]
    assert "needs at least 3 persons" in run("time-mixed", study_data(few)).not_estimated[0].words
