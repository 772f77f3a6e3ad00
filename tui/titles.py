"""Names a task's mode in the same way in all places; its titles are in `core/kinds/titles.py`."""

from __future__ import annotations

from gistpoint.core.tasks.model import Task, shown_mode


def mode_words(task: Task) -> str:
    """Return the mode of a task, with the number of functions if its brief reveals it."""
    return shown_mode(task.mode, several=task.several, targets=task.brief.targets)
