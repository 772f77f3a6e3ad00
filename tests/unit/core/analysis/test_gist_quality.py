"""Fidelity and the rates of lines (Gistify, tables 1, 3 and 6)."""

from __future__ import annotations

from typing import Any

import pytest
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.kinds.gist.measures import measured
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition
from gistpoint.core.study.rows import AttemptRow


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def gist(task: str, solved: bool, solver: str = "model-x", **changes: Any) -> AttemptRow:
    settings: dict[str, Any] = {"line_existence": 60.0, "fidelity": float(solved), "tool_use_budget": 50}
    return attempt_row(task=task, solved=solved, solver=solver, mode="gist", **(settings | changes))


def number(value: object) -> Number:
    assert isinstance(value, Number)
    return value


@pytest.mark.parametrize(
    ("faithful", "printed"),
    [(36, 24.0), (81, 54.0), (58, 38.7), (83, 55.3), (88, 58.7), (91, 60.7), (92, 61.3)],
)
def test_fidelities_that_gistify_prints_are_parts_of_150(faithful: int, printed: float) -> None:
    found = run("gi-1", study_data([gist(f"t{n}", n < faithful) for n in range(150)]))
    value = found.numbers["model-x/fidelity"]
    assert round(value.value or 0, 1) == printed
    assert (value.persons, value.tasks, value.rows) == (0, 150, 150)
    assert value.low is not None
    assert value.high is not None
    assert value.low < printed < value.high


def test_a_table_by_solver_and_execution_by_hand() -> None:
    study = declared(condition=(Condition(id="wo", execution=False), Condition(id="w", execution=True)))
    rows = [
        gist("t1", True, condition="wo", line_existence=80.0, line_execution=90.0, scaffold="mini"),
        gist("t2", False, condition="wo", line_existence=40.0, scaffold="mini"),
        gist("t3", False, condition="wo", line_existence=0.0, mocked=True, scaffold="mini"),
        gist("t1", True, condition="w", line_existence=90.0, line_execution=70.0, scaffold="mini"),
    ]
    found = run("gi-1", study_data(rows, study=study))
    by_solver, by_scaffold = found.tables
    without = next(row for row in by_solver.rows if row[1] == "without")
    assert without[:3] == ("model-x, wo", "without", 3)
    assert without[-1] == 1
    assert number(without[3]).note == "1 of 3: no rate from fewer than 5 attempts"
    assert number(without[4]).value == 60.0
    assert number(without[5]).value == 90.0
    assert number(without[6]).note.startswith("1 of 2: no rate")
    assert number(without[5]).low is None
    assert "no interval" in number(without[5]).note
    assert [row[:3] for row in by_scaffold.rows] == [("mini, w", 1, 1), ("mini, wo", 1, 3)]


def test_tasks_weigh_the_same_however_often_they_were_attempted() -> None:
    rows = [gist("t1", True, solver="", participant=p) for p in "ABCD"] + [
        gist("t2", False),
        gist("t1", True),
    ]
    people = [attempt_row(p, "t1", True, mode="gist") for p in "ABCD"]
    people += [attempt_row(p, t, False, mode="gist") for p, t in (("A", "t2"), ("B", "t3"))]
    found = run("gi-1", study_data(people + rows[4:]))
    assert found.numbers["people/fidelity"].value == pytest.approx(100 / 3)
    assert found.numbers["people/fidelity"].iid != (None, None)


def test_conditions_are_set_against_the_first_declared_one_within_tasks() -> None:
    study = declared(condition=(Condition(id="base"), Condition(id="tracing", strategy="tracing")))
    rows = [gist(f"t{n}", n < 2, condition="base") for n in range(6)]
    rows += [
        gist(f"t{n}", n < 3, condition="tracing", end="steps_exhausted" if n == 5 else "final_wrong")
        for n in range(5)
    ]
    (table,) = run("gi-3", study_data(rows, study=study)).tables
    base, tracing = table.rows
    assert base[1] == "base"
    assert base[-1] == "base"
    assert number(tracing[-1]).value == pytest.approx(20.0)
    assert number(tracing[-1]).tasks == 5
    assert number(tracing[3]).value == pytest.approx(60.0)


def test_too_few_shared_tasks_have_no_difference() -> None:
    study = declared(condition=(Condition(id="base"), Condition(id="other")))
    rows = [
        gist(t, True, condition=c)
        for t, c in (("t1", "base"), ("t2", "base"), ("t1", "other"), ("t2", "other"))
    ]
    (table,) = run("gi-3", study_data(rows, study=study)).tables
    assert number(table.rows[1][-1]).value is None
    assert number(table.rows[1][-1]).note == "fewer than 3 shared tasks"


def test_the_limit_of_steps_is_told() -> None:
    rows = [gist(f"t{n}", False, end="steps_exhausted" if n < 2 else "final_wrong") for n in range(8)]
    (table,) = run("gi-3", study_data(rows)).tables
    assert number(table.rows[0][6]).value == pytest.approx(25.0)


@pytest.mark.parametrize("again", [0, 1, 4])
@pytest.mark.parametrize("limited", [0, 2, 8])
def test_every_rate_of_a_condition_is_over_tasks(limited: int, again: int) -> None:
    """As the note below the table says, however often the tasks that reached the limit were attempted."""
    rows = [
        gist(
            f"t{n}",
            n >= limited,
            end="steps_exhausted" if n < limited else "solved",
            solver="",
            participant=f"P{p}",
        )
        for n in range(8)
        for p in range(1 + (again if n < limited else 0))
    ]
    (table,) = run("gi-3", study_data(rows)).tables
    fidelity, reached = number(table.rows[0][3]), number(table.rows[0][6])
    assert reached.value == pytest.approx(100 * limited / 8)
    assert fidelity.value == pytest.approx(100 - 100 * limited / 8)


def test_the_pass_rate_is_of_gists_with_a_pass() -> None:
    rows = [
        gist("t1", True, pass_rate=100.0, test_recall=100.0, test_precision=50.0),
        gist("t2", False, pass_rate=50.0, test_recall=80.0, test_precision=80.0),
        gist("t3", False, pass_rate=0.0, test_recall=0.0, test_precision=0.0),
        gist("t4", False),
    ]
    found = run("gi-6", study_data(rows))
    assert found.tables[0].rows[0][4] == 2
    assert found.numbers["model-x/pass_rate"].value == 75.0
    recall = found.numbers["model-x/recall"]
    assert recall.value == 60.0
    assert recall.iid is not None
    assert recall.low == 0.0
    assert recall.high == recall.iid[1] == 100.0
    assert found.numbers["model-x/f1"].value == pytest.approx((200 / 3 + 80 + 0) / 3)


def test_a_study_without_gists_has_no_tables_of_gists() -> None:
    data = study_data([attempt_row("A", "t1")])
    assert all(run(identity, data).empty for identity in ("gi-1", "gi-3", "gi-6"))


def test_a_recorded_score_gives_the_columns_that_the_tables_need() -> None:
    made = measured(
        {
            "execution_fidelity": 1,
            "passed": 3,
            "instances": 4,
            "test": {"recall": 90.0, "precision": 80.0, "f1": 84.7},
            "error": None,
            "flags": {"mocked": "", "test_changed": True, "main_guard_added": False, "vacuous": None},
        }
    )
    assert (made["test_recall"], made["test_precision"], made["pass_rate"]) == (90.0, 80.0, 75.0)
    assert made["gist_flags"] == ("test_changed",)
    assert measured({})["gist_flags"] == ()
