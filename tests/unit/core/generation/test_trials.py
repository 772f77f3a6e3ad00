"""Trials check that a task is as declared, and count the tests whose outcomes vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeRunner

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.diffs import DiffLineKind
from gistpoint.core.errors import CancelledError, TaskError
from gistpoint.core.generation import dossier
from gistpoint.core.generation.dossier import open_dossier
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.kinds.repair.trials import run_trial
from gistpoint.core.kinds.steadiness import TestSteadiness, steadiness
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.core.tasks.model import Mode

TARGET = "shop/prices.py::discount"


def judge_of(folder: Path, runner: FakeRunner, mode: Mode = Mode.DISCOVERY) -> RepairJudge:
    task = build_task(folder, mode)
    return RepairJudge(task, read_answer(task), runner)


def test_a_good_task_is_as_it_says(tmp_path: Path) -> None:
    judge = judge_of(tmp_path, FakeRunner(CHECKS))
    corrupted, original = run_trial(judge, TrialSubject.CORRUPTED), run_trial(judge, TrialSubject.ORIGINAL)
    assert corrupted.as_expected
    assert original.as_expected
    assert corrupted.judgement.score.value == 0.0
    assert original.judgement.solved
    fixed = run_trial(judge, TrialSubject.FIX, {TARGET: REPAIR})
    assert fixed.as_expected
    assert not run_trial(judge, TrialSubject.FIX, {TARGET: REPAIR.replace("-", "+")}).as_expected
    with pytest.raises(CodeError):
        run_trial(judge, TrialSubject.FIX, {TARGET: "def discount(:"})


def test_a_run_that_proves_nothing_is_not_as_expected(tmp_path: Path) -> None:
    judge = judge_of(tmp_path, FakeRunner(CHECKS, status=RunStatus.TIMED_OUT))
    trial = run_trial(judge, TrialSubject.CORRUPTED)
    assert (trial.finished, trial.as_expected, trial.odd) == (False, False, ())
    stopped = CancelToken()
    stopped.cancel()
    with pytest.raises(CancelledError):
        run_trial(judge, TrialSubject.ORIGINAL, run=RunContext(stopped))


def test_tests_that_do_not_say_the_same_each_time_are_counted(tmp_path: Path) -> None:
    calls: list[int] = []

    def wavering(names: Mapping[str, object]) -> None:
        calls.append(1)
        assert len(calls) % 3

    steady, shaky = "tests/test_prices.py::test_tenth", "tests/test_shelf.py::test_capacity"
    judge = judge_of(tmp_path, FakeRunner({**CHECKS, shaky: wavering}))
    trials = [run_trial(judge, TrialSubject.ORIGINAL) for _ in range(4)]
    trials += [run_trial(judge, TrialSubject.CORRUPTED) for _ in range(2)]
    assert [trial.odd for trial in trials] == [(), (), (shaky,), (), (), (shaky,)]
    found = steadiness(judge.baseline, [(trial.subject, trial.odd) for trial in trials])
    assert found.flaky == (TestSteadiness(shaky, 6, 7, 2, 3),)
    assert found.of(shaky).flaky
    assert found.of(steady) == TestSteadiness(steady, 7, 7, 0, 3)
    assert not found.of(steady).flaky


def test_a_dossier_holds_both_sides(tmp_path: Path) -> None:
    found = open_dossier(build_task(tmp_path, Mode.DISCOVERY).folder)
    assert found.changed_lines == 2
    lines = [
        line for hunk in found.diff[0].hunks for line in hunk.lines if line.kind is not DiffLineKind.CONTEXT
    ]
    assert [line.text.strip() for line in lines] == [
        "return price - price * percent // 100",
        "return price + price * percent // 100",
    ]
    assert "price - price" in found.text("shop/prices.py", corrupted=False)
    assert "price + price" in found.text("shop/prices.py", corrupted=True)
    assert found.start_line(found.answer.targets[0], corrupted=True) == 4
    assert set(found.library_files()) == {"shop/__init__.py", "shop/prices.py", "shop/stock/shelf.py"}
    tests = replace(found.task, suite=replace(found.task.suite, test_files=("shop/prices.py",)))
    assert set(replace(found, task=tests).library_files()) == {"shop/__init__.py", "shop/stock/shelf.py"}
    assert "16" in found.brief
    with pytest.raises(TaskError):
        open_dossier(tmp_path)


def test_an_answer_that_does_not_fit_its_code_is_a_damaged_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY)
    answer = read_answer(task)
    (target,) = answer.targets
    for changed in (replace(target, path="shop/gone.py"), replace(target, qualname="gone")):
        monkeypatch.setattr(
            dossier, "read_answer", partial(lambda found, task: found, replace(answer, targets=(changed,)))
        )
        with pytest.raises(TaskError, match="does not fit its code"):
            open_dossier(task.folder)
