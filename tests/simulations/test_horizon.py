"""Minutes of tasks, and horizons against published ones and closed forms."""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis import horizon
from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.horizon import (
    CHANCES,
    PENALTY,
    HorizonFit,
    Timed,
    _horizons,
    bootstrap,
    fit_horizon,
    fit_horizons,
    run_weights,
    within_tasks,
)
from gistpoint.core.analysis.intervals import Units
from gistpoint.core.analysis.measured_horizon import HorizonLink, HumanMinutes, Runs
from gistpoint.core.analysis.printing import interval_words
from gistpoint.core.analysis.tasktimes import Minutes, task_times
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


PUBLISHED = [
    (-0.551748, 1.480455, 6.4228, 1.1256),
    (-0.524556, 2.547853, 28.98, 4.64),
    (-0.753789, 4.342522, 54.23, 15.16),
    (-0.558145, 3.801144, 112.23, 20.06),
]
"""METR's slope, intercept, p50 and p80 of Claude 3 Opus, Claude 3.5 Sonnet (new), 3.7 Sonnet and o3."""


@pytest.mark.parametrize(("slope", "intercept", "p50", "p80"), PUBLISHED)
def test_horizons_follow_from_published_coefficients(
    slope: float, intercept: float, p50: float, p80: float
) -> None:
    fit = HorizonFit(slope, intercept)
    assert (fit.at(0.5), fit.at(0.8)) == (pytest.approx(p50, rel=2e-4), pytest.approx(p80, rel=1e-3))


def simulated(seed: int, size: int = 80) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    minutes = np.exp(draw.normal(log(54), 1.5, size))
    chance = 1 / (1 + np.exp(-0.75 * (log(54) - np.log(minutes)) / log(2)))
    return minutes, (draw.random(size) < chance).astype(float), draw.uniform(0.2, 1, size)


def test_the_fit_is_the_minimum_of_the_stated_sum() -> None:
    minutes, scores, weights = simulated(1)
    x, w = np.log2(minutes), weights / weights.sum()

    def objective(b: np.ndarray) -> float:
        logits = b[0] * x + b[1]
        return float(10 * (w @ (np.logaddexp(0, logits) - scores * logits)) + b[0] ** 2 / 2)

    found = minimize(objective, np.zeros(2), tol=1e-12)
    fit = fit_horizon(minutes, scores, weights)
    assert fit is not None
    assert (fit.slope, fit.intercept) == (
        pytest.approx(found.x[0], abs=1e-5),
        pytest.approx(found.x[1], abs=1e-5),
    )


def test_the_penalty_flattens_the_slope() -> None:
    """It reduces a slope of -.75 to about -.63 in the long run, which hardly moves p50."""
    minutes, scores, _ = simulated(2, 20_000)
    plain, penalised = (fit_horizon(minutes, scores, np.ones(20_000), penalty) for penalty in (0.0, 0.1))
    assert plain is not None
    assert penalised is not None
    assert plain.slope == pytest.approx(-0.75, abs=0.03)
    assert penalised.slope == pytest.approx(-0.63, abs=0.04)
    assert plain.at(0.5) == pytest.approx(54, rel=0.05)
    assert penalised.at(0.5) == pytest.approx(plain.at(0.5), rel=0.05)


def test_a_fractional_score_is_two_weighted_rows() -> None:
    minutes, _, weights = simulated(3, 12)
    scores = np.linspace(1, 0, 12)[np.argsort(np.argsort(minutes))]
    one = fit_horizon(minutes, scores, weights)
    doubled = np.concatenate([minutes, minutes])
    two = fit_horizon(
        doubled, np.repeat([1.0, 0.0], 12), np.concatenate([weights * scores, weights * (1 - scores)])
    )
    assert one is not None
    assert two is not None
    assert one.slope == pytest.approx(two.slope, abs=1e-9)


def test_times_that_separate_have_no_fit_without_the_penalty() -> None:
    minutes = np.arange(1.0, 13)
    assert fit_horizon(minutes, (minutes < 6).astype(float), np.ones(12), 0.0) is None
    assert fit_horizon(minutes, (minutes < 6).astype(float), np.ones(12)) is not None


