"""Decides which screen of the app is shown when, and handles unexpected errors.

The first screen is drawn before the engine is imported, which takes as long as the drawing. Whatever needs
the engine is imported in methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal

from textual import on
from textual.screen import Screen

from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.errors import AttemptError, CancelledError, UserError
from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.running import Opening, RunContext
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.crash_log import crash_event
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog, ConsentPrompt, MessageDialog, PickDialog
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.opening import OpeningDialog, OpeningScreen

if TYPE_CHECKING:
    from gistpoint.core.attempts.harness import Judged
    from gistpoint.core.attempts.state import AttemptState
    from gistpoint.core.tasks.model import Answer, Task
    from gistpoint.sessions.attempt_summary import AttemptSummary
    from gistpoint.sessions.attempts import OpenAttempt
    from gistpoint.sessions.confirming import AskedPass
    from gistpoint.sessions.services import Services
    from gistpoint.tui.screens.kinds import Play
    from gistpoint.tui.screens.summary import AfterSummary
    from gistpoint.tui.screens.tour import Tour


@dataclass(frozen=True, slots=True)
class ServicesMaker:
    """The locations, and a function that makes the services when they are first needed."""

    locations: Locations
    make: Callable[[], Services]


class GistpointApp(BaseApp):
    """The gistpoint app: home, attempts, summaries, reviews and the tour."""

    def __init__(
        self,
        services: Services | ServicesMaker,
        *,
        open: str | Callable[[Services], Task | str] | None = None,
        new: bool = False,
        play: Play | None = None,
        alone: bool = False,
    ) -> None:
        """`services` may be a maker, which is called in a thread after the first drawing.

        `open` is the id of a task or attempt to open at once, or a function that returns a task or an
        attempt's id, and whose `UserError` ends the program. `play` contains recorded steps and the speed at
        which to play them. With `new`, a new attempt begins even if one is unfinished. With `alone`, leaving
        the attempt closes the program instead of showing home.
        """
        super().__init__(
            services.locations, "screens/home.tcss" if open is None else "screens/solve/solve.tcss"
        )
        self._services = services
        self._making = Lock()
        self._open = open
        self._new = new
        self._play = play
        self._alone = alone
        self._held: OpenAttempt | None = None
        self._not_found: UserError | None = None
        """Why the requested task or attempt could not be found; None if it was found."""
        self._opening: Opening | None = None
        """The opening under way; None if there is none."""

    @property
    def services(self) -> Services:
        """The services, made when they are first used."""
        with self._making:
            if isinstance(self._services, ServicesMaker):
                self._services = self._services.make()
                self._services.consent.asker = ConsentPrompt(self).ask
            return self._services

    def first_screen(self) -> Screen[None]:
        """Return the home screen, or the screen that is shown until the requested attempt is open."""
        if self._open is not None:
            return OpeningScreen(self._on_return, self.cancel_opening)
        return HomeScreen(lambda: self.services)

    def _on_return(self) -> None:
        """If nothing is being opened, show home, or close the app if it shows only an attempt (`alone`)."""
        if self._opening is None:
            self._show_first()

    def _show_first(self) -> None:
        if self._alone:
            self.exit()
        else:
            self.begin_again()

    @property
    def bottom_screen_restarts(self) -> bool:
        """Whether the bottom screen is the opening screen, which shows home on its own."""
        return isinstance(self.screen, OpeningScreen)

    def on_mount(self) -> None:
        """Open what was requested; the base class has shown the first screen."""
        if not isinstance(self._services, ServicesMaker):
            self._services.consent.asker = ConsentPrompt(self).ask
        wanted, self._open = self._open, None
        if wanted is not None:
            self._begin(
                partial(self._find_named, wanted) if isinstance(wanted, str) else partial(self._find, wanted)
            )
            self.call_later(_load_solve_screen)

    # Opening tasks and attempts

    @on(HomeScreen.StartRequested)
    def start_requested(self, message: HomeScreen.StartRequested) -> None:
        """Begin an attempt at a task; if one is unfinished, first ask whether to resume it."""
        if self._accepts_requests:
            self._begin(lambda opening: self._choose_for(self.services.tasks.find(message.task_id), opening))

    @on(HomeScreen.OpenRequested)
    def open_requested(self, message: HomeScreen.OpenRequested) -> None:
        """Resume an attempt, or show its result or its record."""
        if self._accepts_requests:
            self._begin(lambda opening: self._open_attempt(message.attempt_id, opening))

    @property
    def _accepts_requests(self) -> bool:
        """Whether a request is accepted: home is on top, and no other request is pending."""
        return self._opening is None and isinstance(self.screen, HomeScreen)

    def _begin(self, body: Callable[[Opening], object]) -> None:
        """Open something by calling `body` in a thread, and show the progress meanwhile."""
        opening = self._opening = Opening(
            lambda words: self.call_from_thread(self._show_step, opening, words)
        )
        if not isinstance(self.screen, OpeningScreen):
            self.push_screen(OpeningDialog(self.cancel_opening))
        self.in_thread(lambda: self._open_with(body, opening), cancel=self.cancel_opening)

    def _open_with(self, body: Callable[[Opening], object], opening: Opening) -> None:
        try:
            body(opening)
        except Exception as error:
            if isinstance(error, CancelledError) and opening.cancelled:
                return
            self.call_from_thread(self._end_opening, opening)
            raise

    def _show_task(self, opening: Opening, title: str, mode: str) -> None:
        """Show the title and mode of the task being opened, unless another screen is visible."""
        if opening is self._opening and isinstance(self.screen, OpeningScreen):
            self.screen.show(title, mode)

    def _show_step(self, opening: Opening, words: str) -> None:
        if opening is self._opening and isinstance(self.screen, OpeningDialog | OpeningScreen):
            self.screen.show_step(f"{words[0].upper()}{words[1:]}")

    def _end_opening(self, opening: Opening) -> bool:
        """Remove the progress display. Return whether the opening is still wanted."""
        if opening is not self._opening:
            return False
        self._opening = None
        self._close_dialogs()
        return True

    def _close_dialogs(self) -> None:
        while any(isinstance(screen, OpeningDialog) for screen in self.screen_stack):
            self.pop_screen()

    def cancel_opening(self) -> bool:
        """Cancel the opening, unless the attempt has already been made. Return whether it was cancelled."""
        opening = self._opening
        if opening is None or not opening.cancel():
            return False
        self._end_opening(opening)
        if isinstance(self.screen, OpeningScreen):
            self._show_first()
        return True

    @on(HomeScreen.TourRequested)
    def tour_requested(self) -> None:
        """Begin the tour."""
        if self._accepts_requests:
            self._begin(self._begin_tour)

    def _begin_tour(self, opening: Opening) -> None:
        from gistpoint.tui.home_rows import remember_tour
        from gistpoint.tui.screens.tour import Tour

        tour = Tour.begin(self.services, opening)
        remember_tour(self.services.locations)
        self.call_from_thread(self._show_tour, tour, opening)

    def _show_tour(self, tour: Tour, opening: Opening) -> None:
        from gistpoint.tui.screens.tour import TourScreen

        self._end_opening(opening)
        screen = TourScreen(tour, self.services.clock)
        screen.when_left(tour.end)
        self.push_screen(screen, partial(self._after_tour, tour))

    def _after_tour(self, tour: Tour, how: Literal["ended", "left"] | None) -> None:
        from gistpoint.tui.screens.tour import END, STEPS, step_at

        state = tour.held.attempt.state
        if how == "ended" or step_at(state) == len(STEPS) - 1:
            self.push_screen(MessageDialog("That was the tour", END))

    @on(HomeScreen.ReviewRequested)
    def review_requested(self, message: HomeScreen.ReviewRequested) -> None:
        """Show the record of an attempt."""
        if self._accepts_requests:
            self._review(message.attempt_id)

    def _review(self, attempt_id: str, problem: str = "", opening: Opening | None = None) -> None:
        if opening is not None and not self._end_opening(opening):
            return
        from gistpoint.object_graph import live_annotations
        from gistpoint.tui.screens.review.screens import Screens
        from gistpoint.tui.screens.review.settings import ReviewSettings

        folder = self.services.attempts.folder(attempt_id)
        replaying = partial(self.services.replay_of, name=attempt_id)
        judging, screens = self.services.judge_for, Screens()
        live = live_annotations(self.locations, "reviews", login_name())
        settings = ReviewSettings(
            self.locations, login_name(), screens, replaying=replaying, judging=judging, live=live
        )
        self.push_screen(screens.run(str(folder), settings, title=self._known_title(attempt_id)))
        if problem:
            self.push_screen(MessageDialog("This attempt can only be read", problem))

    def _known_title(self, attempt_id: str) -> str:
        """Return the title of an attempt's task as home shows it; empty if home does not list the attempt."""
        home = next((screen for screen in self.screen_stack if isinstance(screen, HomeScreen)), None)
        rows = home.rows if home is not None else None
        entries = rows.attempts if rows is not None else ()
        return next((entry.title for entry in entries if entry.key == attempt_id), "")

    def _find(self, find: Callable[[Services], Task | str], opening: Opening) -> None:
        """Open what `find` returns. If it raises `UserError`, end the program."""
        try:
            found = find(self.services)
        except UserError as error:
            if not opening.cancelled:
                self._not_found = error
                self.call_from_thread(self.exit)
            return
        if isinstance(found, str):
            self._open_attempt(found, opening)
        else:
            self._choose_for(found, opening)

    def run_to_exit_code(self) -> int:
        """Run until the user leaves, and return the exit code.

        Raises the `UserError` of a function that was passed as `open`, if it raised one.
        """
        code = super().run_to_exit_code()
        if self._not_found is not None:
            raise self._not_found
        return code

    def _find_named(self, name: str, opening: Opening) -> None:
        """Open the attempt with this id or, if there is none, the task with this id."""
        try:
            self.services.attempts.folder(name)
        except AttemptError:
            self._choose_for(self.services.tasks.find(name), opening)
        else:
            self._open_attempt(name, opening)

    def _choose_for(self, task: Task, opening: Opening) -> None:
        from gistpoint.core.kinds.titles import title_in_attempt
        from gistpoint.tui.titles import mode_words

        title = title_in_attempt(task, self.services.enrolment)
        self.call_from_thread(self._show_task, opening, title, mode_words(task))
        if self._play is not None or self._new:
            self._new = False  # only for the first attempt that this window opens
            self._start(task, opening)
            return
        opening.step("looking for attempts at this task")
        unfinished = self.services.unfinished(task)
        if not unfinished and task.id not in self.services.gist_settings:
            unfinished = self.services.attempts.unfinished(task.id, self.services.enrolment)
        latest = next((summary for summary in unfinished if not summary.problem), None)
        if latest is None or any(summary.open for summary in unfinished):
            self._start(task, opening)  # raises `AttemptError` if one is open in another program
        else:
            self.call_from_thread(self._ask_which, task, latest, opening)

    def _ask_which(self, task: Task, latest: AttemptSummary, opening: Opening) -> None:
        if not self._end_opening(opening):
            return
        from gistpoint.core.kinds.titles import title_in_attempt
        from gistpoint.core.readable import duration, when
        from gistpoint.tui.view_models import used_words

        begun = when(latest.started_utc_ms, self.services.clock.utc_ms())
        spent = f"{duration(latest.state.clock.active)} worked, {used_words(latest.state)}"
        choices = [("resume", f"Resume the attempt of {begun}: {spent}"), ("start", "Start a new attempt")]

        def answered(choice: str | None) -> None:
            if choice == "resume":
                self._begin(partial(self._resume, latest.attempt_id))
            elif choice == "start":
                self._begin(partial(self._start, task))

        title = title_in_attempt(task, latest.state.header)
        self.push_screen(PickDialog(f"{title}: an attempt has not ended", choices), answered)

    def _start(self, task: Task, opening: Opening) -> None:
        held = self.services.start(task, opening=opening, replay=self._play is not None)
        self.call_from_thread(self._solve, held, opening)

    def _resume(self, attempt_id: str, opening: Opening) -> None:
        self.call_from_thread(self._solve, self.services.resume(attempt_id, opening=opening), opening)

    def _open_attempt(self, attempt_id: str, opening: Opening) -> None:
        """Resume an attempt, show its result if it has ended, or its record if it can't be resumed.

        Called in a thread, because it reads the journal and the task.
        """
        from gistpoint.core.kinds.folder import read_answer

        opening.step("reading the attempt")
        summary = self.services.attempts.summary(attempt_id)
        if summary.problem:
            self.call_from_thread(self._review, summary.attempt_id, summary.problem, opening)
        elif summary.state.ended:
            from gistpoint.sessions.attempt_summary import require_shown

            require_shown(summary)
            task = self.services.tasks.find(summary.task_id)
            self.call_from_thread(self._show_ended, task, read_answer(task), summary, opening)
        elif summary.state.driver != PERSON:
            why = "It is a playback of a recorded attempt, so it can't be resumed."
            if summary.actor == MODEL:
                why = f"A model is working on it. `gistpoint agent watch {attempt_id}` takes it over."
            self.call_from_thread(self._review, summary.attempt_id, why, opening)
        else:
            self._resume(summary.attempt_id, opening)

    def _show_ended(self, task: Task, answer: Answer, summary: AttemptSummary, opening: Opening) -> None:
        if self._end_opening(opening):
            self._show_summary(task, answer, summary.state, accepted=summary.accepted)

    def _show_summary(
        self,
        task: Task,
        answer: Answer,
        state: AttemptState,
        judgement: Judged | None = None,
        *,
        accepted: bool | None = None,
    ) -> None:
        from gistpoint.tui.screens.kinds import screens_of

        screen = screens_of(task).summary(task, answer, state, judgement, accepted)
        screen.confirm_by(partial(self._confirm, task, state.attempt_id))
        home = next((below for below in self.screen_stack if isinstance(below, HomeScreen)), None)
        next_task = home.next_untried(task.id) if home is not None else ""
        if next_task:
            screen.offer("review", "task")
        else:
            screen.offer("review")
        self.push_screen(screen, partial(self._after_summary, state.attempt_id, next_task))

    def _after_summary(self, attempt_id: str, next_task: str, following: AfterSummary | None) -> None:
        """Go on from a summary to the attempt's record or to the next task; home is already shown."""
        if not self._accepts_requests:
            return
        if following == "review":
            self._review(attempt_id)
        elif following == "task":
            self._begin(lambda opening: self._choose_for(self.services.tasks.find(next_task), opening))

    def _confirm(self, task: Task, attempt_id: str, run: RunContext) -> AskedPass:
        from gistpoint.sessions.confirming import confirm_attempt

        return confirm_attempt(self.services, attempt_id, task=task, run=run)

    def _solve(self, held: OpenAttempt, opening: Opening) -> None:
        from gistpoint.tui.screens.kinds import screens_of

        self._end_opening(opening)
        self._held = held
        play, self._play = self._play, None
        screen = screens_of(held.attempt.task).solve(held.attempt, self.services.clock, play)
        screen.when_left(self._close_attempt)
        self.push_screen(screen, partial(self._after_attempt, held))

    def _close_attempt(self) -> None:
        """Close the attempt, so that any program can resume it."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _after_attempt(self, held: OpenAttempt, how: Literal["ended", "left"] | None) -> None:
        if isinstance(self.screen, HomeScreen) and self.screen.is_mounted:
            self.screen.action_reload()  # home may have read the attempt while it was still open
        if how == "ended":
            from gistpoint.core.kinds.folder import read_answer

            attempt, last = held.attempt, held.attempt.state.last
            judgement = attempt.found.get(last.call_id) if last is not None else None
            self._show_summary(attempt.task, read_answer(attempt.task), attempt.state, judgement)

    # Leaving the program

    def action_leave_program(self) -> None:
        """Close the program, after a question if an attempt is open."""
        if self._held is None:
            self.exit()
            return
        from gistpoint.tui.screens.solve.screen import SolveScreen

        solving = next((screen for screen in self.screen_stack if isinstance(screen, SolveScreen)), None)
        if solving is None:
            self._ask_to_close()
        else:
            solving.when_free(self._ask_to_close)

    def _ask_to_close(self) -> None:
        question = ConfirmDialog(
            "Close the program?",
            "The attempt is kept as it is, with its clock, budgets, code and notes; it can be resumed.",
            yes="Close",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.exit()

        self.push_screen(question, answered)

    # Unexpected errors

    def open_attempt_id(self) -> str:
        """Return the id of the open attempt; empty if there is none."""
        return self._held.attempt.state.attempt_id if self._held is not None else ""

    def save_open_work(self, error: Exception, log: Path) -> str:
        """Record the crash in the open attempt and close it.

        Return a sentence for the report; empty if no attempt is open.
        """
        if self._held is None:
            return ""
        self._held.journal.append(crash_event(error, log))
        self._close_attempt()
        return " The attempt is safe: resume it from the home screen."


def _load_solve_screen() -> None:
    """Import the solve screen while a thread opens the attempt and mostly waits for the disk."""
    import gistpoint.tui.screens.solve.screen  # noqa: F401
