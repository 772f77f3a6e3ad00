"""The app: which screen is in sight, and what happens when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from textual import events, on, work
from textual._context import active_message_pump  # tells whose handler raised; there is no public way to ask
from textual.actions import ActionParseResult
from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.notifications import SeverityLevel
from textual.screen import Screen

from gistpoint.core.attempts.events import EventType
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.tasks.folder import read_answer
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptSummary, OpenAttempt
from gistpoint.tui.crash import write_crash
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.palette import KeyCommands
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.screens.dialogs.confirm import ConfirmDialog, MessageDialog, show_error
from gistpoint.tui.screens.dialogs.consent import ConsentDesk
from gistpoint.tui.screens.home import HomeScreen
from gistpoint.tui.services import Services
from gistpoint.tui.settings import Settings, read_settings
from gistpoint.tui.themes import install_themes

BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (120, "-wide")]
Play = tuple[Sequence[Mapping[str, Any]], float]


@runtime_checkable
class AttendedScreen(Protocol):
    """A screen that asks after a time without input."""

    def input_happened(self) -> None:
        """A key or the mouse was used."""


class GistpointApp(App[object]):
    """The workbench in a terminal."""

    TITLE = "gistpoint"
    CSS_PATH = "base.tcss"
    COMMANDS: ClassVar[Any] = {KeyCommands}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.APP)]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        services: Services,
        *,
        open: str | None = None,
        play: Play | None = None,
        first: Callable[[], Screen[None]] | None = None,
    ) -> None:
        """`open` is the id of a task or an attempt to go to at once; `play` are recorded steps, and how fast.

        `first` makes a screen to show instead of home; the program ends with it.
        """
        super().__init__()
        self.services = services
        self._first = first
        self._open = open
        self._play = play
        self._held: OpenAttempt | None = None
        self.keymap: Mapping[str, str] = {}
        """The user's own keys by binding id."""
        self.crashes: list[Exception] = []
        """Unexpected exceptions so far."""

    def on_mount(self) -> None:
        """Show home, and what was asked for over it."""
        try:
            settings = read_settings(self.services.locations.config)
        except UserError as error:
            settings = Settings()
            self.call_later(partial(show_error, self, error))
        install_themes(self, settings.theme)
        self.services.consent.asker = ConsentDesk(self).ask
        self.keymap = settings.keys
        self.set_keymap(dict(settings.keys))
        if self._first is not None:
            self.push_screen(self._first(), lambda _: self.exit())
            return
        self.push_screen(HomeScreen(self.services))
        if self._open is not None:
            self._in_thread(partial(self._find, self._open))

    def run_to_exit_code(self) -> int:
        """Run until the user leaves; 0, or 1 where it ended by an error."""
        self.run()
        return self.return_code or 0

    async def on_event(self, event: events.Event) -> None:
        """Note that there is somebody, before the event goes on its way."""
        if isinstance(event, events.InputEvent):
            for screen in self.screen_stack:
                if isinstance(screen, AttendedScreen):
                    screen.input_happened()
        await super().on_event(event)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a toast; its text is literal unless asked otherwise."""
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    # Opening

    @on(HomeScreen.StartAsked)
    def start_asked(self, message: HomeScreen.StartAsked) -> None:
        """Begin an attempt, after asking where one of that task has not ended."""
        self._in_thread(lambda: self._choose_for(self.services.tasks.find(message.task_id)))

    @on(HomeScreen.OpenAsked)
    def open_asked(self, message: HomeScreen.OpenAsked) -> None:
        """Go on with an attempt, or show how it ended."""
        self._in_thread(lambda: self._open_attempt(message.attempt_id))

    def _find(self, name: str) -> None:
        """Open what a name means: an attempt, else a task."""
        try:
            self.services.attempts.folder(name)
        except AttemptError:
            self._choose_for(self.services.tasks.find(name), new=self._play is not None)
        else:
            self._open_attempt(name)

    def _begin(self, opening: Callable[[], OpenAttempt]) -> None:
        self.screen.loading = True
        self._in_thread(lambda: self.call_from_thread(self._solve, opening()))

    @work(thread=True, group="open", exit_on_error=False)
    def _in_thread(self, body: Callable[[], object]) -> None:
        """Run what may take a while; whatever it raises reaches the screen."""
        try:
            body()
        except UserError as error:
            self.call_from_thread(self._failed, error)
        except Exception as error:
            self.call_from_thread(self._crashed, error)

    def _failed(self, error: UserError) -> None:
        self.screen.loading = False
        show_error(self, error)

    def _choose_for(self, task: Task, *, new: bool = False) -> None:
        unfinished = [] if new else self.services.attempts.unfinished(task.id)
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

        def show() -> None:
            from gistpoint.tui.screens.summary import SummaryScreen

            self.push_screen(SummaryScreen(task, answer, summary.state))

        self.call_from_thread(show)

    def _solve(self, held: OpenAttempt) -> None:
        from gistpoint.tui.screens.solve.screen import SolveScreen

        self.screen.loading = False
        self._held = held
        play, self._play = self._play, None
        self.push_screen(SolveScreen(held.attempt, self.services.clock, play=play), partial(self._solved, held))

    def _solved(self, held: OpenAttempt, how: Literal["ended", "left"] | None) -> None:
        held.close()
        self._held = None
        if how == "ended":
            from gistpoint.tui.screens.summary import SummaryScreen

            attempt, last = held.attempt, held.attempt.state.last
            judgement = attempt.judgements.get(last.call_id) if last is not None else None
            self.push_screen(SummaryScreen(attempt.task, attempt.judge.answer, attempt.state, judgement))

    # Program

    def action_help(self) -> None:
        """Show keys and explanations for the screen in sight."""
        from gistpoint.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            page = getattr(self.screen, "HELP_PAGE", "home")
            scopes = getattr(self.screen, "SCOPES", ())
            self.push_screen(HelpScreen(page, self.keymap, *scopes))

    def action_leave_program(self) -> None:
        """Close the program, after asking where an attempt is under way."""
        if self._held is None:
            self.exit()
            return
        from gistpoint.tui.screens.solve.screen import SolveScreen

        solving = next((screen for screen in self.screen_stack if isinstance(screen, SolveScreen)), None)
        if solving is not None and solving.busy:
            self.notify("Tests are running: wait for them, or cancel them with Esc.", severity="warning")
            return
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

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action; one that raises must not end the app, which runs those of all keys itself."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            self._crashed(error)
            return True

    def _handle_exception(self, error: Exception) -> None:
        """Take what a handler raised: Textual has no public hook for it.

        A widget whose handler raised is dead, so its screen is closed. Where the app's own handler raised nothing is
        left that could draw, and Textual's own end is taken.
        """
        fatal = active_message_pump.get(None) is self or bool(self.crashes) or not self.is_running
        self._crashed(error, recover=not fatal)
        if fatal:
            super()._handle_exception(error)

    def _crashed(self, error: Exception, *, recover: bool = True) -> None:
        """Log an unexpected exception, keep the attempt, and tell; the only place where they end up."""
        self.crashes.append(error)
        held, self._held = self._held, None
        attempt_id = held.attempt.state.attempt_id if held is not None else ""
        log = write_crash(self.services.locations.logs, error, attempt_id=attempt_id)
        if held is not None:
            data = {"error": type(error).__name__, "message": str(error)[:2_000], "log": log.name}
            held.journal.append(EventType.CRASH.value, data)
            held.close()
        kept = " The attempt is safe: resume it from the home screen." if held is not None else ""
        text = f"{type(error).__name__}: {str(error)[:500]}\n\nThe details are in {log}.{kept}"
        if recover:
            self.call_later(self._recover, text)

    async def _recover(self, text: str) -> None:
        """Go back to a fresh home screen and tell what happened."""
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        await self.push_screen(HomeScreen(self.services))
        self.push_screen(MessageDialog("Something unexpected happened", text, hint="This is a bug in gistpoint."))
