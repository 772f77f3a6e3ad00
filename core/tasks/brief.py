"""The brief: one text for a person and a model, from a template that is kept by version."""

from __future__ import annotations

import re
from importlib.resources import files

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tools.registry import tools_of

_EXECUTION = {
    False: "No code of yours is run before you hand in.",
    True: "You may run code before you hand in, with the tools that do so.",
}

TEMPLATES = {
    "remove": "repair-remove-1",
    "discovery": "repair-discovery-1",
    "several": "repair-several-1",
    "gist": "gist-2",
    "tracing": "gist-tracing-2",
    "reading": "gist-reading-2",
    "give_test": "gist-give-test-2",
}


REFUSALS_COST = {
    "remove": "repair-remove-refusals-cost-1",
    "discovery": "repair-discovery-refusals-cost-1",
    "several": "repair-several-refusals-cost-1",
}
"""For tasks whose rule `refused_costs_attempt` is on: the same text but for the sentence on refused submissions."""


def template_for(mode: Mode, targets: int, *, refused_costs_attempt: bool = False) -> str:
    """Return the name of the newest template of a mode, under the rule for refused submissions."""
    several = mode is Mode.DISCOVERY and targets > 1
    return (REFUSALS_COST if refused_costs_attempt else TEMPLATES)["several" if several else mode.value]


def gist_template(settings: GistSettings, *, like: str = "") -> str:
    """Return the name of the template of a gist: its parts, joined by `+`.

    They are the newest ones, or no newer than those of the template `like`. Raises `TaskError` for a template that this
    version does not have.
    """
    parts = [
        "gist",
        *([settings.strategy] if settings.strategy else []),
        *(["give_test"] if settings.give_test else []),
    ]
    names = [TEMPLATES[part] for part in parts]
    if like:
        template_text(like)
        names = [_no_newer(name, int(like.partition("+")[0].rpartition("-")[2])) for name in names]
    return "+".join(names)


def _no_newer(name: str, most: int) -> str:
    """Return the name of a template's part in its newest version up to `most`, its first one if that is newer."""
    stem, _, version = name.rpartition("-")
    earlier = [f"{stem}-{number}" for number in range(1, min(most, int(version)) + 1)]
    there = [one for one in earlier if files("gistpoint.core.tasks").joinpath("briefs", f"{one}.md").is_file()]
    return there[-1] if there else name


def template_text(name: str) -> str:
    """Return the text of a template, that of its parts one below the other where its name joins several by `+`.

    Raises `TaskError` for one that this version does not have.
    """
    return "\n".join(_part(part) for part in name.split("+"))


def _part(name: str) -> str:
    if not name.replace("-", "").isalnum():
        raise TaskError(f"task.toml: the key 'brief.template' is {name!r}, which is no template's name.")
    resource = files("gistpoint.core.tasks").joinpath("briefs", f"{name}.md")
    try:
        return resource.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(
            f"task.toml: the key 'brief.template' is {name!r}, which this gistpoint does not have.",
            hint="Install a newer gistpoint.",
        ) from None


def template_sha256(name: str) -> str:
    """Return the hash of a template's text."""
    return sha256_of_text(template_text(name))


def render_brief(task: Task) -> str:
    """Return the brief as it is shown and sent."""
    text = template_text(task.brief.template)
    if sha256_of_text(text) != task.brief.template_sha256:
        raise TaskError(
            f"task.toml: the key 'brief.template_sha256' does not match the template {task.brief.template}."
        )
    values = gist_values(task) if task.mode is Mode.GIST else _repair_values(task)
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found.group(1)], text).rstrip() + "\n"


def gist_values(task: Task) -> dict[str, str]:
    """Return what a gist's template is filled with."""
    settings = task.gist_settings
    tools = tools_of(task.mode, settings, scoring=settings.score_budget != 0)
    return {
        "entrypoint": _fenced(task.entrypoint),
        "owned": ", ".join(f"`{name}`" for name in settings.owned),
        "tools": "\n".join(f"- `{tool.usage()}`: {tool.description}" for tool in tools),
        "steps": str(task.budgets.tool_uses),
        "time": _time(task),
        "execution": _EXECUTION[settings.execution],
        "test": _fenced(task.brief.test),
        "read_limit": str(task.limits.read_file_characters),
    }


def _repair_values(task: Task) -> dict[str, str]:
    return {
        "target": task.brief.target,
        "signature": _fenced(task.brief.signature),
        "docstring": _fenced(task.brief.docstring) if task.brief.docstring else "It has no docstring.",
        "count": _count(task),
        "tool_uses": str(task.budgets.tool_uses),
        "submissions": str(task.budgets.submissions),
        "time": _time(task),
        "tests": str(task.suite.tests),
        "failing_count": str(len(task.brief.failing)),
        "failures": _failures(task),
        "other_failures": _others(task),
        "read_limit": str(task.limits.read_file_characters),
    }


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _count(task: Task) -> str:
    return str(task.brief.targets) if task.brief.targets else "Several"


def _time(task: Task) -> str:
    limit = task.budgets.time_limit_s
    return f" You have {limit / 60:g} minutes of working time." if limit else ""


def _failures(task: Task) -> str:
    told = [failure for failure in task.brief.failing if failure.text]
    return "\n\n".join(f"{failure.id}\n{_fenced(failure.text)}" for failure in told)


def _others(task: Task) -> str:
    others = [failure.id for failure in task.brief.failing if not failure.text]
    if not others:
        return "No other test fails."
    return "These fail too:\n\n" + "\n".join(f"- {id}" for id in others)
