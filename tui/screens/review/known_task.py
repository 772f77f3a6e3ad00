"""What is known of a run's task where the task itself is here: its tree, and the functions that are broken."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.folder import read_answer
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.facts import Goal, goals_of
from gistpoint.sessions.runs.model import Run
from gistpoint.sessions.tasks import TaskStore

_SHORTEST_ID = 12


@dataclass(frozen=True, slots=True)
class KnownTask:
    """The task and the tree at the start of a run, None where they are not here, and the functions to be repaired."""

    tree: SourceTree | None = None
    goals: tuple[Goal, ...] = ()
    task: Task | None = None


def known_task(header: Run, locations: Locations) -> KnownTask:
    """Return what is known of the task of a run; nothing where no task here has its id."""
    if len(header.task) < _SHORTEST_ID:
        return KnownTask()
    try:
        task = TaskStore(locations.tasks, locations.demo).find(header.task)
        answer = read_answer(task)
        return KnownTask(SourceTree.open(task.tree_path), goals_of(answer), task)
    except (UserError, OSError):
        return KnownTask()
