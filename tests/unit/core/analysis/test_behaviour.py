"""Repeated runs, exploration, forecasts, reviewers, and behaviour beyond the tests."""

from __future__ import annotations

from math import exp, log
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import spearmanr
from study_rows import World, attempt_row, study_data

from gistpoint.core.analysis import forecasts
from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.exploring import looks
from gistpoint.core.analysis.findings import Findings
from gistpoint.core.analysis.forecasts import spearman
from gistpoint.core.analysis.repeats import RepeatedTask
from gistpoint.core.study.data import (
    MergeDecision,
    MergeReading,
    RepairEquivalence,
    ReviewDecision,
    ReviewerDecision,
    StudyData,
)
from gistpoint.core.study.rows import AttemptRow, CallRow


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


# Repeated runs


def test_chances_of_k_runs_by_hand() -> None:
    one = RepeatedTask("t", 4, 2)
    assert (one.one_of(1), one.all_of(1)) == (0.5, 0.5)
    assert one.one_of(2) == pytest.approx(1 - 1 / 6)
    assert one.all_of(2) == pytest.approx(1 / 6)
    assert RepeatedTask("t", 4, 3).one_of(2) == 1.0


def repeated(counts: dict[str, tuple[int, int]]) -> list[AttemptRow]:
    return [
        attempt_row(task=task, solver="m", solved=n < solved, attempt=f"{task}-{n}")
        for task, (solved, runs) in counts.items()
        for n in range(runs)
    ]


def test_repeats_of_a_model_are_over_tasks() -> None:
    found = run("pass-k", study_data(repeated({"a": (2, 4), "b": (0, 3), "c": (3, 3), "d": (1, 1)})))
    assert {key: number.value for key, number in found.numbers.items()} == {
        "m/remove/pass@1": pytest.approx((0.5 + 0 + 1) / 3),
        "m/remove/pass@3": pytest.approx((1 + 0 + 1) / 3),
        "m/remove/all-3": pytest.approx((0 + 0 + 1) / 3),
        "m/remove/pass@1/tests": pytest.approx((0.5 + 0 + 1) / 3),
    }
    once = found.numbers["m/remove/pass@1"]
    assert (once.tasks, once.rows, once.persons, once.iid) == (3, 10, 0, None)
    assert found.tables[0].rows[0][2:5] == (3, 1, 3)


def test_all_solved_rests_on_the_tasks_not_on_the_runs() -> None:
    found = run("pass-k", study_data(repeated({f"t{n}": (5, 5) for n in range(8)})))
    assert found.numbers["m/remove/pass@1"].low == pytest.approx(0.6306, abs=5e-5)


def test_single_runs_and_people_yield_nothing() -> None:
    assert run("pass-k", study_data([attempt_row("A", "t"), *repeated({"t": (1, 1)})])).empty
    assert run("pass-k", study_data(repeated({"t": (1, 2)}))).not_estimated[0].has == 1


# Exploration


def calls(*kinds: str) -> tuple[CallRow, ...]:
    return tuple(CallRow(number=n, tool=kind, kind=kind) for n, kind in enumerate(kinds, start=1))


def test_looks_before_the_first_submission_count() -> None:
    row = attempt_row("A", calls=calls("view", "search", "view", "execute", "submit", "view"))
    assert looks(row) == (2, 1)
    assert looks(attempt_row("A", calls=calls("view", "search"))) == (1, 1)
    refused = (CallRow(number=1, tool="read", kind="view", refused=True), *calls("view")[:0])
    assert looks(attempt_row("A", calls=refused)) == (0, 0)


@pytest.mark.parametrize("kind", ["view", "search", "execute", "submit"])
@pytest.mark.parametrize("place", range(6))
def test_a_refused_call_changes_no_count_of_looks(kind: str, place: int) -> None:
    """A refused submission is none: what a solver looks at after it was still before the first one."""
    made = list(calls("view", "search", "view", "execute", "submit", "view"))
    made.insert(place, CallRow(number=0, tool=kind, kind=kind, refused=True))
    numbered = tuple(replace(call, number=n) for n, call in enumerate(made, start=1))
    assert looks(attempt_row("A", calls=numbered)) == (2, 1)


