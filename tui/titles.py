"""The names of tasks and modes on every screen and in every listing: one rule, and one word for a mode."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.core.demo.tasks import demo_title
from gistpoint.core.tasks.model import Mode, Task, shown_mode

_CHARACTERS = 4
"""Characters of the id in a title: enough to tell the tasks of one list apart, and to type."""


def mode_words(task: Task) -> str:
    """Return the mode of a task, with the number of functions if its brief tells it."""
    return shown_mode(task.mode, several=task.several, targets=task.brief.targets)


def title_of(task: Task) -> str:
    """Return a task's name for a solver: kind, short id and number of failing tests (`formats.md`, titles).

    Library and function would give the answer away before the end of an attempt. The demo's tasks have titles of
    their own.
    """
    short = task.id[:_CHARACTERS]
    if title := demo_title(task):
        return title
    if task.mode == Mode.GIST:
        return f"Gist {short}"
    if task.mode not in set(Mode):
        return f"{str(task.mode).capitalize()} {short}"
    fails = len(task.brief.failing)
    return f"Repair {short} · {fails} test{'' if fails == 1 else 's'} fail{'s' if fails == 1 else ''}"


def told_title(task: Task, functions: Sequence[str] = ()) -> str:
    """Return a task's name once an attempt of it has ended, or for its author: library and function.

    `functions` are those of its answer, as `path::qualname`.
    """
    if title := demo_title(task):
        return title
    names = [name.rpartition("::")[2] for name in functions]
    if not names:
        return f"{task.source.name} · {title_of(task)}"
    return f"{task.source.name} {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}"
