"""`kill -9` at any moment loses no acknowledged event, and the attempt goes on as if nothing had been."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import kill_often

from gistpoint.core.demo.tasks import demo_task


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runner", "kills"), [("remove", "recorded", 9), ("discovery", "recorded", 8), ("remove", "plain", 3)]
)
def test_killed_attempt_goes_on_and_ends_as_one_that_was_not(
    tmp_path: Path, name: str, runner: str, kills: int
) -> None:
    task = demo_task(name, tmp_path / "demo")
    figures = kill_often(tmp_path / "attempts", task.folder, kills, runner=runner, seed=len(name) + kills)
    assert figures.kills == kills
