"""A cursor in long text: keys, mouse and messages that tell where it stands."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from gistpoint.tui.widgets.row_view import RowView
from gistpoint.tui.widgets.text_lines import drawn


class LineView(RowView):
    """Text by lines with a cursor. Lines count from `first_line`, columns from 0 in characters of the raw text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor_rows(-1)", "Up", show=False, id="view.up"),
        Binding("down,j", "cursor_rows(1)", "Down", show=False, id="view.down"),
        Binding("left,h", "cursor_columns(-1)", "Left", show=False, id="view.left"),
        Binding("right,l", "cursor_columns(1)", "Right", show=False, id="view.right"),
        Binding("ctrl+left", "cursor_word(-1)", "Word left", show=False, id="view.word_left"),
        Binding("ctrl+right", "cursor_word(1)", "Word right", show=False, id="view.word_right"),
        Binding("pageup", "cursor_pages(-1)", "Page up", show=False, id="view.page_up"),
        Binding("pagedown,space", "cursor_pages(1)", "Page down", show=False, id="view.page_down"),
        Binding("home", "cursor_edge(-1)", "Start of line", show=False, id="view.line_start"),
        Binding("end", "cursor_edge(1)", "End of line", show=False, id="view.line_end"),
        Binding("g,ctrl+home", "first_row", "Top", show=False, id="view.top"),
        Binding("G,ctrl+end", "last_row", "Bottom", show=False, id="view.bottom"),
        Binding("w", "toggle_wrap", "Wrap lines", show=False, id="view.wrap"),
        Binding("y", "copy_line", "Copy selection or line", show=False, id="view.copy"),
    ]

    class CursorMoved(Message):
        """The cursor stands on another line."""

        def __init__(self, view: LineView, line: int) -> None:
            super().__init__()
            self.view = view
            self.line = line

        @property
        def control(self) -> LineView:
            """The view."""
            return self.view

        def can_replace(self, message: Message) -> bool:
            """Only the latest place matters."""
            return isinstance(message, LineView.CursorMoved) and message.view is self.view

    class Comfort(RowView.Comfort):
        """Something that costs no budget was used, see `RowView.Comfort`."""

    def action_copy_line(self) -> None:
        """Copy what is selected, else the cursor's line, as raw text."""
        text = self.screen.get_selected_text() or self.lines[self.cursor_index]
        self.app.copy_to_clipboard(text)
        self.comfort("copy")

    def validate_cursor_line(self, line: int) -> int:
        """Keep the cursor within the text."""
        return min(max(line, self.first_line), self.first_line + len(self.lines) - 1)

    def validate_cursor_column(self, column: int) -> int:
        """Keep the cursor within its line, or right behind it."""
        return min(max(column, 0), self.lines.length(self.cursor_index))

    def watch_cursor_line(self, old: int, new: int) -> None:
        """Draw both lines and tell."""
        self.set_reactive(LineView.cursor_column, self.validate_cursor_column(self.cursor_column))
        for line in (old, new):
            self.refresh_line_at(line - self.first_line)
        self.post_message(self.CursorMoved(self, new))

    def watch_cursor_column(self) -> None:
        """Draw the cursor where it stands now."""
        self.refresh_line_at(self.cursor_index)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Show or hide the cursor."""
        super().watch_has_focus(_has_focus)
        self.refresh()

    def go_to(self, line: int, column: int = 0) -> None:
        """Put the cursor on a line (as numbered in the file, or the nearest there is) and bring it into sight."""
        self.cursor_line = line
        self.cursor_column = column
        self._wanted_cell = 0
        row = self.cursor_row
        if self.size and not self.scroll_offset.y <= row < self.scroll_offset.y + self.sight.height:
            self.place(self.scroll_offset.x, max(0, row - self.sight.height // 3))
        self._show_cursor()

    def _show_cursor(self) -> None:
        """Scroll as little as needed for the cursor to be in sight, once the view has a size."""
        self._wants_sight = not self.size
        if self._wants_sight:
            return
        row = self.rows.row_of(self.cursor_index, self.cursor_column)
        _line, start, end = self.rows.at(row)
        text, places = drawn(self.lines[self.cursor_index][start:end])
        cell = Segment(text[: places[min(self.cursor_column, end) - start]]).cell_length
        x, y = self.scroll_offset
        height, width = max(1, self.sight.height), max(1, self.sight.width - self.gutter_width())
        y = min(max(y, row - height + 1), row)
        if cell < x or cell >= x + width:
            x = 0 if cell < width else cell - width // 2
        self.place(x, y)

    def _move_to_row(self, row: int) -> None:
        before = self.scroll_offset.y
        line, start, end = self.rows.at(min(max(row, 0), len(self.rows) - 1))
        column = min(start + self._wanted_cell, end - 1 if end < self.lines.length(line) else end)
        wanted = self._wanted_cell
        self.cursor_line = line + self.first_line
        self.cursor_column = max(start, column)
        self._wanted_cell = wanted
        self._show_cursor()
        if self.scroll_offset.y != before:
            self.comfort("scroll")

    def _move_to_column(self, column: int) -> None:
        self.cursor_column = column
        row = self.rows.row_of(self.cursor_index, self.cursor_column)
        self._wanted_cell = self.cursor_column - self.rows.at(row)[1]
        self._show_cursor()

    @property
    def cursor_row(self) -> int:
        """The row that shows the cursor."""
        return self.rows.row_of(self.cursor_index, self.cursor_column)

    def action_cursor_rows(self, rows: int) -> None:
        """Move the cursor down by rows."""
        self._move_to_row(self.cursor_row + rows)

    def action_cursor_pages(self, pages: int) -> None:
        """Move the cursor down by screens, and what is in sight with it."""
        by = pages * max(1, self.sight.height - 1)
        self.place(self.scroll_offset.x, max(0, self.scroll_offset.y + by))
        self._move_to_row(self.cursor_row + by)
        self.comfort("scroll")

    def action_cursor_columns(self, columns: int) -> None:
        """Move the cursor right by characters, over the ends of lines too."""
        column, length = self.cursor_column + columns, self.lines.length(self.cursor_index)
        if column < 0 and self.cursor_index > 0:
            self.cursor_line -= 1
            column = self.lines.length(self.cursor_index)
        elif column > length and self.cursor_index < len(self.lines) - 1:
            self.cursor_line += 1
            column = 0
        self._move_to_column(column)

    def action_cursor_word(self, direction: int) -> None:
        """Move the cursor to the start of the next or previous word of its line."""
        line, column = self.lines[self.cursor_index], self.cursor_column
        starts = [i for i, c in enumerate(line) if _in_word(c) and not (i and _in_word(line[i - 1]))]
        if direction > 0:
            self._move_to_column(min((s for s in starts if s > column), default=len(line)))
        else:
            self._move_to_column(max((s for s in starts if s < column), default=0))

    def action_cursor_edge(self, direction: int) -> None:
        """Move the cursor to the end of its line, or to its first character that is no blank, then to its start."""
        line = self.lines[self.cursor_index]
        indent = len(line) - len(line.lstrip())
        self._move_to_column(len(line) if direction > 0 else (0 if self.cursor_column == indent else indent))

    def action_first_row(self) -> None:
        """Go to the top."""
        self._move_to_row(0)

    def action_last_row(self) -> None:
        """Go to the bottom."""
        self._move_to_row(len(self.rows) - 1)

    def action_toggle_wrap(self) -> None:
        """Fold wide lines, or scroll them."""
        self.wrap = not self.wrap
        self.comfort("wrap")

    def watch_wrap(self) -> None:
        """Fold anew, with the cursor in sight."""
        self.place(0, self.scroll_offset.y)
        self._fold()
        self._show_cursor()

    def on_resize(self, _event: events.Resize) -> None:
        """Fold to the new width, and bring into sight what was gone to before there was one."""
        if self.wrap:
            self._fold()
        if self._wants_sight:
            self.go_to(self.cursor_line, self.cursor_column)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = min(self.scroll_offset.y + offset.y, len(self.rows) - 1)
        line, start, end = self.rows.at(row)
        cell = self.scroll_offset.x + offset.x - self.gutter_width()
        text, places = drawn(self.lines[line][start:end])
        place = Strip([Segment(text)]).crop(0, max(0, cell)).text
        column = next((i for i in range(end - start) if places[i + 1] > len(place)), end - start)
        self.cursor_line = line + self.first_line
        self._move_to_column(start + column)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
