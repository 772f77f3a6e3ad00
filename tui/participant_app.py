"""The app behind a participant's link, which shows only the assigned tasks and their attempts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.running import Opening
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.sessions.confirming import confirm_attempt
from gistpoint.sessions.services import Services
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.crash_log import crash_event
from gistpoint.tui.screens.assigned import AssignedScreen, AssignedTask
from gistpoint.tui.screens.kinds import screens_of

if TYPE_CHECKING:
    from gistpoint.core.attempts.harness import Judged
    from gistpoint.tui.screens.solve.interruptions import How
    from gistpoint.tui.screens.solve.screen import SolveScreen
    from gistpoint.tui.screens.summary import SummaryScreen


class ParticipantApp(BaseApp):
    """The app with the assigned tasks. Each is attempted once, and can be resumed until it has ended."""

    def __init__(self, code: str, tasks: Sequence[str], services: Services) -> None:
        """`code` is the participant's code; `tasks` are task ids."""
        super().__init__(services.locations, "screens/assigned.tcss")
        self.code, self.services = code, services
        self._ids = tuple(tasks)
        self._held: OpenAttempt | None = None
        self._solving: SolveScreen | None = None
        self._busy = False
        """Whether a task is being opened."""

    def first_screen(self) -> AssignedScreen:
        """Return the list of tasks."""
        return AssignedScreen(self.code)

    # Tasks

    @on(AssignedScreen.Shown)
    def read_tasks(self) -> None:
        """Read the state of the tasks in a thread, and show it."""
        self._busy = False
        self.in_thread(lambda: self.call_from_thread(self._show_tasks, self._assigned()))

    def _assigned(self) -> list[AssignedTask]:
        latest: dict[str, AttemptSummary] = {}
        for summary in self.services.attempts.outlines():  # newest first
            if summary.participant == self.code and (summary.actor == PERSON or summary.problem):
                latest.setdefault(summary.task_id, summary)
        tasks = [self.services.tasks.find(id) for id in self._ids]
        return [AssignedTask(number, task, latest.get(task.id)) for number, task in enumerate(tasks, 1)]

    def _show_tasks(self, rows: Sequence[AssignedTask]) -> None:
        if isinstance(self.screen, AssignedScreen):
            self.screen.show(rows)

    # Attempts

    @on(AssignedScreen.TaskRequested)
    def task_requested(self, message: AssignedScreen.TaskRequested) -> None:
        """Begin the task, continue it, or show its result. Ignored while another request is in progress.

        If the attempt is damaged, only the bell rings.
        """
        if self._busy or not isinstance(self.screen, AssignedScreen):
            return
        row = message.row
        if row.attempt is not None and row.attempt.problem:
            self.bell()
            return
        self._busy = True
        self.in_thread(partial(self._open, row))

    def _open(self, row: AssignedTask) -> None:
        opening = Opening(lambda words: self.call_from_thread(self._show_step, words))
        if row.attempt is None:
            held = self.services.start(row.task, opening=opening)
        elif row.ended:
            answer = read_answer(row.task)
            summary = screens_of(row.task).summary(
                row.task, answer, row.attempt.state, None, row.attempt.accepted
            )
            self.call_from_thread(self._push_summary, summary, row.task, row.attempt.attempt_id)
            return
        else:
            held = self.services.resume(row.attempt.attempt_id, task=row.task, opening=opening)
        self.call_from_thread(self._solve, held)

    def _show_step(self, words: str) -> None:
        if isinstance(self.screen, AssignedScreen):
            self.screen.show_text(f"{words[0].upper()}{words[1:]} …")

    def _solve(self, held: OpenAttempt) -> None:
        self._held = held
        self._solving = screens_of(held.attempt.task).solve(held.attempt, self.services.clock)
        self._solving.when_left(self._close_attempt)
        self.push_screen(self._solving, partial(self._after_attempt, held))

    def _close_attempt(self) -> None:
        """Close the attempt, so that it can be resumed."""
        held, self._held, self._solving = self._held, None, None
        if held is not None:
            held.close()

    def _after_attempt(self, held: OpenAttempt, how: How | None) -> None:
        if how == "ended":
            last = held.attempt.state.last
            judged = held.attempt.found.get(last.call_id) if last is not None else None
            self.in_thread(partial(self._show_summary, held.attempt.task, held.attempt.state, judged))

    def _show_summary(self, task: Task, state: AttemptState, judged: Judged | None) -> None:
        answer = read_answer(task)
        summary = screens_of(task).summary(task, answer, state, judged, None)
        self.call_from_thread(self._push_summary, summary, task, state.attempt_id)

    def _push_summary(self, summary: SummaryScreen, task: Task, attempt_id: str) -> None:
        summary.confirm_by(lambda run: confirm_attempt(self.services, attempt_id, task=task, run=run))
        self.push_screen(summary)

    # The program

    def action_leave_program(self) -> None:
        """Close the program, without a question since everything is saved; while code runs, show a notice."""
        solving = self._solving
        if solving is None:
            self.exit()
        else:
            solving.when_free(self.exit)

    def _failed(self, error: UserError) -> None:
        self._busy = False
        super()._failed(error)

    def open_attempt_id(self) -> str:
        """Return the id of the open attempt; empty if there is none."""
        return self._held.attempt.state.attempt_id if self._held is not None else ""

    def save_open_work(self, error: Exception, log: Path) -> str:
        """Record the crash in the open attempt and close it, so that it can be resumed.

        Return a sentence for the report; empty if no attempt is open.
        """
        self._busy = False
        if self._held is None:
            return ""
        self._held.journal.append(crash_event(error, log))
        self._close_attempt()
        return " The task is safe: you can continue where you stopped."
