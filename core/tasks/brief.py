"""The brief: one text for a person and a model, from a template that is kept by version."""

from __future__ import annotations

import re
from importlib.resources import files

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.model import Mode, Task

TEMPLATES = {"remove": "repair-remove-1", "discovery": "repair-discovery-1", "several": "repair-several-1"}


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


def template_text(name: str) -> str:
    """Return the text of a template; raises `TaskError` for one that this version does not have."""
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
    values = {
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
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found.group(1)], text).rstrip() + "\n"


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
