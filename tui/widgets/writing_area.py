"""What every place to write in shares: Textual's text area, with an undo that a large text survives."""

from __future__ import annotations

from textual import events
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import TextArea


class WritingArea(TextArea):
    """A text area that reports what was pasted into it.

    Textual 8.2.8 adjusts the scroll bars in the middle of an undo or a redo: the document is short already, while the
    cursor still stands where the long one had it. A scroll bar that disappears then scrolls to a line that does not
    exist, and the exception ends the screen.
    """

    class Pasted(Message):
        """Text was pasted, from the terminal or from the app's own clipboard."""

        def __init__(self, area: WritingArea, text: str) -> None:
            super().__init__()
            self.area = area
            self.text = text

        @property
        def control(self) -> WritingArea:
            """Where it was pasted."""
            return self.area

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor; an undo that has yet to place the cursor scrolls when it has."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset(0, 0)
        return super().scroll_cursor_visible(center, animate)

    def on_resize(self) -> None:
        """Keep the line that is written in sight when something takes room below it."""
        if self.has_focus:
            self.call_after_refresh(self.scroll_cursor_visible)

    def on_paste(self, event: events.Paste) -> None:
        """Report what the terminal pastes; the base class inserts it."""
        self._report(event.text)

    def action_paste(self) -> None:
        """Paste from the app's clipboard, and report it."""
        self._report(self.app.clipboard)
        super().action_paste()

    def _report(self, text: str) -> None:
        if text and not self.read_only:
            self.post_message(self.Pasted(self, text))
