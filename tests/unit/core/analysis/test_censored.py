"""The censored regression against lifelines, closed forms and simulated effects."""

from __future__ import annotations

import warnings
from math import exp, log

import numpy as np
import pytest
from msgspec import structs
from scipy.stats import norm
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.censored import fit_censored
from gistpoint.core.analysis.censored_refits import CensoredRows
from gistpoint.core.analysis.findings import Findings
from gistpoint.core.analysis.timeratios import condition_ratio, people, regress_times, solved_only
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, Protocol

TWO = declared(condition=(Condition(id="alone"), Condition(id="assisted")))


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def test_without_censoring_it_is_least_squares() -> None:
    draw = np.random.default_rng(1)
    x = np.column_stack([np.ones(50), draw.normal(size=50)])
    y = x @ [3.0, -0.5] + draw.normal(0, 0.7, 50)
    fit = fit_censored(x, y, np.ones(50, dtype=bool))
    assert fit is not None
    b, rest = np.linalg.lstsq(x, y, rcond=None)[:2]
    assert fit.coefficients == pytest.approx(b, abs=1e-8)
    assert fit.sigma == pytest.approx(np.sqrt(rest[0] / 50), rel=1e-8)
    assert fit.covariance == pytest.approx(fit.sigma**2 * np.linalg.inv(x.T @ x), rel=1e-6)


def test_it_is_lifelines_accelerated_failure_time() -> None:
    import pandas as pd
    from lifelines import LogNormalAFTFitter

    draw = np.random.default_rng(2)
    x = draw.normal(size=(200, 2))
    true = x @ [0.5, -0.3] + 3 + draw.normal(0, 0.8, 200)
    y, solved = np.minimum(true, log(35)), true <= log(35)
    ours = fit_censored(np.column_stack([x, np.ones(200)]), y, solved)
    assert ours is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = LogNormalAFTFitter().fit(
            pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "t": np.exp(y), "e": solved}), "t", event_col="e"
        )
    assert theirs.params_["mu_"][["a", "b", "Intercept"]].to_numpy() == pytest.approx(
        ours.coefficients, abs=1e-5
    )
    assert exp(theirs.params_["sigma_"]["Intercept"]) == pytest.approx(ours.sigma, abs=1e-5)
    errors = theirs.standard_errors_["mu_"][["a", "b", "Intercept"]].to_numpy()
    assert np.sqrt(np.diag(ours.covariance)) == pytest.approx(errors, rel=1e-3)


def test_an_infinite_effect_is_no_fit() -> None:
    """Nobody solves in the second half, so its time is longer than any."""
    y = np.concatenate([np.linspace(1, 2, 20), np.full(20, 3.0)])
    x = np.column_stack([np.ones(40), np.arange(40) >= 20]).astype(float)
    assert fit_censored(x, y, np.arange(40) < 20) is None
    assert fit_censored(x, y, np.zeros(40, dtype=bool)) is None
    assert fit_censored(np.column_stack([x, x[:, 1]]), y, np.ones(40, dtype=bool)) is None


def test_the_middle_of_censored_times_is_found_where_that_of_solved_ones_is_too_short() -> None:
    """Median 30, sigma .9, cap 40: the closed form gives a share of .625 and a solved mean of 17.4."""
    median, sigma, cap = 30.0, 0.9, 40.0
    a = (log(cap) - log(median)) / sigma
    assert norm.cdf(a) == pytest.approx(0.625, abs=5e-4)
    assert exp(log(median) - sigma * norm.pdf(a) / norm.cdf(a)) == pytest.approx(17.4, abs=0.05)
    true = np.log(median) + sigma * norm.ppf((np.arange(4000) + 0.5) / 4000)
    solved = true <= log(cap)
    fit = fit_censored(np.ones((4000, 1)), np.minimum(true, log(cap)), solved)
    assert fit is not None
    assert exp(fit.coefficients[0]) == pytest.approx(30, rel=0.002)
    assert fit.sigma == pytest.approx(0.9, rel=0.002)


