"""Simulated people act according to the parameters of their behaviour."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import Any

import pytest

from gistpoint.core.attempts.events import EndReason
from gistpoint.core.draws import normal, uniform
from gistpoint.core.study.declaration import Assistance, Condition, StudyTask
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.simulating import Allowance, Behaviour, Crowd, ModelBehaviour, difficulties

ALONE, ASSISTED = Condition(id="alone"), Condition(id="assisted", assistance=Assistance.CHAT)
ALLOWED = Allowance(16, 4, 3600.0)


def _tasks(count: int, mode: str = "remove") -> list[StudyTask]:
    return [
        StudyTask(
            id=f"t{n}",
            mode=mode,
            source="s",
            metrics={"code_lines": float(n % 17), "harmonic_out": 1 / (1 + n)},
        )
        for n in range(count)
    ]


def _crowd(tasks: list[StudyTask], seed: int = 1, **parameters: Any) -> Crowd:
    behaviour = Behaviour(**parameters)
    return Crowd(behaviour, "s", seed, difficulties(tasks, behaviour, seed))


def test_draws_depend_on_their_key_alone_and_have_their_distribution() -> None:
    assert uniform(1, "a") == uniform(1, "a") != uniform(1, "b")
    assert uniform("a", "b") != uniform("ab")
    drawn = [normal(7, n) for n in range(4_000)]
    assert abs(fmean(drawn)) < 4 / math.sqrt(4_000)
    assert stdev(drawn) == pytest.approx(1, abs=0.05)


def test_tasks_have_the_spread_that_was_asked_for_of_which_metrics_explain_a_part() -> None:
    tasks = _tasks(600)
    found = difficulties(tasks, Behaviour(task=1.2), 3)
    assert stdev(found.values()) == pytest.approx(1.2, abs=0.12)
    assert set(difficulties(tasks, Behaviour(task=0.0), 3).values()) == {0.0}
    harder = difficulties(_tasks(600, "discovery"), Behaviour(task=1.2, discovery=1.5), 3)
    assert all(harder[task.id] - found[task.id] == pytest.approx(1.5) for task in tasks)


def test_without_metrics_a_task_is_as_hard_as_it_happens_to_be() -> None:
    bare = [StudyTask(id=f"t{n}", mode="remove", source="s") for n in range(300)]
    assert stdev(difficulties(bare, Behaviour(task=1.0), 3).values()) == pytest.approx(1.0, abs=0.15)


def test_the_chance_to_solve_is_logistic_in_ability_minus_difficulty() -> None:
    behaviour = Behaviour()
    middle = behaviour.chance(0, 0, ALONE, 3600)
    for logits in (-2.0, -0.5, 1.0):
        meant = 1 / (1 + math.exp(-(math.log(middle / (1 - middle)) + logits)))
        assert behaviour.chance(0, logits, ALONE, 3600) == pytest.approx(meant, abs=0.02)


def test_people_solve_as_often_and_as_fast_as_the_behaviour_says() -> None:
    tasks = _tasks(40)
    crowd = _crowd(tasks, give_up=0.0)
    people = [f"P{n}" for n in range(40)]
    courses = [(p, t, crowd.course(p, t, ALONE, ALLOWED)) for p in people for t in tasks]
    meant = fmean(
        crowd.behaviour.chance(crowd.difficulty[t.id], crowd.ability(p), ALONE, 3600) for p, t, _ in courses
    )
    assert fmean(course.solved for _, _, course in courses) == pytest.approx(meant, abs=0.03)
    free = Allowance(16, 4, None)
    patient = _crowd(tasks, give_up=0.0, limit_minutes=1e9)
    logs = [
        math.log(patient.course(p, t, condition, free).active_s)
        - math.log(patient.behaviour.median_s(patient.difficulty[t.id], patient.ability(p), condition))
        for p in people
        for t in tasks
        for condition in (ALONE, ASSISTED)
    ]
    assert fmean(logs) == pytest.approx(0, abs=0.06)
    assert stdev(logs) == pytest.approx(0.9, abs=0.05)


def test_assistance_changes_the_time_by_its_ratio() -> None:
    behaviour = Behaviour(assist_ratio=0.5)
    assert behaviour.median_s(1, 0, ASSISTED) == pytest.approx(behaviour.median_s(1, 0, ALONE) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_every_course_keeps_to_what_it_may_use(seed: int) -> None:
    tasks = _tasks(30, "discovery")
    crowd = _crowd(tasks, seed, give_up=0.3)
    model = ModelBehaviour(name="m")
    for task in tasks:
        for allowed in (Allowance(16, 4, 3600.0), Allowance(8, 3, None, 2), Allowance(1, 1, 60.0)):
            made = [crowd.course(f"P{n}", task, ALONE, allowed) for n in range(6)]
            made += [crowd.course_of_model(model, task, ALONE, allowed, n) for n in range(3)]
            for course in made:
                right = allowed.parts if course.solved else 0
                assert len(course.wrong_at) == len(course.near)
                assert len(course.wrong_at) + right <= allowed.submissions
                assert course.active_s <= (allowed.limit_s or math.inf)
                assert all(0 < at <= course.active_s + 1e-9 for at in course.wrong_at)
                assert list(course.wrong_at) == sorted(course.wrong_at)
                if course.end is EndReason.SUBMISSIONS_EXHAUSTED:
                    assert course.wrong_at[-1] == pytest.approx(course.active_s)


def test_people_leave_as_often_as_said() -> None:
    crowd = _crowd(_tasks(3), leaves=0.25)
    left = [crowd.leaves_at(f"P{n}", 4) for n in range(400)]
    assert sum(at is not None for at in left) == pytest.approx(100, abs=35)
    assert {at for at in left if at is not None} == {0, 1, 2, 3}


@pytest.mark.parametrize("wrong", [{"ability": -1.0}, {"sigma": 0.0}, {"give_up": 1.5}, {"task": math.inf}])
def test_parameters_that_make_no_sense_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match=next(iter(wrong))):
        Behaviour(**wrong)
