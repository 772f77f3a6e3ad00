"""The names of tasks and modes on every screen and in every listing: one rule, and one word for a mode."""

from __future__ import annotations

from gistpoint.core.tasks.model import Mode, Task

_CHARACTERS = 4
"""Characters of the id in a title: enough to tell the tasks of one list apart, and to type."""


def mode_words(task: Task) -> str:
    """Return the mode of a task, with the number of functions if its brief tells it."""
    if task.mode == Mode.DISCOVERY and task.several:
        return f"discovery ×{task.brief.targets}" if task.brief.targets else "discovery ×n"
    return str(task.mode)


def title_of(task: Task) -> str:
    """Return a task's name for a solver: kind, short id and number of failing tests (`formats.md`, titles).

    Library and function would give the answer away before the end of an attempt.
    """
    short = task.id[:_CHARACTERS]
    if task.mode == Mode.GIST:
        return f"Gist {short}"
    fails = len(task.brief.failing)
    return f"Repair {short} · {fails} test{'' if fails == 1 else 's'} fail{'s' if fails == 1 else ''}"
