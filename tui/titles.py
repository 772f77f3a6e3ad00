"""The names of tasks and modes, the same on every screen and in every list."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.core.demo.tasks import demo_title
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.tasks.model import Task, shown_mode

_CHARACTERS = 4
"""The number of characters of the id in a title: enough to tell tasks apart, and short enough to type."""


def mode_words(task: Task) -> str:
    """Return the mode of a task, with the number of functions if its brief reveals it."""
    return shown_mode(task.mode, several=task.several, targets=task.brief.targets)


def title_of(task: Task) -> str:
    """Return a task's name for a solver: kind, short id and number of failing tests (`formats.md`, titles).

    The library and the function would reveal the solution before the end of an attempt. The demo's tasks have
    their own titles.
    """
    short = task.id[:_CHARACTERS]
    if title := demo_title(task):
        return title
    return kind_of(task).title(task, short)


def revealed_title(task: Task, functions: Sequence[str] = ()) -> str:
    """Return a task's name for its author, or after an attempt has ended: library and function.

    `functions` are those of its solution, as `path::qualname`.
    """
    if title := demo_title(task):
        return title
    names = [name.rpartition("::")[2] for name in functions]
    if not names:
        return f"{task.source.name} · {title_of(task)}"
    return f"{task.source.name} {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}"
