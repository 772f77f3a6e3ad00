"""The flow and the evaluation by people, calculated by hand."""

from __future__ import annotations

from typing import Any

import pytest
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.pooling import WITHOUT_ROW
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition
from gistpoint.core.study.facts import study_facts
from gistpoint.core.study.operations import StudyOperation


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def log_of(*told: tuple[str, str, dict[str, Any]]) -> list[StudyOperation]:
    return [
        StudyOperation(op=f"{n:04}", reviewer="us@m", utc_ms=1000 + n, subject=subject, kind=kind, data=data)
        for n, (subject, kind, data) in enumerate(told)
    ]


PLAN = {"slot": 1, "basis": {}, "assignments": [["a1", "t1", "alone", 1], ["a2", "t2", "assisted", 2]]}
LOG = log_of(
    *(("person:" + code, "enrolled", {"stratum": "", "role": "baseline"}) for code in ("A", "B", "C", "D")),
    ("person:Z", "enrolled", {"stratum": "", "role": "author"}),
    ("person:A", "consented", {"text_sha256": "x", "items": [True]}),
    ("person:D", "consented", {"text_sha256": "x", "items": [True]}),
    ("person:B", "declined", {}),
    ("person:C", "screened_out", {"item": "uses_ai"}),
    ("person:A", "planned", PLAN),
    ("person:A", "begun", {"assignment": "a1", "attempt": "x1"}),
    ("person:A", "returned", {"assignment": "a2", "why": "machine"}),
    ("person:D", "withdrawn", {"data": "keep", "words": ""}),
)


def test_who_is_still_to_be_erased_is_told_and_both_counts_of_people_agree() -> None:
    more = log_of(
        ("person:E", "enrolled", {"stratum": "", "role": "baseline"}),
        ("person:E", "consented", {"text_sha256": "x", "items": [True]}),
        ("person:E", "declined", {}),
        ("person:E", "withdrawn", {"data": "erase", "words": ""}),
        ("person:F", "returned", {"assignment": "f1", "why": "machine"}),
    )
    data = study_data(operations=more)
    value = {key: number.value for key, number in run("flow", data).numbers.items()}
    assert value["withdrew, data still to be erased"] == 1
    facts = study_facts(data)
    assert (
        (value["enrolled"], value["consented"])
        == (facts["people/enrolled"], facts["people/consented"])
        == (1, 0)
    )


def test_everybody_is_told_once() -> None:
    rows = [
        attempt_row("A", "t1"),
        attempt_row("A", "t2", False, counted=False, exclusion="idle_share"),
        attempt_row("A", "t3", False, counted=False, exclusion="infrastructure", end="infrastructure"),
        attempt_row(task="t1", solver="model-x", confirmation="not asked"),
        attempt_row(task="t2", solver="model-x", solved=False, counted=False, exclusion="unfinished"),
        attempt_row(task="t3", solver="model-x", solved=False, counted=False, exclusion="role_qa"),
    ]
    study = declared(condition=(Condition(id="alone"), Condition(id="assisted")))
    found = run("flow", study_data(rows, operations=LOG, study=study))
    value = {key: number.value for key, number in found.numbers.items()}
    assert value["enrolled"] == 5
    assert value["enrolled in another role/author"] == 1
    assert value["consented"] == 2
    assert value["declined to consent"] == 1
    assert value["screened out by/uses_ai"] == 1
    assert value["began a task"] == 1
    assert value["withdrew, data kept"] == 1
    assert (value["assigned"], value["assigned and begun"], value["returned"]) == (2, 1, 1)
    assert (value["attempts of people"], value["counted"], value["not counted"]) == (3, 1, 2)
    assert value["not counted because/idle_share"] == 1
    assert value["ended/infrastructure"] == 1
    tables = {table.title: table for table in found.tables}
    assert tables["By condition"].rows == (("alone", 1, 1, 3, 1, 1, 1, 0), ("assisted", 1, 0, 0, 0, 0, 0, 0))
    assert tables["Models"].rows == (("model-x", 3, 1, 1, 1, 1, 1, 1, "1 of 2", "2 of 2"),)
    assert tables["Counted attempts by task"].rows[0] == ("alone", 3, 0, pytest.approx(1 / 3), 1, 0)


@pytest.mark.parametrize(
    ("exclusion", "end", "missing"),
    [
        ("no_verdict", "", 3),
        ("unfinished", "", 3),
        ("mixed", "solved", 3),
        *((end, end, 3) for end in sorted(map(str, WITHOUT_ROW))),
        ("role_qa", "solved", 0),
        ("mine", "solved", 0),
    ],
)
def test_runs_of_a_model_without_an_outcome_bound_its_rate(exclusion: str, end: str, missing: int) -> None:
    rows = [attempt_row(task=f"t{n}", solver="m", solved=n < 2) for n in range(5)]
    rows += [
        attempt_row(task=f"u{n}", solver="m", solved=False, counted=False, exclusion=exclusion, end=end)
        for n in range(3)
    ]
    (table,) = (one for one in run("flow", study_data(rows)).tables if one.title == "Models")
    bounds = ("2 of 8", "5 of 8") if missing else ("", "")
    assert table.rows == (("m", 8, 5, 5, 2, 2, 0, missing, *bounds),)


def test_the_evaluation_by_people() -> None:
    """Eight of eight are solved in 4 to 30 minutes."""
    minutes = [4, 8, 12, 30, 5, 9, 10, 20]
    rows = [
        attempt_row(
            f"P{n % 4}",
            f"t{n}",
            minutes=m,
            mode="remove" if n < 4 else "discovery",
            answers={"task.ease": 1 + n % 4},
        )
        for n, m in enumerate(minutes)
    ]
    found = run("bp-4.4", study_data(rows))
    (table,) = found.tables
    first = table.rows[0]
    assert first[:3] == ("discovery", "people", "4 of 4")
    assert first[5:7] == (5, 20)
    median, ease = first[7], first[8]
    assert isinstance(median, Number)
    assert isinstance(ease, Number)
    assert median.value == pytest.approx(9.486832980505138), "the middle of 9 and 10 on the logarithmic scale"
    assert ease.value == 2.5
    assert found.numbers["people/discovery/solved"].note == "4 of 4: no rate from fewer than 5 attempts"


def test_the_hard_set_has_rows_of_its_own_in_the_evaluation_by_people() -> None:
    hard, easy = {"cyclomatic": 9.0, "degree": 9.0}, {"cyclomatic": 1.0, "degree": 1.0}
    rows = [attempt_row(p, f"t{n}", n > 0, minutes=60 if n else 5) for p in "ABCDE" for n in range(3)]
    metrics = {"t0": easy, "t1": hard, "t2": hard}
    candidates = {"railway": tuple({"cyclomatic": float(n), "degree": float(n)} for n in range(10))}
    (table,) = run("bp-4.4", study_data(rows, metrics=metrics, candidates=candidates)).tables
    assert [row[:3] for row in table.rows] == [
        ("remove", "people", "10 of 15"),
        ("remove, hard", "people", "10 of 10"),
    ]
    assert [row[5] for row in table.rows] == [60, 60]


def test_answers_in_words_are_no_numbers() -> None:
    rows = [attempt_row("A", "t1", answers={"task.ease": "very", "task.easel": 3})]
    assert "people/remove/ease" not in run("bp-4.4", study_data(rows)).numbers
