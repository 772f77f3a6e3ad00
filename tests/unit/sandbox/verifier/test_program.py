"""The verifier's verdict on a tree, with a scripted run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from builders import CHECKS, build_task
from fakes import FakeRunner

from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.layout import lay_out
from gistpoint.sandbox.verifier.bundle import expected_text
from gistpoint.sandbox.verifier.program import _judged_tree


def test_what_did_not_pass_is_not_parsed(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    wanted = json.loads(expected_text(task, read_answer(task)))
    for target in wanted["targets"]:
        target["corrupted"] = None  # raises once it is compared
    runner: Any = FakeRunner(CHECKS)
    verdict = _judged_tree(SourceTree.open(task.tree_path), tmp_path, wanted, runner)
    assert not verdict.solved
    assert runner.runs


def test_a_pass_by_the_tests_alone_is_called_reduced(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    answer = read_answer(task)
    wanted = json.loads(expected_text(task, answer))
    given, place = SourceTree.open(task.tree_path), tmp_path / "left"
    runner: Any = FakeRunner(CHECKS)
    lay_out(given, place)
    failed = _judged_tree(given, place, wanted, runner)
    lay_out(repaired_tree(given, answer.targets), tmp_path / "repaired")
    passed = _judged_tree(given, tmp_path / "repaired", wanted, runner)
    assert (failed.solved, failed.reduced) == (False, False)
    assert (passed.solved, passed.reduced) == (True, True)
    assert "reduced" in passed.reason
