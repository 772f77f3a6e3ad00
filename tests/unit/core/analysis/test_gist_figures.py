"""Further tables of Gistify: errors, calls, difficulty, the hard subset, arms, the test score."""

from __future__ import annotations

from math import exp, log
from random import Random
from typing import Any

import numpy as np
import pytest
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Curve, Findings, Number, Points
from gistpoint.core.analysis.gist_difficulty import hard_subset
from gistpoint.core.analysis.gist_errors import flags_of
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, StudyTask
from gistpoint.core.study.rows import AttemptRow, CallRow


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def gist(task: str, solved: bool, solver: str = "model-x", **changes: Any) -> AttemptRow:
    return attempt_row(task=task, solved=solved, solver=solver, mode="gist", **({"submissions": 1} | changes))


def number(value: object) -> Number:
    assert isinstance(value, Number)
    return value


# Errors


def test_errors_of_failed_gists_sum_to_100_percent() -> None:
    rows = [
        gist("t1", True),
        gist("t2", False, error="import_error", gist_flags=("test_changed",)),
        gist("t3", False, error="missing_test", gist_flags=("test_changed", "test_moved_under_guard")),
        gist("t4", False, error="pytest_runtime"),
        gist("t5", False, submissions=0),
        gist("t6", False, mocked=True, fidelity=1.0),
    ]
    found = run("gi-2", study_data(rows))
    errors, flags = found.tables
    told = {row[1]: (row[2], row[3]) for row in errors.rows}
    assert told == dict.fromkeys(
        ("file creation", "missing test", "import error", "pytest runtime", "mocked"), (1, 5)
    )
    assert sum(number(row[4]).value or 0 for row in errors.rows) == pytest.approx(100)
    assert {row[1]: round(number(row[2]).value or 0, 1) for row in flags.rows} == {
        "mocked": 16.7,
        "test changed": 33.3,
        "test moved under guard": 16.7,
    }


def test_a_gist_that_was_not_created_has_no_flags() -> None:
    assert not flags_of(gist("t", False, error="file_creation", gist_flags=("test_changed",)))
    assert flags_of(gist("t", False, error="missing_test", gist_flags=("test_changed",))) == {"test_changed"}


def test_the_first_row_of_gistifys_table_2_is_not_its_own_count() -> None:
    """72 of 97 are 74.2%; the printed 76.3% would be 74."""
    assert round(100 * 72 / 97, 1) == 74.2
    assert round(100 * 74 / 97, 1) == 76.3
    rows = [gist(f"t{n}", False, error="missing_test" if n < 72 else "pytest_runtime") for n in range(97)]
    found = run("gi-2", study_data(rows))
    assert found.numbers["model-x/missing_test"].value == pytest.approx(74.2, abs=0.05)
    assert "74.2" in found.tables[0].note


# Calls


def made(*kinds: str) -> tuple[CallRow, ...]:
    return tuple(CallRow(number=n, tool="t", kind=kind) for n, kind in enumerate(kinds, start=1))


def test_kinds_of_calls_sum_to_100_and_both_settings_are_averaged() -> None:
    study = declared(condition=(Condition(id="wo", execution=False), Condition(id="w", execution=True)))
    rows = [
        gist(f"t{n}", True, condition="wo", calls=made("view", "view", "search", "submit")) for n in range(3)
    ]
    rows += [gist(f"t{n}", True, condition="w", calls=made("view", "execute")) for n in range(3)]
    (table,) = run("gi-7", study_data(rows, study=study)).tables
    by_setting = {row[1]: row[3:] for row in table.rows}
    assert [number(cell).value for cell in by_setting["without"]] == pytest.approx([4, 50, 25, 0, 25])
    assert [number(cell).value for cell in by_setting["with"]] == pytest.approx([2, 50, 0, 50, 0])
    both = [number(cell).value or 0 for cell in by_setting["mean of both"]]
    assert both == pytest.approx([3, 50, 12.5, 25, 12.5])
    assert sum(both[1:]) == pytest.approx(100)


