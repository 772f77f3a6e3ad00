"""Help: the page of a screen, and its keys from the one table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Markdown

from gistpoint.tui.keys import KeyScope, bindings_of, help_table
from gistpoint.tui.widgets.key_bar import KeyBar


def help_text(page: str, keymap: Mapping[str, str], *scopes: KeyScope) -> str:
    """Return a page of help with the keys of some scopes below it, as Markdown."""
    text = files("gistpoint.tui").joinpath("help", f"{page}.md").read_text(encoding="utf-8")
    return f"{text.rstrip()}\n\n## Keys\n\n{help_table(keymap, *scopes)}\n"


class HelpScreen(ModalScreen[None]):
    """Markdown over the screen; Escape closes it."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.DIALOG)]

    def __init__(self, page: str, keymap: Mapping[str, str], *scopes: KeyScope) -> None:
        super().__init__()
        self._text = help_text(page, keymap, *scopes, KeyScope.READING, KeyScope.APP, KeyScope.DIALOG)

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        with VerticalScroll(id="help-page"):
            yield Markdown(self._text, open_links=False)
        yield KeyBar()

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one("#help-page").focus()

    def action_cancel(self) -> None:
        """Close."""
        self.dismiss(None)
