"""Reads, checks, records and applies the settings of a gist that an attempt changes.

A task keeps its defaults, which are not part of its id; an attempt records its settings in its header. All
conditions of one task therefore have their attempts in one place (decision 50).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from gistpoint.core.attempts.identity import SHOWS_EVIDENCE, Role
from gistpoint.core.errors import TaskError, UserError, did_you_mean
from gistpoint.core.kinds.gist.brief import gist_template
from gistpoint.core.kinds.gist.model import (
    STRATEGIES,
    UNLIMITED,
    GistSettings,
    ScoreBudget,
    gist_settings,
    is_gist,
    with_settings,
)
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS, needing_execution
from gistpoint.core.locations import parsed_toml
from gistpoint.core.tasks.brief import template_sha256
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.fields import Fields, Positive
from gistpoint.core.tasks.model import Task


class GistSettingsError(UserError):
    """The error for settings that an attempt can't have, or that can't be read."""


class ContradictionError(UserError):
    """The error for settings of a gist that contradict each other or its command."""


def require_consistent(settings: GistSettings, *, is_test: bool) -> None:
    """Raise `ContradictionError` if settings contradict each other, or need a test although not `is_test`."""
    if needing := needing_execution(settings):
        raise ContradictionError(
            f"{needing} runs code, and execution is off.", hint="Add --execution, or leave the tool out."
        )
    if settings.give_test and not is_test:
        raise ContradictionError(
            "The command is not a test, so there is no test to give.", hint="Leave --give-test out."
        )


class GistOverrides(msgspec.Struct, frozen=True):
    """Settings of an attempt; `UNSET` for those that the task decides."""

    execution: bool | UnsetType = UNSET
    tools: tuple[str, ...] | UnsetType = UNSET
    strategy: str | UnsetType = UNSET
    give_test: bool | UnsetType = UNSET
    steps: Positive | UnsetType = UNSET
    score_budget: ScoreBudget | UnsetType = UNSET
    """The number of uses of `score_gist` in a counted attempt; -1 for any."""
    parameter: str | bool | UnsetType = UNSET
    """The only parameter of the test that the brief names; True for the first one, False for none."""

    def on(self, task: Task, test: str, parameters: Sequence[str] = ()) -> Task:
        """Return the task as it is in an attempt with these settings.

        `test` is the original test, empty if there is none, and `parameters` are the parameters of its
        instances. Raises `GistSettingsError` for a task that is not a gist, and for settings that contradict
        each other or the task.
        """
        if not is_gist(task):
            raise GistSettingsError(
                f"The task {task.short_id} is not a gist, so it takes no settings for gists."
            )
        settings = self.settings(gist_settings(task))
        if isinstance(self.parameter, str | bool):
            settings = replace(settings, parameter=_known_parameter(task, self.parameter, parameters))
        changed = _with_settings(task, settings, test)
        if problem := _contradiction(changed):
            raise GistSettingsError(problem[0], hint=problem[1])
        if self.steps is UNSET:
            return changed
        return replace(changed, budgets=replace(changed.budgets, tool_uses=self.steps))

    def settings(self, default: GistSettings) -> GistSettings:
        """Return the settings `default`, overridden by these settings wherever they are not `UNSET`."""
        given = overrides_data(self)
        given.pop("steps", None)
        if isinstance(given.get("parameter"), bool):
            given["parameter"] = ""  # which one is known only for a task
        if given.get("score_budget") == UNLIMITED:
            given["score_budget"] = None
        return replace(default, **given)


def _known_parameter(task: Task, wanted: str | bool, parameters: Sequence[str]) -> str:
    """Return the parameter that a brief names; empty for none.

    Raises `GistSettingsError` if the task's test does not have it.
    """
    if wanted in (False, ""):
        return ""
    if not parameters:
        raise GistSettingsError(
            f"The command of {task.short_id} is not a single test with parameters, so its brief can't name"
            " one.",
            hint="Leave parameter out.",
        )
    if wanted is True:
        return parameters[0]
    if wanted not in parameters:
        known = ", ".join(map(repr, parameters[:_MOST_LISTED]))
        raise GistSettingsError(
            f"The test of {task.short_id} has no parameter {str(wanted)[:80]!r}."
            f"{did_you_mean(str(wanted), parameters)}",
            hint=f"It has {known}{', and others' if len(parameters) > _MOST_LISTED else ''}.",
        )
    return str(wanted)


_MOST_LISTED = 10
KEYS = GistOverrides.__struct_fields__

TOOL_PROFILES: Mapping[str, GistOverrides] = {
    "all": GistOverrides(),
    "browse": GistOverrides(execution=False, tools=()),
    "bash": GistOverrides(tools=("bash",)),
    "edit_and_execute": GistOverrides(execution=True, tools=("edit_and_execute",)),
}
"""Named sets of tools by which attempts are compared (Gistify, 4.1); `all` means the task's own tools."""


_BASE = GistOverrides(execution=False, tools=(), strategy="")
CONDITIONS: Mapping[str, GistOverrides] = {
    "base": _BASE,
    "tracing": msgspec.structs.replace(_BASE, strategy="tracing"),
    "reading": msgspec.structs.replace(_BASE, strategy="reading"),
    "repo_graph": msgspec.structs.replace(_BASE, tools=("repo_graph",)),
    "trace": msgspec.structs.replace(_BASE, tools=("trace",)),
    "bash": msgspec.structs.replace(_BASE, execution=True, tools=("bash",)),
    "edit_and_execute": msgspec.structs.replace(_BASE, execution=True, tools=("edit_and_execute",)),
}
"""The conditions of Gistify's table 3: advice, tools that describe code, and tools that run code."""


