"""The repository at each step of a run under review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.repository import RepositoryState
    from gistpoint.tui.jobs import Job
    from gistpoint.tui.screens.review.loading import KnownTask


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
