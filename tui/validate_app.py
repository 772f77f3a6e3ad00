"""The app of `gistpoint task validate`: a queue of tasks and nothing else."""

from __future__ import annotations

from pathlib import Path

from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.dialogs.ask import ConsentPrompt
from gistpoint.tui.screens.validate.desk import ValidationSession
from gistpoint.tui.screens.validate.screen import ValidateScreen, keep_typed


class ValidateApp(BaseApp):
    """Shows the queue; the program ends with it."""

    def __init__(self, desk: ValidationSession) -> None:
        super().__init__(desk.services.locations, "screens/validate/validate.tcss")
        self._desk = desk

    def first_screen(self) -> ValidateScreen:
        """Return the queue."""
        return ValidateScreen(self._desk)

    def on_mount(self) -> None:
        """Ask for consent on the screen if code is to run without isolation."""
        self._desk.services.consent.asker = ConsentPrompt(self).ask

    def action_leave_program(self) -> None:
        """Keep what was typed, and close."""
        keep_typed(self.screen_stack)
        super().action_leave_program()

    def keep_what_is_open(self, error: Exception, log: Path) -> str:
        """Keep what was typed."""
        keep_typed(self.screen_stack)
        return " What you said and typed is kept."
