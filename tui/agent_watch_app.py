"""The app of `gistpoint agent watch`, which shows a run or an attempt of another process."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.screen import Screen

from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.errors import AttemptError
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.agentruns.control import has_person, run_to_take_from
from gistpoint.sessions.agentruns.following import JournalFollower, RunFollower
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import TaskStore, TaskTitles
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen, GiveBackRequested, TakeOverRequested
from gistpoint.tui.screens.agents.run import RunWatchScreen
from gistpoint.tui.screens.dialogs.ask import ConsentPrompt


class AgentWatchApp(BaseApp):
    """An app that shows a run or an attempt. It ends with `taken` set if a person takes an attempt over."""

    def __init__(
        self,
        locations: Locations,
        *,
        run: AgentRun | None = None,
        attempt: str = "",
        services: Callable[[], Services],
        left: bool = False,
    ) -> None:
        """`services` is called when an attempt is taken over or given back.

        `left` is set if a person has just left the attempt: the screen then asks whether to give it back.
        """
        super().__init__(locations, "screens/agents/agents.tcss")
        self._run, self._attempt, self._services, self._left = run, attempt, services, left
        self._runs = AgentRunStore(locations.runs)
        self._titled = TaskTitles(TaskStore(locations.tasks, demo=locations.demo))
        self.taken = ""
        """The id of the attempt that a person takes over; empty if there is none."""

    def first_screen(self) -> Screen[None]:
        """Return the screen with the table of the run, or with the attempt if no run is given."""
        if self._run is not None:
            follower = RunFollower(self._run, self.locations.attempts)
            return RunWatchScreen(follower, SystemTime(), self._titled)
        return self._screen_of(self._attempt)

    def on_mount(self) -> None:
        """Show the attempt on top of the table of its run, if both are given."""
        if self._run is not None and self._attempt:
            self.push_screen(self._screen_of(self._attempt))

    def _screen_of(self, attempt: str) -> Screen[None]:
        left, self._left = self._left, False
        follower = JournalFollower(self.locations.attempts / attempt)
        return AttemptWatchScreen(follower, SystemTime(), self._runs, self._titled, ask_back=left)

    @on(RunWatchScreen.AttemptRequested)
    def attempt_requested(self, message: RunWatchScreen.AttemptRequested) -> None:
        """Watch an attempt of the run."""
        self.push_screen(self._screen_of(message.attempt_id))

    # Taking over and giving back

    @on(TakeOverRequested)
    def take_over_requested(self, message: TakeOverRequested) -> None:
        """Take the attempt over in a thread, and close the app to make room for the solve screen."""
        self.in_thread(lambda: self._take_over(message.attempt_id, message.by), holds=False)

    def _take_over(self, attempt: str, by: str) -> None:
        follower = JournalFollower(self.locations.attempts / attempt)
        follower.poll()
        run_to_take_from(follower.state, self._runs, live=follower.live)
        if not has_person(follower.state):
            self._hand_over(attempt, PERSON, by=by)
        self.taken = attempt
        self.call_from_thread(self.exit)

    @on(GiveBackRequested)
    def give_back_requested(self, message: GiveBackRequested) -> None:
        """Give the attempt back to the model, in a thread."""
        self.in_thread(lambda: self._give_back(message.attempt_id, message.note), holds=False)

    def _give_back(self, attempt: str, note: str) -> None:
        follower = JournalFollower(self.locations.attempts / attempt)
        follower.poll()
        # First, because this fails if the run is missing, and then nobody would continue the attempt.
        run = run_to_take_from(follower.state, self._runs, live=False)
        self._hand_over(attempt, MODEL, note=note)
        words = (
            "continues it as soon as it has a free place"
            if run.worked_on
            else "is not running: `agent resume` continues it"
        )
        self.call_from_thread(self.notify, f"Given back. The run {run.name} {words}.")

    def _hand_over(self, attempt: str, to: str, *, by: str = "", note: str = "") -> None:
        """Record who continues the attempt.

        A call that a process left unanswered is completed first. Raises `AttemptError` if `to` is
        already in control of the attempt.
        """
        services = self._services()
        services.consent.asker = ConsentPrompt(self).ask
        opened = services.resume(attempt)
        try:
            opened.attempt.resume()
            if opened.attempt.state.driver == to:
                raise AttemptError("The attempt has changed hands in the meantime.")
            opened.attempt.hand_over(to, by=by, note=note)
        finally:
            opened.close()
