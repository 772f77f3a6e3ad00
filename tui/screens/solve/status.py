"""The lines around the panes: which there are, and the run that is under way."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.getters import query_one
from textual.message import Message
from textual.widgets import ProgressBar

from gistpoint.core.ports import RunProgress
from gistpoint.tui.keys import key_named, shown_key
from gistpoint.tui.widgets.plain import Plain

PANES = ("brief", "files", "code", "console", "editor", "results", "notes")


CANCEL_HINT = "   Esc cancels"


class PaneTab(Plain):
    """The name of a pane with its key; a click goes there."""

    class Clicked(Message):
        """A pane is wanted."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, pane: str) -> None:
        super().__init__(id=f"tab-{pane}", classes="pane-tab")
        self._pane = pane
        self.draw(active=False)

    def draw(self, *, active: bool) -> None:
        """Draw it; brackets, not colour alone, say which pane has the focus."""
        key = key_named(f"pane.{self._pane}")
        text = f"{shown_key(key.keys.split(',')[0])} {key.description}"
        self.update(f"[{text}]" if active else f" {text} ")
        self.set_class(active, "-active")

    def on_click(self, event: events.Click) -> None:
        """Go to the pane."""
        event.stop()
        self.post_message(self.Clicked(self._pane))


class PaneTabs(Horizontal):
    """All panes in one line."""

    def __init__(self, panes: tuple[str, ...] = PANES) -> None:
        super().__init__()
        self._panes = panes

    def compose(self) -> ComposeResult:
        """Lay out the names."""
        yield from (PaneTab(pane) for pane in self._panes)

    def mark(self, pane: str) -> None:
        """Say which pane has the focus."""
        for tab in self.query(PaneTab):
            tab.draw(active=tab.id == f"tab-{pane}")


class RunLine(Horizontal):
    """Where the code that a call runs stands; out of sight while none runs."""

    bar = query_one(ProgressBar)
    words = query_one("#run-words", Plain)

    def compose(self) -> ComposeResult:
        """Lay out words and bar."""
        yield Plain("", id="run-words")
        yield ProgressBar(show_eta=False, show_percentage=False)

    _hint = ""

    def begin(self, words: str, *, hint: str = CANCEL_HINT) -> None:
        """Show that something runs, of unknown length, and what can be done about it."""
        self.display = True
        self._hint = hint
        self.words.update(f"{words}{hint}")
        self.bar.update(total=None, progress=0)

    def progress(self, progress: RunProgress, failed: int | None) -> None:
        """Show how far a run is; `failed` only where it may be shown."""
        found = f", {failed} failed so far" if failed is not None else ""
        count = f" {progress.done} of {progress.total}" if progress.total else ""
        self.words.update(f"… {progress.phase}{count}{found}{self._hint}")
        if progress.total:
            self.bar.update(total=progress.total, progress=progress.done)

    def end(self) -> None:
        """Go out of sight."""
        self.display = False
