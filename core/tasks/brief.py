"""The brief: one text for people and models, from a versioned template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.model import Task


def template_exists(name: str) -> bool:
    """Return whether this version has a template, or a part of a template, with this name."""
    return files("gistpoint.core.tasks").joinpath("briefs", f"{name}.md").is_file()


def template_text(name: str) -> str:
    """Return the text of a template; parts joined with `+` in the name are concatenated.

    A line `{{> NAME}}` is replaced by the text of the template NAME, so that a sentence that several briefs
    share is written once. Raises `TaskError` for a template that this version does not have.
    """
    return "\n".join(_part(part) for part in name.split("+"))


_INCLUDED = re.compile(r"^\{\{> ([\w-]+)\}\}$", re.MULTILINE)


def _part(name: str) -> str:
    if not name.replace("-", "").isalnum():
        raise TaskError(
            f"task.toml: the key 'brief.template' is {name!r}, which is not the name of a template."
        )
    resource = files("gistpoint.core.tasks").joinpath("briefs", f"{name}.md")
    try:
        text = resource.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(
            f"task.toml: the key 'brief.template' is {name!r}, which this version of gistpoint does not"
            " have.",
            hint="Install a newer gistpoint.",
        ) from None
    return _INCLUDED.sub(lambda found: _part(found[1]).rstrip("\n"), text)


def template_sha256(name: str) -> str:
    """Return the hash of a template's text."""
    return sha256_of_text(template_text(name))


_OWN_TOOLS = re.compile(r"`(?:replace_function|submit_attempt|submit_gist)`")
_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z`{])")


def in_a_shell(template: str) -> str:
    """Return a template for a solver with a shell: its sentences on tools and budgets are replaced.

    It has two more fields: `place`, the location of the repository, and `hand_in`, what is judged.
    """
    if "\n## Budgets\n" in template:
        return _with_a_shell_section(template)
    found = []
    for paragraph in template.split("\n\n"):
        if "{{tool_uses}}" in paragraph or "{{steps}}" in paragraph:
            found.append(template_text("export-shell-1").strip())
        elif "{{tools}}" not in paragraph and not paragraph.startswith("## The tools"):
            kept = (part for part in _SENTENCES.split(paragraph) if not _OWN_TOOLS.search(part))
            found.append(" ".join(kept))
    return "\n\n".join(found)


_OF_TOOLS = ("Submitting", "Budgets", "The tools")
"""The sections of briefs, from version 2 of repairs and 3 of gists, that are about gistpoint's own tools."""


def _with_a_shell_section(template: str) -> str:
    """Return a template in which one section on the shell replaces those on gistpoint's tools."""
    head, *sections = template.split("\n## ")
    kept = [head]
    for section in sections:
        title = section.partition("\n")[0]
        if title == "Budgets":
            kept.append(f"How you work\n\n{template_text('export-shell-2')}")
        elif title not in _OF_TOOLS:
            kept.append(section)
    return "\n## ".join(kept)


def filled(task: Task, values: Mapping[str, str], *, shell: bool = False) -> str:
    """Return the brief of a task: its template, filled in with values.

    With `shell`, the template is the one from `in_a_shell`. Raises `TaskError` if the template is missing
    from this version, or differs from the one with which the task was made.
    """
    text = template_text(task.brief.template)
    if sha256_of_text(text) != task.brief.template_sha256:
        raise TaskError(
            f"task.toml: the key 'brief.template_sha256' does not match the template {task.brief.template}."
        )
    text = in_a_shell(text) if shell else text
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found.group(1)], text).rstrip() + "\n"


def fenced(text: str) -> str:
    """Return text as a code block in Markdown."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def time_words(task: Task) -> str:
    """Return the sentence on the time limit; empty if there is none."""
    limit = task.budgets.time_limit_s
    return f" You have {limit / 60:g} minutes of working time." if limit else ""