def test_the_effect_of_looking_is_found_within_tasks() -> None:
    """Hard tasks get more calls, so the odds fall with calls across tasks although they rise within them."""
    draw = Random(3)
    rows = []
    for task in range(20):
        hard = draw.gauss(0, 1.5)
        for person in range(24):
            count = max(1, round(8 + 3 * hard + draw.gauss(0, 2.5)))
            chance = 1 / (1 + exp(-(0.4 * (count - 8 - 3 * hard) - 2.0 * hard)))
            kinds = ["search" if draw.random() < 0.4 else "view" for _ in range(count)]
            rows.append(
                attempt_row(f"P{person}", f"t{task}", draw.random() < chance, calls=calls(*kinds, "submit"))
            )
    found = run("explore", study_data(rows))
    number = found.numbers["people/remove/calls"]
    assert number.low is not None
    assert number.high is not None
    assert number.low > 1
    assert number.low < exp(0.4) < number.high
    searches = found.numbers["people/remove/searches"]
    assert searches.low is not None
    assert searches.high is not None
    assert searches.low < 1 < searches.high


def test_exploration_of_few_attempts_is_not_estimated() -> None:
    rows = [attempt_row(f"P{n}", f"t{n}", n % 2 == 0, calls=calls("view", "submit")) for n in range(8)]
    assert run("explore", study_data(rows)).not_estimated[0].short == "tasks"


# Forecasts


def test_forecasts_by_hand() -> None:
    """Each attempt takes twice as long as forecast; the stated chance is 80%, and 3 of 4 are solved."""
    rows = [
        attempt_row(
            f"P{n % 3}", f"t{n}", n != 3, minutes=20,
            answers={"brief.forecast_minutes": 10, "brief.forecast_chance": 80, "task.felt_minutes": 30},
        )
        for n in range(4)
    ]  # fmt: skip
    found = run("forecast", study_data(rows))
    value = {key: number.value for key, number in found.numbers.items()}
    assert value["minutes"] == pytest.approx(0.5)
    assert value["felt"] == pytest.approx(1.5)
    assert value["brier"] == pytest.approx((3 * 0.04 + 0.64) / 4)
    assert value["brier of the rate"] == pytest.approx(0.75 * 0.25)
    assert value["overconfidence"] == pytest.approx(0.05)
    assert found.numbers["minutes"].rows == 3, "solved attempts alone"


def test_the_rank_correlation_is_that_of_scipy() -> None:
    x, y = [1.0, 2, 2, 4, 7, 7, 7], [3.0, 1, 4, 4, 5, 9, 2]
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert np.isnan(spearman([1.0, 1, 1], [1.0, 2, 3]))


def test_rank_correlations_without_some_rows_need_no_new_order() -> None:
    draw = np.random.default_rng(7)
    x, y = draw.integers(0, 6, 40).astype(float), draw.normal(size=40).round(1)
    for kept in (draw.random(40) < share for share in (0.3, 0.6, 0.9)):
        found = forecasts._spearman(forecasts._order(x)[kept], forecasts._order(y)[kept])
        assert found == pytest.approx(spearmanr(x[kept], y[kept]).statistic)


def test_ease_against_time_needs_ten_tasks() -> None:
    def eased(tasks: int) -> StudyData:
        rows, _ = World(people=10, tasks=tasks, per_person=6, cap=500).rows(1)
        for row in rows:
            row.answers["task.ease"] = max(1, min(7, round(7 - log((row.primary_s or 1) / 60))))
        return study_data(rows)

    assert run("forecast", eased(9)).not_estimated[0].needs == 10
    number = run("forecast", eased(12)).numbers["ease and time"]
    assert number.high is not None
    assert number.high < -0.5


# Reviewers


def test_agreement_of_two_reviewers() -> None:
    """They agree on 8 of 12; both exclude 2, one alone 1, the other alone 3."""
    rows = [attempt_row(f"P{n % 4}", f"t{n % 6}", attempt=f"a{n}") for n in range(12)]
    first = {f"a{n}": n < 3 for n in range(12)}
    second = {f"a{n}": n in (1, 2, 3, 4, 5) for n in range(12)}

    def decided(reviewer: str, excludes: dict[str, bool]) -> list[ReviewerDecision]:
        return [
            ReviewerDecision(attempt, reviewer, ReviewDecision.EXCLUDE if out else ReviewDecision.ACCEPT)
            for attempt, out in excludes.items()
        ]

    data = study_data(rows, decisions=(*decided("anna", first), *decided("bert", second)))
    found = run("agreement", data)
    number = found.numbers["R1 and R2"]
    expected = (3 * 5 + 9 * 7) / 144
    assert number.value == pytest.approx((8 / 12 - expected) / (1 - expected))
    assert (number.persons, number.tasks, number.rows) == (4, 6, 12)
    few = study_data(rows[:5], decisions=data.decisions)
    assert run("agreement", few).not_estimated[0].has == 5
    assert run("agreement", study_data(rows)).empty


