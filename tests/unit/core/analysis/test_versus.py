"""People compared with models, the primary estimate, and its dependence on decisions."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Findings, Number, Shortfall
from gistpoint.core.analysis.pooling import groups
from gistpoint.core.analysis.primary import Extremes, primary, reasons_of, variants
from gistpoint.core.analysis.task_means import holm
from gistpoint.core.analysis.versus import (
    TaskDifference,
    difference_by_task,
    opponents,
    people_and_models,
    sign_test,
)
from gistpoint.core.study.data import ReviewDecision, ReviewerDecision, StudyData
from gistpoint.core.study.declaration import Assistance, Condition, PrimaryOutcome, Protocol, Quality, Study
from gistpoint.core.study.operations import StudyOperation
from gistpoint.core.study.rows import AttemptRow, FlagRow


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def of_primary(outcome: PrimaryOutcome, *contrast: str, conditions: tuple[str, ...] = ("alone",)) -> Study:
    return declared(
        protocol=Protocol(primary=outcome, primary_contrast=contrast),
        condition=tuple(Condition(id=name) for name in conditions),
    )


# People and models


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (5, 0), (3, 7), (6, 6), (12, 2)])
def test_the_sign_test_is_the_exact_binomial_test(better: int, worse: int) -> None:
    theirs = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert sign_test(better, worse) == pytest.approx(theirs)


def test_holm_is_that_of_statsmodels() -> None:
    p = [0.04, 0.01, 0.03, 0.2]
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([]) == ()


def test_no_interval_leaves_what_differences_can_be() -> None:
    """All 5 tasks are better by a mean of 0.8; 0.8 plus 1.96 errors would exceed 1."""
    people = [attempt_row(f"P{n}", f"t{n}", n != 1) for n in range(1, 6)]
    model = [attempt_row(task=f"t{n}", solver="m", solved=False, attempt=f"m{n}") for n in range(1, 6)]
    found = difference_by_task("x", people, model)
    assert isinstance(found, TaskDifference)
    assert found.number.iid is not None
    assert found.number.value == 0.8
    assert found.number.iid[1] == 1.0


def test_each_shared_task_has_the_same_weight() -> None:
    """t1 differs by 1/2 - 0, t2 by 1 - 1/2; t3 and t4 are not shared."""
    people = [
        attempt_row("A", "t1"),
        attempt_row("B", "t1", False),
        attempt_row("C", "t2"),
        attempt_row("C", "t3"),
    ]
    model = [
        attempt_row(task=task, solver="m", solved=done, attempt=f"{n}")
        for n, (task, done) in enumerate((("t1", False), ("t2", True), ("t2", False), ("t4", True)))
    ]
    found = difference_by_task("x", people, model)
    assert isinstance(found, TaskDifference)
    assert found.number.value == 0.5
    assert (found.better, found.equal, found.worse) == (2, 0, 0)
    assert found.number.note.startswith("no interval: at least 3 tasks are needed (here: 2)")
    assert found.sign_p == 0.5


def test_people_minus_model_with_interval_and_terciles() -> None:
    found = run("versus", World(people=16, tasks=24, per_person=6, model_rate=0.3, metric_slope=0.5).data(2))
    number = found.numbers["people minus model-x/remove"]
    assert number.value is not None
    assert number.low is not None
    assert number.low > 0
    assert number.iid is not None
    assert (number.persons, number.tasks) == (16, 24)
    thirds = [
        found.numbers[f"people minus model-x/remove/code_lines/{part}"]
        for part in ("lowest", "middle", "highest")
    ]
    assert sum(third.tasks for third in thirds) == 24
    assert [third.tasks for third in thirds] == [8, 8, 8]


def test_a_model_is_put_beside_people_under_the_same_budgets() -> None:
    rows = [
        attempt_row("A", "t1", condition_key="16/4"),
        attempt_row("A", "t2", condition="free", condition_key="0/0"),
        attempt_row(task="t1", solver="m", condition_key="16/4 | temperature 1"),
        attempt_row(task="t1", solver="n", condition="free", condition_key="7/7 | temperature 1"),
    ]
    alone, free, m, n = groups(study_data(rows))
    assert opponents(m, [alone, free]) == (alone,)
    assert opponents(n, [alone, free]) == (free,)
    found = run("versus", study_data([*rows, attempt_row("B", "t1", condition="free", condition_key="0/0")]))
    assert [line[7] for line in found.tables[0].rows] == ["same", "differ"]
    assert "If settings differ" in found.notes[1]


def test_no_shared_task_is_told() -> None:
    found = run("versus", study_data([attempt_row("A", "t1"), attempt_row(task="t2", solver="m")]))
    assert found.not_estimated[0].words == (
        "people minus m, remove, is not estimated: it needs at least 1 task attempted by both, and there are 0."
    )


# The primary estimate


def test_the_primary_estimate_is_what_was_declared() -> None:
    world = World(people=20, per_person=8, effect=log(0.5), assisted=True, model_rate=0.4)
    both = ("alone", "assisted")
    rate = primary(world.data(1, study=of_primary(PrimaryOutcome.SOLVE_RATE, conditions=both)))
    versus_model = primary(world.data(1, study=of_primary(PrimaryOutcome.SOLVE_RATE, "people", "model-x")))
    helped = primary(
        world.data(1, study=of_primary(PrimaryOutcome.SOLVE_RATE, "assisted", "alone", conditions=both))
    )
    ratio = primary(world.data(1, study=of_primary(PrimaryOutcome.TIME_RATIO, conditions=both)))
    median = primary(world.data(1, study=of_primary(PrimaryOutcome.TIME_TO_SOLVE, conditions=both)))
    for number in (rate, versus_model, helped, ratio, median):
        assert isinstance(number, Number)
        assert number.value is not None
        assert number.low is not None
    assert isinstance(ratio, Number)
    assert ratio.value == pytest.approx(0.5, abs=0.15)
    assert isinstance(median, Number)
    medians = []
    for seed in range(1, 9):
        of_time = world.data(seed, study=of_primary(PrimaryOutcome.TIME_TO_SOLVE, conditions=both))
        found = primary(of_time)
        assert isinstance(found, Number)
        medians.append(found.value)
    # Each world has different tasks, so the median of a single one may be far from 20.
    assert np.exp(np.mean(np.log(medians))) == pytest.approx(20, rel=0.2)
    assert isinstance(rate, Number)
    assert rate.rows == 80


def test_fidelity_leaves_mocked_gists_out() -> None:
    rows = [
        attempt_row(p, f"t{n}", n > 1, mode="gist", fidelity=float(n > 1)) for p in "ABC" for n in range(4)
    ]
    rows += [attempt_row("D", f"t{n}", False, mode="gist", fidelity=1.0, mocked=True) for n in range(4)]
    found = primary(study_data(rows, study=of_primary(PrimaryOutcome.FIDELITY)))
    assert isinstance(found, Number)
    assert (found.value, found.rows) == (0.5, 12)


def gist(person: str, task: str, handed_in: float | None, **changes: Any) -> AttemptRow:
    """Return an attempt at a gist with a fidelity, or one that handed nothing in and was given up."""
    known: dict[str, Any] = {"end": "gave_up"} if handed_in is None else {"fidelity": handed_in}
    return attempt_row(person, task, handed_in == 1, mode="gist", **(known | changes))


@pytest.mark.parametrize("end", ["gave_up", "skipped", "time_cap", "final_wrong"])
@pytest.mark.parametrize("given_up", range(0, 9, 4))
@pytest.mark.parametrize("faithful", range(0, 9, 4))
def test_an_attempt_without_a_gist_has_the_fidelity_0(faithful: int, given_up: int, end: str) -> None:
    """The primary estimate is the share that table 1 prints, if each task is attempted once."""
    handed_in = [1.0] * faithful + [0.0] * 2
    rows = [gist(f"P{n % 4}", f"t{n}", value) for n, value in enumerate(handed_in)]
    rows += [gist(f"P{n % 4}", f"u{n}", None, end=end) for n in range(given_up)]
    rows += [attempt_row(f"P{n % 4}", f"r{n}") for n in range(4)]  # repairs have no fidelity
    data = study_data(rows, study=of_primary(PrimaryOutcome.FIDELITY))
    found, table = primary(data), run("gi-1", data).numbers["people/fidelity"]
    assert isinstance(found, Number)
    assert found.rows == len(handed_in) + given_up
    if found.rows < 5:
        assert found.value is None
        return
    assert found.value == pytest.approx(faithful / found.rows)
    assert table.value == pytest.approx(100 * found.value)
    assert (found.low is None) == (table.low is None)


@pytest.mark.parametrize("given_up", [0, 3, 6])
def test_a_contrast_of_fidelity_has_every_attempt_of_both_sides(given_up: int) -> None:
    both = ("alone", "assisted")
    rows = [gist(f"P{n % 4}", f"t{n}", 1.0) for n in range(12)]
    rows += [
        gist(f"P{n % 4}", f"t{n}", None if n < given_up else 1.0, condition="assisted") for n in range(12)
    ]
    found = primary(study_data(rows, study=of_primary(PrimaryOutcome.FIDELITY, *both, conditions=both)))
    assert isinstance(found, Number)
    assert found.rows == 24
    assert found.value == pytest.approx(given_up / 12)


def test_a_recorded_run_of_a_gist_has_the_fidelity_of_its_verdict() -> None:
    rows = [
        attempt_row(task=f"t{n}", solved=n < 4 or solver == "n", mode="gist", solver=solver)
        for n in range(8)
        for solver in ("m", "n")
    ]
    found = primary(study_data(rows, study=of_primary(PrimaryOutcome.FIDELITY, "n", "m")))
    assert isinstance(found, Number)
    assert found.value == pytest.approx(0.5)


def test_a_primary_estimate_below_its_least_numbers_is_a_shortfall() -> None:
    rows = [attempt_row(f"P{n}", f"t{n}", minutes=5 + n) for n in range(9)]
    for identity in ("primary", "sensitivity"):
        found = run(identity, study_data(rows, study=of_primary(PrimaryOutcome.TIME_TO_SOLVE)))
        assert not found.numbers
        assert found.not_estimated[0].needs == 10
    assert isinstance(primary(study_data(rows, study=of_primary(PrimaryOutcome.TIME_RATIO))), Shortfall)


# Other decisions


def excluded(attempt: str, reason: str) -> StudyOperation:
    data: dict[str, Any] = {"reason": reason, "why": ""}
    return StudyOperation(
        op=attempt, reviewer="us@m", utc_ms=1, subject=f"attempt:{attempt}", kind="excluded", data=data
    )


def test_each_rule_is_left_out_by_itself() -> None:
    rows = [attempt_row(p, f"t{n}", n % 2 == 0) for p in "ABCD" for n in range(4)]
    flags = (FlagRow(flag="aid_admitted"), FlagRow(flag="exposed"))
    rows += [
        attempt_row("E", "t0", counted=False, exclusion="aid_admitted", flags=flags[:1]),
        attempt_row("E", "t1", counted=False, exclusion="exposed", flags=flags),
        attempt_row("E", "t2", counted=False, exclusion="slept through"),
        attempt_row("E", "t3", counted=False, exclusion="second_exposure", flags=flags),
        attempt_row("F", "t3", counted=False, exclusion="reviewers"),
    ]
    decisions = (ReviewerDecision("F-t3-alone", "R", ReviewDecision.EXCLUDE),)
    data = study_data(rows, operations=[excluded("E-t2-alone", "slept through")], decisions=decisions)
    assert [sorted(reasons_of(data, row)) for row in rows[-5:]] == [
        ["aid_admitted"],
        ["aid_admitted", "exposed"],
        ["slept through"],
        [],
        ["reviewers"],
    ]
    told = {variant.name: sum(row.counted for row in variant.data.rows) for variant in variants(data)}
    assert told == {
        "nothing excluded": 20,
        "without the rule aid_admitted": 17,
        "without the rule reviewers": 17,
        "without the rule slept through": 17,
    }
    found = run("sensitivity", data)
    assert found.numbers["as declared"].value == 0.5
    assert found.numbers["nothing excluded"].rows == 20
    assert found.numbers["without one person: least"].persons == 3


def test_times_before_corrections_and_on_the_other_clock() -> None:
    rows = [
        attempt_row(p, f"t{n}", primary_s=60.0, active_s=120.0, active_corrected_s=60.0, waiting_s=30.0 + 0.01 * n)
        for p in "ABCD" for n in range(4)
    ]  # fmt: skip
    rows[0] = attempt_row("A", "t0", primary_s=61.0, active_s=121.0, active_corrected_s=61.0, waiting_s=30.0)
    found = run("sensitivity", study_data(rows, study=of_primary(PrimaryOutcome.TIME_TO_SOLVE)))
    assert found.numbers["as declared"].value == pytest.approx(1.0, abs=0.01)
    assert found.numbers["times before corrections"].value == pytest.approx(2.0, abs=0.01)
    assert found.numbers["active time and waiting for tools"].value == pytest.approx(1.5, abs=0.01)


@pytest.mark.parametrize(
    ("outcome", "contrast"),
    [
        (PrimaryOutcome.SOLVE_RATE, ()),
        (PrimaryOutcome.SOLVE_RATE, ("assisted", "alone")),
        (PrimaryOutcome.TIME_RATIO, ()),
        (PrimaryOutcome.TIME_TO_SOLVE, ()),
    ],
)
def test_of_all_estimates_without_a_person_the_least_and_the_greatest_are_told_whole(
    outcome: PrimaryOutcome, contrast: tuple[str, ...]
) -> None:
    study = of_primary(outcome, *contrast, conditions=("alone", "assisted"))
    data = World(people=6, tasks=8, assisted=True).data(3, study=study)
    persons = sorted({row.participant for row in data.rows})
    kept = [replace(data, rows=tuple(row for row in data.rows if row.participant != one)) for one in persons]
    whole = [number for one in kept if isinstance(number := primary(one), Number)]
    assert len(whole) == 6
    whole.sort(key=lambda number: number.value or 0.0)
    found = run("sensitivity", data).numbers
    assert found["without one person: least"] == whole[0]
    assert found["without one person: greatest"] == whole[-1]
    assert None not in (whole[0].low, whole[-1].low)


@pytest.mark.parametrize(
    ("outcome", "contrast"),
    [
        (PrimaryOutcome.SOLVE_RATE, ("assisted", "alone")),
        (PrimaryOutcome.TIME_RATIO, ()),
        (PrimaryOutcome.TIME_TO_SOLVE, ()),
    ],
)
def test_the_extremes_among_many_people_are_those_of_all_estimates(
    outcome: PrimaryOutcome, contrast: tuple[str, ...]
) -> None:
    study = of_primary(outcome, *contrast, conditions=("alone", "assisted"))
    data = World(people=18, tasks=8, assisted=True).data(5, study=study)
    kept = [
        replace(data, rows=tuple(row for row in data.rows if row.participant != one))
        for one in {row.participant for row in data.rows}
    ]
    values = [number.value for one in kept if isinstance(number := primary(one, interval=False), Number)]
    found = run("sensitivity", data).numbers
    ends = [found[f"without one person: {which}"].value for which in ("least", "greatest")]
    assert ends == pytest.approx([min(filter(None, values)), max(filter(None, values))], rel=1e-12)


def test_only_estimates_near_an_extreme_are_computed_again() -> None:
    known = {f"P{n}": n / 100 for n in range(100)}
    exact: dict[str, float | None] = {
        code: value + 0.02 * (-1) ** int(code[1:]) for code, value in known.items()
    }
    exact |= {"unknown": 3.0, "P0": None}
    tried = list[str]()

    def estimate(code: str) -> float | None:
        tried.append(code)
        return exact[code]

    search = Extremes(known, estimate)
    found = search.found(exact)
    values = [value for value in exact.values() if value is not None]
    assert (min(found.values()), max(found.values())) == (min(values), max(values))
    assert search.lost == 1
    assert len(tried) == len(set(tried)) < 30


def test_those_without_whom_there_is_no_estimate_are_counted() -> None:
    rows = [attempt_row(p, f"t{n}", solved=p != "D", minutes=5 + n) for p in "ABCD" for n in range(4)]
    found = run("sensitivity", study_data(rows, study=of_primary(PrimaryOutcome.TIME_TO_SOLVE))).numbers
    least, greatest = (found[f"without one person: {which}"] for which in ("least", "greatest"))
    assert least == greatest
    assert (least.persons, least.note) == (3, "without 3 of them there is no estimate")


@pytest.mark.parametrize("rejections", [0, 1, 2])
@pytest.mark.parametrize("of_pass", [False, True])
def test_a_rejected_pass_is_no_reason_of_an_exclusion(rejections: int, *, of_pass: bool) -> None:
    """Without the rule, such an attempt counts again, unless reviewers exclude the attempt itself."""
    flagged: dict[str, Any] = {"counted": False, "exclusion": "exposed", "flags": (FlagRow(flag="exposed"),)}
    other: dict[str, Any] = {"counted": False, "exclusion": "fast", "flags": (FlagRow(flag="fast"),)}
    rows = [attempt_row(p, f"t{n}", n % 2 == 0) for p in "ABCD" for n in range(4)]
    rows += [attempt_row("E", "t0", **flagged), attempt_row("F", "t0", **other)]
    decisions = tuple(
        ReviewerDecision(
            "E-t0-alone", f"R{n}", ReviewDecision.REJECT_PASS if of_pass else ReviewDecision.EXCLUDE
        )
        for n in range(rejections)
    )
    study = declared(quality=Quality(exclude_on=("exposed", "fast")))
    data = study_data(rows, study=study, decisions=decisions)
    excluded_by_people = bool(rejections) and not of_pass
    assert reasons_of(data, rows[-2]) == {"exposed", *(["reviewers"] if excluded_by_people else [])}
    names = [variant.name for variant in variants(data)]
    assert ("without the rule exposed" in names) == (not excluded_by_people)


def test_those_who_did_not_use_the_chat_are_left_out_in_one_variant() -> None:
    study = declared(condition=(Condition(id="alone"), Condition(id="assisted", assistance=Assistance.CHAT)))
    rows = [attempt_row("A", "t1"), attempt_row("A", "t2", condition="assisted"),
            attempt_row("B", "t2", condition="assisted", assist_messages=3)]  # fmt: skip
    (variant,) = variants(study_data(rows, study=study))
    assert [row.participant for row in variant.data.rows] == ["A", "B"]


def test_nothing_varies_gives_no_interval_of_the_width_zero() -> None:
    people = [attempt_row(p, f"t{n}") for p in "ABC" for n in range(4)]
    model = [attempt_row(task=f"t{n}", solver="m") for n in range(4)]
    found = difference_by_task("x", people, model)
    assert isinstance(found, TaskDifference)
    assert (found.number.value, found.number.low, found.number.note) == (
        0.0,
        None,
        "no interval: nothing varies",
    )


def test_the_median_time_is_on_the_scale_of_minutes() -> None:
    rows = [attempt_row(f"P{n % 6}", f"t{n % 7}", minutes=exp(1 + n / 20)) for n in range(30)]
    found = primary(study_data(rows, study=of_primary(PrimaryOutcome.TIME_TO_SOLVE)))
    assert isinstance(found, Number)
    assert found.value == pytest.approx(exp(1 + 14.5 / 20))


def test_a_difference_of_too_few_attempts_is_a_count() -> None:
    few = [attempt_row("A", "t0", False), attempt_row("", "t0", True, solver="model_x", attempt="m")]
    found = difference_by_task("", few[:1], few[1:])
    assert isinstance(found, TaskDifference)
    assert found.printed.value is None
    assert found.printed.note.endswith("tasks better, equal, worse: 0, 0, 1")
    assert not people_and_models(study_data(few)).plots
