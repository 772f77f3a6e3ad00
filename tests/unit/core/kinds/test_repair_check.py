"""The check of a repair compares what the brief tells with the answer, because the id does not cover it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, build_task
from fakes import FakeRunner

from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.check import repair_findings
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.running import UNATTENDED
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Failure, Mode, Task

EXTRA = Failure("tests/test_prices.py::test_total")


def found(task: Task) -> CheckFinding:
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    return next(item for item in repair_findings(judge, UNATTENDED) if item.name == "brief and answer")


def true_task(folder: Path, mode: Mode) -> Task:
    task = build_task(folder, mode)
    failing = read_answer(task).baselines[0].failing
    return replace(task, brief=replace(task.brief, failing=tuple(map(Failure, sorted(failing)))))


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_a_true_brief_agrees_with_its_answer(mode: Mode, tmp_path: Path) -> None:
    task = true_task(tmp_path, mode)
    assert found(task) == CheckFinding(
        "brief and answer", True, f"they agree on {len(task.brief.failing)} failing tests"
    )
    shuffled = replace(task.brief, failing=task.brief.failing[::-1])
    assert found(replace(task, brief=shuffled)).passed


@pytest.mark.parametrize(
    ("mode", "changed", "said"),
    [
        (Mode.REMOVE, {"target": "shop/prices.py::Basket.total"}, "but the answer shop/prices.py::discount"),
        (Mode.REMOVE, {"target": ""}, "the brief names no function"),
        (Mode.DISCOVERY, {"target": "shop/prices.py::discount"}, "has to be found"),
        (Mode.DISCOVERY, {"targets": 2}, "says that 2 functions are corrupted, not 1"),
        (Mode.DISCOVERY, {"failing": ()}, "does not list exactly the tests that fail, see"),
        (Mode.REMOVE, {"failing": (EXTRA,)}, "does not list exactly the tests that fail, see"),
    ],
)
def test_a_brief_that_tells_something_else_is_a_fault(
    mode: Mode, changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    task = true_task(tmp_path, mode)
    finding = found(replace(task, brief=replace(task.brief, **changed)))
    assert not finding.passed
    assert said in finding.detail


def test_a_brief_for_several_functions_needs_several(tmp_path: Path) -> None:
    finding = found(replace(true_task(tmp_path, Mode.DISCOVERY), several=True))
    assert (finding.passed, finding.detail) == (False, "the brief is for several functions, not 1")
