"""Metrics of a task's original: the corrupted tree with the answer's functions restored."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import GOOD, build_task
from gist_tasks import build_gist_task
from study_attempts import DISCOUNT

from gistpoint.core.callgraph import build_call_graph
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.metrics.table import mean_metrics, measure_functions, original_metrics
from gistpoint.core.tasks.model import Mode, Target
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.studies.tasks import study_task


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_the_original_is_measured_and_not_what_the_solver_gets(tmp_path: Path, mode: Mode) -> None:
    task = build_task(tmp_path, mode)
    tree, targets = SourceTree.open(task.tree_path), read_answer(task).targets
    found = original_metrics(tree, targets, task.suite.test_files)
    own = {path: text.encode() for path, text in GOOD.items() if path.startswith("shop/")}
    rows = {row.function: row for row in measure_functions(build_call_graph(own), own)}
    assert found.keys() == rows.keys()
    for name, values in found.items():
        assert {metric: rows[name].cell(metric) for metric in values} == values
    assert found[DISCOUNT]["halstead_volume"] > 0
    if mode is Mode.REMOVE:
        assert original_metrics(tree, (), task.suite.test_files)[DISCOUNT]["halstead_volume"] == 0


def test_tests_are_no_part_of_the_library(tmp_path: Path) -> None:
    task = build_task(tmp_path, extra_files={"tests/helping.py": "def help_out():\n    return 1\n"})
    found = original_metrics(
        SourceTree.open(task.tree_path), read_answer(task).targets, task.suite.test_files
    )
    assert all(name.startswith("shop/") for name in found)


def test_several_functions_have_the_mean_of_their_metrics() -> None:
    library = {"a.py::f": {"code_lines": 2.0, "degree": 1.0}, "a.py::g": {"code_lines": 5.0}}
    assert mean_metrics(library, ("a.py::f", "a.py::g", "a.py::gone")) == {"code_lines": 3.5, "degree": 1.0}


def test_an_answer_that_does_not_fit(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    with pytest.raises(CodeError):
        original_metrics(
            SourceTree.open(task.tree_path), (Target("shop/prices.py", "gone", "def gone(): ...", ""),), ()
        )


def test_a_gist_has_the_figures_of_its_command(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    metrics = study_task(task, read_answer(task)).metrics
    assert metrics == {"calls": 5.0, "functions": 3.0, "files": 2.0, "depth": 3.0, "lines_covered": 0.5}
