"""What hides everything while the clock stands still, and the question after a time without any input."""

from __future__ import annotations

from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.tui.screens.dialogs.base import Dialog
from gistpoint.tui.view_models import duration
from gistpoint.tui.widgets.plain import Plain


class PauseCover(Screen[bool]):
    """Covers code and instructions; the only way on is to resume, or to leave."""

    CSS_PATH = "dialogs.tcss"

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__()
        self._reason, self._text = reason, text

    def compose(self) -> ComposeResult:
        """Say that the clock stands still, and why."""
        with Vertical(classes="cover"):
            yield Plain("‖  Paused", classes="dialog-title")
            yield Plain(f"Reason: {self._reason.replace('_', ' ')}")
            if self._text:
                yield Plain(self._text)
            yield Plain("The clock stands still. Code and instructions are hidden until you go on.")
            yield Button("Go on", id="yes", variant="primary")
            yield Button("Leave, and go on another time", id="no")

    def on_mount(self) -> None:
        """Enter goes on."""
        self.query_one("#yes", Button).focus()

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        """Go on, or leave."""
        event.stop()
        self.dismiss(event.button.id == "yes")


class IdleDialog(Dialog[Literal["worked", "away"]]):
    """Asks what a time without any input was."""

    def __init__(self, idle_ms: int) -> None:
        super().__init__("Were you there?")
        self._idle_ms = idle_ms

    def body(self) -> list[Widget]:
        """Say how long."""
        return [Plain(f"Nothing was pressed for {duration(self._idle_ms)}. Your answer is recorded as you give it.")]

    def buttons(self) -> list[Button]:
        """Return both answers."""
        return [Button("I was working", id="worked", variant="primary"), Button("I was away", id="away")]

    def action_cancel(self) -> None:
        """An answer is needed."""
        self.app.bell()

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        """Give the answer."""
        event.stop()
        self.dismiss("away" if event.button.id == "away" else "worked")
