"""A run of an agent whose process is killed repeatedly ends with the figures of an undisturbed one."""

from __future__ import annotations

from pathlib import Path

from agent_killing import kill_runs

from gistpoint.core.demo.tasks import demo_task


def test_a_run_that_is_killed_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    tasks = [demo_task(mode, tmp_path / "demo").folder for mode in ("remove", "discovery")]
    found = kill_runs(tmp_path, tasks, repeats=1, kills=4, seed=7)
    assert found.sound, str(found)
    assert found.kills == 4
