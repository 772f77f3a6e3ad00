"""Errors that referees would reject: impossible bounds, untrue notes, and unrelated rows in one table."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, isfinite, log

import msgspec
import pytest
from msgspec.structs import replace
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.budgets import success_by_submission
from gistpoint.core.analysis.correlations import metric_correlations
from gistpoint.core.analysis.corruptions import corruptions
from gistpoint.core.analysis.cox import proportional_hazards
from gistpoint.core.analysis.difficulty import difficulty
from gistpoint.core.analysis.difficulty_curves import solver_curves
from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.flow import participant_flow
from gistpoint.core.analysis.gist_arms import test_score_and_fidelity as score_and_fidelity
from gistpoint.core.analysis.gist_difficulty import by_calls
from gistpoint.core.analysis.gist_quality import tests_kept as kept_tests
from gistpoint.core.analysis.hard_set import hard_tasks
from gistpoint.core.analysis.horizon import horizons
from gistpoint.core.analysis.order import effects_of_order
from gistpoint.core.analysis.primary import primary_findings, sensitivity
from gistpoint.core.analysis.rates import solve_rates
from gistpoint.core.analysis.samples import standard_scores
from gistpoint.core.analysis.survival import curves
from gistpoint.core.analysis.tasktimes import times_of_tasks
from gistpoint.core.analysis.timeratios import time_ratios
from gistpoint.core.analysis.tool_use import (
    calls_by_tool,
    information_and_submissions,
    kinds_of_calls,
)
from gistpoint.core.analysis.versus import people_and_models
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import (
    Condition,
    PrimaryOutcome,
    Protocol,
    Quality,
    StudyTask,
    Training,
)
from gistpoint.core.study.rows import AttemptRow, CallRow, FlagRow, SubmissionRow


def bounds(numbers: Iterable[Number]) -> list[float]:
    """Return all ends of all intervals, from the jackknife and from independent rows."""
    found = [(one.low, one.high, *(one.iid or ())) for one in numbers]
    return [end for ends in found for end in ends if end is not None]


def test_no_interval_of_a_correlation_leaves_its_range() -> None:
    found = [metric_correlations(World(people=4, tasks=12, metric_slope=1.0).data(seed)) for seed in range(6)]
    ends = bounds(number for one in found for number in one.numbers.values())
    assert ends
    assert min(ends) >= -1
    assert max(ends) <= 1


def gists(recall: Iterable[float], solved: Iterable[bool]) -> StudyData:
    return study_data(
        attempt_row(f"P{n % 4}", f"t{n:02}", passed, mode="gist", fidelity=float(passed), test_recall=kept)
        for n, (kept, passed) in enumerate(zip(recall, solved, strict=True))
    )


def test_no_interval_of_a_percentage_leaves_its_range() -> None:
    numbers = kept_tests(gists([100.0] + [0.0] * 11, [True] + [False] * 11)).numbers
    ends = bounds([numbers["people/recall"]])
    assert len(ends) == 4
    assert min(ends) >= 0


def test_values_that_do_not_vary_have_no_interval() -> None:
    assert kept_tests(gists([100.0] * 12, [True] * 12)).numbers["people/recall"].iid is None
    perfect = gists([100.0, 0.0] * 6, [True, False] * 6)
    number = score_and_fidelity(perfect).numbers["people/by task"]
    assert (number.value, number.low, number.high, number.iid) == (1.0, None, None, None)
    assert "perfect" in number.note


def test_no_mean_of_calls_is_below_nothing() -> None:
    called = CallRow(number=1, tool="search_code", kind="search")
    rows = [
        attempt_row(
            f"P{n % 4}", f"t{n:02}", calls=(called, called) if not n else (replace(called, tool="read_file"),)
        )
        for n in range(12)
    ]
    number = calls_by_tool(study_data(rows)).numbers["people/remove/search_code"]
    assert number.low == 0


def test_no_difference_of_rates_is_beyond_one() -> None:
    rows = [attempt_row(f"P{n % 3}", f"t{n}") for n in range(5)]
    rows += [attempt_row(task=f"t{n}", solved=n == 0, solver="m") for n in range(5)]
    iid = people_and_models(study_data(rows)).numbers["people minus m/remove"].iid
    assert iid is not None
    assert iid[1] == 1


def test_a_penalty_by_design_is_not_blamed_on_the_data() -> None:
    found = solver_curves(World(people=12, tasks=16, cap=25.0, metric_slope=0.3).data(1))
    assert found.numbers
    assert not [number.note for number in found.numbers.values() if "separated" in number.note]


def test_a_pass_that_is_still_to_be_read_is_solved_by_no_submission() -> None:
    passing = (SubmissionRow(number=1, solved=True, score=1.0),)
    rows = [attempt_row(f"P{n % 4}", f"t{n}", solved=n > 3, submitted=passing) for n in range(8)]
    data = study_data(rows)
    by_submission = success_by_submission(data).numbers["people/remove/1"].value
    assert by_submission == solve_rates(data).numbers["people/remove/all"].value == 0.5


def test_runs_that_do_not_tell_which_submission_solved_are_left_out() -> None:
    people = [
        attempt_row(f"P{n % 4}", f"t{n}", submitted=(SubmissionRow(number=1, solved=True),)) for n in range(8)
    ]
    foreign = [attempt_row(task=f"t{n}", solver="m", submitted=(SubmissionRow(number=1),)) for n in range(8)]
    found = success_by_submission(study_data(people + foreign))
    assert list(found.numbers) == ["people/remove/1"]
    assert any(note.startswith("m, remove: left out") for note in found.notes)


def test_training_tasks_named_by_their_beginning_are_not_to_be_covered() -> None:
    study = declared(training=Training(tasks=("aaaa",)))
    rows = [
        attempt_row("P0", "aaaa1111", counted=False, exclusion="role_training"),
        attempt_row("P0", "bbbb2222"),
    ]
    coverage = participant_flow(study_data(rows, study=study)).tables[-1].rows
    assert coverage == (("alone", 1, 1, 1.0, 1, 0),)


def discovery(key: str, limit: float | None = None) -> list[AttemptRow]:
    settings = {"solver": "m", "mode": "discovery", "condition_key": key, "time_limit_s": limit}
    return [attempt_row(task=f"t{n}", solved=n % 2 == 0, attempt=f"{key}{n}", **settings) for n in range(8)]


def of_discovery(rows: list[AttemptRow]) -> StudyData:
    tasks = {
        f"t{n}": StudyTask(id=f"t{n}", mode="discovery", source="railway", corruptions=1 + n // 4)
        for n in range(8)
    }
    return study_data(rows, tasks=tasks)


def test_a_model_with_two_settings_is_two_in_the_trend_over_corruptions() -> None:
    rows = discovery("a | temperature 0") + discovery("a | temperature 1")
    cells = corruptions(of_discovery(rows)).tables[0].rows
    assert [row[2] for row in cells] == [4, 4, 4, 4]
    assert len({row[0] for row in cells}) == 2


def test_time_limits_that_differ_lose_no_attempts_of_the_trend() -> None:
    rows = discovery("a", 600.0) + discovery("b", 60.0)
    cells = corruptions(of_discovery(rows)).tables[0].rows
    assert sum(int(str(row[2])) for row in cells) == len(rows)


def test_a_model_with_two_settings_has_two_horizons() -> None:
    people = [attempt_row(f"P{p}", f"t{n:02}", minutes=exp(n / 4)) for p in range(3) for n in range(12)]
    models = [
        attempt_row(task=f"t{n:02}", solved=n < 6 + more, solver="m", condition_key=f"16/4 | temperature {more}",
                    attempt=f"{more}-{n}")
        for more in (0, 3)
        for n in range(12)
    ]  # fmt: skip
    found = horizons(study_data(people + models))
    assert {number.rows for number in found.numbers.values()} == {12, 12 + len(people)}
    assert {str(row[0]) for row in found.tables[0].rows} == {"m (temperature 0)", "m (temperature 3)"}


def test_people_who_need_the_same_time_have_no_error_that_is_no_number() -> None:
    rows = [attempt_row(f"P{p}", f"t{n:02}", minutes=exp(n / 4)) for p in range(3) for n in range(12)]
    assert all(map(isfinite, bounds(times_of_tasks(study_data(rows)).numbers.values())))


def test_what_the_design_leaves_out_is_not_taken_back() -> None:
    rows = [attempt_row(f"P{n % 4}", f"t{n}", solved=n % 2 == 0) for n in range(8)]
    again = attempt_row("P0", "t0", counted=False, exclusion="second_exposure", attempt="again",
                        flags=(FlagRow(flag="second_exposure"),))  # fmt: skip
    broken = attempt_row("P1", "t2", counted=False, exclusion="chain_broken", attempt="broken",
                         flags=(FlagRow(flag="chain_broken"),))  # fmt: skip
    study = declared(quality=Quality(exclude_on=("chain_broken", "second_exposure")))
    numbers = sensitivity(study_data([*rows, again, broken], study=study)).numbers
    assert numbers["nothing excluded"].rows == len(rows) + 1
    assert not [name for name in numbers if "second_exposure" in name]


def test_a_condition_can_be_called_like_a_column() -> None:
    rows, _ = World(people=12, tasks=12, assisted=True, effect=-0.5, sigma=0.3).rows(2)

    def ratio(name: str) -> float | None:
        renamed = [
            replace(row, condition=name if row.condition == "assisted" else row.condition) for row in rows
        ]
        study = declared(condition=(Condition(id="alone"), Condition(id=name)))
        return time_ratios(study_data(renamed, study=study)).numbers[f"{name} to alone"].value

    assert ratio("position") == pytest.approx(ratio("assisted"))


def test_a_regression_says_how_giving_up_counts() -> None:
    world = World(people=12, tasks=12, assisted=True, cap=25.0)
    study = declared(condition=(Condition(id="alone"), Condition(id="assisted")))
    rows, _ = world.rows(3)
    assert not time_ratios(study_data(rows, study=study)).notes
    given_up = [row if row.solved else replace(row, end="gave_up", censored="competing") for row in rows]
    assert "Giving up counts" in time_ratios(study_data(given_up, study=study)).notes[0]


def test_no_number_of_a_metric_uses_training_tasks() -> None:
    study = declared(training=Training(tasks=("practice",)))
    rows, metrics = World(people=6, tasks=12, metric_slope=0.5).rows(2)
    practice = attempt_row("P01", "practice", counted=False, exclusion="role_training")
    odd = {"practice": {"code_lines": 9_999.0}}
    with_training = study_data([*rows, practice], study=study, metrics=metrics | odd)
    without = study_data(rows, study=study, metrics=metrics)
    assert standard_scores(with_training, "code_lines") == standard_scores(without, "code_lines")
    analyses = (metric_correlations, solver_curves, difficulty, hard_tasks, by_calls)
    for one in analyses:
        assert one(with_training) == one(without), one.__name__


def test_one_standard_deviation_is_the_same_in_times_and_shares() -> None:
    rows, metrics = World(people=8, tasks=10, metric_slope=0.5).rows(4)
    unattempted = attempt_row("P01", "far", counted=False, exclusion="fast")
    data = study_data([*rows, unattempted], metrics=metrics | {"far": {"code_lines": 900.0}})
    found = time_ratios(data)
    scores = standard_scores(data, "code_lines")
    assert len(scores.scores) == 11
    assert f"Unit: {scores.words}." in found.notes
    # The same effect per line, times the standard deviation of all tasks instead of the attempted ones.
    own = time_ratios(study_data(rows, metrics=metrics))
    per_line = (
        log(own.numbers["code_lines"].value or 0)
        / standard_scores(study_data(rows, metrics=metrics), "code_lines").sd
    )
    assert log(found.numbers["code_lines"].value or 0) == pytest.approx(per_line * scores.sd, rel=1e-3)


def test_equal_times_give_no_ratio_and_say_so() -> None:
    rows, _ = World(people=8, tasks=14, per_person=10, cap=30.0, assisted=True, give_up=0.3).rows(1)
    equal = [replace(row, primary_s=600.0) for row in rows]
    study = declared(
        condition=(Condition(id="alone"), Condition(id="assisted")),
        protocol=Protocol(primary=PrimaryOutcome.TIME_RATIO, primary_contrast=("assisted", "alone")),
    )
    for one in (time_ratios, primary_findings, sensitivity, effects_of_order):
        found = one(study_data(equal, study=study))
        assert found.not_estimated, one
        cells = [cell for table in found.tables for row in table.rows for cell in row]
        assert not [
            cell for cell in cells if isinstance(cell, Number) and cell.value is None and not cell.note
        ]
        assert all(isfinite(end) for end in bounds(found.numbers.values()))


def test_attempts_without_a_time_are_told_where_times_are_printed() -> None:
    rows, metrics = World(people=8, tasks=10, metric_slope=0.5, assisted=True).rows(4)
    without = [replace(row, primary_s=None) if place < 2 else row for place, row in enumerate(rows)]
    study = declared(condition=(Condition(id="alone"), Condition(id="assisted")))
    said = "Left out of the analyses of times, because their time is missing: 2 counted attempts."
    for one in (time_ratios, times_of_tasks, curves, proportional_hazards, effects_of_order):
        assert said in one(study_data(without, study=study, metrics=metrics)).notes
        complete = one(study_data(rows, study=study, metrics=metrics))
        assert not any("Without a time" in note for note in complete.notes)


def test_a_slope_of_nothing_but_rounding_errors_has_no_interval() -> None:
    """Where one model solves what the other does not, the slope of both is 0, whatever is left out."""
    rows, metrics = World(people=1, tasks=14, model_rate=0.5, metric_slope=0.5).rows(1)
    first = [row for row in rows if row.solver]
    again = [replace(row, solver="y", attempt=f"y{row.task}", solved=not row.solved) for row in first]
    both = {
        task: {**one, "harmonic_out": float(place % 5)} for place, (task, one) in enumerate(metrics.items())
    }
    found = difficulty(study_data([*first, *again], metrics=both))
    assert found.tables[0].columns[6] == "p (jackknife)"
    assert found.tables[0].rows[0][6] is None
    number = found.numbers["models/remove/code_lines/code_lines"]
    assert number.value == pytest.approx(0, abs=1e-12)
    assert (number.low, number.high, number.note) == (None, None, "no interval: nothing varies")


def test_runs_whose_files_record_no_call_are_no_zeros() -> None:
    call = CallRow(number=1, tool="read_file", kind="view")
    people = [attempt_row(f"P{n % 3}", f"t{n}", calls=(call,) * (n % 2), submissions=1) for n in range(6)]
    runs = [
        attempt_row(task=f"t{n}", solver="m", verdict_from="recorded", calls=calls, submissions=2)
        for n, calls in enumerate([(call, call)] * 3 + [()] * 3)
    ]
    data = study_data(people + runs)
    found = information_and_submissions(data)
    # A person without a call made none; nobody knows of a file that records none.
    assert found.numbers["people/remove/information"].value == 0.5
    numbers = [found.numbers[f"m/remove/{name}"] for name in ("information", "submissions")]
    assert [(number.value, number.rows) for number in numbers] == [(2.0, 3), (2.0, 3)]
    left_out = "Left out, because their files record no call: m, remove: 3 of 6."
    assert left_out in found.notes
    tools = calls_by_tool(data)
    assert tools.numbers["m/remove/read_file"].value == 2.0
    assert left_out in tools.notes
    gists = [msgspec.structs.replace(row, mode="gist", measures={"fidelity": 1.0}) for row in runs]
    assert kinds_of_calls(study_data(gists)).numbers["m/calls"].value == 2.0