def in_profile(name: str, given: GistOverrides | None = None) -> GistOverrides | None:
    """Return the settings `given`, overridden by those of a profile; None if neither sets anything."""
    chosen = overrides_data(TOOL_PROFILES[name])
    if chosen:
        return msgspec.structs.replace(given or GistOverrides(), **chosen)
    return given


def parse_overrides(data: bytes, file: str) -> GistOverrides:
    """Return the settings in TOML or in a JSON object.

    Raises `GistSettingsError`, which names the fault in `file`.
    """
    try:
        text = data.decode("utf-8-sig")
        values = json.loads(text) if text.lstrip().startswith("{") else parsed_toml(text)
    except (ValueError, RecursionError) as error:
        raise GistSettingsError(f"{file} is neither TOML nor a JSON object ({str(error)[:200]}).") from error
    return read_overrides(values, file)


def read_overrides(values: Mapping[str, Any], file: str) -> GistOverrides:
    """Return the settings in a table, such as a study's condition.

    Raises `GistSettingsError`, which names the file and the key, for settings that can't be read.
    """
    for key in values:
        if key not in KEYS:
            raise GistSettingsError(
                f"{file}: there is no setting {key[:80]!r}.{did_you_mean(key, KEYS)}",
                hint=f"The settings are {', '.join(KEYS)}.",
            )
    try:
        fields = Fields(values, file)
        given = fields.record(GistOverrides)
        require_known(fields, given)
    except TaskError as error:
        raise GistSettingsError(error.message, hint=error.hint) from error
    if given.tools is UNSET:
        return given
    return msgspec.structs.replace(given, tools=tuple(dict.fromkeys(given.tools)))


def require_known(fields: Fields, settings: GistSettings | GistOverrides) -> None:
    """Raise `TaskError` for an unknown strategy or tool; `fields` are the fields that were read."""
    _require_among(fields, "strategy", (settings.strategy or "",), STRATEGIES)
    _require_among(fields, "tools", settings.tools or (), OPTIONAL_TOOLS)


def _contradiction(task: Task) -> tuple[str, str] | None:
    """Return the contradiction in the settings and what to do about it; None if there is none."""
    settings = gist_settings(task)
    if needing := needing_execution(settings):
        return f"{needing} runs code, and execution is off.", "Add execution = true, or leave the tool out."
    if settings.give_test and not task.brief.test:
        return (
            f"The command of {task.short_id} is not a test, so there is no test to give.",
            "Leave give_test out.",
        )
    return None


def _require_among(fields: Fields, key: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise TaskError(
                f"{fields.file}: {fields.name(key)!r} has {name[:80]!r}.{did_you_mean(name, known)}",
                hint=f"Known are {', '.join(filter(None, known))}.",
            )


def differing(task: Task, default: Task) -> dict[str, Any]:
    """Return the settings in which `task` differs from `default`, by their keys in a settings file."""
    values = {**settings_data(task), "steps": task.budgets.tool_uses}
    others = {**settings_data(default), "steps": default.budgets.tool_uses}
    # The parameter is recorded only if there is one, so that earlier records stay comparable.
    return {key: values.get(key, "") for key in KEYS if values.get(key) != others.get(key)}


def overrides_data(given: GistOverrides) -> dict[str, Any]:
    """Return the settings that are not `UNSET`, by their keys in a settings file."""
    return {key: value for key, value in msgspec.structs.asdict(given).items() if value is not UNSET}


def toml_lines(settings: Mapping[str, Any]) -> list[str]:
    """Return the lines of a file with these settings."""
    return [f"{key} = {json.dumps(value)}" for key, value in settings.items()]


# The settings in an attempt's record


def settings_data(task: Task) -> dict[str, Any]:
    """Return the settings of a gist as the header of an attempt records them, without the steps."""
    settings = gist_settings(task)
    return {
        "execution": settings.execution,
        "tools": list(settings.tools),
        "strategy": settings.strategy,
        "give_test": settings.give_test,
        "score_budget": UNLIMITED if settings.score_budget is None else settings.score_budget,
        "template": task.brief.template,
        **({"parameter": settings.parameter} if settings.parameter else {}),
    }


def as_attempted(task: Task, recorded: Mapping[str, Any], budgets: Budgets) -> Task:
    """Return the task as it is in an attempt with this record; the task's own settings are the default.

    Raises `GistSettingsError` for recorded settings that can't be read.
    """
    given = recorded.get("gist_settings")
    if not isinstance(given, Mapping):
        return replace(task, budgets=budgets)
    values = {key: value for key, value in given.items() if key in KEYS}
    settings = read_overrides(values, "The header of the attempt").settings(gist_settings(task))
    changed = _with_settings(
        task, settings, str(recorded.get("gist") or ""), str(given.get("template") or "")
    )
    return with_budgets(changed, budgets)


def gist_budgets(task: Task, role: Role) -> Budgets:
    """Return the task's steps and one hand-in; scores are unlimited unless the attempt counts."""
    # Scores while writing are free only if the attempt does not count, even for models (decision 29).
    scores = None if role in SHOWS_EVIDENCE else gist_settings(task).score_budget
    return replace(task.budgets, submissions=1, scores=scores)


def with_budgets(task: Task, budgets: Budgets) -> Task:
    """Return the task as it is in an attempt with these budgets, which its brief states."""
    changed = with_settings(task, replace(gist_settings(task), score_budget=budgets.scores))
    return replace(changed, budgets=budgets)


def _with_settings(task: Task, settings: GistSettings, test: str, template: str = "") -> Task:
    """Return a gist task with other settings; its brief keeps its version."""
    template = template or gist_template(settings, like=task.brief.template)
    brief = replace(
        task.brief,
        template=template,
        template_sha256=template_sha256(template),
        test=test if settings.give_test else "",
    )
    return replace(with_settings(task, settings), brief=brief)
