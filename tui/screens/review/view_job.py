"""The base class for long work on the open run, which the reviewer starts and stops."""

from __future__ import annotations

from gistpoint.core.errors import UserError
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.review.view import ReviewView, VisibleRun


class ViewJob:
    """Work on the run in a separate thread, one job at a time. It reports to the view."""

    NAME = ""
    """The name of the thread."""

    def __init__(self, run: VisibleRun, view: ReviewView) -> None:
        self._run, self._view = run, view
        self._jobs = Jobs(view, self.NAME, failed=self._failed)
        self._job: Job | None = None

    @property
    def begun(self) -> bool:
        """Whether the work was ever started."""
        return self._job is not None

    @property
    def running(self) -> bool:
        """Whether the work is under way."""
        return self._job is not None and self._job.running

    def stop(self) -> None:
        """Stop the work, which can't be started again."""
        self._jobs.stop()

    def stops(self) -> bool:
        """Stop the running job. Return whether there was one."""
        if self._job is None or not self._job.running:
            return False
        self._job.stop()
        self._view.show_message("Stopping …")
        return True

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        self._view.show_error(error)
        self._view.show_message(error.message)
