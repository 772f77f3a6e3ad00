"""The demo's shipped tasks are complete, match the recipe, and are unpacked outside the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_child import RecordedRunner
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.confirmation.controls import CONTROLS_FILE
from gistpoint.core.demo.building import library_tree, targets_of
from gistpoint.core.demo.play import LONGEST_WAIT_S, play
from gistpoint.core.demo.tasks import demo_task, demo_tasks, playthrough, unpack_demo
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.confirming import known_controls
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.model import entrypoint_of, gist_settings
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.running import CancelToken
from gistpoint.core.tasks.leaks import leaks_of
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    list(unpack_demo(folder))
    return folder


def test_archives_are_those_of_the_present_library_and_recipe(unpacked: Path, tmp_path: Path) -> None:
    library = library_tree(tmp_path)
    for demo, task in unpack_demo(unpacked):
        assert task.demo
        assert task.mode is demo.mode
        assert render_brief(task).count("{{") == 0
        if task.mode is Mode.GIST:
            tree = SourceTree.open(task.tree_path)
            assert {p: tree.read(p) for p in tree.files()} == {p: library.read(p) for p in library.files()}
            assert entrypoint_of(task) == f"pytest {demo.entrypoint}"
            assert "sporvei" in gist_settings(task).owned
            reference = gist_answer(read_answer(task)).reference
            assert reference is not None
            assert reference.faithful
            continue
        answer, tree = read_answer(task), SourceTree.open(task.tree_path)
        assert answer.targets == targets_of(demo, library)
        repaired = repaired_tree(tree, answer.targets)
        assert {p: repaired.read(p) for p in repaired.files()} == {
            p: library.read(p) for p in library.files()
        }
        assert list(leaks_of(tree, answer.targets)) == []
        assert len(answer.baselines[0].failing) >= 5
        entering = frozenset[str]().union(*(answer.entered[target.name] for target in answer.targets))
        assert answer.baselines[0].failing <= entering < answer.baselines[0].collected
        assert {failure.id for failure in task.brief.failing} == answer.baselines[0].failing


@pytest.mark.parametrize(
    "name", ["remove", "discovery", "two", "gist", *[demo.name for demo in demo_tasks()]]
)
def test_task_is_found_by_its_names(unpacked: Path, name: str) -> None:
    task = demo_task(name, unpacked)
    assert demo_task(task.id[:8], unpacked) == task
    assert task.folder.parent == unpacked


@pytest.mark.parametrize("name", ["", "nope", "a"])
def test_unknown_task_is_told_with_the_names_of_the_others(unpacked: Path, name: str) -> None:
    with pytest.raises(TaskError, match="it has seats-together"):
        demo_task(name, unpacked)


def begun(unpacked: Path) -> Attempt:
    task = demo_task(playthrough()[0], unpacked)
    answer = read_answer(task)
    attempt = Attempt(
        task, RepairJudge(task, answer, RecordedRunner(answer)), Memory(SystemTime()), SystemTime()
    )
    attempt.start(Enrolment())
    return attempt


def test_recorded_attempt_is_played_through_the_engine_to_its_end(unpacked: Path) -> None:
    attempt, waits = begun(unpacked), []
    _, steps = playthrough()
    done = list(play(attempt, steps, waits.append, speed=2.0))
    assert len(done) == len(steps)
    assert attempt.state.solved
    assert attempt.state.notes.count("\n") + 1 == sum(step["kind"] == "note" for step in steps)
    assert max(waits) <= LONGEST_WAIT_S
    assert [c.tool for c in attempt.state.calls] == [
        step["tool"] for step in steps if step["kind"] == "tool_call"
    ]


def test_a_recorded_attempt_is_found_by_the_names_of_its_task() -> None:
    assert playthrough()[0] == "dear-tickets"
    assert playthrough("gist") == playthrough("whole-railway")
    for name in ("two", "nope"):
        with pytest.raises(TaskError, match="recorded"):
            playthrough(name)


def test_play_stops_when_cancelled_and_names_a_step_it_does_not_know(unpacked: Path) -> None:
    attempt, cancel = begun(unpacked), CancelToken()
    for number, _ in enumerate(play(attempt, playthrough()[1], lambda seconds: None, cancel=cancel)):
        if number == 2:
            cancel.cancel()
    assert not attempt.state.ended
    with pytest.raises(ValueError, match="unknown kind, 'dance'"):
        list(play(begun(unpacked), [{"kind": "dance"}], lambda seconds: None))


def test_passes_of_each_repair_can_be_confirmed_by_tests_that_the_task_knows(unpacked: Path) -> None:
    for _, task in unpack_demo(unpacked):
        controls = known_controls(task)
        if task.mode is Mode.GIST:
            assert controls is None
            continue
        answer = read_answer(task)
        assert controls is not None
        assert controls.confirmable
        assert set(controls.telling) <= set(controls.tests) <= answer.baselines[0].passed
        assert set(controls.answers) <= {target.name for target in answer.targets}


def test_a_demo_that_was_unpacked_before_gets_the_controls(tmp_path: Path) -> None:
    repair = next(task for _, task in unpack_demo(tmp_path) if task.mode is not Mode.GIST)
    made = (repair.folder / CONTROLS_FILE).read_bytes()
    (repair.folder / CONTROLS_FILE).unlink()
    for mark in tmp_path.glob(".*-*"):
        mark.unlink()
    list(unpack_demo(tmp_path))
    assert (repair.folder / CONTROLS_FILE).read_bytes() == made
