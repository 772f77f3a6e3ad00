"""`gistpoint task list` prints rows of the index, without making the tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_task

from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.cli import main


@pytest.mark.parametrize("arguments", [(), ("--where", "source:shop tests>1"), ("--ids",)])
def test_the_second_list_makes_no_tasks(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    tasks = [build_task(Locations.of_user().tasks, mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
    assert main(["task", "list", *arguments]) == 0
    printed = capsys.readouterr().out
    assert all(task.short_id in printed for task in tasks)
    monkeypatch.setattr(TaskStore, "_task", lambda *_: pytest.fail("a task was made"))
    assert main(["task", "list", *arguments]) == 0
    assert capsys.readouterr().out == printed
