"""The app of `gistpoint task generate` and `new`, which does the work in a thread and shows it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from textual import on
from textual.message import Message

from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import TaskSet
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.campaign_view import CampaignView
from gistpoint.tui.screens.making.screen import MakingScreen

if TYPE_CHECKING:
    from gistpoint.tui.screens.validate.session import ValidationSession

Result = TypeVar("Result")


class CampaignApp(BaseApp, Generic[Result]):
    """An app that does some work in a thread, and shows its progress.

    If the screen is left before the work has ended, `result` stops the work.
    """

    kept = " The work continues, and what you typed is kept."

    class WorkOver(Message):
        """A message that the work has ended, and that nothing is left to look at."""

    def __init__(
        self,
        locations: Locations,
        work: Callable[[RunContext], Result],
        services: Callable[[], Services],
        *,
        stays: bool = True,
    ) -> None:
        """`work` is called once, in a thread. `services` is called when a task is opened.

        With `stays`, the screen stays open after the work, to show the tasks that were kept.
        """
        super().__init__(locations, "screens/making/making.tcss")
        self.view = CampaignView()
        self._work, self._services, self._stays = work, services, stays
        self._token = CancelToken()
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._worker = threading.Thread(target=self._do, name="making-tasks", daemon=True)

    def first_screen(self) -> MakingScreen:
        """Return the screen that shows the progress."""
        return MakingScreen(self.view)

    def on_mount(self) -> None:
        """Start the work."""
        self._worker.start()

    @property
    def at_work(self) -> bool:
        """Whether the work is under way."""
        return self._worker.is_alive()

    def stop(self) -> None:
        """Stop the work if it is under way, and wait until it has ended."""
        if self.at_work:
            self._token.cancel()
            self._worker.join()

    def result(self) -> Result:
        """Return the result of the work, which is stopped if it is under way.

        Raises the exception of the work, which is a `CancelledError` if it was stopped.
        """
        self.stop()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _do(self) -> None:
        try:
            self._results.append(self._work(RunContext(self._token, self.view.take)))
        except BaseException as error:  # `result` raises the exception in the caller's thread
            self._error = error
        else:
            self.view.end("done")
        if self._error is not None or not self._stays:
            self.post_message(self.WorkOver())

    def on_campaign_app_work_over(self) -> None:
        """Close the app; the terminal shows the result or the error."""
        self.exit()

    @on(MakingScreen.TaskRequested)
    def task_requested(self, message: MakingScreen.TaskRequested) -> None:
        """Open a task on the validation screen."""
        self.in_thread(lambda: self._open(message.task_id))

    def _open(self, task_id: str) -> None:
        from gistpoint.tui.screens.validate.session import ValidationSession

        services = self._services()
        task = services.tasks.find(task_id)
        session = ValidationSession.of(services, TaskSet(task.short_id, (task,)), login_name())
        self.call_from_thread(self._show_page, session)

    def _show_page(self, session: ValidationSession) -> None:
        from gistpoint.tui.screens.validate.screen import ValidateScreen

        self.push_screen(ValidateScreen(session))
