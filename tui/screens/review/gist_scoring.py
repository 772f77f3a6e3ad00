"""Scores the gist of the open run on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from gistpoint.core.running import RunContext, RunProgress
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.loading import RunLoader
from gistpoint.tui.screens.review.settings import Judging
from gistpoint.tui.screens.review.view import ReviewView, VisibleRun
from gistpoint.tui.screens.review.view_job import ViewJob

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.judge import GistJudging
    from gistpoint.core.tasks.model import Task

HIDDEN = "The scores of its lines are hidden until your verdict."
NO_TASK = (
    "The gist can't be scored, because its task is not on this machine; the marks are those that the run"
    " recorded."
)


@runtime_checkable
class ShowsGist(Protocol):
    """A page with a gist."""

    text: str
    """The displayed gist; empty if there is none."""


class GistScoring(ViewJob):
    """The scoring of the displayed gist, one score at a time."""

    NAME = "gist score"

    def __init__(self, run: VisibleRun, view: ReviewView) -> None:
        super().__init__(run, view)
        self.scores: dict[str, Mapping[str, Any]] = {}
        """The scores made on this screen, by the text of the gist."""
        self.backends: dict[str, str] = {}

    def offer_gist_page(self) -> None:
        """Offer the tab of the gist page if the run writes a gist, after the list's rows have been read."""
        loader, pages = self._run.loader, self._view.pages
        loader.do(
            lambda: writes_gist(loader), lambda writes: pages.offer("gist") if writes else None, later=True
        )

    # Scoring

    def toggle_shown(self) -> bool:
        """Score the gist on its page, or stop scoring. Return whether that page or a score was active."""
        page = self._view.pages.made.get("gist")
        if not self.running and self._view.pages.current != "gist":
            return False
        self.toggle(page.text if isinstance(page, ShowsGist) else "")
        return True

    def toggle(self, text: str) -> None:
        """Score a gist in a sandbox, or stop scoring."""
        if self.stops():
            return
        judging, task = self._view.settings.judging, gist_task(self._run.loader) if text else None
        if self._run.hides:
            self._view.show_message(HIDDEN)
        elif not text:
            self._view.show_message("There is no gist here to score.")
        elif task is None:
            self._view.show_message(NO_TASK)
        elif judging is None:
            self._view.show_message("Gists can't be scored here: use gistpoint gist score.")
        else:
            self._view.show_message("Scoring the gist … Alt+S stops it.")
            self._job = self._jobs.do(
                lambda job: self._score(job, judging, task, text), self._view.show_message
            )

    def _score(self, job: Job, judging: Judging, task: Task, text: str) -> str:
        from gistpoint.core.kinds.gist.score import gist_metrics

        def progress(run: RunProgress) -> None:
            job.report(self._show_progress, f"{run.phase} {run.done + 1}/{run.total}")

        judge = cast("GistJudging", judging(task))
        verdict = judge.verdict(text, thorough=True, run=RunContext(job.cancel, progress))
        if verdict.score is None:
            return "Stopped." if job.cancel.cancelled else f"It could not be scored. {verdict.reason}"
        backend = judge.runner.backend.name
        score = gist_metrics(verdict)
        job.hand(lambda scored: self._scored(text, scored, backend), score)
        return f"Scored in {backend}."

    def _show_progress(self, words: str) -> None:
        if self._job is not None and not self._job.cancel.cancelled:
            self._view.show_message(f"Scoring the gist: {words}. Alt+S stops it.")

    def _scored(self, text: str, score: Mapping[str, Any], backend: str) -> None:
        self.scores[text], self.backends[text] = score, backend
        if self._view.pages.current == "gist":
            self._view.fill_page(reload=True)


def gist_task(loader: RunLoader) -> Task | None:
    """Return the stored gist task of a run; None if the run has no such task."""
    task = loader.task.task
    if task is None:
        return None
    from gistpoint.core.kinds.gist.model import is_gist

    return task if is_gist(task) else None


def writes_gist(loader: RunLoader) -> bool:
    """Return whether a run writes a gist, judging by its record or by the stored task."""
    document = loader.document
    if document is None:
        return False
    is_named = "mode" in document.header.extra
    return (is_named and _is_of_gists(document.header.extra["mode"])) or gist_task(loader) is not None


def _is_of_gists(mode: object) -> bool:
    from gistpoint.core.kinds.gist.state import GistState  # imports all kinds, which most runs do not need
    from gistpoint.core.kinds.registry import blank_state

    return isinstance(blank_state(mode), GistState)
