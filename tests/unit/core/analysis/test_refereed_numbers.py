"""Errors that referees would reject: impossible bounds, untrue notes, and unrelated rows in one table."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, isfinite

import pytest
from msgspec.structs import replace
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.budgets import success_by_submission
from gistpoint.core.analysis.correlations import metric_correlations
from gistpoint.core.analysis.corruptions import corruptions
from gistpoint.core.analysis.difficulty_curves import solver_curves
from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.flow import participant_flow
from gistpoint.core.analysis.gist_arms import test_score_and_fidelity as score_and_fidelity
from gistpoint.core.analysis.gist_quality import tests_kept as kept_tests
from gistpoint.core.analysis.horizon import horizons
from gistpoint.core.analysis.primary import sensitivity
from gistpoint.core.analysis.rates import solve_rates
from gistpoint.core.analysis.tasktimes import times_of_tasks
from gistpoint.core.analysis.timeratios import time_ratios
from gistpoint.core.analysis.tool_use import calls_by_tool
from gistpoint.core.analysis.versus import people_and_models
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, Quality, StudyTask, Training
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
