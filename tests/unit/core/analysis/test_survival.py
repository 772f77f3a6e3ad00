"""Curves of times against lifelines and statsmodels, and against curves calculated by hand."""

from __future__ import annotations

import warnings
from math import log

import numpy as np
import pytest
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Curve, Findings
from gistpoint.core.analysis.pooling import PRIMARY_MINUTES
from gistpoint.core.analysis.survival import (
    CENSORED,
    GAVE_UP,
    SOLVED,
    Times,
    at_risk,
    greenwood_interval,
    median_time,
    not_yet_solved,
    steps,
)
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import PrimaryTime, Protocol
from gistpoint.core.study.rows import SubmissionRow

MINUTES = np.array([2.0, 3.0, 3.0, 5.0, 6.0, 8.0, 9.0, 9.0, 11.0, 12.0])
ENDS = np.array([SOLVED, SOLVED, CENSORED, GAVE_UP, SOLVED, SOLVED, GAVE_UP, SOLVED, CENSORED, SOLVED])


def run(data: StudyData) -> Findings:
    known = analysis("time-km")
    assert known is not None
    return known.run(data)


def test_the_curve_by_hand() -> None:
    """The numbers at risk are 10, 9, 6, 5, 4 and 1."""
    times, survival, _, _ = steps(MINUTES, ENDS)
    assert times.tolist() == [2, 3, 6, 8, 9, 12]
    assert survival == pytest.approx([0.9, 0.8, 0.8 * 5 / 6, 0.8 * 4 / 6, 0.8 * 3 / 6, 0.0])
    assert median_time(MINUTES, ENDS) == 9.0
    assert at_risk(MINUTES, [0, 3, 9.5]) == (10, 9, 2)


