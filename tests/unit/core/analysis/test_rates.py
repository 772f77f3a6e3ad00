"""Solve rates by solver and mode, and their pooling."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analyses, analysis
from gistpoint.core.analysis.findings import Bars, Findings, Number
from gistpoint.core.analysis.pooling import groups, shared_tasks, too_few
from gistpoint.core.analysis.running import run_analyses
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import DeclaredSolver
from gistpoint.core.tasks.strata import FAILING_STRATA


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def test_people_models_and_simulated_people_are_never_pooled() -> None:
    rows = [
        attempt_row("A", "t1"),
        attempt_row("B", "t1", simulated=True, actor="simulated"),
        attempt_row(task="t1", solver="model-x"),
        attempt_row(task="t1", solver="model-y"),
    ]
    assert [(g.label, g.people) for g in groups(study_data(rows))] == [
        ("people", True),
        ("simulated people", True),
        ("model-x", False),
        ("model-y", False),
    ]


def test_conditions_modes_and_settings_are_told_apart() -> None:
    rows = [
        attempt_row("A", "t1"),
        attempt_row("A", "t2", condition="assisted"),
        attempt_row("A", "t3", mode="discovery"),
        attempt_row(
            "A", "t4", mode="discovery", condition_key="32/8", tool_use_budget=32, submission_budget=8
        ),
    ]
    assert [(g.label, g.mode) for g in groups(study_data(rows))] == [
        ("people, alone (16/4, settings 1)", "discovery"),
        ("people, alone (32/8, settings 2)", "discovery"),
        ("people, alone", "remove"),
        ("people, assisted", "remove"),
    ]


def test_a_task_with_two_corruptions_is_in_one_mode_in_every_table() -> None:
    two = {"mode": "discovery", "condition_key": "32/8", "tool_use_budget": 32, "submission_budget": 8}
    rows = [attempt_row(p, f"t{n}", mode="discovery") for p in "ABC" for n in range(3)]
    rows += [attempt_row(p, f"u{n}", minutes=9, **two) for p in "ABC" for n in range(4)]
    data = study_data(rows)
    data = replace(
        data,
        tasks={
            name: structs.replace(task, corruptions=1 + name.startswith("u"), failing=5)
            for name, task in data.tasks.items()
        },
    )
    assert [(g.label, g.mode) for g in groups(data)] == [("people", "discovery"), ("people", "several")]
    for ran in run_analyses(data, analyses()):
        for table in ran.findings.tables:
            assert not any("settings" in str(cell) for row in table.rows for cell in row), table.title
        assert not any("settings" in key for key in ran.findings.numbers), ran.analysis.id
        kinds = {key.split("/")[1] for key in ran.findings.numbers if "people/" in key and "several" in key}
        assert kinds <= {"several"}, ran.analysis.id


def test_rows_that_do_not_count_are_left_out() -> None:
    rows = [
        attempt_row("A", "t1"),
        attempt_row("A", "t2", counted=False),
        attempt_row("A", "t3", False, end="infrastructure"),
        attempt_row("A", "t4", False, end="withdrawn"),
    ]
    assert [row.task for group in groups(study_data(rows)) for row in group.rows] == ["t1"]


def test_rates_on_the_tasks_that_all_attempted_and_on_all() -> None:
    people = [attempt_row(p, f"t{t}", t < 4) for p in "ABC" for t in range(8)]
    model = [attempt_row(task=f"t{t}", solver="model-x", solved=t == 2) for t in range(2, 9)]
    found = run("bp-2", study_data(people + model))
    assert found.numbers["people/remove/all"].value == 0.5
    assert found.numbers["people/remove/same"].value == 1 / 3
    assert found.numbers["model-x/remove/all"].value == 1 / 7
    assert found.numbers["model-x/remove/same"].value == 1 / 6
    assert found.numbers["model-x/remove/same"].tasks == 6
    assert found.numbers["people/remove/all"].iid == pytest.approx((0.3143, 0.6857), abs=5e-5), (
        "Wilson, 12 of 24"
    )
    assert [plot.id for plot in found.plots] == ["bp-2-same", "bp-2-all"]
    bars = found.plots[1].marks[0]
    assert isinstance(bars, Bars)
    assert bars.values == (0.5,)
    assert "people, remove: 16/4" in found.notes[0]


def test_settings_that_differ_from_task_to_task_leave_the_common_tasks_common() -> None:
    """Only t3 has the larger budget, but like the others, it is common to people and the model."""
    rows = []
    for task in ("t1", "t2", "t3"):
        key = "32/8" if task == "t3" else "16/4"
        rows += [attempt_row(p, task, p == "A", condition_key=key) for p in "AB"]
        rows.append(attempt_row(task=task, solver="model-x", condition_key=f"{key} | temperature 1"))
    found = run("bp-2", study_data(rows))
    assert {key: number.rows for key, number in found.numbers.items() if key.endswith("same")} == {
        "people (16/4, settings 1)/remove/same": 4,
        "people (16/4, settings 2)/remove/same": 2,
        "model-x (16/4, settings 1)/remove/same": 2,
        "model-x (16/4, settings 2)/remove/same": 1,
    }


@pytest.mark.parametrize("divided", range(9))
def test_a_share_on_some_of_the_same_tasks_says_so(divided: int) -> None:
    """People's budgets may differ from task to task: then each of their rows has only a part of the tasks."""
    rows = [
        attempt_row(f"P{n % 4}", f"t{n}", condition_key="32/8" if n < divided else "16/4") for n in range(8)
    ]
    rows += [attempt_row(task=f"t{n}", solver="m") for n in range(8)]
    found = run("bp-2", study_data(rows))
    notes = [note for note in found.notes if "these settings had" in note]
    parts = {group.label: len(group.tasks) for group in groups(study_data(rows)) if group.people}
    assert len(notes) == (len(parts) if len(parts) > 1 else 0)
    for note, (label, count) in zip(notes, parts.items(), strict=False):
        assert note.startswith(f"{label}, remove: these settings had {count} of the 8 tasks")


