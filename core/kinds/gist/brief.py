"""The brief of a gist: a template made of parts, and the values that fill it."""

from __future__ import annotations

from gistpoint.core.code.source_text import python_text
from gistpoint.core.entrypoints.command import command_line
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.kinds.gist.model import GistSettings, gist_settings, gist_task
from gistpoint.core.kinds.gist.tools import gist_tools
from gistpoint.core.kinds.gist.trace import read_trace
from gistpoint.core.tasks.brief import fenced, filled, template_exists, template_text, time_words
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree

_EXECUTION = {
    False: "No code of yours is run before you hand in.",
    True: "You may run code before you hand in, with the tools that do so.",
}

_READING = {False: "You may read the repository, but you can't run code. ", True: ""}

TEMPLATES = {
    "gist": "gist-3",
    "parameter": "gist-parameter-3",
    "tracing": "gist-tracing-3",
    "reading": "gist-reading-3",
    "give_test": "gist-give-test-3",
}

STATIC_PROMPTS = ("gist-static-1", "gist-static-2")
"""The prompts of the static setting: for briefs up to version 2, and for later ones (decision 130)."""
_ALL_INSTANCES = " If the command names a test, all its instances are run, whatever their parameters."


def gist_template(settings: GistSettings, *, like: str = "") -> str:
    """Return the name of a gist's template: its parts, joined by `+`.

    The parts have their newest versions, or versions no newer than those in the template `like`. Raises
    `TaskError` for a template that this version does not have.
    """
    parts = [
        "parameter" if settings.parameter else "gist",
        *([settings.strategy] if settings.strategy else []),
        *(["give_test"] if settings.give_test else []),
    ]
    names = [TEMPLATES[part] for part in parts]
    if like:
        template_text(like)
        names = [_no_newer(name, int(like.partition("+")[0].rpartition("-")[2])) for name in names]
    return "+".join(names)


def static_template(task: Task) -> str:
    """Return the name of the static setting's prompt that matches the version of a task's brief."""
    version = int(task.brief.template.partition("+")[0].rpartition("-")[2])
    return STATIC_PROMPTS[0] if version < 3 else STATIC_PROMPTS[1]


def static_prompt(task: Task, text: str) -> str:
    """Return the static setting's prompt `text` for a task.

    If the brief names one parameter, the prompt does not mention any other (decision 143).
    """
    if gist_settings(task).parameter:
        return text.replace(_ALL_INSTANCES, "")
    return text


def _no_newer(name: str, most: int) -> str:
    """Return the newest version of a template's part that is at most `most`, and no newer than `name`.

    Returns `name` if there is none.
    """
    stem, _, version = name.rpartition("-")
    earlier = [f"{stem}-{number}" for number in range(1, min(most, int(version)) + 1)]
    there = [one for one in earlier if template_exists(one)]
    return there[-1] if there else name


def shown_command(task: Task) -> str:
    """Return the command as a brief shows it, with its variables and its standard input."""
    part = gist_task(task)
    if part.settings.parameter:
        return fenced(command_line(part.command, part.settings.parameter))
    if not part.stdin and not part.variables:
        return fenced(part.entrypoint)
    command = fenced(command_line(part.command))
    if part.stdin:
        return f"{command}\n\nIts standard input is\n\n{fenced(part.stdin)}"
    return command


def gist_brief(task: Task, *, shell: str = "", gist: str = "") -> str:
    """Return the brief of a gist.

    For a solver with a shell, the repository is in the folder `shell`, and the gist must be written to the
    file `gist`. Raises `TaskError` if the template is unknown, or is not the one the task was made with.
    """
    settings = gist_settings(task)
    tools = gist_tools(settings, scoring=settings.score_budget != 0)
    values = {
        "entrypoint": shown_command(task),
        "owned": ", ".join(f"`{name}`" for name in settings.owned),
        "tools": "\n".join(f"- `{tool.usage()}`: {tool.description}" for tool in tools),
        "steps": str(task.budgets.tool_uses),
        "time": time_words(task),
        "execution": _EXECUTION[settings.execution],
        "test": fenced(task.brief.test),
        "read_limit": str(task.limits.read_file_characters),
        "place": shell,
        "hand_in": (
            f"{_READING[settings.execution]}Write the gist to `{gist}`; it is judged as it is when you stop."
        ),
    }
    return filled(task, values, shell=bool(shell))


def static_values(task: Task, answer: GistAnswer) -> dict[str, str]:
    """Return the values for the static setting's prompt: `entrypoint`, `owned`, and `files` of the trace."""
    tree = SourceTree.open(task.tree_path)
    shown = [
        f"{path}\n\n{fenced(python_text(tree.read(path)))}"
        for path in read_trace(answer.trace).files
        if tree.is_file(path)
    ]
    return {
        "entrypoint": shown_command(task),
        "owned": ", ".join(f"`{name}`" for name in gist_settings(task).owned),
        "files": "\n\n".join(shown),
    }
