"""Follows the repository through a run, a few milliseconds at a time, in the reader's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.repository import RepositoryHistory, RepositoryState
from gistpoint.tui.screens.review.gist_evidence import StepScore, score_of
from gistpoint.tui.screens.review.known_task import KnownTask

_SLICE_S = 0.03


class HistoryReader:
    """Feeds a history up to the step that is asked for; a later question replaces one that waits."""

    def __init__(self, document: RunDocument, task: KnownTask, do: Callable[[Callable[[], None]], None]) -> None:
        """`do` runs a job in the reader's thread."""
        self._document, self._do = document, do
        goals = task.goals
        self._history = RepositoryHistory(task.tree, target=goals[0].ref if len(goals) == 1 else None)
        self._wanted = -1
        self._ended = False
        self.scores: list[StepScore] = []
        """The scores of gists that the steps followed so far recorded."""

    @property
    def fed(self) -> int:
        """Steps followed so far."""
        return self._history.fed

    def at(self, step: int) -> RepositoryState:
        """Return the repository after a step that was followed; in the reader's thread."""
        return self._history.at(step)

    def put(self, step: int, files: Mapping[str, bytes | None]) -> None:
        """Take the files that a replay found after a step; in the reader's thread."""
        self._history.put(step, files)

    def ask(self, step: int, then: Callable[[RepositoryState], None]) -> None:
        """Call `then`, in the reader's thread, with the repository after a step."""
        self._wanted = step
        self._go_on(step, then)

    def _go_on(self, step: int, then: Callable[[RepositoryState], None]) -> None:
        if step != self._wanted:
            return
        until = time.monotonic() + _SLICE_S
        while self._history.fed <= step and time.monotonic() < until:
            followed = self._document.step(self._history.fed)
            self._history.feed(followed)
            if (score := score_of(followed)) is not None:
                self.scores.append(score)
        if self._history.fed <= step:
            self._do(lambda: self._go_on(step, then))
            return
        if self._document.finished and self._history.fed == self._document.step_count and not self._ended:
            self._ended = True
            self._history.end(self._document.header.submission)
        then(self._history.at(step))
