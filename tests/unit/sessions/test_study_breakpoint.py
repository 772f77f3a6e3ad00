"""Breakpoint's result files of a study: as read by gistpoint, sums, and both right-function rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import REPAIR
from held_studies import Held
from study_attempts import DISCOUNT

from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.breakpoint import _right_function  # pyright: ignore[reportPrivateUsage]
from gistpoint.sessions.exports.study.calls import LEFT_OUT, ExportedCall
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.runs.opening import list_runs
from gistpoint.sessions.studies.solvers import runs_by_attempt

SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}


def _files(held: Held, *, public: bool = False) -> dict[str, list[dict[str, Any]]]:
    journals = {one.id: one.journal for one in held.folder.attempts()}
    loaded = held.load()
    export = StudyExport(loaded.data, journals, runs_by_attempt(loaded.solvers), public=public)
    return {
        name: [json.loads(line) for line in content.splitlines()]
        for name, content in study_exporter("breakpoint", public=public)(export)
    }


def test_a_study_as_results(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    discovery, remove = held.tasks
    held.attempt("P01", remove)
    held.attempt("P02", remove, REPAIR.replace("100", "99"))
    held.attempt("P01", discovery)
    held.model_run(remove, "runs/x")
    files = _files(held)
    assert list(files) == [
        "model-x_alone_remove.jsonl",
        "people_alone_discovery.jsonl",
        "people_alone_remove.jsonl",
    ]
    summary, *problems = files["people_alone_remove.jsonl"]
    assert [summary[name] for name in ("total_problems", "success_count", "perfect_solves")] == [2, 1, 1]
    assert summary["perfect_solve_rate"] == 0.5
    assert summary["success_rate"] == summary["avg_score"] == sum(line["score"] for line in problems) / 2
    assert summary["config"]["mode"] == "remove"
    (_, found) = files["people_alone_discovery.jsonl"]
    metadata = found["metadata"]
    assert metadata["tool_usage"][0] == {"tool": "read_file", "args": {"file_path": "shop/prices.py"}}
    assert metadata["right_function"] is metadata["right_function_any_call"] is True
    assert metadata["corruption_functions"] == [DISCOUNT]
    assert problems[0]["metadata"]["right_function"] == []
    (_, of_model) = files["model-x_alone_remove.jsonl"]
    assert of_model["metadata"]["tool_usage"][0]["args"] == {"file_path": "shop/prices.py"}
    assert of_model["gistpoint"]["verdict_from"] == "judged"


def test_our_reader_reads_it(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    held.attempt("P01", held.tasks[1])
    held.attempt("P02", held.tasks[1], REPAIR.replace("100", "99"))
    journals = {one.id: one.journal for one in held.folder.attempts()}
    ((name, content),) = study_exporter("breakpoint")(StudyExport(held.load().data, journals))
    (tmp_path / name).write_bytes(content)
    runs = [listed.header for listed in list_runs([tmp_path / name]) if listed.header is not None]
    assert [(run.format, run.task, run.verdict, run.submissions) for run in runs] == [
        ("breakpoint", held.tasks[1].id, "solved", 1),
        ("breakpoint", held.tasks[1].id, "unsolved", 1),
    ]


def test_in_public_no_code_and_no_target(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    held.attempt("P01", held.tasks[0])
    ((_, problem),) = _files(held, public=True).values()
    first, last = problem["metadata"]["tool_usage"]
    assert first["args"] == {"file_path": "shop/prices.py"}
    assert last["args"] == {"func_name": "discount", "file_path": "shop/prices.py", "func_code": LEFT_OUT}
    assert problem["metadata"]["corruption_functions"] == []
    assert problem["metadata"]["right_function"] is True
    assert "log_file" not in problem["config"]


def test_simulated_results_say_so(tmp_path: Path) -> None:
    held = Held.at(tmp_path, simulated=True)
    held.attempt("P01", held.tasks[1], actor=SIMULATED)
    ((name, lines),) = _files(held).items()
    assert name == "SIMULATED-people_alone_remove.jsonl"
    assert {line["config"]["model_name"] for line in lines} == {"SIMULATED human"}


@pytest.mark.parametrize(
    ("targets", "changed", "right", "last", "every"),
    [
        (("a.py::f",), ("a.py::f",), True, True, True),
        (("a.py::f",), ("a.py::f", "a.py::g"), False, False, True),
        (("a.py::f",), ("a.py::g", "./a.py::f"), True, True, True),
        (("a.py::f",), ("b.py::f",), False, False, False),
        (("a.py::f", "a.py::g"), ("a.py::f", "a.py::g", "a.py::h"), True, False, True),
        (("a.py::f", "a.py::g"), ("a.py::f",), False, True, False),
    ],
)
def test_the_right_function(
    targets: tuple[str, ...], changed: tuple[str, ...], right: bool, last: bool, every: bool
) -> None:
    row = AttemptRow(attempt="a", study="s", task="t", mode="discovery")
    task = StudyTask(id="t", mode="discovery", source="s", targets=targets)
    calls = [
        ExportedCall(
            n,
            "replace_function",
            "submit",
            dict(zip(("file_path", "func_name"), one.split("::"), strict=True)),
        )
        for n, one in enumerate(changed, 1)
    ]
    assert _right_function(row, task, calls) == {
        "right_function": right, "right_function_last_call": last, "right_function_any_call": every,
    }  # fmt: skip
