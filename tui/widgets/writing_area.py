"""The base of all writing widgets: typed text is posted soon, pasted text is reported, and undo is safe."""

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
"""Typed text is posted at most this many seconds after the first key."""


class Pasted(Message):
    """Text was pasted, either from `outside` through the terminal or from the program's own clipboard."""

    def __init__(self, text: str, *, outside: bool) -> None:
        super().__init__()
        self.text = text
        self.outside = outside


async def _do_now(widget: Widget, event: events.Key) -> None:
    """Handle a key of the focused widget at once.

    Textual passes such a key up to the app and looks it up there. Meanwhile, a letter typed or a text pasted
    after it is inserted at once, where the cursor still is.
    """
    if event.is_printable:
        return
    namespace, bindings = widget.screen._binding_chain[0]  # private, but it knows the user's own keys
    for binding in bindings.key_to_bindings.get(event.key, ()) if namespace is widget else ():
        if await widget.app.run_action(binding.action, widget):
            event.stop()
            event.prevent_default()
            return


def _refused(widget: Widget, event: events.Paste | None = None) -> None:
    if event is not None:
        event.prevent_default()
    widget.app.notify("Pasting is disabled in this study.")


class WritingArea(TextArea):
    """A text area that posts its text as `Edited` soon after a key, and pasted text as `Pasted`.

    Textual 8.2.8 adjusts the scroll bars in the middle of an undo or redo, when the document is already
    short, but the cursor still is where it was in the long one. A scroll bar that disappears then scrolls to
    a line that does not exist, and the exception ends the screen.
    """

    class Edited(Message):
        """The current text."""

        def __init__(self, area: WritingArea, text: str) -> None:
            super().__init__()
            self.area = area
            self.text = text

        @property
        def control(self) -> WritingArea:
            """The widget with the text."""
            return self.area

    may_paste = True
    """Whether text may be pasted into it."""
    _posted = ""
    _timer: Timer | None = None

    def on_mount(self) -> None:
        """Treat the first text as posted."""
        self._posted = self.code

    @property
    def code(self) -> str:
        """The text to be saved."""
        return self.text

    @property
    def waits(self) -> bool:
        """Whether there is typed text that was not posted yet."""
        return self.code != self._posted

    def tell(self, text: str) -> None:
        """Post a new text."""
        self.post_message(self.Edited(self, text))

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self._timer is None and self.waits:
            self._timer = self.set_timer(DELAY_SECONDS, self.flush)

    def flush(self) -> None:
        """Post the text now if it was not posted yet."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self.waits:
            self._posted = self.code
            self.tell(self._posted)

    def on_blur(self) -> None:
        """Post the text when the focus leaves."""
        self.flush()

    def on_click(self, event: events.Click) -> None:
        """Select the word at a double click, and the line without its indent at a triple one."""
        if event.chain > 1:
            row, column = self.cursor_location
            line = self.document.get_line(row)
            found = re.finditer(r"\w+" if event.chain == 2 else r"\S.*", line)
            spans = (one.span() for one in found if event.chain > 2 or one.start() <= column <= one.end())
            start, end = next(spans, (column, column))
            self.selection = Selection((row, start), (row, end))

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor. During an undo, wait until it has placed the cursor."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset(0, 0)
        return super().scroll_cursor_visible(center, animate)

    def on_resize(self) -> None:
        """Keep the current line visible when something below takes its room."""
        if self.has_focus:
            self.call_after_refresh(self.scroll_cursor_visible)

    async def on_key(self, event: events.Key) -> None:
        """Keep the order of what is typed."""
        await _do_now(self, event)

    def on_paste(self, event: events.Paste) -> None:
        """Report text that the terminal pastes; the base class inserts it."""
        if not self.may_paste:
            _refused(self, event)
        elif event.text and not self.read_only:
            self.post_message(Pasted(event.text, outside=True))

    def action_paste(self) -> None:
        """Paste from the program's clipboard, and report it."""
        if not self.may_paste:
            _refused(self)
            return
        if self.app.clipboard and not self.read_only:
            self.post_message(Pasted(self.app.clipboard, outside=False))
        super().action_paste()


class WritingLine(Input):
    """One line that reports text pasted into it."""

    may_paste = True
    """Whether text may be pasted into it."""

    async def on_key(self, event: events.Key) -> None:
        """Keep the order of what is typed."""
        await _do_now(self, event)

    def on_paste(self, event: events.Paste) -> None:
        """Report text that the terminal pastes; the base class inserts it."""
        if not self.may_paste:
            _refused(self, event)
        elif event.text:
            self.post_message(Pasted(event.text, outside=True))

    def action_paste(self) -> None:
        """Paste from the program's clipboard, and report it."""
        if not self.may_paste:
            _refused(self)
            return
        if self.app.clipboard:
            self.post_message(Pasted(self.app.clipboard, outside=False))
        super().action_paste()
