"""The widgets for writing: an area that posts typed text soon, and a line; both report pasted text."""

from __future__ import annotations

import re

from textual import events, on
from textual.geometry import Offset
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.widgets.text_area import Selection

DELAY_SECONDS = 0.2
"""The maximum time from a key to posting the text, in seconds."""


class Pasted(Message):
    """A message that text was pasted, from `outside` through the terminal or from the app's clipboard."""

    def __init__(self, text: str, *, outside: bool) -> None:
        super().__init__()
        self.text = text
        self.outside = outside


async def _do_now(widget: Widget, event: events.Key) -> None:
    """Run the binding of a key on the focused widget at once.

    Textual would first pass the key up to the app. A letter typed, or text pasted, after the key would
    meanwhile be inserted at the cursor's old position.
    """
    if event.is_printable:
        return
    namespace, bindings = widget.screen._binding_chain[0]  # private, but it includes the user's own keys
    for binding in bindings.key_to_bindings.get(event.key, ()) if namespace is widget else ():
        if await widget.app.run_action(binding.action, widget):
            event.stop()
            event.prevent_default()
            return


def _refuse_paste(widget: Widget, event: events.Paste | None = None) -> None:
    if event is not None:
        event.prevent_default()
    widget.app.notify("Pasting is disabled in this study.")


class WritingArea(TextArea):
    """A text area that posts its text as `Edited` soon after a key, and pasted text as `Pasted`.

    Textual 8.2.8 updates the scroll bars in the middle of an undo or redo, when the text is already shorter
    but the cursor is still at its old position. If a scroll bar disappears then, Textual scrolls to a line
    that does not exist, and the exception ends the app.
    """

    class Edited(Message):
        """A message that the text was edited; `text` is the new text."""

        def __init__(self, area: WritingArea, text: str) -> None:
            super().__init__()
            self.area = area
            self.text = text

        @property
        def control(self) -> WritingArea:
            """The widget, for Textual's message selectors."""
            return self.area

    may_paste = True
    """Whether text may be pasted."""
    _posted = ""
    _timer: Timer | None = None

    def on_mount(self) -> None:
        """Regard the initial text as posted."""
        self._posted = self.code

    @property
    def code(self) -> str:
        """The text as it is saved."""
        return self.text

    @property
    def waits(self) -> bool:
        """Whether the text has changed since it was posted."""
        return self.code != self._posted

    def post_text(self, text: str) -> None:
        """Post the new text."""
        self.post_message(self.Edited(self, text))

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self._timer is None and self.waits:
            self._timer = self.set_timer(DELAY_SECONDS, self.flush)

    def flush(self) -> None:
        """Post the text at once if it has changed."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self.waits:
            self._posted = self.code
            self.post_text(self._posted)

    def on_blur(self) -> None:
        """Post the text when the widget loses the focus."""
        self.flush()

    def on_click(self, event: events.Click) -> None:
        """Select a word on a double click, and the line without its indent on a triple click."""
        if event.chain > 1:
            row, column = self.cursor_location
            line = self.document.get_line(row)
            found = re.finditer(r"\w+" if event.chain == 2 else r"\S.*", line)
            spans = (one.span() for one in found if event.chain > 2 or one.start() <= column <= one.end())
            start, end = next(spans, (column, column))
            self.selection = Selection((row, start), (row, end))

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, except in the middle of an undo, when its line may not exist."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset(0, 0)
        return super().scroll_cursor_visible(center, animate)

    def on_resize(self) -> None:
        """Keep the cursor visible if the widget has the focus."""
        if self.has_focus:
            self.call_after_refresh(self.scroll_cursor_visible)

    async def on_key(self, event: events.Key) -> None:
        """Handle the key at once, so that keys take effect in their order."""
        await _do_now(self, event)

    def on_paste(self, event: events.Paste) -> None:
        """Report text pasted from the terminal, which the base class inserts, unless pasting is disabled."""
        if not self.may_paste:
            _refuse_paste(self, event)
        elif event.text and not self.read_only:
            self.post_message(Pasted(event.text, outside=True))

    def action_paste(self) -> None:
        """Paste from the app's clipboard, and report the text, unless pasting is disabled."""
        if not self.may_paste:
            _refuse_paste(self)
            return
        if self.app.clipboard and not self.read_only:
            self.post_message(Pasted(self.app.clipboard, outside=False))
        super().action_paste()


class WritingLine(Input):
    """A field that reports the text pasted into it."""

    may_paste = True
    """Whether text may be pasted."""

    async def on_key(self, event: events.Key) -> None:
        """Handle the key at once, so that keys take effect in their order."""
        await _do_now(self, event)

    def on_paste(self, event: events.Paste) -> None:
        """Report text pasted from the terminal, which the base class inserts, unless pasting is disabled."""
        if not self.may_paste:
            _refuse_paste(self, event)
        elif event.text:
            self.post_message(Pasted(event.text, outside=True))

    def action_paste(self) -> None:
        """Paste from the app's clipboard, and report the text, unless pasting is disabled."""
        if not self.may_paste:
            _refuse_paste(self)
            return
        if self.app.clipboard:
            self.post_message(Pasted(self.app.clipboard, outside=False))
        super().action_paste()
