"""Tasks from functions of the demo's library: real code and metrics, no proof."""

from __future__ import annotations

import pytest

from gistpoint.core.demo.functions import NOT_PROVEN, write_simulated_tasks
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.metrics.table import standings_from_json
from gistpoint.core.tasks.model import Mode, Task


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    folder = tmp_path_factory.mktemp("demo")
    return list(write_simulated_tasks(folder / "tasks", folder / "demo", 6))


def test_the_demo_s_own_come_first_then_functions_of_both_modes(tasks: list[Task]) -> None:
    assert len({task.id for task in tasks}) == 10
    assert [task.mode for task in tasks[4:]].count(Mode.REMOVE) == 3
    assert all(read_task(task.folder).id == task.id for task in tasks)


def test_no_function_is_in_two_tasks(tasks: list[Task]) -> None:
    names = [target.name for task in tasks for target in read_answer(task).targets]
    assert len(names) == len(set(names))


def test_every_repair_has_its_metrics(tasks: list[Task]) -> None:
    for task in tasks:
        answer = read_answer(task)
        for target in answer.targets:
            found = {rank.metric: rank for rank in standings_from_json(answer.metrics, target.name)}
            assert found["code_lines"].value >= 2
            assert found["harmonic_out"].percentile is not None


def test_tests_that_enter_the_function_fail_and_the_record_says_that_nobody_tried(tasks: list[Task]) -> None:
    for task in tasks[4:]:
        answer = read_answer(task)
        assert answer.baselines[0].failing == answer.entered[answer.targets[0].name]
        assert answer.provenance["corruption"] == NOT_PROVEN
        assert not any(NOT_PROVEN in target.original for target in answer.targets)