def test_rejecting_only_the_pass_is_no_exclusion_for_kappa() -> None:
    """Nine agree; where one excludes, the other rejects the pass: no agreement, in three categories."""
    rows = [attempt_row(f"P{n % 4}", f"t{n % 6}", attempt=f"a{n}") for n in range(12)]
    kinds = (ReviewDecision.ACCEPT, ReviewDecision.REJECT_PASS, ReviewDecision.EXCLUDE)
    first = [kinds[n % 3] for n in range(12)]
    second = [kinds[1] if n in (2, 5, 8) else one for n, one in enumerate(first)]
    decisions = [
        ReviewerDecision(f"a{n}", name, one)
        for name, made in (("anna", first), ("bert", second))
        for n, one in enumerate(made)
    ]
    number = run("agreement", study_data(rows, decisions=decisions)).numbers["R1 and R2"]
    expected = (4 * 4 + 4 * 7 + 4 * 1) / 144
    assert number.value == pytest.approx((9 / 12 - expected) / (1 - expected))


# Beyond the tests


def test_what_passes_what_is_equivalent_and_what_is_merged() -> None:
    rows = [attempt_row(p, f"t{n}", n < 3, attempt=f"{p}{n}") for p in "ABC" for n in range(4)]
    verdict, example = {"A0": "differs", "C2": "not_comparable"}, {"A0": "f(0)"}
    equivalences = tuple(
        RepairEquivalence(
            row.attempt, row.task, verdict.get(row.attempt, "equivalent"), 9, example.get(row.attempt, "")
        )
        for row in rows
        if row.solved
    )
    readings = (
        MergeReading("t0", "R1", MergeDecision.MERGE, "A0"),
        MergeReading("t0", "R2", MergeDecision.REJECT, "A0", "wrong at 0"),
        MergeReading("t1", "R1", MergeDecision.MERGE_AFTER_CHANGES, "B1"),
        *(MergeReading(f"t{n}", f"R{r}", MergeDecision.MERGE) for n in range(3) for r in range(3)),
    )
    found = run("beyond-tests", study_data(rows, equivalences=equivalences, readings=readings))
    value = {key: number.value for key, number in found.numbers.items()}
    assert value == {
        "people/remove/pass the tests": 0.75,
        "people/remove/equivalent, of those": 7 / 8,
        "people/remove/merged by readers, of those": None,
        "originals/merged by readers, of those": 1.0,
    }
    merged = found.numbers["people/remove/merged by readers, of those"]
    assert merged.note == "1 of 3 readings: no rate from fewer than 5 repairs"
    assert found.tables[0].rows[0][-2:] == (1, 7)
    assert found.tables[1].rows == (("people", "t0", "f(0)"),)
    assert run("beyond-tests", study_data(rows)).empty


@pytest.mark.parametrize("merged", [0, 2, 4, 12])
@pytest.mark.parametrize("count", [1, 4, 5, 12])
@pytest.mark.parametrize("original", [False, True])
def test_readings_have_a_rate_and_an_interval_like_attempts(
    count: int, merged: int, *, original: bool
) -> None:
    """None from fewer than five, and the exact interval if all or none would be merged."""
    merged = min(merged, count)
    rows = [attempt_row(f"P{n % 4}", f"t{n}", attempt=f"A{n}") for n in range(12)]
    readings = tuple(
        MergeReading(
            f"t{n}",
            f"R{n % 4}",
            MergeDecision.MERGE if n < merged else MergeDecision.REJECT,
            "" if original else f"A{n}",
        )
        for n in range(count)
    )
    numbers = run("beyond-tests", study_data(rows, readings=readings)).numbers
    number = numbers[f"{'originals' if original else 'people/remove'}/merged by readers, of those"]
    assert number.value == (pytest.approx(merged / count) if count >= 5 else None)
    if count < 5:
        assert number.note.startswith(f"{merged} of {count}")
    if count == 12:
        assert number.low is not None
        assert number.high is not None
        assert number.low < number.high
    if merged in (0, count) and count >= 5:
        assert "Clopper-Pearson" in number.note
