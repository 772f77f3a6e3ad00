"""Questions that are answered with yes or no."""

from __future__ import annotations

from typing import TypeVar

from textual import on
from textual.app import App
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.core.errors import UserError
from gistpoint.tui.screens.dialogs.base import Dialog
from gistpoint.tui.widgets.plain import Plain


class ConfirmDialog(Dialog[bool]):
    """Asks; answers True, or False where it is refused or left."""

    def __init__(self, title: str, text: str, *, yes: str, no: str = "Cancel", careful: bool = False) -> None:
        """`careful` puts the focus on the refusal."""
        super().__init__(title)
        self._text, self._yes, self._no, self._careful = text, yes, no, careful

    def body(self) -> list[Widget]:
        """Return the question's text."""
        return [Plain(self._text)]

    def buttons(self) -> list[Button]:
        """Return both answers."""
        yes = Button(self._yes, id="yes", variant="warning" if self._careful else "primary")
        return [yes, Button(self._no, id="no")]

    def on_mount(self) -> None:
        """Put the focus on the answer that does less harm."""
        self.query_one("#no" if self._careful else "#yes", Button).focus()

    @on(Button.Pressed)
    def answer(self, event: Button.Pressed) -> None:
        """Give the answer of the button."""
        event.stop()
        self.dismiss(event.button.id == "yes")


class MessageDialog(Dialog[bool]):
    """Tells something, with a hint where there is one."""

    def __init__(self, title: str, text: str, *, hint: str = "") -> None:
        super().__init__(title)
        self._text, self._hint = text, hint

    def body(self) -> list[Widget]:
        """Return text and hint."""
        hint = [Plain(self._hint, classes="dialog-hint")] if self._hint else []
        return [Plain(self._text), *hint]

    @on(Button.Pressed)
    def close(self, event: Button.Pressed) -> None:
        """Close."""
        event.stop()
        self.dismiss(True)


Result = TypeVar("Result")


def show_error(app: App[Result], error: UserError) -> None:
    """Show a problem that the user can do something about."""
    app.push_screen(MessageDialog("That did not work", error.message, hint=error.hint))
