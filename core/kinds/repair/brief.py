"""The brief of a repair, with the values that fill its template, and the editor's initial code."""

from __future__ import annotations

from gistpoint.core.tasks.brief import fenced, filled, time_words
from gistpoint.core.tasks.model import Task

_HAND_IN = (
    "When you stop, the repository is judged as you leave it, by all of its tests. Only changes of Python"
    " files that are there already count: tests, settings and all other files are put back before."
)


def repair_brief(task: Task, *, shell: str = "") -> str:
    """Return the brief of a repair, by default for the app, or for a solver with a shell in `shell`.

    Raises `TaskError` if the template is unknown, or is not the one the task was made with.
    """
    docstring = "It has no docstring."
    if task.brief.docstring:
        docstring = fenced(task.brief.docstring)
    values = {
        "target": task.brief.target,
        "signature": fenced(task.brief.signature),
        "docstring": docstring,
        "count": _count(task),
        "tool_uses": str(task.budgets.tool_uses),
        "submissions": str(task.budgets.submissions),
        "time": time_words(task),
        "tests": str(task.suite.tests),
        "failing_count": str(len(task.brief.failing)),
        "failures": _failures(task),
        "other_failures": _others(task),
        "read_limit": str(task.limits.read_file_characters),
        "place": shell,
        "hand_in": _HAND_IN,
    }
    return filled(task, values, shell=bool(shell))


def _count(task: Task) -> str:
    if task.brief.targets:
        return str(task.brief.targets)
    return "Several"


def _failures(task: Task) -> str:
    shown = [failure for failure in task.brief.failing if failure.text]
    return "\n\n".join(f"{failure.id}\n{fenced(failure.text)}" for failure in shown)


def _others(task: Task) -> str:
    others = [failure.id for failure in task.brief.failing if not failure.text]
    if not others:
        return "No other test fails."
    return "These fail too:\n\n" + "\n".join(f"- {id}" for id in others)


def stub(task: Task) -> str:
    """Return the editor's initial code in remove mode: the part of the function that the brief shows."""
    lines = [task.brief.signature.rstrip()]
    if task.brief.docstring:
        lines.append(_docstring(task.brief.docstring))
    lines.append("    pass")
    return "\n".join(lines) + "\n"


def _docstring(text: str) -> str:
    inner = text.rstrip().replace("\\", "\\\\")
    if '"""' in inner or inner.endswith('"'):
        inner = inner.replace('"', '\\"')
    first, *rest = inner.split("\n")
    if not rest:
        return f'    """{first}"""'
    margins = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    margin = min(margins, default=0)
    body = [f"    {line[margin:]}".rstrip() for line in rest]
    return "\n".join([f'    """{first}', *body, '    """'])
