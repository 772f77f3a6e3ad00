"""The marks of a watched run include tests that do not pass again (decision 116)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, build_task
from fakes import FakeRunner

from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.running import UNATTENDED
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation.confirming import watched_marks

MARK = "does not pass again while it is watched"


class _ScriptedRunner(FakeRunner):
    """A runner whose first runs end as given; later ones are real."""

    def __init__(self, *scripted: RunStatus) -> None:
        super().__init__(CHECKS)
        self.scripted = list(scripted)

    def run(self, request: Any, **named: Any) -> SuiteReport:
        report = super().run(request, **named)
        return replace(report, status=self.scripted.pop(0)) if self.scripted else report


def marks(folder: Path, runner: FakeRunner, *, right: bool) -> tuple[str, ...]:
    task = build_task(folder)
    answer = read_answer(task)
    given = SourceTree.open(task.tree_path)
    submitted = repaired_tree(given, answer.targets) if right else given
    return watched_marks(runner, task, answer, submitted, UNATTENDED)


def test_a_pass_that_passes_again_has_no_mark(tmp_path: Path) -> None:
    runner = FakeRunner(CHECKS)
    assert marks(tmp_path, runner, right=True) == ()
    assert runner.runs == 1


def test_a_finished_run_in_which_tests_fail_is_marked(tmp_path: Path) -> None:
    assert marks(tmp_path, FakeRunner(CHECKS), right=False) == (MARK,)


@pytest.mark.parametrize("status", [RunStatus.CRASHED, RunStatus.INVALID])
def test_a_run_that_does_not_finish_is_marked(tmp_path: Path, status: RunStatus) -> None:
    assert marks(tmp_path, _ScriptedRunner(status), right=True) == (MARK,)


@pytest.mark.parametrize(("again", "expected"), [(RunStatus.FINISHED, ()), (RunStatus.TIMED_OUT, (MARK,))])
def test_a_run_that_takes_too_long_is_repeated_after_the_original(
    tmp_path: Path, again: RunStatus, expected: tuple[str, ...]
) -> None:
    runner = _ScriptedRunner(RunStatus.TIMED_OUT, RunStatus.FINISHED, again)
    assert marks(tmp_path, runner, right=True) == expected
    assert runner.runs == 3


def test_tests_that_the_original_does_not_pass_again_do_not_count(tmp_path: Path) -> None:
    failing = {id: lambda names: 1 / 0 for id in CHECKS}
    assert marks(tmp_path, FakeRunner(failing), right=True) == ()
    assert marks(tmp_path, _ScriptedRunner(RunStatus.CRASHED, RunStatus.TIMED_OUT), right=True) == ()
