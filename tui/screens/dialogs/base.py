"""What all dialogs share: a box with a title, a body, buttons, and Escape."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button

from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.widgets.plain import Plain

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer | None]):
    """A box over the screen; None is the answer of Escape."""

    CSS_PATH = "dialogs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.DIALOG)]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        """Lay out title, body and buttons."""
        with Vertical(classes="dialog-box"):
            yield Plain(self._title, classes="dialog-title")
            with VerticalScroll(classes="dialog-body", can_focus=False):
                yield from self.body()
            with Horizontal(classes="dialog-buttons"):
                yield from self.buttons()

    def body(self) -> list[Widget]:
        """Return what stands between title and buttons."""
        return []

    def buttons(self) -> list[Button]:
        """Return the buttons, the usual answer first."""
        return [Button("OK", id="yes", variant="primary")]

    def action_cancel(self) -> None:
        """Answer nothing."""
        self.dismiss(None)
