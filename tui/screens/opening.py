"""What is shown while an attempt is being opened: the frame of its screen, or a dialog on another screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.screens.dialogs.ask import Dialog
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain

_FIRST = "Opening …"


class OpeningScreen(BaseScreen[None]):
    """An attempt before it begins, drawn before the engine is imported. Coming back to it leads home.

    Its brief is shown when the clock runs: nobody may read it at no cost (decision 37).
    """

    CSS_PATH = "solve/solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.DIALOG)]

    def __init__(self, came_back: Callable[[], object], cancel: Callable[[], object]) -> None:
        """`came_back` is called when this screen is on top again, `cancel` on Escape."""
        super().__init__()
        self._came_back, self._cancel = came_back, cancel
        self._shown = False

    def compose(self) -> ComposeResult:
        """Lay out header, frame and keys as in the attempt."""
        yield HeaderBar("gistpoint", fields=[HeaderField("isolation", "probing …", "$text-muted")])
        brief = key_named("pane.brief")
        yield framed(
            Plain(_FIRST, id="opening-words"), f"{shown_key(brief.keys.split(',')[0])} {brief.description}"
        )
        yield KeyBar()

    def show(self, title: str, mode: str) -> None:
        """Name the task and its mode."""
        self.query_one(HeaderBar).show(name=title, words=mode)

    def say(self, words: str) -> None:
        """Show the current step."""
        self.query_one("#opening-words", Plain).update(f"{words} …", layout=False)

    def action_cancel(self) -> None:
        """Cancel the opening."""
        self._cancel()

    def on_screen_resume(self) -> None:
        """Give way to home, except at the start."""
        if self._shown and self.app.screen is self:
            self._came_back()
        self._shown = True


class OpeningDialog(Dialog[None]):
    """The same on top of another screen, whose keys are disabled meanwhile."""

    CSS_PATH = "dialogs/dialogs.tcss"

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__("Opening")
        self._cancel = cancel

    def body(self) -> list[Widget]:
        """Show that something is being opened."""
        return [Plain(_FIRST, id="opening-words")]

    def buttons(self) -> list[Button]:
        """Return the cancel button, which Enter must not press by accident."""
        return []

    def say(self, words: str) -> None:
        """Show the current step."""
        self.query_one("#opening-words", Plain).update(f"{words} …   Esc cancels")

    def action_cancel(self) -> None:
        """Cancel the opening."""
        self._cancel()