def test_the_ratio_of_times_is_found_where_that_of_solved_ones_is_too_near_to_one() -> None:
    world = World(people=60, tasks=24, per_person=8, effect=log(0.6), assisted=True, cap=30)
    rows = people(world.data(1))
    found = condition_ratio(rows, "assisted", "alone")
    assert not hasattr(found, "words")
    ratio = found.ratio("assisted")  # type: ignore[union-attr]
    assert ratio.value is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 0.6 < ratio.high
    assert ratio.value == pytest.approx(0.6, abs=0.06)
    only = solved_only(rows, "assisted", "alone")
    assert only is not None
    assert only.value is not None
    assert only.low is None
    assert only.value > ratio.value + 0.03


def test_ratios_of_a_study() -> None:
    world = World(people=20, per_person=8, effect=log(0.6), assisted=True, metric_slope=0.4, task_sd=0.3)
    found = run("time-ratio", world.data(3, study=TWO))
    assert set(found.numbers) == {"assisted to alone", "assisted to alone/solved only", "code_lines"}
    assert found.numbers["code_lines"].value == pytest.approx(exp(0.4), rel=0.3)
    assert found.numbers["assisted to alone"].iid is not None


def test_what_people_said_is_an_effect_too() -> None:
    rows, _ = World(people=20, per_person=8).rows(6)
    # With exact forecasts nothing would remain to be explained, and the fit could end on either side of 0.
    noise = np.random.default_rng(1)
    told = []
    for row in rows:
        minutes = (row.primary_s or 0) / 60
        row.answers["task.forecast_minutes"] = minutes * 1.5 * noise.lognormal(0, 0.05)
        row.answers["task.knew_code"] = 1 if minutes > 20 else 4
        told.append(row)
    found = run("time-ratio", study_data(told))
    assert found.numbers["knew_code"].value is not None
    assert found.numbers["knew_code"].value < 0.9
    assert found.numbers["forecast_minutes"].value == pytest.approx(2.0, rel=0.2)


def test_a_declared_contrast_reads_the_first_against_the_second() -> None:
    study = declared(
        condition=(Condition(id="assisted"), Condition(id="alone")),
        protocol=Protocol(primary_contrast=("assisted", "alone")),
    )
    data = World(people=20, per_person=8, effect=log(0.6), assisted=True).data(3, study=study)
    assert "assisted to alone" in run("time-ratio", data).numbers


def test_the_interaction_with_the_mode_is_recovered() -> None:
    """Assistance reduces times in removal to 0.3 and leaves those in discovery unchanged."""
    rows, _ = World(people=40, tasks=24, per_person=8, assisted=True, cap=90).rows(8)
    made = []
    for row in rows:
        remove = int(row.task[1:]) % 2 == 0
        factor = 0.3 if remove and row.condition == "assisted" else 1.0
        minutes = (row.primary_s or 0) / 60 * factor
        made.append(
            attempt_row(
                row.participant,
                row.task,
                row.solved,
                minutes=minutes,
                condition=row.condition,
                position=row.position,
                mode="remove" if remove else "discovery",
            )
        )
    found = run("time-mode", study_data(made, study=TWO))
    for effect, true in (("remove", 0.3), ("discovery", 1.0), ("remove over discovery", 0.3)):
        number = found.numbers[f"assisted to alone/{effect}"]
        assert number.low is not None
        assert number.high is not None
        assert number.low < true < number.high, effect
    assert number.high < 1


def test_a_mode_with_few_tasks_does_not_spoil_the_others() -> None:
    rows, _ = World(people=40, tasks=24, per_person=8, assisted=True).rows(5)
    modes = {
        "t001": "gist",
        "t002": "discovery",
        "t003": "discovery",
        "t004": "discovery",
        "t005": "discovery",
    }
    told = [structs.replace(row, mode=modes.get(row.task, "remove")) for row in rows]
    found = run("time-mode", study_data(told, study=TWO))
    assert found.numbers["assisted to alone/remove over discovery"].low is not None
    assert not any("gist" in key for key in found.numbers)
    (short,) = found.not_estimated
    assert short.words.endswith(
        "gist, is not estimated: it needs at least 3 tasks attempted in both conditions, and there is 1."
    )


