"""Settings of a gist that an attempt is given otherwise than its task has them: read, checked, recorded, applied.

A task keeps its defaults, outside of its id; an attempt records the settings that it has in its header. So attempts
under all conditions of one task lie in one home (docs/decisions/0112).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.kinds.gist.model import OPTIONAL_TOOLS, STRATEGIES, UNLIMITED, GistSettings
from gistpoint.core.spelling import did_you_mean
from gistpoint.core.tasks.brief import gist_template, template_sha256
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import Task

KEYS = ("execution", "tools", "strategy", "give_test", "steps", "score_budget")
MOST_BYTES = 65_536
"""Of a file of settings."""


class GistSettingsError(UserError):
    """Settings can't be given to an attempt; the message names file and key."""


@dataclass(frozen=True, slots=True)
class GistOverrides:
    """Settings of an attempt; None for those that the task decides."""

    execution: bool | None = None
    tools: tuple[str, ...] | None = None
    strategy: str | None = None
    give_test: bool | None = None
    steps: int | None = None
    score_budget: int | None = None
    """Uses of `score_gist` in a counted attempt; -1 for any number."""

    def on(self, task: Task, test: str) -> Task:
        """Return the task as an attempt with these settings meets it; `test` is the original test, if there is one.

        Raises `GistSettingsError` for a repair, and for settings that contradict each other or the task.
        """
        if task.gist is None:
            raise GistSettingsError(f"The task {task.short_id} is no gist, so it has no settings of one.")
        met = _with_settings(task, self.settings(task.gist), test)
        if problem := _contradiction(met):
            raise GistSettingsError(problem[0], hint=problem[1])
        return met if self.steps is None else replace(met, budgets=replace(met.budgets, tool_uses=self.steps))

    def settings(self, default: GistSettings) -> GistSettings:
        """Return settings with these in place of the default ones."""
        budget = default.score_budget
        if self.score_budget is not None:
            budget = None if self.score_budget == UNLIMITED else self.score_budget
        return replace(
            default,
            execution=default.execution if self.execution is None else self.execution,
            tools=default.tools if self.tools is None else self.tools,
            strategy=default.strategy if self.strategy is None else self.strategy,
            give_test=default.give_test if self.give_test is None else self.give_test,
            score_budget=budget,
        )


def parse_overrides(data: bytes, file: str) -> GistOverrides:
    """Read settings from TOML or from a JSON object. Raises `GistSettingsError` that names what is wrong in `file`."""
    try:
        text = data.decode("utf-8-sig")
        values = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise GistSettingsError(f"{file} is neither TOML nor a JSON object ({str(error)[:200]}).") from error
    return read_overrides(values, file)


def read_overrides(values: Mapping[str, Any], file: str) -> GistOverrides:
    """Read settings from a table, such as a study's condition. Raises `GistSettingsError` that names file and key."""
    for key in values:
        if key not in KEYS:
            raise GistSettingsError(
                f"{file}: there is no setting {key[:80]!r}.{did_you_mean(key, KEYS)}",
                hint=f"The settings are {', '.join(KEYS)}.",
            )
    try:
        return _read(Fields(values, file))
    except TaskError as error:
        raise GistSettingsError(error.message, hint=error.hint) from error


def _read(fields: Fields) -> GistOverrides:
    given = fields.values
    strategy = fields.get("strategy", str) if "strategy" in given else None
    tools = tuple(dict.fromkeys(fields.strings("tools"))) if "tools" in given else None
    for key, names, known in (("strategy", (strategy or "",), STRATEGIES), ("tools", tools or (), OPTIONAL_TOOLS)):
        for name in names:
            if name not in known:
                raise TaskError(
                    f"{fields.file}: {key!r} has {name[:80]!r}.{did_you_mean(name, known)}",
                    hint=f"Known are {', '.join(name for name in known if name)}.",
                )
    return GistOverrides(
        execution=fields.get("execution", bool) if "execution" in given else None,
        tools=tools,
        strategy=strategy,
        give_test=fields.get("give_test", bool) if "give_test" in given else None,
        steps=fields.at_least("steps", 1) if "steps" in given else None,
        score_budget=fields.at_least("score_budget", UNLIMITED) if "score_budget" in given else None,
    )


def _contradiction(task: Task) -> tuple[str, str] | None:
    """Return what contradicts what, and what to do about it."""
    settings = task.gist_settings
    if "edit_and_execute" in settings.tools and not settings.execution:
        return "edit_and_execute runs code, and execution is off.", "Add execution = true, or leave the tool out."
    if settings.give_test and not task.brief.test:
        return f"The command of {task.short_id} is no test, so there is none to give.", "Leave give_test out."
    return None


def differing(task: Task, default: Task) -> dict[str, Any]:
    """Return the settings by which an attempt of `default` has those of `task`, as a file gives them."""
    values, others = ({**settings_data(one), "steps": one.budgets.tool_uses} for one in (task, default))
    return {key: values[key] for key in KEYS if values[key] != others[key]}


def toml_lines(settings: Mapping[str, Any]) -> list[str]:
    """Return the lines of a file that gives these settings."""
    return [f"{key} = {json.dumps(value)}" for key, value in settings.items()]


# What an attempt records


def settings_data(task: Task) -> dict[str, Any]:
    """Return the settings of a gist as the header of an attempt holds them; its steps are among its budgets."""
    settings = task.gist_settings
    return {
        "execution": settings.execution,
        "tools": list(settings.tools),
        "strategy": settings.strategy,
        "give_test": settings.give_test,
        "score_budget": UNLIMITED if settings.score_budget is None else settings.score_budget,
        "template": task.brief.template,
    }


def as_attempted(task: Task, header: Mapping[str, Any], budgets: Budgets) -> Task:
    """Return the task as the attempt with this header meets it; one that recorded no settings has the task's.

    Raises `GistSettingsError` for recorded settings that can't be read.
    """
    recorded = header.get("gist_settings")
    if task.gist is None or not isinstance(recorded, Mapping):
        return replace(task, budgets=budgets)
    values = {key: value for key, value in recorded.items() if key in KEYS}
    settings = read_overrides(values, "The header of the attempt").settings(task.gist)
    met = _with_settings(task, settings, str(header.get("gist") or ""), str(recorded.get("template") or ""))
    return with_budgets(met, budgets)


def with_budgets(task: Task, budgets: Budgets) -> Task:
    """Return the task as an attempt with these budgets meets it; its brief names them."""
    gist = task.gist and replace(task.gist, score_budget=budgets.scores)
    return replace(task, budgets=budgets, gist=gist)


def _with_settings(task: Task, settings: GistSettings, test: str, template: str = "") -> Task:
    """Return a gist task with other settings; its brief keeps the version that the task was made with."""
    template = template or gist_template(settings, like=task.brief.template)
    brief = replace(
        task.brief,
        template=template,
        template_sha256=template_sha256(template),
        test=test if settings.give_test else "",
    )
    return replace(task, gist=settings, brief=brief)
