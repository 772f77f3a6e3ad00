"""A list of any length with one row a record: only the rows in sight are asked for and drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

from gistpoint.core.text import visible_line

Piece = tuple[str, str]
"""Raw text, and a style written with theme variables."""


class RecordList(ScrollView, can_focus=True):
    """Rows with a cursor. A subclass says what a row holds."""

    DEFAULT_CSS = """
    RecordList { height: 1fr; width: 1fr; background: $background; color: $foreground; overflow-x: hidden;
        scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("pagedown,space", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("home,g", "edge(-1)", "First", show=False, id="list.first"),
        Binding("end,G", "edge(1)", "Last", show=False, id="list.last"),
        Binding("enter", "choose", "Open", show=False, id="list.choose"),
    ]

    cursor: reactive[int] = reactive(0, init=False, repaint=False)
    """The index of the row under the cursor."""

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, records: RecordList, index: int) -> None:
            super().__init__()
            self.records = records
            self.index = index

        @property
        def control(self) -> RecordList:
            """The list."""
            return self.records

        def can_replace(self, message: Message) -> bool:
            """Only the latest place matters."""
            return isinstance(message, RecordList.Moved) and message.records is self.records

    class Chosen(Message):
        """A row was entered or clicked twice."""

        def __init__(self, records: RecordList, index: int) -> None:
            super().__init__()
            self.records = records
            self.index = index

        @property
        def control(self) -> RecordList:
            """The list."""
            return self.records

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.count = 0
        self._styles: dict[str, RichStyle] = {}

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the pieces of a row, raw; what is beyond `width` cells is cut."""
        return []

    def set_count(self, count: int, *, cursor: int | None = None) -> None:
        """Show another number of rows; rows that stay may have changed."""
        changed = count != self.count
        self.count = count
        if changed:
            self.virtual_size = Size(0, count)
        if cursor is not None or self.cursor >= count:
            self.cursor = min(max(0, self.cursor if cursor is None else cursor), max(0, count - 1))
        self.refresh()

    @property
    def in_sight(self) -> range:
        """The rows in sight."""
        top = self.scroll_offset.y
        return range(min(top, self.count), min(self.count, top + max(1, self.size.height)))

    def style(self, text: str) -> RichStyle:
        """Return a style over the widget's own."""
        found = self._styles.get(text)
        if found is None:
            base = self.visual_style
            found = self._styles[text] = (base + Style.parse(text) if text else base).rich_style
        return found

    def notify_style_update(self) -> None:
        """Forget what was drawn in other colours."""
        super().notify_style_update()
        self._styles.clear()

    def render_line(self, y: int) -> Strip:
        """Draw the row at `y` of the view."""
        width, index = self.size.width, self.scroll_offset.y + y
        if index >= self.count:
            return Strip.blank(width, self.style(""))
        ground = ""
        if index == self.cursor:
            ground = "on $block-cursor-background" if self.has_focus else "on $block-cursor-blurred-background"
        segments = [
            Segment(visible_line(text), self.style(f"{style} {ground}".strip()))
            for text, style in self.row(index, width)
        ]
        return Strip(segments).crop_extend(0, width, self.style(ground))

    # The cursor

    def validate_cursor(self, index: int) -> int:
        """Keep the cursor within the list."""
        return min(max(0, index), max(0, self.count - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        """Draw both rows, bring the new one into sight, and tell."""
        top = self.scroll_offset.y
        for index in (old, new):
            if 0 <= index - top < self.size.height:
                self.refresh_line(index)
        self.show_cursor()
        self.post_message(self.Moved(self, new))

    def show_cursor(self) -> None:
        """Scroll as little as needed for the cursor to be in sight; far jumps end in the middle."""
        height, top = self.size.height, self.scroll_offset.y
        if not height or top <= self.cursor < top + height:
            return
        near = self.cursor - top in (-1, height)
        wanted = (self.cursor if self.cursor < top else self.cursor - height + 1) if near else self.cursor - height // 2
        self.scroll_to(0, min(max(0, wanted), max(0, self.count - height)), animate=False, immediate=True, force=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Keep the cursor in sight."""
        self.show_cursor()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show which list the keys act on."""
        super().watch_has_focus(has_focus)
        self.refresh()

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.cursor += by

    def action_page(self, by: int) -> None:
        """Move the cursor by screenfuls."""
        self.cursor += by * max(1, self.size.height - 1)

    def action_edge(self, end: int) -> None:
        """Go to the first or last row."""
        self.cursor = 0 if end < 0 else self.count - 1

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self.count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the row; a second click opens it."""
        index = self.scroll_offset.y + event.y
        if index < self.count:
            self.cursor = index
            if event.chain > 1:
                self.action_choose()
