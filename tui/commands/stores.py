"""The user's stores of attempts and tasks, as commands open them."""

from __future__ import annotations

from gistpoint import __version__
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import ATTEMPTS_INDEX, AttemptStore
from gistpoint.sessions.blinding import Blinding
from gistpoint.sessions.task_documents import TASKS_INDEX
from gistpoint.sessions.tasks import TaskStore, TaskTitles


def attempt_store() -> AttemptStore:
    """Return the store of the user's attempts."""
    locations = Locations.of_user()
    return AttemptStore(
        locations.attempts,
        SystemTime(),
        __version__,
        locations.reviews,
        index=locations.lists / ATTEMPTS_INDEX,
        blinding=Blinding.of_process,
    )


def task_named(name: str) -> Task:
    """Return the user's or demo's task with a name. Raises `TaskError` if there is none or more than one."""
    locations = Locations.of_user()
    return TaskStore(locations.tasks, demo=locations.demo, index=locations.lists / TASKS_INDEX).find(name)


def task_titles() -> TaskTitles:
    """Return a function from a task's id to its title for authors, for the user's and the demo's tasks."""
    return TaskTitles(store_of_tasks())


def store_of_tasks() -> TaskStore:
    """Return the store of the user's and the demo's tasks."""
    locations = Locations.of_user()
    return TaskStore(locations.tasks, demo=locations.demo, index=locations.lists / TASKS_INDEX)
