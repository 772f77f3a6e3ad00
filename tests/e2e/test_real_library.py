"""A repair task from a real library's sdist: made, checked and solved by the command line alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gistpoint.core.kinds.folder import read_answer, read_task


def gistpoint(
    environment: Mapping[str, str], *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gistpoint", *arguments]
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )


@pytest.mark.network
def test_a_task_from_an_sdist_is_made_checked_and_solved(environment: dict[str, str], tmp_path: Path) -> None:
    source = ["toolz==1.2.0", "--pytest-args", "toolz", "--function", "toolz/itertoolz.py::groupby"]
    made = gistpoint(environment, "task", "new", *source)
    assert made.returncode == 0, made.stderr
    identity = made.stdout.splitlines()[-1]
    task = read_task(Path(environment["GISTPOINT_HOME"]) / "data" / "tasks" / identity)
    assert task.suite.tests == 192
    assert len(task.brief.failing) >= 5
    entering = read_answer(task).entered["toolz/itertoolz.py::groupby"]
    assert {failure.id for failure in task.brief.failing} <= entering
    assert len(entering) < 192

    checked = gistpoint(environment, "task", "check", identity, "--json")
    found = json.loads(checked.stdout)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert {check["name"] for check in found["checks"]} >= {
        "tree",
        "sandbox",
        "corrupted scores 0",
        "original scores 1",
    }

    repaired = tmp_path / "groupby.py"
    repaired.write_text(read_answer(task).targets[0].original, encoding="utf-8")
    solved = gistpoint(environment, "solve", identity, "--lines", stdin=f"submit_attempt @{repaired}\n")
    assert solved.returncode == 0, solved.stdout + solved.stderr
    assert "192 of 192 tests pass" in solved.stdout


@pytest.mark.network
def test_a_function_that_few_tests_need_makes_no_task(environment: dict[str, str]) -> None:
    source = [
        "toolz==1.2.0",
        "--pytest-args",
        "toolz/tests/test_utils.py",
        "--function",
        "toolz/utils.py::raises",
        "--min-failing",
        "5",
    ]
    made = gistpoint(environment, "task", "new", *source)
    assert made.returncode == 1
    assert made.stdout == ""
    assert "a task needs at least 5" in made.stderr
    assert "Traceback" not in made.stderr
