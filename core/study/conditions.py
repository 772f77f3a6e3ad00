"""Applies a condition to a task: to its settings, its budgets, and the enrolment of an attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gistpoint.core.attempts.identity import PERSON, Enrolment, Role
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.study.declaration import Condition
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Answer, Task

ANY_NUMBER = 9_999
"""The tool uses and submissions of a condition without limits, which are more than anybody could use."""
OWN_EDITOR = "external_editor"


def settings_under(condition: Condition) -> dict[str, Any]:
    """Return, by name, the settings that a condition sets; other settings remain the task's own."""
    given = {
        "execution": condition.execution,
        "tools": condition.tools,
        "strategy": condition.strategy or None,
        "give_test": condition.give_test,
        "parameter": condition.parameter,
        "steps": (ANY_NUMBER if condition.free else condition.steps) or None,
        "score_budget": condition.score_budget or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def under(condition: Condition, task: Task, answer: Answer) -> Task:
    """Return a task with a condition's settings; unchanged if there are none, or its kind accepts none.

    Raises `UserError` for contradictory settings.
    """
    kind = kind_of(task)
    settings = settings_under(condition)
    if settings and kind.takes_settings:
        return kind.settled(task, answer, settings)
    return task


def budgets_under(condition: Condition, task: Task, role: Role) -> Budgets:
    """Return the budgets of an attempt at a task that `under` returned."""
    kind = kind_of(task)
    budgets = kind.budgets(task, role)
    budgets = replace(budgets, time_limit_s=condition.time_limit_s or budgets.time_limit_s)
    if kind.takes_settings:
        return budgets
    if condition.free:
        return replace(budgets, tool_uses=ANY_NUMBER, submissions=ANY_NUMBER)
    return replace(
        budgets,
        tool_uses=condition.tool_uses or budgets.tool_uses,
        submissions=condition.submissions or budgets.submissions,
    )


def enrolment_under(
    condition: Condition,
    *,
    study: str,
    code: str,
    assignment: str,
    role: Role,
    protocol_sha256: str,
    gist_help_sha256: str = "",
    actor: str = PERSON,
) -> Enrolment:
    """Return the enrolment of an attempt under a condition, for the attempt's header."""
    off = condition.comforts_off
    return Enrolment(
        actor=actor,
        role=role,
        participant=code,
        study=study,
        condition=condition.id,
        assignment=assignment,
        comforts_off=tuple(name for name in off if not (condition.free and name == OWN_EDITOR)),
        protocol_sha256=protocol_sha256,
        assistance=condition.assistance.value,
        gist_help_sha256=gist_help_sha256,
    )
