"""The jackknife against its formula and closed forms, and its coverage with random persons and tasks."""

from __future__ import annotations

import math
import warnings
from itertools import count

import numpy as np
import pytest
from scipy import stats
from studies.interval_coverage import difference_coverage, rate_coverage
from study_rows import World, attempt_row

from gistpoint.core.analysis.intervals import (
    NO_PERSON,
    Scale,
    Units,
    _OneWay,
    clopper_pearson,
    jackknife,
    jackknife_of_mean,
    share,
)


def test_the_mean_without_refits_is_the_mean_with_refits() -> None:
    rows, _ = World(people=7, tasks=9, model_rate=0.5).rows(3)
    units, solved = Units.of(rows), np.array([row.solved for row in rows], dtype=float)
    quick, slow = jackknife_of_mean(units, solved), jackknife(units, lambda kept: solved[kept].mean())
    for one, other in zip(
        (quick.estimate, quick.by_persons, quick.by_tasks, quick.by_rows),
        (slow.estimate, slow.by_persons, slow.by_tasks, slow.by_rows),
        strict=True,
    ):
        assert one == pytest.approx(other, rel=1e-12)


def test_the_variance_is_that_of_the_formula() -> None:
    """Each of three persons attempts each of three tasks; all solve t1, one solves t2, none t3."""
    rows = [attempt_row(p, t, s) for p in "ABC" for t, s in (("t1", True), ("t2", p == "A"), ("t3", False))]
    found = jackknife_of_mean(Units.of(rows), [row.solved for row in rows])
    q = 4 / 9
    by_persons = 2 / 3 * ((2 / 6 - q) ** 2 + 2 * (3 / 6 - q) ** 2)
    by_tasks = 2 / 3 * ((1 / 6 - q) ** 2 + (3 / 6 - q) ** 2 + (4 / 6 - q) ** 2)
    by_rows = 8 / 9 * (4 * (3 / 8 - q) ** 2 + 5 * (4 / 8 - q) ** 2)
    assert found.by_persons[0] == pytest.approx(by_persons)
    assert found.by_tasks[0] == pytest.approx(by_tasks)
    assert found.by_rows[0] == pytest.approx(by_rows)
    variance = max(by_persons + by_tasks - by_rows, by_persons, by_tasks)
    assert found.half[0] == pytest.approx(4.302652729911275 * variance**0.5)
    number = found.number(Scale.PROBABILITY)
    assert number.value == pytest.approx(q)
    # Three groups have too small a kurtosis to have fewer than two degrees each (decision 154).
    degrees = (by_persons + by_tasks) ** 2 / (by_persons**2 / 2 + by_tasks**2 / 2)
    half = stats.t.ppf(0.975, degrees) * variance**0.5 / (q * (1 - q))
    log_odds = math.log(q / (1 - q))
    assert number.low == pytest.approx(1 / (1 + math.exp(half - log_odds)))
    assert number.high == pytest.approx(1 / (1 + math.exp(-half - log_odds)))
    assert (number.persons, number.tasks, number.rows) == (3, 3, 9)


def test_rows_of_models_belong_to_no_person_and_go_with_their_task() -> None:
    rows = [
        attempt_row(task=f"t{n}", solver="model-x", solved=n % 3 == 0, attempt=f"{n}-{k}")
        for n in range(6)
        for k in (1, 2)
    ]
    units = Units.of(rows)
    assert set(units.persons) == {NO_PERSON}
    found = jackknife_of_mean(units, [row.solved for row in rows])
    assert found.by_persons[0] == found.by_rows[0] == 0
    assert found.variance[0] == found.by_tasks[0]
    assert units.fewest == 6


