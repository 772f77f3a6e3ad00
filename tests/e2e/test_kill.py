"""`kill -9` at any moment loses no acknowledged event, and the attempt continues undisturbed."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import kill_often
from program_kills import kill_programs

from gistpoint.core.demo.tasks import demo_task


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runner", "kills"),
    [("remove", "recorded", 9), ("discovery", "recorded", 8), ("remove", "plain", 3)],
)
def test_killed_attempt_goes_on_and_ends_as_one_that_was_not(
    tmp_path: Path, name: str, runner: str, kills: int
) -> None:
    task = demo_task(name, tmp_path / "demo")
    figures = kill_often(tmp_path / "attempts", task.folder, kills, runner=runner, seed=len(name) + kills)
    assert figures.kills == kills


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["lines", "terminal"])
def test_what_the_real_program_has_shown_is_there_after_a_kill(tmp_path: Path, mode: str) -> None:
    task = demo_task("remove", tmp_path / "cache" / "demo")
    killed = kill_programs(tmp_path, task, 3, mode=mode, seed=10)
    assert killed.lost == []
    assert killed.kills == 3
    assert killed.solved == killed.attempts
    assert killed.acknowledged > 3
