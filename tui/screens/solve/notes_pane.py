"""Notes to oneself, kept with the attempt."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.getters import query_one

from gistpoint.tui.screens.solve.panes import pane_frame
from gistpoint.tui.widgets.writing_area import WritingArea


class NotesPane(Vertical):
    """One text."""

    area = query_one("#notes", WritingArea)

    def __init__(self, notes: str) -> None:
        super().__init__(id="notes-pane")
        self._notes = notes
        pane_frame(self, "notes", note="kept as you type")

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield WritingArea(self._notes, id="notes", soft_wrap=True, placeholder="Notes to yourself: kept")