def test_too_few_persons_or_tasks_give_no_interval_and_say_so() -> None:
    two_people = share([attempt_row(p, f"t{n}", n < 2) for p in "AB" for n in range(4)])
    assert (two_people.value, two_people.low, two_people.high) == (0.5, None, None)
    assert two_people.note == "no interval: at least 3 persons are needed (here: 2)"
    two_tasks = share([attempt_row(p, f"t{n}", n < 1) for p in "ABCD" for n in range(2)])
    assert two_tasks.low is None
    assert "3 tasks are needed (here: 2)" in two_tasks.note
    assert share([attempt_row("A", f"t{n}") for n in range(8)]).low is None, "all solved is no exception"


def test_all_or_none_solved_rests_on_the_fewer_of_persons_and_tasks() -> None:
    """Exact intervals of 8 of 8, 0 of 10 and 0 of 20."""
    assert clopper_pearson(8, 8) == (pytest.approx(0.6306, abs=5e-5), 1.0)
    assert clopper_pearson(0, 10) == (0.0, pytest.approx(0.3085, abs=5e-5))
    assert clopper_pearson(0, 20) == (0.0, pytest.approx(0.1684, abs=5e-5))
    found = share([attempt_row(f"P{p}", f"t{t}") for p in range(8) for t in range(10)])
    assert (found.value, found.low, found.high) == (1.0, pytest.approx(0.6306, abs=5e-5), 1.0)
    assert found.iid == (pytest.approx(0.025 ** (1 / 80)), 1.0)
    none = share([attempt_row(f"P{p}", f"t{t}", False) for p in range(12) for t in range(10)])
    assert (none.low, none.high) == (0.0, pytest.approx(0.3085, abs=5e-5))


def test_no_interval_has_the_width_zero_while_attempts_differ() -> None:
    """In this Latin square each person solves two of four tasks, and each task is solved by two."""
    rows = [attempt_row(f"P{p}", f"t{t}", (p + t) % 4 < 2) for p in range(4) for t in range(4)]
    found = share(rows)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.5
    assert "single attempts" in found.note


def test_an_estimate_that_hangs_on_one_person_has_no_interval() -> None:
    units = Units.named(["A", "A", "B", "C"], ["t1", "t2", "t3", "t1"])
    found = jackknife(units, lambda kept: 1.0 if kept[0] else np.nan).number()
    assert (found.value, found.low) == (1.0, None)
    assert "without one" in found.note


def test_nothing_is_refitted_for_an_interval_that_nobody_asked_for() -> None:
    units, fits = Units.named(["A", "B", "C"], ["t1", "t2", "t3"]), count(1)
    found = jackknife(units, lambda kept: next(fits), interval=False).number()
    assert (found.value, found.low, found.note) == (1.0, None, "")
    assert next(fits) == 2


@pytest.mark.parametrize(
    ("scale", "value", "printed"),
    [
        (Scale.PLAIN, 2.0, 2.0),
        (Scale.PROBABILITY, 1.2, 1.0),
        (Scale.LOG, np.log(3.0), 3.0),
        (Scale.LOGIT, 0.0, 0.5),
        (Scale.LOG_MINUS_LOG, np.log(-np.log(0.25)), 0.25),
    ],
)
def test_scales_lead_back_to_what_is_printed(scale: Scale, value: float, printed: float) -> None:
    assert scale.back(value) == pytest.approx(printed)


def test_bounds_are_in_order_on_a_falling_scale() -> None:
    rows, _ = World().rows(1)
    solved = np.array([row.solved for row in rows], dtype=float)
    found = jackknife(Units.of(rows), lambda kept: np.log(-np.log(solved[kept].mean())))
    low, high = found.bounds(Scale.LOG_MINUS_LOG)
    assert low[0] < solved.mean() < high[0]


def test_intervals_hold_about_as_often_as_they_say() -> None:
    """A short run of the coverage study; at 95%, the share in 250 draws has an error of 1.4%."""
    assert 0.90 <= rate_coverage(seeds=400).jackknife <= 0.99
    assert 0.90 <= difference_coverage(seeds=250).jackknife <= 0.99


def test_an_infinite_refit_of_a_lone_group_has_no_variance_and_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(_OneWay.of(np.array([[np.inf]])).variance).all()