# Difficulty


def traced(tasks: int, slope: float, seed: int = 4) -> tuple[list[AttemptRow], dict[str, dict[str, float]]]:
    draw = Random(seed)
    metrics, rows = {}, []
    for n in range(tasks):
        calls = exp(draw.uniform(2, 8))
        metrics[f"t{n:03}"] = {"calls": calls, "files": float(draw.randint(1, 30))}
        solved = draw.random() < 1 / (1 + exp(-slope * (log(calls) - 5)))
        rows.append(gist(f"t{n:03}", solved, source=("pylint", "flask", "seaborn")[n % 3]))
    return rows, metrics


def test_fidelity_falls_with_calls_as_simulated() -> None:
    rows, metrics = traced(150, -0.8)
    found = run("gi-calls", study_data(rows, metrics=metrics))
    slope = found.numbers["model-x"]
    assert slope.low is not None
    assert slope.high is not None
    assert slope.low < -0.8 < slope.high < 0
    parts, curve = found.plots[0].marks
    assert isinstance(curve, Curve)
    assert list(curve.y) == sorted(curve.y, reverse=True)
    assert isinstance(parts, Points)
    assert len(parts.x) == 10
    assert found.plots[0].log_x
    flat = run("gi-files", study_data(rows, metrics=metrics)).numbers["model-x"]
    assert flat.low is not None
    assert flat.high is not None
    assert flat.low < 0 < flat.high


def test_nine_tasks_are_too_few_for_a_curve() -> None:
    rows, metrics = traced(9, -0.8)
    found = run("gi-calls", study_data(rows, metrics=metrics))
    assert not found.plots
    assert found.not_estimated[0].short == "tasks"


def test_the_repositories_of_gistifys_hard_subset_add_up_to_64_not_57() -> None:
    assert 30 + 28 + 6 == 64
    calls = {f"t{n:02}": float(n) for n in range(64)}
    files = {f"t{n:02}": float(-abs(n - 19)) for n in range(64)}
    one, other = hard_subset(calls, files)
    assert (len(one), len(other), len(one | other)) == (30, 30, 60)
    ties = hard_subset(dict.fromkeys(calls, 1.0), files)[0]
    assert ties == {f"t{n:02}" for n in range(30)}


def test_the_hard_subset_is_set_against_its_own_repositories() -> None:
    rows, metrics = traced(90, -0.8)
    found = run("gi-hard", study_data(rows, metrics=metrics))
    hard, baseline = found.numbers["model-x/hard"], found.numbers["model-x/baseline"]
    assert hard.value is not None
    assert baseline.value is not None
    assert hard.value < baseline.value
    assert found.numbers["model-x/difference"].value == pytest.approx(hard.value - baseline.value)
    one, other = hard_subset(
        {t: m["calls"] for t, m in metrics.items()}, {t: m["files"] for t, m in metrics.items()}
    )
    subset = one | other
    assert found.notes[0].startswith(
        f"{len(subset)} tasks of 90: 30 by calls and 30 by files, {len(one & other)} of"
    )
    sources = {row.source for row in rows}
    by_hand = sum(
        sum(row.task in subset for row in rows if row.source == source)
        / len(subset)
        * sum(row.solved for row in rows if row.source == source)
        / sum(row.source == source for row in rows)
        for source in sources
    )
    assert baseline.value == pytest.approx(100 * by_hand)


