"""Screens that cover code and instructions during a pause and after a long period without input."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Button

from gistpoint.core.readable import duration
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import key_named
from gistpoint.tui.screens.dialogs.ask import GRACE_S
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain


class PauseCover(BaseScreen[bool]):
    """A screen that hides the code during a pause. Dismissed with True to resume, or False to leave."""

    CSS_PATH = "dialogs.tcss"
    HELP_PAGE = "pause"

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__()
        self._reason, self._text = reason, text

    def compose(self) -> ComposeResult:
        """Show that the clock is stopped, and why."""
        with framed(Vertical(classes="cover"), f"{signs.PAUSED} Paused"):
            yield Plain(f"Reason: {self._reason.replace('_', ' ')}")
            if self._text:
                yield Plain(self._text)
            yield Plain("The clock is stopped. Code and instructions are hidden until you continue.")
            yield Button("Continue", id="yes", variant="primary", compact=True)
            yield Button("Leave, and continue another time", id="no", compact=True)
        yield KeyBar()

    def on_mount(self) -> None:
        """Focus the button that resumes."""
        self.query_one("#yes", Button).focus()

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        """Dismiss with whether to resume."""
        event.stop()
        self.dismiss(event.button.id == "yes")


class IdleCover(BaseScreen[Literal["worked", "away"]]):
    """A screen that hides the code until the solver reports whether an idle period was work.

    Neither answer is the default.
    """

    CSS_PATH = "dialogs.tcss"
    HELP_PAGE = "idle"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        key_named(f"idle.{answer}").binding() for answer in ("worked", "away")
    ]

    def __init__(self, idle_ms: int) -> None:
        super().__init__()
        self._idle_ms = idle_ms

    def compose(self) -> ComposeResult:
        """Show the length of the period without input, and the meaning of the answers."""
        span = duration(self._idle_ms)
        with framed(Vertical(classes="cover"), "Are you there?"):
            yield Plain(f"No key was pressed for {span}. Code and instructions are hidden until you answer.")
            yield Plain(
                f"If you were working, these {span} count. The time since this page appeared never counts."
            )
            yield Button("I was working  Alt+Y", id="worked", compact=True)
            yield Button("I was away  Alt+X", id="away", compact=True)
        yield KeyBar()

    def accepts(self, event: events.Event) -> bool:
        """Return whether the screen accepts an event.

        Events of the first second are ignored, because they were meant for the previous screen.
        """
        return event.time >= self.opened_at + GRACE_S

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        """Dismiss with the answer of the button."""
        event.stop()
        self.action_idle(event.button.id or "")

    def action_idle(self, answer: str) -> None:
        """Dismiss with an answer, `worked` or `away`."""
        self.dismiss("away" if answer == "away" else "worked")
