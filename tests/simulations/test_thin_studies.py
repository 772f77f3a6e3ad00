"""How the analyses of both papers handle little data, odd data and no data."""

from __future__ import annotations

from math import isfinite
from random import Random
from typing import Any

import pytest
from studies.curve_bands import Setting, coverage
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analyses
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, StudyTask
from gistpoint.core.study.rows import AttemptRow, CallRow, SubmissionRow

OF_PAPERS = [one for one in analyses() if one.id.startswith(("bp-", "gi-"))]
CONDITIONS = (
    Condition(id="alone"),
    Condition(id="big", tool_uses=32, submissions=8),
    Condition(id="static", tools=(), people=False),
    Condition(id="given", give_test=True),
    Condition(id="without", execution=False),
    Condition(id="with", execution=True),
)
NAMES = ("code_lines", "harmonic_out", "cyclomatic", "degree", "calls", "files")


def odd_study(seed: int) -> StudyData:
    """Return a study with random gaps, whose tasks may be solved by all or none, or show no variation."""
    draw = Random(seed)
    conditions = [one for one in CONDITIONS if one.id == "alone" or draw.random() < 0.5]
    solving = draw.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    tasks = {}
    for n in range(draw.choice([1, 2, 4, 12, 30, 64])):
        mode = draw.choice(["remove", "discovery", "gist"])
        metrics = {name: draw.choice([1.0, 5.0, 100 * draw.random()]) for name in NAMES}
        tasks[f"t{n}"] = StudyTask(
            id=f"t{n}",
            mode=mode,
            source=draw.choice("ab"),
            metrics={} if draw.random() < 0.15 else metrics,
            corruptions=draw.choice([1, 1, 2, 4]) if mode == "discovery" else 1,
        )

    def maybe(value: float) -> float | None:
        return draw.choice([None, value])

    def attempt(person: str, solver: str, condition: Condition, task: StudyTask) -> AttemptRow:
        solved = draw.random() < solving
        big = condition.id == "big"
        handed_in = [SubmissionRow(number=n, solved=solved and n == 2) for n in range(1, draw.randint(1, 4))]
        kinds = [draw.choice(["view", "search", "execute", "submit", ""]) for _ in range(draw.randint(0, 5))]
        more: dict[str, Any] = {
            name: maybe(100 * draw.random()) for name in ("line_existence", "test_recall", "pass_rate")
        }
        return attempt_row(
            person,
            task.id,
            solved,
            solver=solver,
            mode=task.mode,
            source=task.source,
            condition=condition.id,
            condition_key="32/8" if big else "16/4",
            tool_use_budget=32 if big else 16,
            submission_budget=8 if big else 4,
            primary_s=maybe(1800 * draw.random()),
            found=maybe(draw.choice([0.0, 0.5, 1.0])),
            first_view_s=maybe(60 * draw.random()),
            error=draw.choice(["", "import_error", "odd"]),
            mocked=draw.random() < 0.1,
            submitted=tuple(handed_in),
            submissions=len(handed_in),
            calls=tuple(
                CallRow(number=n, tool=draw.choice(["read_file", "x"]), kind=kind, at_s=maybe(9.0))
                for n, kind in enumerate(kinds)
            ),
            counted=draw.random() < 0.95,
            simulated=bool(seed % 2),
            scaffold=draw.choice(["", "mini"]) if solver else "",
            end=draw.choice(["gave_up", "steps_exhausted", "infrastructure"]) if not solved else "solved",
            **more,
        )

    rows = []
    for person in range(draw.randint(0, 9)):
        for name in draw.sample(sorted(tasks), min(len(tasks), draw.randint(1, 8))):
            rows.append(attempt(f"P{person}", "", draw.choice(conditions), tasks[name]))
    for solver in range(draw.randint(0, 3)):
        for condition in conditions:
            rows += [
                attempt("", f"m{solver}", condition, task) for task in tasks.values() if draw.random() < 0.7
            ]
    functions = tuple({name: float((n * 7) % 50) for name in NAMES} for n in range(50))
    return study_data(
        rows,
        study=declared(condition=tuple(conditions)),
        tasks=tasks,
        candidates={"a": functions} if draw.random() < 0.7 else {},
    )


def check(identity: str, found: Findings) -> None:
    """Require finite numbers within their intervals, which need three persons and tasks, and sound tables."""
    for key, one in found.numbers.items():
        values = [value for value in (one.value, one.low, one.high) if value is not None]
        assert all(isfinite(value) for value in values), (identity, key, one)
        assert one.value is None or (one.tasks and one.rows), (identity, key, one)
        if one.low is None or one.high is None:
            assert one.note, (identity, key, one)
        else:
            assert one.value is not None
            assert one.low - 1e-9 <= one.value <= one.high + 1e-9, (identity, key, one)
            assert one.tasks >= 3
            assert one.persons == 0 or one.persons >= 3, (identity, key, one)
    for table in found.tables:
        assert all(len(row) == len(table.columns) for row in table.rows), (identity, table.title)
    for short in found.not_estimated:
        assert short.has < short.needs


@pytest.mark.parametrize("seed", range(24))
def test_odd_studies_are_analysed_or_said_to_be_too_thin(seed: int) -> None:
    data = odd_study(seed)
    for one in OF_PAPERS:
        check(one.id, one.run(data))


def test_eight_people_and_sixteen_tasks() -> None:
    """Nine of ten attempts are solved: shares are estimated; regressions report what is missing."""
    modes = ("discovery", "remove")
    tasks = {
        f"t{n}": StudyTask(
            id=f"t{n}", mode=modes[n % 2], source="a", metrics={"code_lines": 5.0 + n, "harmonic_out": n % 3}
        )
        for n in range(16)
    }
    given = [(p, (p * 4 + n) % 16, (p + n) % 10 != 0) for p in range(8) for n in range(6)]
    rows = [
        attempt_row(f"P{p}", f"t{task}", solved, mode=modes[task % 2], found=1.0) for p, task, solved in given
    ]
    data = study_data(rows, tasks=tasks)
    found = {one.id: one.run(data) for one in OF_PAPERS}
    for identity, findings in found.items():
        check(identity, findings)
    assert all(isinstance(number, Number) for number in found["bp-6"].numbers.values())
    assert "people/discovery/found" in found["bp-6"].numbers
    assert not found["bp-4"].numbers
    assert {short.short for short in found["bp-4"].not_estimated} == {"tasks"}
    assert "needs at least 10 tasks, and there are 8" in found["bp-5"].not_estimated[0].words


def test_a_study_without_attempts_has_nothing_to_print() -> None:
    assert all(one.run(study_data()).empty for one in OF_PAPERS)


def test_bands_hold_the_true_curve_about_as_often_as_they_say() -> None:
    """Fifteen draws of 12 people and 24 tasks; the full simulation is in the study of the bands."""
    ours, paper = coverage(Setting(12, 8, 24), 15)
    assert min(ours.values()) >= 12 / 15
    assert sum(ours.values()) >= sum(paper.values())
