"""The app of `gistpoint agent watch`: a run, or one attempt, drawn as another process carries it out."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual import on, work
from textual.screen import Screen

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.errors import AttemptError
from gistpoint.core.locations import Locations
from gistpoint.sessions.agentruns.control import ask_for, withdraw
from gistpoint.sessions.agentruns.following import JournalFollower, RunFollower
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen, GiveAsked, TakeAsked
from gistpoint.tui.screens.agents.run import RunWatchScreen
from gistpoint.tui.services import Services

_TICK_S = 0.2
PATIENCE_S = 600.0
"""How long a model's call may take before a request to take over is withdrawn."""


class AgentWatchApp(BaseApp):
    """Shows a run, or the attempt that was named; ends with `taken` set where a person takes an attempt over."""

    def __init__(
        self,
        locations: Locations,
        *,
        run: AgentRun | None = None,
        attempt: str = "",
        services: Callable[[], Services] | None = None,
    ) -> None:
        """`services` are made when an attempt is taken over or given back."""
        super().__init__(locations, "screens/agents/agents.tcss")
        self._run, self._attempt, self._services = run, attempt, services
        self.taken = ""
        """The id of the attempt that a person goes on with."""

    def first_screen(self) -> Screen[None]:
        """Return the table of the run, or the attempt."""
        if self._run is not None:
            return RunWatchScreen(RunFollower(self._run, self.locations.attempts))
        return self._screen_of(self._attempt)

    def _screen_of(self, attempt: str) -> Screen[None]:
        self._attempt = attempt
        return AttemptWatchScreen(JournalFollower(self.locations.attempts / attempt), SystemTime())

    @on(RunWatchScreen.AttemptAsked)
    def attempt_asked(self, message: RunWatchScreen.AttemptAsked) -> None:
        """Look on at an attempt of the run."""
        self.push_screen(self._screen_of(message.attempt_id))

    @on(TakeAsked)
    def take_asked(self, message: TakeAsked) -> None:
        """Take the attempt over, once the call under way has its answer."""
        self.notify("Asked for: the model's call is waited for.")
        self._take(self._attempt, message.by)

    @on(GiveAsked)
    def give_asked(self, message: GiveAsked) -> None:
        """Give the attempt back."""
        self._give(self._attempt, message.note)

    @work(thread=True, exclusive=True)
    def _take(self, attempt: str, by: str) -> None:
        self.in_thread(lambda: self._taken(attempt, by))

    @work(thread=True, exclusive=True)
    def _give(self, attempt: str, note: str) -> None:
        self.in_thread(lambda: self._given(attempt, note))

    def _taken(self, attempt: str, by: str) -> None:
        folder = self.locations.attempts / attempt
        follower = JournalFollower(folder)
        follower.poll()
        if follower.state.driver != PERSON:
            ask_for(folder, by)
            if not self._handed_over(follower):
                withdraw(folder)
                if follower.state.ended:
                    raise AttemptError("The attempt has ended meanwhile.")
                raise AttemptError("The model has not let go of the attempt.", hint="Look on, and ask again.")
            if follower.state.driver != PERSON:
                self._hand_over(attempt, PERSON, by=by)
        self.taken = attempt
        self.call_from_thread(self.exit)

    def _handed_over(self, follower: JournalFollower) -> bool:
        """Wait until the attempt was handed over, or no process has it; False if neither comes about."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.is_running and not follower.state.ended:
            follower.poll()
            if not follower.live:
                follower.poll()
                return not follower.state.ended
            time.sleep(_TICK_S)
        return False

    def _given(self, attempt: str, note: str) -> None:
        self._hand_over(attempt, MODEL, note=note)
        withdraw(self.locations.attempts / attempt)
        self.call_from_thread(self.notify, "Given back. A run that is at work goes on with it, or `agent resume`.")

    def _hand_over(self, attempt: str, to: str, *, by: str = "", note: str = "") -> None:
        if self._services is None:
            raise AttemptError("The attempt can only be looked at here.")
        opened = self._services().resume(attempt)
        try:
            opened.attempt.resume()
            opened.attempt.finish_pending()
            opened.attempt.hand_over(to, by=by, note=note)
        finally:
            opened.close()
