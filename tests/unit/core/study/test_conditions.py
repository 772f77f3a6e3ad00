"""The effect of a study's condition on a task: budgets, a gist's settings, and the attempt's header."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_task
from gist_tasks import build_gist_task

from gistpoint.core.attempts.identity import Role
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.model import gist_settings
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.study.conditions import ANY_NUMBER, budgets_under, enrolment_under, under
from gistpoint.core.study.declaration import Assistance, Condition
from gistpoint.core.tasks.budgets import Budgets


@pytest.mark.parametrize(
    ("condition", "budgets"),
    [
        (Condition(id="own"), Budgets(16, 4, 900)),
        (Condition(id="few", tool_uses=8), Budgets(8, 4, 900)),
        (Condition(id="once", submissions=1, time_limit_s=60), Budgets(16, 1, 60)),
        (Condition(id="free", free=True, tool_uses=8), Budgets(ANY_NUMBER, ANY_NUMBER, 900)),
        (Condition(id="steps", steps=7), Budgets(16, 4, 900)),
    ],
    ids=lambda value: value.id if isinstance(value, Condition) else "",
)
def test_budgets_of_a_repair_are_its_own_where_the_condition_is_silent(
    tmp_path: Path, condition: Condition, budgets: Budgets
) -> None:
    task = build_task(tmp_path, budgets=Budgets(16, 4, 900))
    assert under(condition, task, read_answer(task)) is task
    assert budgets_under(condition, task, Role.BASELINE) == budgets


def test_a_gist_takes_its_settings_from_the_condition(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    answer = read_answer(task)
    condition = Condition(
        id="blind", strategy="reading", execution=False, tools=(), give_test=True, steps=7, score_budget=2
    )
    met = under(condition, task, answer)
    settings = gist_settings(met)
    assert (settings.strategy, settings.execution, settings.give_test) == ("reading", False, True)
    assert met.id == task.id
    budgets = budgets_under(condition, met, Role.BASELINE)
    assert (budgets.tool_uses, budgets.submissions, budgets.scores) == (7, 1, 2)
    assert budgets_under(condition, met, Role.TRAINING).scores is None
    assert "7" in render_brief(met)
    assert under(Condition(id="own"), task, answer) is task


def test_the_header_says_under_which_condition_it_is() -> None:
    condition = Condition(
        id="free", free=True, comforts_off=("external_editor", "paste"), assistance=Assistance.CHAT
    )
    who = enrolment_under(
        condition,
        study="s",
        code="P07",
        assignment="a1",
        role=Role.TRAINING,
        protocol_sha256="ab",
        actor="simulated",
    )
    assert (who.participant, who.study, who.condition, who.assignment) == ("P07", "s", "free", "a1")
    assert (who.actor, who.role, who.protocol_sha256, who.assistance) == (
        "simulated",
        Role.TRAINING,
        "ab",
        "chat",
    )
    assert who.comforts_off == ("paste",)