@pytest.mark.parametrize("penalty", [PENALTY, 0.0])
def test_a_batch_of_fits_equals_single_fits(penalty: float) -> None:
    minutes, scores, weights = simulated(5, 40)
    minutes, scores, weights = (np.repeat(one, 3) for one in (minutes, scores, weights))
    draw = np.random.default_rng(6)
    times = draw.integers(0, 3, size=(50, 120))
    times[0] = scores == 1
    times[1] = (minutes < np.median(minutes)) == (scores == 1)
    times[2] = 0
    fits = fit_horizons(minutes, scores, times * weights, penalty)
    for drawn, fit in zip(times, fits, strict=True):
        rows = np.repeat(np.arange(120), drawn)
        alone = fit_horizon(minutes[rows], scores[rows], weights[rows], penalty) if len(rows) else None
        if alone is None:
            assert np.isnan(fit).all()
        else:
            assert fit == pytest.approx([alone.slope, alone.intercept], rel=1e-9)
    assert np.isnan(fits[2]).all()
    assert np.isfinite(fits[3:]).all()


def test_a_fit_that_does_not_settle_is_none() -> None:
    minutes = np.array([19.0, 20.0, 21.0])
    assert fit_horizon(minutes, np.zeros(3), np.ones(3), 0.0) is None


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("slope", "note"),
    [(0.5, "success does not decrease with the minutes"), (-1e-4, "the estimate is too large to be shown")],
)
def test_a_horizon_that_is_no_number_has_its_own_reason(
    slope: float, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [attempt_row(task=f"t{n}", solver="m", solved=n % 2 > 0) for n in range(12)]
    timed = Timed.of(rows, {f"t{n}": 2.0 + n for n in range(12)})
    fit = HorizonFit(slope, 3.0)
    logs = np.log([fit.at(chance) for chance in CHANCES])
    monkeypatch.setattr(Timed, "logs", lambda _, times, __: np.tile(logs, (len(times), 1)))
    assert [number.note for number in _horizons(timed, fit, 0.1, None)] == [note, note]


@pytest.mark.parametrize("intercept", [3.0, -3.0])
def test_a_horizon_on_the_log_scale_is_finite_however_small_the_slope(
    intercept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearly_flat, steep = HorizonFit(-1e-4, intercept), HorizonFit(-0.5, intercept)
    assert nearly_flat.at(0.5) in (0.0, inf)
    rows = [attempt_row(task=f"t{n}", solver="m", solved=n % 2 > 0) for n in range(12)]
    timed = Timed.of(rows, {f"t{n}": 2.0 + n for n in range(12)})
    found = np.array([[fit.slope, fit.intercept] for fit in (nearly_flat, steep)])
    monkeypatch.setattr(horizon, "fit_horizons", lambda *_: found)
    logs = timed.logs(np.ones((2, 12)))
    assert logs[0, CHANCES.index(0.5)] == pytest.approx(intercept * 1e4 * log(2))
    assert logs[1] == pytest.approx([log(steep.at(chance)) for chance in CHANCES])


def test_weights_are_over_runs_and_families() -> None:
    found = run_weights(["a", "a", "b", "c"], ["f", "f", "f", "g"])
    assert found == pytest.approx([1 / 2 / sqrt(2), 1 / 2 / sqrt(2), 1 / sqrt(2), 1])


def test_minutes_of_a_task_by_hand() -> None:
    rows = [attempt_row(f"P{n}", "t1", minutes=m) for n, m in enumerate((10, 20, 40, 80, 5))]
    rows += [attempt_row("P6", "t1", False, minutes=90), attempt_row("P7", "t2", False, minutes=60)]
    rows += [attempt_row(f"P{n}", "t3", minutes=15) for n in range(6)]
    one, two, three = task_times(rows)
    assert one.minutes[Minutes.GEOMETRIC_MEAN] == pytest.approx(20.0)
    assert one.minutes[Minutes.KAPLAN_MEIER] == 20.0
    assert one.minutes[Minutes.LOG_NORMAL] > 20.0, "the failure counts"
    assert (two.minutes, two.longest, two.solved) == ({}, 60.0, 0)
    assert three.minutes[Minutes.LOG_NORMAL] == pytest.approx(15.0)
    assert one.spread is not None


def test_the_log_normal_median_of_one_task_is_that_of_lifelines() -> None:
    from lifelines import LogNormalFitter

    draw = np.random.default_rng(4)
    true = draw.lognormal(log(30), 0.9, 40)
    rows = [attempt_row(f"P{n}", "t", bool(t <= 40), minutes=float(min(t, 40))) for n, t in enumerate(true)]
    (found,) = task_times(rows)
    theirs = LogNormalFitter().fit(np.minimum(true, 40), true <= 40)
    assert found.minutes[Minutes.LOG_NORMAL] == pytest.approx(exp(theirs.mu_), rel=1e-4)
    assert found.minutes[Minutes.GEOMETRIC_MEAN] < found.minutes[Minutes.LOG_NORMAL]


def test_times_of_tasks_tell_lower_bounds_and_conditions() -> None:
    world = World(people=12, per_person=8, tasks=12, cap=25, assisted=True)
    data = world.data(3, study=declared(condition=(Condition(id="alone"), Condition(id="assisted"))))
    found = run("time-tasks", data)
    assert [table.title for table in found.tables] == [
        "Minutes of each task, alone",
        "Minutes of each task, assisted",
    ]
    bounds = [row for row in found.tables[0].rows if row[2] == 0]
    assert all(str(row[-1]).startswith("more than ") for row in bounds)
    assert all(number.low is None for number in found.numbers.values())


def test_horizons_of_models() -> None:
    world = World(people=20, per_person=8, tasks=40, model_rate=0.5, metric_slope=0.9)
    found = run("horizon", world.data(2))
    number = found.numbers["model-x/geometric mean of the solved/penalised/p50"]
    assert number.value is not None
    assert number.low is not None
    assert "the interval of the bootstrap begins below" in number.note
    assert number.low < number.value
    assert (number.persons, number.tasks) == (0, 38), "two tasks were not solved by anybody"
    assert len({row[1] for row in found.tables[0].rows}) >= 2, "more than one kind of human minutes"
    again = run("horizon", world.data(2))
    assert again.numbers == found.numbers


def test_a_model_that_solves_nothing_or_has_few_tasks_has_no_horizon() -> None:
    people = [attempt_row(f"P{n}", f"t{n}", minutes=5 + n) for n in range(12)]
    none = [attempt_row(task=f"t{n}", solver="m", solved=False) for n in range(12)]
    few = [attempt_row(task=f"t{n}", solver="few", solved=n > 2) for n in range(6)]
    found = run("horizon", study_data([*people, *none, *few]))
    assert not found.numbers
    told = [short.words for short in found.not_estimated]
    assert "at least 1 solved run, and there are 0" in "".join(told)
    assert "at least 10 tasks with human minutes, and there are 6" in "".join(told)


def test_the_bootstrap_is_the_same_twice_and_wider_than_nothing() -> None:
    rows = [
        attempt_row(task=f"t{n}", solver="m", solved=n % 3 > 0 or n < 9, source=f"lib{n % 5}")
        for n in range(30)
    ]
    timed = Timed.of(rows, {f"t{n}": 2.0 + 3 * n for n in range(30)})
    first, second = bootstrap(timed, 7, 100), bootstrap(timed, 7, 100)
    assert first == second
    assert first[0] is not None
    assert first[0][0] < first[0][1]


@pytest.mark.filterwarnings("error")
def test_a_horizon_beyond_any_number_is_infinite_and_no_warning() -> None:
    assert HorizonFit(np.float64(-1e-4), np.float64(3.0)).at(0.5) == np.inf
    assert np.isnan(HorizonFit(0.0, 3.0).at(0.5))
    assert HorizonFit(-1.0, 3.0).at(0.5) == pytest.approx(8)


def test_nothing_beyond_the_longest_task_is_printed() -> None:
    beyond = within_tasks(Number(107.0, 40.0, 300.0, tasks=12), 2.0, 59.0)
    assert (beyond.value, beyond.low, beyond.high) == (None, None, None)
    assert beyond.note == "above 59.0 minutes, the longest task; the interval begins at 40.0"
    inside = within_tasks(Number(20.0, 12.3, 146_699_417.0, iid=(9.0, 1e8), iid_label="bootstrap"), 2.0, 59.0)
    assert interval_words(inside) == "[12.3, above 59.0]"
    assert inside.iid is None
    assert "bootstrap begins at 9.00 and ends above 59.0" in inside.note
    assert within_tasks(Number(20.0, 12.0, 30.0), 2.0, 59.0) == Number(20.0, 12.0, 30.0)


def test_nothing_below_the_shortest_task_is_printed() -> None:
    beyond = within_tasks(Number(0.4, 0.1, 3.0, tasks=12), 2.0, 59.0)
    assert (beyond.value, beyond.low, beyond.high) == (None, None, None)
    assert beyond.note == "below 2.00 minutes, the shortest task; the interval ends at 3.00"
    assert within_tasks(Number(0.4, 0.1, 1.0), 2.0, 59.0).note == "below 2.00 minutes, the shortest task"
    wide = within_tasks(Number(0.4, 0.1, 90.0), 2.0, 59.0).note
    assert wide.endswith("; the interval ends above 59.0")
    assert within_tasks(Number(90.0, 0.1, 99.0), 2.0, 59.0).note.endswith("; the interval begins below 2.00")
    inside = within_tasks(Number(20.0, 0.01, 30.0, iid=(0.5, 25.0), iid_label="bootstrap"), 2.0, 59.0)
    assert interval_words(inside) == "[below 2.00, 30.0]"
    assert inside.iid is None
    assert "bootstrap begins below 2.00 minutes, the shortest task, and ends at 25.0" in inside.note
    both = within_tasks(Number(20.0, 0.01, 300.0), 2.0, 59.0)
    assert interval_words(both) == "[below 2.00, above 59.0]"


def test_a_model_that_fails_short_tasks_is_below_the_shortest() -> None:
    people = [
        attempt_row(f"P{p}", f"t{n:02}", minutes=exp(n / 4 + p / 9)) for p in range(4) for n in range(4, 16)
    ]
    model = [attempt_row(task=f"t{n:02}", solver="m", solved=n in (5, 9)) for n in range(4, 16)]
    found = run("horizon", study_data(people + model))
    for fit in ("distributions/logit, not penalised", "geometric mean of the solved/penalised"):
        number = found.numbers[f"m/{fit}/p80"]
        assert number.value is None, fit
        # The shortest task lasts e^(4/4 + (0 + 1/9 + 2/9 + 3/9)/4) = 3.2 minutes.
        assert number.note.startswith("below 3."), fit
    assert {str(row[6])[:8] for row in found.tables[0].rows} == {"below 3."}


def test_a_model_that_solves_long_tasks_is_above_the_longest() -> None:
    people = [
        attempt_row(f"P{p}", f"t{n:02}", minutes=exp(n / 4 + p / 9)) for p in range(4) for n in range(12)
    ]
    model = [attempt_row(task=f"t{n:02}", solver="m", solved=n not in (5, 10)) for n in range(12)]
    found = run("horizon", study_data(people + model))
    number = found.numbers["m/distributions/logit, not penalised/p50"]
    assert number.value is None
    assert number.note.startswith("above ")
    assert str(found.tables[0].rows[0][5]).startswith("above ")


def test_a_model_that_ran_only_short_tasks_has_no_horizon_beyond_them() -> None:
    people = [
        attempt_row(f"P{p}", f"t{n:02}", minutes=exp(n / 4 + p / 9)) for p in range(4) for n in range(24)
    ]
    model = [attempt_row(task=f"t{n:02}", solver="m", solved=n not in (5, 10)) for n in range(12)]
    number = run("horizon", study_data(people + model)).numbers["m/distributions/logit, not penalised/p50"]
    assert number.value is None
    # The longest of its tasks lasts e^(11/4 + (0 + 1/9 + 2/9 + 3/9)/4) = 18.5 minutes, that of the study 371.
    above = float(number.note.removeprefix("above ").partition(" ")[0])
    assert above == pytest.approx(exp(11 / 4 + 1 / 6), rel=0.05)


def estimated(seed: int, per_task: int = 3, tasks: int = 16) -> HumanMinutes:
    draw = np.random.default_rng(seed)
    persons = np.repeat(np.arange(8), tasks * per_task // 8)
    given = np.concatenate([draw.permutation(tasks) for _ in range(per_task)])
    medians = draw.normal(3, 1.2, tasks)
    logs = medians[given] + draw.normal(0, 0.4, 8)[persons] + draw.normal(0, 0.8, len(given))
    found = HumanMinutes.of(Units(persons, given), np.minimum(logs, 4.0), logs < 4.0)
    assert found is not None
    return found


def test_the_distribution_of_a_task_is_its_posterior_by_quadrature() -> None:
    from gistpoint.core.analysis.crossed_times import CrossedTimes

    draw = np.random.default_rng(5)
    persons, tasks = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    logs = 3 + draw.normal(0, 0.8, 6)[tasks] + draw.normal(0, 0.6, 36)
    solved = (logs < 3.6) & (tasks != 2)
    units, logs = Units(persons, tasks), np.minimum(logs, 3.6)
    minutes = HumanMinutes.of(units, logs, solved)
    times = CrossedTimes.of(units, np.ones((36, 1)), logs, solved)
    likeliest = times.likeliest()
    assert minutes is not None
    assert likeliest is not None
    ratios, fit = likeliest
    sigma, constant = fit.sigma[0], fit.columns[0, 0]
    for task in (0, 2):
        at = tasks == task
        base = logs[at] - constant - fit.persons[0][persons[at]]

        def density(u: float, at: np.ndarray = at, base: np.ndarray = base) -> float:
            left = (base - u) / sigma
            terms = np.where(solved[at], norm.pdf(left), norm.sf(left))
            return float(terms.prod() * norm.pdf(u, 0, sigma / ratios.task**0.5))

        whole = quad(density, -8, 8, points=[0.0], limit=200)[0]
        first = quad(lambda u, f=density: (constant + u) * f(u), -8, 8, points=[0.0], limit=200)[0]
        assert log(minutes.minutes[task]) == pytest.approx(first / whole, abs=2e-3)


@pytest.mark.parametrize(
    ("link", "penalty"), [(HorizonLink.LOGIT, 0.0), (HorizonLink.PROBIT, 0.0), (HorizonLink.LOGIT, 0.1)]
)
def test_the_fit_with_distributions_is_the_minimum_of_the_stated_sum(
    link: HorizonLink, penalty: float
) -> None:
    minutes = estimated(3)
    draw = np.random.default_rng(3)
    counts = draw.integers(1, 4, 16).astype(float)
    solved = draw.binomial(counts.astype(int), 1 / (1 + np.exp(np.log2(minutes.minutes) - 4))).astype(float)
    weights = draw.uniform(0.5, 1.5, 16)
    runs = Runs(np.arange(16), solved, counts, weights)

    def objective(b: np.ndarray) -> float:
        p = (norm.cdf if link is HorizonLink.PROBIT else expit)(b[0] * minutes.nodes[0] + b[1])
        likelihood = (minutes.weights[0] * p ** solved[:, None] * (1 - p) ** (counts - solved)[:, None]).sum(
            axis=1
        )
        loss = -(weights / weights.sum() / counts) @ np.log(likelihood)
        return float(loss / penalty + b[0] ** 2 / 2 if penalty else 16 * loss)

    theirs = minimize(objective, np.array([-0.3, 1.0]), tol=1e-10)
    (slope, intercept), spread = runs.spread(minutes, (0.5,), link, penalty)
    assert (slope, intercept) == (pytest.approx(theirs.x[0], abs=1e-3), pytest.approx(theirs.x[1], abs=4e-3))
    assert spread.estimate[0] == pytest.approx(-intercept / slope * log(2))
    assert np.isfinite(spread.half[0])


def test_minutes_that_are_known_give_the_logistic_fit() -> None:
    minutes, scores, weights = simulated(6, 40)
    nodes = np.repeat(np.log2(minutes)[None, :, None], 2, axis=2)
    known = HumanMinutes(Units(np.zeros(40, int), np.arange(40)), nodes, np.full_like(nodes, 0.5),
                         np.zeros((40, 40)), 1e3)  # fmt: skip
    (slope, intercept), _ = Runs(np.arange(40), scores, np.ones(40), weights).spread(
        known, (0.5,), penalty=0.1, interval=False
    )
    fit = fit_horizon(minutes, scores, weights)
    assert fit is not None
    assert (slope, intercept) == (pytest.approx(fit.slope, abs=1e-5), pytest.approx(fit.intercept, abs=1e-5))


def test_a_horizon_without_a_person_changes_all_tasks() -> None:
    """The refits of the jackknife against minutes that are computed again from the attempts that are left."""
    draw = np.random.default_rng(8)
    persons, tasks = np.repeat(np.arange(6), 12), np.tile(np.arange(12), 6)
    logs = draw.normal(3, 1, 12)[tasks] + draw.normal(0, 0.5, 6)[persons] + draw.normal(0, 0.7, 72)
    minutes = HumanMinutes.of(Units(persons, tasks), logs, logs < 4)
    assert minutes is not None
    scores = (minutes.minutes < np.median(minutes.minutes)).astype(float)
    scores[np.argsort(minutes.minutes)[[3, 8]]] = 0.0, 1.0
    _, spread = Runs(np.arange(12), scores, np.ones(12), np.ones(12)).spread(minutes, (0.5,), penalty=0.1)
    assert spread.by_persons[0] > 0
    assert spread.by_tasks[0] > 0
    assert 0 < spread.by_rows[0] < 2 * spread.by_tasks[0]
