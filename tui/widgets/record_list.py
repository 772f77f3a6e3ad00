"""A list of any length, with a row for each record. Only visible rows are computed and drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from gistpoint.core.text import visible_line
from gistpoint.tui.widgets.line_canvas import LineCanvas

Piece = tuple[str, str]
"""Text, and a style written with theme variables."""


class RecordList(LineCanvas):
    """Rows with a cursor, possibly below a heading. A subclass provides their content."""

    DEFAULT_CSS = """
    RecordList { overflow-x: hidden; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("home,g", "edge(-1)", "First", show=False, id="list.first"),
        Binding("end,G", "edge(1)", "Last", show=False, id="list.last"),
        Binding("enter", "choose", "Open", id="list.choose"),
    ]

    HEAD: ClassVar[int] = 0
    """The number of lines above the rows, which don't scroll with them."""

    cursor: reactive[int] = reactive(0, init=False, repaint=False)
    """The index of the record at the cursor."""

    class OfRow(Message):
        """A message about a record."""

        def __init__(self, records: RecordList, index: int) -> None:
            super().__init__()
            self.records = records
            self.index = index

        @property
        def control(self) -> RecordList:
            """The list, for Textual's message selectors."""
            return self.records

    class Moved(OfRow):
        """A message that the cursor has moved to another row."""

        def can_replace(self, message: Message) -> bool:
            """Return whether a message from the same list can be dropped: only the latest one matters."""
            return isinstance(message, RecordList.Moved) and message.records is self.records

    class Chosen(OfRow):
        """A message that Enter was pressed on a row, or that the row was clicked twice."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.count = 0
        self._clicked: int | None = None
        """The record that was clicked last; None if the next click only moves the cursor."""

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the pieces of a row. Anything beyond `width` cells is cut off."""
        return []

    def head(self, width: int) -> Strip:
        """Return the heading, as wide as the rows."""
        return Strip([])

    def row_style(self, index: int) -> str:
        """Return the style that marks the row at the cursor, even without colours; empty for other rows."""
        if index != self.cursor:
            return ""
        if self.app.no_color or self.app.native_ansi_color:
            return "reverse" if self.has_focus else "underline"
        return "on $block-cursor-background" if self.has_focus else "on $block-cursor-blurred-background"

    # Rows and records; they differ in subclasses that hide records.

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.count

    def row_of(self, index: int) -> int:
        """Return the row of a record, by its index."""
        return index

    def index_at(self, row: int) -> int:
        """Return the index of the record in a row."""
        return row

    def row_on(self, y: int) -> int:
        """Return the row that is drawn on a line of the widget below the heading."""
        return self.scroll_offset.y + y - self.HEAD

    @property
    def row_width(self) -> int:
        """The width of the rows, in cells; 0 if they never scroll sideways."""
        return 0

    def set_count(self, count: int, *, cursor: int | None = None) -> None:
        """Set the number of records, and draw the rows again."""
        self.count = count
        if cursor != self._clicked:
            self._clicked = None
        self.virtual_size = Size(self.row_width, self.row_count + self.HEAD)
        if cursor is not None or self.cursor >= count:
            self.cursor = min(max(0, self.cursor if cursor is None else cursor), max(0, count - 1))
        self.refresh()

    @property
    def in_sight(self) -> range:
        """The visible rows."""
        top = self.scroll_offset.y
        return range(min(top, self.row_count), min(self.row_count, top + max(1, self._rows_in_sight)))

    @property
    def _rows_in_sight(self) -> int:
        return self.sight.height - self.HEAD

    def render_line(self, y: int) -> Strip:
        """Draw the heading or a visible row."""
        left, width = self.scroll_offset.x, self.size.width
        if y < self.HEAD:
            return self.head(left + width).crop(left, left + width)
        if (row := self.row_on(y)) >= self.row_count:
            return Strip.blank(width, self.style(""))
        index = self.index_at(row)
        row_style = self.row_style(index)
        segments = [
            Segment(visible_line(text), self.style(f"{style} {row_style}".strip()))
            for text, style in self.row(index, left + width)
        ]
        return Strip(segments).crop_extend(left, left + width, self.style(row_style))

    # The cursor

    def validate_cursor(self, index: int) -> int:
        """Return the nearest record in the list."""
        return min(max(0, index), max(0, self.count - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        """Draw the old and the new row, scroll to the new one, and report that the cursor has moved."""
        for index in (old, new):
            self.refresh_record(index)
        self.show_cursor()
        self.post_message(self.Moved(self, new))

    def refresh_record(self, index: int) -> None:
        """Redraw the row of a record if it is visible."""
        row = self.row_of(index)
        if row in self.in_sight:
            self.refresh_line(row + self.HEAD)

    def show_cursor(self) -> None:
        """Scroll as little as necessary to show the cursor; after a far jump, it is in the middle."""
        height, (left, top), row = self._rows_in_sight, self.scroll_offset, self.row_of(self.cursor)
        if height <= 0 or top <= row < top + height:
            return
        near = row - top in (-1, height)
        wanted = (row if row < top else row - height + 1) if near else row - height // 2
        y = min(max(0, wanted), max(0, self.row_count - height))
        self.scroll_to(left, y, animate=False, immediate=True, force=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Show the cursor."""
        self.show_cursor()

    def action_move(self, by: int) -> None:
        """Move the cursor down by a number of rows, or up if negative."""
        if self.row_count:
            row = self.row_of(self.cursor) + by
            self.cursor = self.index_at(min(max(0, row), self.row_count - 1))

    def action_page(self, by: int) -> None:
        """Move the cursor down by a number of screenfuls, or up if negative."""
        self.action_move(by * max(1, self._rows_in_sight - 1))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or the last row."""
        if self.row_count:
            self.cursor = self.index_at(0 if end < 0 else self.row_count - 1)

    def action_choose(self) -> None:
        """Report that the row at the cursor was chosen."""
        if self.count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; a second click on the row, at any time later, chooses it."""
        offset = event.get_content_offset(self)
        row = self.row_on(offset.y) if offset is not None else -1
        is_on_row = offset is not None and offset.y >= self.HEAD and row < self.row_count
        if is_on_row:
            index = self.index_at(row)
            again = index == self._clicked == self.cursor
            self.cursor = index
            self._clicked = None if again else index
            if again:
                self.action_choose()


def fitted_cells(text: str, width: int, *, right: bool = False) -> str:
    """Return text cut to `width` cells, or padded, on the left if `right`; unchanged if `width` is 0."""
    if not width:
        return text
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return (" " * (width - cell_len(text)) + text) if right else set_cell_size(text, width)
