"""The app: which screen is in sight, and what happens when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from textual import events, on
from textual.screen import Screen

from gistpoint.core.attempts.events import EventType
from gistpoint.core.attempts.judging import Judgement
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import AttemptError
from gistpoint.core.tasks.folder import read_answer
from gistpoint.core.tasks.model import Answer, Mode, Task
from gistpoint.sessions.attempts import AttemptSummary, OpenAttempt
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.screens.dialogs.confirm import ConfirmDialog
from gistpoint.tui.screens.dialogs.consent import ConsentDesk
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.screens.opening import OpeningScreen
from gistpoint.tui.services import Services

if TYPE_CHECKING:
    from gistpoint.core.attempts.engine import Attempt
    from gistpoint.tui.screens.solve.screen import SolveScreen

Play = tuple[Sequence[Mapping[str, Any]], float]


@runtime_checkable
class AttendedScreen(Protocol):
    """A screen that asks after a time without input."""

    def input_happened(self) -> None:
        """A key or the mouse was used."""


class GistpointApp(BaseApp):
    """The workbench in a terminal."""

    def __init__(self, services: Services, *, open: str | None = None, play: Play | None = None) -> None:
        """`open` is the id of a task or an attempt to go to at once; `play` are recorded steps, and how fast."""
        super().__init__(services.locations, "screens/home.tcss")
        self.services = services
        self._open = open
        self._play = play
        self._held: OpenAttempt | None = None

    def first_screen(self) -> Screen[None]:
        """Return home, or what is in sight until what was asked for is open."""
        if self._open is not None:
            return OpeningScreen(self.begin_anew)
        return HomeScreen(self.services)

    @property
    def ground_renews_itself(self) -> bool:
        """True for the line that is in sight until something is open."""
        return isinstance(self.screen, OpeningScreen)

    def on_mount(self) -> None:
        """Go to what was asked for; home is shown by every app of ours."""
        self.services.consent.asker = ConsentDesk(self).ask
        if self._open is not None:
            self.in_thread(partial(self._find, self._open))
            self._open = None
            self.call_later(_load_solve_screen)

    async def on_event(self, event: events.Event) -> None:
        """Note that there is somebody, before the event goes on its way."""
        if isinstance(event, events.InputEvent):
            for screen in self.screen_stack:
                if isinstance(screen, AttendedScreen):
                    screen.input_happened()
        await super().on_event(event)

    # Opening

    @on(HomeScreen.StartAsked)
    def start_asked(self, message: HomeScreen.StartAsked) -> None:
        """Begin an attempt, after asking where one of that task has not ended."""
        self.in_thread(lambda: self._choose_for(self.services.tasks.find(message.task_id)))

    @on(HomeScreen.OpenAsked)
    def open_asked(self, message: HomeScreen.OpenAsked) -> None:
        """Go on with an attempt, or show how it ended."""
        self.in_thread(lambda: self._open_attempt(message.attempt_id))

    @on(HomeScreen.ReviewAsked)
    def review_asked(self, message: HomeScreen.ReviewAsked) -> None:
        """Read the record of an attempt."""
        import getpass

        from gistpoint.tui.screens.review.screen import ReviewScreen
        from gistpoint.tui.screens.review.settings import ReviewSettings

        folder = self.services.attempts.folder(message.attempt_id)
        from functools import partial

        from gistpoint.tui.commands.replay import replay_of

        replaying = partial(replay_of, services=self.services, name=message.attempt_id)
        judging = self.services.gist_judge_for
        settings = ReviewSettings(self.locations, getpass.getuser(), replaying=replaying, judging=judging)
        self.push_screen(ReviewScreen(str(folder), settings))

    def _find(self, name: str) -> None:
        """Open what a name means: an attempt, else a task."""
        try:
            self.services.attempts.folder(name)
        except AttemptError:
            self._choose_for(self.services.tasks.find(name), new=self._play is not None)
        else:
            self._open_attempt(name)

    def _begin(self, opening: Callable[[], OpenAttempt]) -> None:
        self.screen.loading = not isinstance(self.screen, OpeningScreen)
        self.in_thread(lambda: self.call_from_thread(self._solve, opening()))

    def _choose_for(self, task: Task, *, new: bool = False) -> None:
        unfinished = [] if new else self.services.unfinished(task)
        if not unfinished and not new and task.id not in self.services.gist_settings:
            unfinished = self.services.attempts.unfinished(task.id)
        self.call_from_thread(self._ask_which, task, unfinished)

    def _ask_which(self, task: Task, unfinished: list[AttemptSummary]) -> None:
        if not unfinished:
            self._start(task)
            return
        latest = unfinished[0]
        choices = [
            ("resume", f"Go on with attempt {latest.attempt_id}, where you left it"),
            ("start", "Start a new attempt"),
        ]

        def answered(choice: str | None) -> None:
            if choice == "resume":
                self._resume(latest.attempt_id)
            elif choice == "start":
                self._start(task)

        self.push_screen(PickDialog("An attempt of this task has not ended", choices), answered)

    def _start(self, task: Task) -> None:
        self._begin(lambda: self.services.start(task))

    def _resume(self, attempt_id: str) -> None:
        self._begin(lambda: self.services.resume(attempt_id))

    def _open_attempt(self, attempt_id: str) -> None:
        """Resume or show an attempt; runs in a thread, for it reads the journal and the task."""
        summary = self.services.attempts.summary(attempt_id)
        if not summary.state.ended:
            self.call_from_thread(self._resume, summary.attempt_id)
            return
        task = self.services.tasks.find(summary.task_id)
        answer = read_answer(task)

        self.call_from_thread(self._show_summary, task, answer, summary.state)

    def _show_summary(
        self, task: Task, answer: Answer, state: AttemptState, judgement: Judgement | None = None
    ) -> None:
        if answer.gist is not None:
            from gistpoint.tui.screens.gist.summary import GistSummaryScreen

            self.push_screen(GistSummaryScreen(task, answer.gist, state))
            return
        from gistpoint.tui.screens.summary import SummaryScreen

        self.push_screen(SummaryScreen(task, answer, state, judgement))

    def _solve(self, held: OpenAttempt) -> None:
        self.screen.loading = False
        self._held = held
        play, self._play = self._play, None
        screen = self._screen_of(held.attempt, play)
        self.push_screen(screen, partial(self._solved, held))

    def _screen_of(self, attempt: Attempt, play: Play | None) -> SolveScreen:
        if attempt.task.mode is Mode.GIST:
            from gistpoint.tui.screens.gist.screen import GistScreen

            return GistScreen(attempt, self.services.clock, play=play)
        from gistpoint.tui.screens.solve.screen import SolveScreen

        return SolveScreen(attempt, self.services.clock, play=play)

    def _solved(self, held: OpenAttempt, how: Literal["ended", "left"] | None) -> None:
        held.close()
        self._held = None
        if how == "ended":
            attempt, last = held.attempt, held.attempt.state.last
            judgement = attempt.judgements.get(last.call_id) if last is not None else None
            self._show_summary(attempt.task, read_answer(attempt.task), attempt.state, judgement)

    # Program

    def action_leave_program(self) -> None:
        """Close the program, after asking where an attempt is under way."""
        if self._held is None:
            self.exit()
            return
        from gistpoint.tui.screens.solve.screen import SolveScreen

        solving = next((screen for screen in self.screen_stack if isinstance(screen, SolveScreen)), None)
        if solving is None:
            self._ask_to_close(solving)
        elif not solving.when_free(partial(self._ask_to_close, solving)):
            self.notify("A call is under way: wait for it, or cancel it with Esc.", severity="warning")

    def _ask_to_close(self, solving: SolveScreen | None) -> None:
        question = ConfirmDialog(
            "Close the program?",
            "The attempt is kept as it is, with its clock, budgets, code and notes; it can be resumed.",
            yes="Close",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                if solving is not None:
                    solving.stop()
                if self._held is not None:
                    self._held.close()
                self.exit()

        self.push_screen(question, answered)

    # What nobody expected

    def attempt_at_risk(self) -> str:
        """Return the id of the attempt that is open."""
        return self._held.attempt.state.attempt_id if self._held is not None else ""

    def keep_what_is_open(self, error: Exception, log: Path) -> str:
        """Close the attempt, so that it can be resumed."""
        held, self._held = self._held, None
        if held is None:
            return ""
        data = {"error": type(error).__name__, "message": str(error)[:2_000], "log": log.name}
        held.journal.append(EventType.CRASH.value, data)
        held.close()
        return " The attempt is safe: resume it from the home screen."


def _load_solve_screen() -> None:
    """Import the screen while the attempt is being opened in a thread, which mostly waits for the disk."""
    import gistpoint.tui.screens.solve.screen  # noqa: F401