def test_too_few_solved_and_a_condition_that_nobody_solved_are_told() -> None:
    names = ("alone", "assisted")
    few = [
        attempt_row(f"P{n}", f"t{n % 3}", n < 9, minutes=10 + n, condition=names[n % 2]) for n in range(12)
    ]
    short = condition_ratio(few, "assisted", "alone")
    assert "10 solved attempts, and there are 9" in short.words  # type: ignore[union-attr]
    lost = [
        attempt_row(f"P{n}", f"t{n % 5}", n % 2 == 0, minutes=10 + n, condition=names[n % 2])
        for n in range(24)
    ]
    short = condition_ratio(lost, "assisted", "alone")
    assert "solved attempt in each of the ways compared" in short.words  # type: ignore[union-attr]


def test_conditions_that_share_no_task_are_compared_across_tasks() -> None:
    rows = [
        attempt_row(f"P{n % 5}", f"t{n % 8}", minutes=10 + n % 7, condition=("alone", "assisted")[n % 2])
        for n in range(40)
    ]
    found = condition_ratio(rows, "assisted", "alone")
    assert found.ratio("assisted").low is not None  # type: ignore[union-attr]


def test_tasks_that_tell_nothing_are_left_out() -> None:
    rows, _ = World(people=12, per_person=8, assisted=True).rows(8)
    known = people(study_data(rows))
    hard = [attempt_row(person, "hard", False, minutes=60) for person in ("P02", "P03")]
    lone = [*known, attempt_row("P01", "lone", minutes=3), *hard]
    columns = [float(row.condition == "assisted") for row in known]
    one = regress_times("r", known, {"c": columns})
    other = regress_times("r", lone, {"c": [*columns, 1.0, 0.0, 1.0]})
    assert one.ratio("c") == other.ratio("c")  # type: ignore[union-attr]


@pytest.mark.parametrize("cap", [20.0, 60.0])
def test_a_batch_of_refits_equals_single_fits(cap: float) -> None:
    draw = np.random.default_rng(9)
    constants = np.repeat(np.arange(8), 12)
    x = np.column_stack([draw.normal(size=96), draw.random(96) < 0.5])
    true = 3 + draw.normal(0, 0.6, 8)[constants] + x @ [0.4, -0.3] + draw.normal(0, 0.8, 96)
    y, solved = np.minimum(true, log(cap)), true <= log(cap)

    def columns(kept: np.ndarray) -> np.ndarray:
        present = np.unique(constants[kept])
        return np.column_stack([x[kept], constants[kept][:, None] == present]).astype(float)

    whole = fit_censored(columns(np.ones(96, dtype=bool)), y, solved)
    assert whole is not None
    kept = draw.random((30, 96)) < 0.8
    kept[-5] &= constants != 3
    kept[-4] &= ~solved  # nothing is solved
    kept[-3] = np.arange(96) < 3  # fewer rows than columns
    kept[-2] &= x[:, 1] == 0  # a column is 0
    kept[-1] &= solved | (x[:, 1] == 0) | (constants < 2)
    data = CensoredRows(x.astype(float), y, solved, constants)
    refits = data.refits(kept, whole.coefficients[:2], whole.coefficients[2:], whole.sigma)
    for chosen, refit in zip(kept, refits, strict=True):
        alone = fit_censored(columns(chosen), y[chosen], solved[chosen])
        if alone is None:
            assert np.isnan(refit).all()
        else:
            assert refit == pytest.approx(alone.coefficients[:2], rel=1e-7, abs=1e-8)
    assert np.isfinite(refits[:-4]).mean() > 0.9
    assert np.isnan(refits[-4:-1]).all()