def test_kaplan_meier_greenwood_and_aalen_johansen_are_those_of_lifelines_and_statsmodels() -> None:
    import lifelines
    from statsmodels.duration.survfunc import SurvfuncRight

    draw = np.random.default_rng(1)
    minutes = np.round(np.minimum(draw.lognormal(3, 0.8, 300), 40), 3)
    ends = np.where(minutes >= 40, CENSORED, np.where(draw.random(300) < 0.2, GAVE_UP, SOLVED))
    times, survival, greenwood, incidence = steps(minutes, ends)
    fitted = lifelines.KaplanMeierFitter().fit(minutes, ends == SOLVED)
    ours = not_yet_solved(minutes, ends, times)
    assert fitted.survival_function_at_times(times).to_numpy() == pytest.approx(ours, abs=4e-16 * 300)
    theirs = SurvfuncRight(minutes, (ends == SOLVED).astype(int))
    assert theirs.surv_prob == pytest.approx(survival, abs=1e-13)
    assert theirs.surv_prob_se == pytest.approx(survival * np.sqrt(greenwood), rel=1e-9)
    bounds = fitted.confidence_interval_survival_function_.loc[times[20]].to_numpy()
    rows = [
        attempt_row(f"P{n}", f"t{n}", end == SOLVED, minutes=m)
        for n, (m, end) in enumerate(zip(minutes, ends, strict=True))
    ]
    interval = greenwood_interval(Times.of(rows), float(times[20]))
    assert interval == pytest.approx(tuple(1 - bounds[::-1]), abs=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rival = lifelines.AalenJohansenFitter(calculate_variance=False, seed=1).fit(
            minutes, ends, event_of_interest=SOLVED
        )
    assert float(rival.cumulative_density_.iloc[-1].iloc[0]) == pytest.approx(1 - incidence[-1], abs=1e-6)


def test_who_gives_up_makes_two_bounds() -> None:
    """Half of those who would exceed the cap of 40 give up: bound (b) is the share that solves.

    The times are log-normal.
    """
    draw = np.random.default_rng(5)
    true = draw.lognormal(log(30), 0.9, 20_000)
    quits = (true > 40) & (draw.random(20_000) < 0.5)
    minutes = np.where(quits, draw.uniform(5, 40, 20_000), np.minimum(true, 40))
    ends = np.where(quits, GAVE_UP, np.where(true > 40, CENSORED, SOLVED))
    share = (ends == SOLVED).mean()
    a = 1 - not_yet_solved(minutes, ends, 40)
    b = 1 - not_yet_solved(minutes, ends, 40, competing=True)
    assert b == pytest.approx(share, abs=0.001)
    assert a > share + 0.02


def test_nobody_giving_up_makes_the_bounds_one() -> None:
    found = run(World().data(2))
    assert found.numbers["people/remove/end_a"].value == pytest.approx(
        found.numbers["people/remove/end_b"].value
    )
    assert len(found.plots[0].marks) == 1
    given_up = run(World(give_up=0.7, cap=25).data(2))
    a, b = (given_up.numbers[f"people/remove/end_{name}"] for name in "ab")
    assert a.value is not None
    assert b.value is not None
    assert a.value > b.value
    assert a.iid is not None
    assert a.low is not None
    assert a.low < a.value
    assert [mark.dashed for mark in given_up.plots[0].marks if isinstance(mark, Curve)] == [False, True]


def test_a_curve_has_a_band_and_numbers_at_risk() -> None:
    found = run(World(people=16, per_person=8).data(4))
    (plot,) = found.plots
    curve = plot.marks[0]
    assert isinstance(curve, Curve)
    inside = [
        low - 1e-9 <= y <= high + 1e-9
        for y, low, high in zip(curve.y, curve.low, curve.high, strict=True)
        if low == low
    ]
    assert len(inside) > 20
    assert all(inside)
    assert plot.at_risk["people"][0] == 16 * 8
    assert len(plot.at_risk["people"]) == len(plot.risk_times)


def test_fewer_than_five_solved_draw_no_curve() -> None:
    rows = [attempt_row(f"P{n}", f"t{n}", n < 4, minutes=10 + n) for n in range(8)]
    found = run(study_data(rows))
    assert not found.plots
    assert not found.numbers
    (short,) = found.not_estimated
    assert (
        short.words
        == "The curve of people, remove, is not estimated: it needs at least 5 solved attempts, and there are 4."
    )


def test_a_median_that_is_not_reached_is_said_so() -> None:
    rows = [
        attempt_row(f"P{p}", f"t{t}", t == 0 and p < 6, minutes=10 + p) for p in range(8) for t in range(4)
    ]
    median = run(study_data(rows)).numbers["people/remove/median"]
    assert median.value is None
    assert median.note.startswith("not reached")


@pytest.mark.parametrize("competing", [False, True])
@pytest.mark.parametrize("last", [SOLVED, CENSORED])
@pytest.mark.parametrize("others", [SOLVED, CENSORED])
def test_a_curve_that_ends_at_one_does_not_say_that_all_are_solved(
    others: int, last: int, *, competing: bool
) -> None:
    """The product over those at risk is 0 if the longest attempt is solved, whatever ended before it."""
    rows = [attempt_row(f"P{n % 4}", f"t{n}", n > 3 or others == SOLVED, minutes=5 + n) for n in range(12)]
    rows.append(attempt_row("P0", "t12", last == SOLVED, minutes=30))
    number = run(study_data(rows)).numbers[f"people/remove/end_{'b' if competing else 'a'}"]
    assert number.value is not None
    assert (number.value == 1) == (last == SOLVED)
    assert ("all attempts are solved" in number.note) == (others == last == SOLVED)
    assert ("lasted longer" in number.note) == (others == CENSORED and last == SOLVED)


@pytest.mark.parametrize("clock", PrimaryTime)
@pytest.mark.parametrize("identity", ["time-km", "bp-8"])
def test_no_figure_of_primary_times_names_a_clock(identity: str, clock: PrimaryTime) -> None:
    """Whether they include waiting for tools is declared, so a figure that says "active" may be wrong."""
    study = declared(protocol=Protocol(primary_time=clock))
    passing = (SubmissionRow(number=1, solved=True),)
    rows = [attempt_row(f"P{n % 4}", f"t{n}", minutes=5 + n, submitted=passing) for n in range(12)]
    known = analysis(identity)
    assert known is not None
    plots = [plot for plot in known.run(study_data(rows, study=study)).plots if "time" in plot.id]
    assert [plot.x_label for plot in plots] == [PRIMARY_MINUTES]
    assert not [plot.title for plot in plots if "active" in plot.title]
