"""The app of `gistpoint agent watch`: a run, or one attempt, drawn as another process carries it out."""

from __future__ import annotations

from textual import on
from textual.screen import Screen

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.locations import Locations
from gistpoint.sessions.agentruns.following import JournalFollower, RunFollower
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen
from gistpoint.tui.screens.agents.run import RunWatchScreen


class AgentWatchApp(BaseApp):
    """Shows a run, or the attempt that was named."""

    def __init__(self, locations: Locations, *, run: AgentRun | None = None, attempt: str = "") -> None:
        super().__init__(locations, "screens/agents/agents.tcss")
        self._run, self._attempt = run, attempt

    def first_screen(self) -> Screen[None]:
        """Return the table of the run, or the attempt."""
        if self._run is not None:
            return RunWatchScreen(RunFollower(self._run, self.locations.attempts))
        return self._screen_of(self._attempt)

    def _screen_of(self, attempt: str) -> Screen[None]:
        return AttemptWatchScreen(JournalFollower(self.locations.attempts / attempt), SystemTime())

    @on(RunWatchScreen.AttemptAsked)
    def attempt_asked(self, message: RunWatchScreen.AttemptAsked) -> None:
        """Look on at an attempt of the run."""
        self.push_screen(self._screen_of(message.attempt_id))