def test_without_a_common_task_nothing_is_on_the_same_tasks() -> None:
    rows = [attempt_row("A", "t1"), attempt_row(task="t2", solver="model-x")]
    found = run("bp-2", study_data(rows))
    assert set(found.numbers) == {
        f"{who}/remove/{what}" for who in ("people", "model-x") for what in ("all", "tests")
    }
    assert "no task was attempted by all" in found.notes[1]
    assert shared_tasks(groups(study_data(rows))) == frozenset()


def test_the_rate_by_the_tests_alone_is_printed_next_to_the_one_that_counts() -> None:
    standings = ["confirmed", "contradicted", "unconfirmed", "not asked", "not asked", ""]
    rows = [
        attempt_row(
            "A", f"t{number}", solved=said not in ("contradicted", ""), by_tests=bool(said), confirmation=said
        )
        for number, said in enumerate(standings)
    ]
    found = run("bp-2", study_data(rows))
    assert found.numbers["people/remove/all"].value == pytest.approx(4 / 6)
    assert found.numbers["people/remove/tests"].value == pytest.approx(5 / 6)
    (beside,) = (table for table in found.tables if "tests alone" in table.title)
    (cells,) = beside.rows
    assert (cells[2], *cells[4:]) == (5, 1, 1, 1, 2)


def test_no_attempts_yield_nothing() -> None:
    assert run("bp-2", study_data()).empty


def test_a_shortfall_names_the_first_number_that_is_too_small() -> None:
    short = too_few("The curve", ("tasks", 10, 12), ("solved attempts", 5, 3), ("persons", 3, 1))
    assert short is not None
    assert short.words == "The curve is not estimated: it needs at least 5 solved attempts, and there are 3."
    assert too_few("The curve", ("tasks", 10, 10)) is None


def test_every_analysis_runs_on_an_empty_and_on_a_tiny_study() -> None:
    """None fails, and one person's attempts at two tasks give no interval."""
    tiny = World(people=1, tasks=2, per_person=2).data(1)
    for known in analyses():
        known.run(study_data())
        found = known.run(tiny)
        assert all(number.low is None for number in found.numbers.values()), known.id


def test_ids_of_analyses_are_unique() -> None:
    assert len({known.id for known in analyses()}) == len(analyses())


def test_rates_are_given_by_the_number_of_failing_tests_if_it_differs() -> None:
    data = study_data([attempt_row(person, f"t{t}", t == 0) for person in "ABCDE" for t in range(4)])
    assert not any("failing" in key for key in run("bp-2", data).numbers)
    failing = {"t0": 1, "t1": 4, "t2": 40, "t3": 41}
    tasks = {id: structs.replace(task, failing=failing[id]) for id, task in data.tasks.items()}
    found = run("bp-2", replace(data, tasks=tasks))
    by_stratum = {
        key.rpartition(" ")[2]: n
        for key, n in found.numbers.items()
        if "/failing" in key and "/tests" not in key
    }
    assert {name: number.value for name, number in by_stratum.items()} == {
        "1": 1.0, "2-4": 0.0, "5-40": 0.0, "41+": 0.0,
    }  # fmt: skip
    (table,) = [table for table in found.tables if "number of failing tests" in table.title]
    assert [row[2] for row in table.rows] == list(FAILING_STRATA)


def test_rates_by_what_a_model_may_have_seen() -> None:
    rows = [attempt_row(p, f"t{n}", n < 4, confirmation="confirmed") for p in "ABC" for n in range(8)]
    rows += [
        attempt_row(
            task=f"t{n}",
            solver="m",
            attempt=f"m{n}",
            solved=n % 2 == 0,
            by_tests=n < 7,
            confirmation="contradicted" if n % 2 else "confirmed",
        )
        for n in range(8)
    ]
    data = study_data(
        rows,
        study=declared(solver=(DeclaredSolver(name="m", runs=("x",), condition="alone", cutoff="2025-06"),)),
    )
    data = replace(
        data,
        tasks={
            name: structs.replace(
                task, in_history=name < "t2", released="2025-07" if name > "t5" else "2025-06"
            )
            for name, task in data.tasks.items()
        },
    )
    found = run("bp-2", data)
    table = next(table for table in found.tables if "seen in training" in table.title)
    of_model = {row[2]: row[3:5] for row in table.rows if row[0] == "m"}
    assert of_model == {
        "fault in public history": (1, 2),
        "fault made for the task": (3, 6),
        "released before the cutoff": (3, 6),
        "released after the cutoff": (1, 2),
    }
    assert {row[2] for row in table.rows if row[0] == "people"} == set(of_model)
    solved = next(table for table in found.tables if table.title == "Solved, by solver and mode")
    place = solved.columns.index("share, by the tests alone")
    beside = {row[0]: (row[4], row[place]) for row in solved.rows}
    assert [number.value for number in beside["m"] if isinstance(number, Number)] == [0.5, 0.875]
    assert [number.value for number in beside["people"] if isinstance(number, Number)] == [0.5, 0.5]
