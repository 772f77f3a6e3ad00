"""Placeholders while an attempt is being opened: a screen, or a dialog over another screen."""

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
    """The frame of an attempt, drawn before the engine is imported.

    The brief appears only on the attempt's own screen, when the clock runs, because the time for reading it
    counts (decision 37).
    """

    CSS_PATH = "solve/solve.tcss"
    HELP_PAGE = "opening"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.DIALOG)]

    def __init__(self, on_return: Callable[[], object], cancel: Callable[[], object]) -> None:
        """`on_return` is called when this screen is on top again, `cancel` on Escape."""
        super().__init__()
        self._on_return, self._cancel = on_return, cancel
        self._shown = False

    def compose(self) -> ComposeResult:
        """Lay out header, frame and keys as the attempt's screen does."""
        yield HeaderBar("gistpoint", fields=[HeaderField("isolation", "probing …", "$text-muted")])
        brief = key_named("pane.brief")
        yield framed(
            Plain(_FIRST, id="opening-words"), f"{shown_key(brief.keys.split(',')[0])} {brief.description}"
        )
        yield KeyBar()

    def show(self, title: str, mode: str) -> None:
        """Show the task's title and mode."""
        for header in self.query(HeaderBar):
            header.show(name=title, words=mode)

    def show_step(self, words: str) -> None:
        """Show the current step of the opening."""
        for line in self.query("#opening-words").results(Plain):  # empty before the screen is mounted
            line.update(f"{words} …", layout=False)

    def action_cancel(self) -> None:
        """Cancel the opening."""
        self._cancel()

    def on_screen_resume(self) -> None:
        """Call `on_return`, except when the screen is shown for the first time."""
        if self._shown and self.app.screen is self:
            self._on_return()
        self._shown = True


class OpeningDialog(Dialog[None]):
    """A dialog that shows the current step of the opening. The keys of the screen below are disabled."""

    CSS_PATH = "dialogs/dialogs.tcss"
    HELP_PAGE = "opening"

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__("Opening")
        self._cancel = cancel

    def body(self) -> list[Widget]:
        """Return the line with the current step."""
        return [Plain(_FIRST, id="opening-words")]

    def buttons(self) -> list[Button]:
        """Return no buttons, because Enter could press a button by accident."""
        return []

    def show_step(self, words: str) -> None:
        """Show the current step of the opening."""
        for line in self.query("#opening-words").results(Plain):  # empty before the dialog is mounted
            line.update(f"{words} …   Esc cancels")

    def action_cancel(self) -> None:
        """Cancel the opening."""
        self._cancel()