@pytest.mark.parametrize("more", [{}, {0: 3}, {1: 3}, {0: 2, 1: 5}])
def test_the_baseline_of_the_hard_subset_and_the_difference_add_up(more: dict[int, int]) -> None:
    """However unequally tasks are attempted: `more` attempts, by whether the task is solved."""
    rows, metrics = [], {}
    for n in range(80):
        solved, source = n % 3 != 0, "ab"[n % 5 == 0]
        metrics[f"t{n:02}"] = {"calls": float(n + 1), "files": float(n % 50 + 1)}
        for p in range(1 + more.get(int(solved), 0)):
            rows.append(
                attempt_row(f"P{p}", f"t{n:02}", solved, mode="gist", fidelity=float(solved), source=source)
            )
    numbers = run("gi-hard", study_data(rows, metrics=metrics)).numbers
    hard, baseline, gap = (numbers[f"people/{name}"].value for name in ("hard", "baseline", "difference"))
    assert hard is not None
    assert baseline is not None
    assert gap == pytest.approx(hard - baseline)
    one, other = hard_subset(*({t: m[name] for t, m in metrics.items()} for name in ("calls", "files")))
    of = {row.task: (row.source, row.solved) for row in rows}
    rate = {s: np.mean([y for where, y in of.values() if where == s]) for s in "ab"}
    assert baseline == pytest.approx(100 * np.mean([rate[of[task][0]] for task in one | other]))


def test_fifty_nine_tasks_have_no_hard_subset() -> None:
    rows, metrics = traced(59, -0.8)
    found = run("gi-hard", study_data(rows, metrics=metrics))
    assert not found.tables
    assert (found.not_estimated[0].needs, found.not_estimated[0].has) == (60, 59)


# Arms


def test_static_against_agentic_within_tasks() -> None:
    study = declared(condition=(Condition(id="agentic"), Condition(id="static", tools=(), people=False)))
    rows = [gist(f"t{n}", n < 8, condition="agentic", line_existence=50.0) for n in range(10)]
    rows += [gist(f"t{n}", n < 2, condition="static", line_existence=80.0) for n in range(9)]
    (table,) = run("gi-static", study_data(rows, study=study)).tables
    fidelity, existence = table.rows
    assert fidelity[:2] == ("model-x: static and agentic", "fidelity")
    assert number(fidelity[4]).value == pytest.approx(100 * (2 - 8) / 9)
    assert number(fidelity[4]).tasks == 9
    assert fidelity[5:] == ("0 and 6", pytest.approx(2 / 2**6))
    assert number(existence[4]).value == pytest.approx(30)


def test_the_test_given_is_compared_with_conditions_that_are_alike_but_for_it() -> None:
    study = declared(
        condition=(
            Condition(id="base"),
            Condition(id="given", give_test=True),
            Condition(id="given-tracing", give_test=True, strategy="tracing"),
        )
    )
    rows = [gist(f"t{n}", n < 4, condition="base", test_recall=60.0) for n in range(10)]
    rows += [gist(f"t{n}", n < 6, condition="given", test_recall=90.0) for n in range(10)]
    rows += [gist(f"t{n}", n < 9, condition="given-tracing", test_recall=95.0) for n in range(10)]
    found = run("gi-give-test", study_data(rows, study=study))
    assert set(found.numbers) == {"model-x: given and base/fidelity", "model-x: given and base/test score"}
    assert found.numbers["model-x: given and base/fidelity"].value == pytest.approx(20)
    assert found.numbers["model-x: given and base/test score"].value == pytest.approx(30)


def test_a_named_parameter_is_compared_with_conditions_that_are_alike_but_for_it() -> None:
    study = declared(condition=(Condition(id="all"), Condition(id="one", parameter=True)))
    rows = [gist(f"t{n}", n < 6, condition="all", pass_rate=90.0) for n in range(10)]
    rows += [gist(f"t{n}", n < 2, condition="one", pass_rate=40.0) for n in range(10)]
    found = run("gi-parameter", study_data(rows, study=study))
    assert found.numbers["model-x: one and all/fidelity"].value == pytest.approx(-40)
    assert found.numbers["model-x: one and all/pass rate"].value == pytest.approx(-50)


