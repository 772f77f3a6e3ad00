"""The task of a run under review, as far as the store has it, and its repository at each step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Task
    from gistpoint.core.trees import SourceTree
    from gistpoint.sessions.records.model import Run
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.facts import Goal
    from gistpoint.sessions.runs.repository import RepositoryState
    from gistpoint.tui.jobs import Job

_SHORTEST_ID = 12
_OUR_ID = re.compile("[0-9a-f]{64}")
_BEGUN_ID = re.compile(f"[0-9a-f]{{{_SHORTEST_ID},64}}")


def is_our_id(task: str) -> bool:
    """Return whether the name of a task has the form of a task's id."""
    return _OUR_ID.fullmatch(task) is not None


def short_task(task: str) -> str:
    """Return the short form of a task's name: an id is cut, any other name is returned unchanged."""
    return task[:_SHORTEST_ID] if is_our_id(task) else task


class KnownTask(NamedTuple):
    """The task of a run, its initial tree, and the functions to repair, as far as the store has them."""

    tree: SourceTree | None = None
    goals: tuple[Goal, ...] = ()
    task: Task | None = None


def known_task(task_id: str, locations: Locations) -> KnownTask:
    """Return the stored facts about a task.

    They are empty for anything else than an id or its first 12 characters or more, and if no task with it
    can be found and read.
    """
    if not _BEGUN_ID.fullmatch(task_id):
        return KnownTask()
    from gistpoint.core.kinds.folder import read_answer
    from gistpoint.core.trees import SourceTree
    from gistpoint.sessions.runs.facts import goals_of
    from gistpoint.sessions.tasks import TaskStore

    try:
        task = TaskStore(locations.tasks, demo=locations.demo).find(task_id)
        answer = read_answer(task)
        return KnownTask(SourceTree.open(task.tree_path), goals_of(answer), task)
    except (UserError, OSError):
        return KnownTask()


def title_known(header: Run, known: KnownTask) -> str:
    """Return the title of a run's task; empty if it is unknown.

    If the run has no verdict, the title hides the functions of the answer.
    """
    from gistpoint.core.kinds.titles import answer_title, author_title

    if known.task is None:
        return ""
    return (
        answer_title(known.task, [str(goal.ref) for goal in known.goals])
        if header.verdict
        else author_title(known.task)
    )


class RunHistory:
    """The repository at each step of a run. Used only in the loader's thread."""

    def __init__(self, document: RunDocument, task: KnownTask) -> None:
        from gistpoint.sessions.runs.repository import RepositoryHistory

        self._document = document
        goals = task.goals
        self._history = RepositoryHistory(task.tree, target=goals[0].ref if len(goals) == 1 else None)
        self._ended = False
        self.scores: list[tuple[int, object]] = []
        """The recorded scores of the steps followed so far, each with the step's index."""

    def after(self, step: int, job: Job) -> RepositoryState:
        """Follow the run up to a step and return the repository after it, giving way to urgent jobs."""
        while self._history.fed <= step:
            job.give_way()
            followed = self._document.step(self._history.fed)
            self._history.feed(followed)
            if (score := followed.state.get("score")) is not None:
                self.scores.append((followed.index, score))
        if self._document.finished and self._history.fed == self._document.step_count and not self._ended:
            self._ended = True
            self._history.end(self._document.header.submission)
        return self._history.at(step)

    def at(self, step: int) -> RepositoryState:
        """Return the repository after a step that was already followed."""
        return self._history.at(step)

    def put(self, step: int, files: Mapping[str, bytes | None]) -> None:
        """Add the contents of files that a replay found after a step; None marks a deleted file."""
        self._history.put(step, files)
