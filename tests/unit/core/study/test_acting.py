"""Simulated solvers execute decisions through the real engine, on every kind of task that they support."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import build_task
from gist_tasks import build_gist_task
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.kinds.simulation import Scene, SimulatedTime
from gistpoint.core.study.acting import Performance, scene_of
from gistpoint.core.study.declaration import Condition, StudyTask
from gistpoint.core.study.simulating import (
    Allowance,
    AttemptCourse,
    Behaviour,
    Crowd,
    ModelBehaviour,
    difficulties,
)
from gistpoint.core.tasks.model import Mode, Task

LIMIT_S = 1_200
MODEL = ModelBehaviour(name="m")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    folder = tmp_path_factory.mktemp("tasks")
    tasks = {mode.value: build_task(folder, mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)}
    return {mode: scene_of(task) for mode, task in {**tasks, "gist": build_gist_task(folder)}.items()}


def _allowed(task: Task) -> Allowance:
    return Allowance(task.budgets.tool_uses, task.budgets.submissions, LIMIT_S)


def _acted(scene: Scene, course: AttemptCourse, *, model: bool = False) -> tuple[AttemptState, Memory]:
    clock = SimulatedTime(1_790_000_000_000, "boot")
    memory = Memory(clock)
    attempt = Attempt(scene.task, scene.judge, memory, clock)
    solver = {"model": "m", "simulated": True} if model else {}
    who = Enrolment("model" if model else "simulated", participant="P1", solver=solver)
    attempt.start(who, attempt_id="a", budgets=replace(scene.task.budgets, time_limit_s=LIMIT_S))
    work = Performance(attempt, scene, course, clock, ("about",))
    work.model(MODEL) if model else work.person()
    return attempt.state, memory


def _crowd(scene: Scene, seed: int) -> tuple[Crowd, StudyTask]:
    task = StudyTask(id=scene.task.id, mode=str(scene.task.mode), source="s")
    behaviour = Behaviour(median_minutes=12.0, give_up=0.25)
    return Crowd(behaviour, "s", seed, difficulties([task], behaviour, seed)), task


@pytest.mark.parametrize("mode", ["remove", "discovery", "gist"])
def test_people_end_as_decided_and_after_as_much_active_time(scenes: dict[str, Scene], mode: str) -> None:
    scene, ends = scenes[mode], set()
    for seed in range(14):
        crowd, task = _crowd(scene, seed)
        course = crowd.course("P1", task, Condition(id="alone"), _allowed(scene.task))
        state, memory = _acted(scene, course)
        assert state.ending is not None
        meant = course.end
        if mode == "gist" and meant is EndReason.SUBMISSIONS_EXHAUSTED:
            meant = EndReason.FINAL_WRONG
        assert state.ending.reason == meant
        assert state.solved == course.solved
        assert state.clock.active == pytest.approx(1000 * course.active_s, abs=2)
        assert not any(call.refused for call in state.calls)
        assert fold(memory.events, AttemptState(of_kind=scene.judge.blank)).clock == state.clock
        ends.add(meant)
    assert {EndReason.SOLVED, EndReason.TIME_CAP} <= ends


@pytest.mark.parametrize("mode", ["remove", "discovery", "gist"])
def test_models_end_as_decided_with_a_turn_for_each_call(scenes: dict[str, Scene], mode: str) -> None:
    scene, outcomes = scenes[mode], set()
    for seed in range(16):
        crowd, task = _crowd(scene, seed)
        course = crowd.course_of_model(MODEL, task, Condition(id="alone"), _allowed(scene.task))
        state, memory = _acted(scene, course, model=True)
        assert state.ended
        assert state.solved == course.solved
        turns = [event for event in memory.events if event.type == "model_turn"]
        assert len(turns) == len(state.calls)
        outcomes.add(course.solved)
    assert outcomes == {True, False}


def test_a_break_and_time_away_are_not_active(scenes: dict[str, Scene]) -> None:
    course = AttemptCourse(EndReason.SOLVED, 600.0, looks=3, reading_s=30.0, pause_s=300.0, idle_s=400.0)
    state, _ = _acted(scenes["remove"], course)
    assert (state.clock.active, state.clock.paused, state.clock.idle) == (600_000, 300_000, 400_000)
    assert state.clock.waiting == round(1000 * scenes["remove"].task.suite.seconds)


def test_what_is_submitted_in_vain_repairs_as_much_as_said(scenes: dict[str, Scene]) -> None:
    course = AttemptCourse(EndReason.SOLVED, 600.0, wrong_at=(300.0, 400.0), near=(0.0, 0.8), looks=2)
    state, _ = _acted(scenes["discovery"], course)
    first, second, last = (submission.score or 0 for submission in state.submissions)
    assert first == 0 < second < last == 1


def test_who_does_not_find_the_function_never_looks_at_it(scenes: dict[str, Scene]) -> None:
    course = AttemptCourse(EndReason.GAVE_UP, 900.0, wrong_at=(500.0,), near=(0.0,), finds=False, looks=8)
    state, _ = _acted(scenes["discovery"], course)
    name = "shop/prices.py::discount"
    assert state.submissions[0].replacement.name != name
    assert not any(call.arguments.get("function_name") == "discount" for call in state.calls)


def test_the_same_attempt_is_the_same_to_the_byte(scenes: dict[str, Scene]) -> None:
    crowd, task = _crowd(scenes["remove"], 5)

    def lines() -> list[object]:
        course = crowd.course("P1", task, Condition(id="alone"), _allowed(scenes["remove"].task))
        return [event.data.written() for event in _acted(scenes["remove"], course)[1].events]

    assert lines() == lines()


def test_what_is_asked_after_the_brief_is_asked_when_it_has_been_read(scenes: dict[str, Scene]) -> None:
    clock = SimulatedTime(1_790_000_000_000, "boot")
    attempt = Attempt(scenes["remove"].task, scenes["remove"].judge, Memory(clock), clock)
    attempt.start(Enrolment("simulated"))
    asked: list[int] = []

    def note() -> None:
        asked.append(attempt.clock().reading)

    course = AttemptCourse(EndReason.SOLVED, 600.0, looks=1, reading_s=42.0)
    Performance(attempt, scenes["remove"], course, clock, ()).person(note)
    assert asked == [42_000]
