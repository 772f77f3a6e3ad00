"""`attempt confirm` and `object`, `task control`, and the confirmation after `solve --lines`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, REPAIR, SUSPICIOUS, build_task
from confirmers import CONFIRMED, CONTRADICTED, UNCONFIRMED, ScriptedConfirmer, controlled
from fakes import FakeRunner

from gistpoint import object_graph
from gistpoint.core.confirmation.controls import CONTROLS_FILE, read_controls
from gistpoint.core.confirmation.model import Confirmation, Controls, Unconfirmable
from gistpoint.core.tasks.model import Task
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: FakeRunner(CHECKS))
    return build_task(tmp_path / "home" / "data" / "tasks")


@pytest.fixture
def confirmer(monkeypatch: pytest.MonkeyPatch) -> ScriptedConfirmer:
    scripted = ScriptedConfirmer()
    monkeypatch.setattr(object_graph, "build_confirmer", lambda options, **more: scripted)
    return scripted


def solve(
    task: Task, code: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> tuple[int, str, str, str]:
    """Submit code; return the exit code, the solver's output, the final messages and the attempt's id."""
    call = {"tool": "submit_attempt", "arguments": {"func_code": code}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(call) + "\n"))
    code_of_exit = cli.main(["solve", task.short_id, "--new", "--lines"])
    out, said = capsys.readouterr()
    return (
        code_of_exit,
        out,
        said,
        next(line for line in said.splitlines() if line.startswith("attempt ")).split()[1],
    )


def row_of(attempt: str, capsys: Captured) -> dict[str, Any]:
    cli.main(["attempt", "show", attempt, "--json"])
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("confirmation", "status", "result"),
    [(CONFIRMED, 0, "solved"), (UNCONFIRMED, 0, "solved"), (CONTRADICTED, 1, "solved, to be read")],
)
def test_a_pass_is_confirmed_after_the_end_and_told_everywhere(
    task: Task,
    confirmer: ScriptedConfirmer,
    confirmation: Confirmation,
    status: int,
    result: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    _, plain, _, before = solve(task, REPAIR, monkeypatch, capsys)
    assert row_of(before, capsys)["confirmation"] == "not asked"
    controlled(task.folder)
    confirmer.confirmation = confirmation
    found, out, said, attempt = solve(task, REPAIR, monkeypatch, capsys)
    assert out == plain, "the solver is told the same bytes, with confirmation or without"
    assert found == status
    assert f"confirmation: {confirmation.words}" in said
    row = row_of(attempt, capsys)
    assert (row["result"], row["confirmation"], row["solved_by_tests"]) == (result, confirmation.words, True)
    (tree,) = confirmer.submitted
    assert REPAIR.strip().encode() in b"".join(tree.overlay.values())
    assert cli.main(["attempt", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"2 of 2 by the tests alone: 1 {confirmation.result}, 1 not asked" in listed.replace(
        f"1 not asked, 1 {confirmation.result}", f"1 {confirmation.result}, 1 not asked"
    )
    assert cli.main(["attempt", "export", "--to", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {one["confirmation"] for one in rows} == {confirmation.words, "not asked"}
    assert cli.main(["attempt", "export", attempt, "--to", "atif"]) == 0
    assert f'"confirmation": "{confirmation.words}"' in capsys.readouterr().out


def test_a_confirmed_pass_counts_whatever_its_text_looks_like(
    task: Task, confirmer: ScriptedConfirmer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    controlled(task.folder)
    status, _, _, attempt = solve(task, SUSPICIOUS, monkeypatch, capsys)
    assert status == 0
    row = row_of(attempt, capsys)
    assert (row["result"], row["suspicious"], row["marks"]) == ("solved", [], ["gc.collect"])
    assert cli.main(["attempt", "show", attempt]) == 0
    assert "seen in its text\tgc.collect" in capsys.readouterr().out


def test_passes_from_before_are_asked_about_once(
    task: Task, confirmer: ScriptedConfirmer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    attempts = [solve(task, REPAIR, monkeypatch, capsys)[3] for _ in range(2)]
    assert cli.main(["attempt", "confirm", attempts[0]]) == 1
    assert "gistpoint task control" in capsys.readouterr().out
    assert not confirmer.submitted
    assert cli.main(["task", "control", task.short_id]) == 0
    assert "yes, by 1 of 2 tests" in capsys.readouterr().out
    assert (task.folder / CONTROLS_FILE).is_file()
    assert cli.main(["attempt", "confirm", "--all", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["attempts"]
    assert [one["attempt_id"] for one in said] == sorted(attempts)
    assert [one["confirmation"]["result"] for one in said] == ["confirmed", "confirmed"]
    assert cli.main(["attempt", "confirm", "--all"]) == 0
    assert "has already been checked" in capsys.readouterr().out
    assert len(confirmer.submitted) == 2
    assert cli.main(["attempt", "confirm"]) == 2


def test_a_task_whose_passes_cannot_be_confirmed_says_why(
    task: Task, confirmer: ScriptedConfirmer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for where in (["task", "list"], ["task", "show", task.short_id]):
        cli.main(where)
        assert "not known (the task is older)" in "".join(capsys.readouterr())
    confirmer.controls = Controls(
        False, Unconfirmable.ASYNCHRONOUS, "price is a coroutine.", reasons={"at_import": 2}
    )
    assert cli.main(["task", "control", task.short_id]) == 1
    assert "Tests that do not count: at_import 2." in capsys.readouterr().out
    for where in (["task", "list"], ["task", "show", task.short_id]):
        cli.main(where)
        assert "no (asynchronous)" in "".join(capsys.readouterr())
    cli.main(["task", "list", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["tasks"]
    assert (row["confirmable"], row["not_confirmable"]) == (False, "asynchronous")
    assert not read_controls(task.folder).confirmable
    _, _, said, attempt = solve(task, REPAIR, monkeypatch, capsys)
    assert "unconfirmed (asynchronous)" in said
    assert row_of(attempt, capsys)["result"] == "solved"
    assert not confirmer.submitted


def test_a_solver_can_object_and_a_reviewer_settles_it(
    task: Task, confirmer: ScriptedConfirmer, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    controlled(task.folder)
    assert (
        cli.main(["attempt", "object", solve(task, REPAIR, monkeypatch, capsys)[3], "--why", "it is right"])
        == 2
    )
    confirmer.confirmation = CONTRADICTED
    attempt = solve(task, REPAIR, monkeypatch, capsys)[3]
    capsys.readouterr()
    assert cli.main(["attempt", "object", attempt, "--why", " "]) == 2
    assert cli.main(["attempt", "object", attempt, "--why", "a float is no worse"]) == 0
    assert "reviewers see what you wrote" in capsys.readouterr().out
    assert row_of(attempt, capsys)["result"] == "solved, to be read"
    reviews = b"".join(
        path.read_bytes() for path in (task.folder.parents[1] / "reviews").rglob("*") if path.is_file()
    )
    assert b"The solver objects: a float is no worse" in reviews
    assert cli.main(["attempt", "accept", attempt, "--reviewer", "r1"]) == 0
    capsys.readouterr()
    row = row_of(attempt, capsys)
    assert (row["result"], row["confirmation"], row["solved_by_tests"]) == ("solved", "contradicted", True)