@pytest.mark.parametrize("missing", [0, 3, 6])
@pytest.mark.parametrize("mocked", [0, 2])
@pytest.mark.parametrize("again", [0, 2])
def test_the_means_of_two_sides_and_their_difference_add_up(missing: int, mocked: int, again: int) -> None:
    """Also if some gists have no rate of lines, because they were mocked or never ran."""
    study = declared(condition=(Condition(id="agentic"), Condition(id="static", tools=(), people=False)))
    rows = [
        gist(f"t{n}", True, condition="agentic", attempt=f"a{n}-{k}", line_existence=40.0 + 5 * n + k)
        for n in range(12)
        for k in range(1 + again * (n < 4))
    ]
    rows += [
        gist(
            f"t{n}",
            False,
            condition="static",
            attempt=f"s{n}",
            line_existence=None if n < missing else 90.0 - n * n / 4,
            mocked=n >= 12 - mocked,
        )
        for n in range(12)
    ]
    (table,) = run("gi-static", study_data(rows, study=study)).tables
    for line in table.rows:
        first, second, gap = (number(cell) for cell in line[2:5])
        assert first.tasks == second.tasks == gap.tasks
        assert first.value is not None
        assert second.value is not None
        assert gap.value == pytest.approx(first.value - second.value)
    assert len(table.rows) == 2
    assert number(table.rows[1][2]).tasks == 12 - missing - mocked


@pytest.mark.parametrize("settings", [1, 2, 3])
def test_every_comparison_of_conditions_has_a_name_of_its_own(settings: int) -> None:
    """Also if a solver has several settings under a condition: none of the numbers replaces another."""
    study = declared(condition=(Condition(id="agentic"), Condition(id="static", tools=(), people=False)))
    rows = [
        gist(
            f"t{n}",
            n < (8 if condition == "agentic" else 2) + setting,
            condition=condition,
            condition_key=f"{condition} | temperature {setting}",
            attempt=f"{condition}{setting}{n}",
        )
        for n in range(12)
        for condition in ("agentic", "static")
        for setting in range(settings)
    ]
    found = run("gi-static", study_data(rows, study=study))
    lines = [line for line in found.tables[0].rows if line[1] == "fidelity"]
    assert len({line[0] for line in lines}) == len(lines) == settings**2
    for line in lines:
        assert found.numbers[f"{line[0]}/fidelity"] == line[4]
    assert ("model-x: static and agentic/fidelity" in found.numbers) == (settings == 1)


def test_two_shared_tasks_are_too_few() -> None:
    study = declared(condition=(Condition(id="base"), Condition(id="given", give_test=True)))
    rows = [gist(f"t{n}", True, condition=c) for n in range(2) for c in ("base", "given")]
    found = run("gi-give-test", study_data(rows, study=study))
    assert not found.tables
    assert found.not_estimated[0].short == "shared tasks"


def test_test_score_and_fidelity_by_task_and_by_solver() -> None:
    rows = [
        gist(f"t{n}", n % 2 == 0, solver=f"model-{s}", test_recall=(90.0 if n % 2 == 0 else 30.0) + s)
        for s in range(10)
        for n in range(12)
        if n != s
    ]
    found = run("gi-test-score", study_data(rows))
    assert found.numbers["model-3/by task"].value == pytest.approx(1.0)
    by_solver = found.tables[0].rows[-1]
    assert by_solver[:3] == ("models", "by solver", 10)
    assert number(by_solver[3]).iid is not None
    few = run("gi-test-score", study_data([row for row in rows if row.solver in ("model-1", "model-2")]))
    assert [one.short for one in few.not_estimated] == ["solvers and conditions"]


def test_a_task_without_a_trace_is_left_out_of_the_curves() -> None:
    rows, metrics = traced(40, -0.8)
    unknown = StudyTask(id="x", mode="gist", source="flask")
    data = study_data([*rows, gist("x", True)], metrics=metrics)
    assert data.tasks["x"].metrics == unknown.metrics
    assert run("gi-calls", data).numbers["model-x"].rows == 40
