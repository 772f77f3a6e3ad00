"""What is in sight until an attempt is open: what is being done, and a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.widgets.plain import Plain

_FIRST = "Opening …"


class OpeningScreen(Screen[None]):
    """One line, at once; whoever comes back to it is at home."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.DIALOG)]

    def __init__(self, came_back: Callable[[], object], cancel: Callable[[], object]) -> None:
        """`came_back` is called when nothing lies above this screen any more, `cancel` for Escape."""
        super().__init__()
        self._came_back, self._cancel = came_back, cancel
        self._shown = False

    def compose(self) -> ComposeResult:
        """Say that something is being opened."""
        yield Plain(_FIRST, id="opening-words")

    def say(self, words: str) -> None:
        """Say what is being done."""
        self.query_one("#opening-words", Plain).update(f"{words} …   Esc cancels")

    def action_cancel(self) -> None:
        """Open nothing."""
        self._cancel()

    def on_screen_resume(self) -> None:
        """Give way to home, except at the start."""
        if self._shown and self.app.screen is self:
            self._came_back()
        self._shown = True


class OpeningDialog(Dialog[None]):
    """The same over another screen, whose keys rest meanwhile."""

    CSS_PATH = "dialogs/dialogs.tcss"

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__("Opening")
        self._cancel = cancel

    def body(self) -> list[Widget]:
        """Say that something is being opened."""
        return [Plain(_FIRST, id="opening-words")]

    def buttons(self) -> list[Button]:
        """Return the way out, which Enter must not take by the way."""
        return []

    def say(self, words: str) -> None:
        """Say what is being done."""
        self.query_one("#opening-words", Plain).update(f"{words} …   Esc cancels")

    def action_cancel(self) -> None:
        """Open nothing."""
        self._cancel()
