"""A view of the lines of text, with a cursor. Only visible rows are drawn, however long the text is.

Subclasses provide the gutter and the style of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment, Segments
from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import Reactive, reactive, var
from textual.scrollbar import ScrollBarRender
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from gistpoint.tui import signs
from gistpoint.tui.widgets.line_canvas import LineCanvas
from gistpoint.tui.widgets.plain import plain_line
from gistpoint.tui.widgets.text_lines import ScreenRows, TextLines, drawn

Span = tuple[int, int, RichStyle]
"""The index of the first character in the raw line, the index after the last one, and a style."""

_QUIET_SECONDS = 0.4
"""Seconds without an affordance after which it is reported, so that continued scrolling counts once."""

_VIRTUAL_SIZE: Reactive[Size] = vars(Widget)["virtual_size"]


class MarkedBar(ScrollBarRender):
    """A vertical scroll bar with the marks of a view."""

    def __init__(self, view: LineView, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the bar with the marks drawn on it. A click on a mark is a click on the bar."""
        for part in super().__rich_console__(console, options):
            cells = part.segments if isinstance(part, Segments) else []
            rows = max(1, len(self._view.rows))
            for at in {row * len(cells) // rows for row in self._view.scroll_marks()}:
                below = cells[at].style or RichStyle()
                style = self._view.overlay("bold $text-warning on $scrollbar-background")
                cells[at] = Segment(signs.DIAMOND, style + RichStyle.from_meta(below.meta))
            yield part


class AffordanceTaken(Message):
    """A message that a feature without a cost was used. `kind` is its name, such as `scroll`."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


class LineView(LineCanvas):
    """A view of the lines of text, with a cursor.

    Lines are numbered from `first_line`; columns are characters of the raw line, counted from 0.
    """

    ALLOW_SELECT = True

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

    cursor_line: reactive[int] = reactive(1, init=False, repaint=False)
    """The number of the line with the cursor."""
    cursor_column: reactive[int] = reactive(0, init=False, repaint=False)
    """The position of the cursor in the raw line, in characters."""
    wrap: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether lines that are wider than the view are wrapped, rather than scrolled."""

    class CursorMoved(Message):
        """A message that the cursor has moved to another line."""

        def __init__(self, view: LineView, line: int) -> None:
            super().__init__()
            self.view = view
            self.line = line

        @property
        def control(self) -> LineView:
            """The view, for Textual's message selectors."""
            return self.view

        def can_replace(self, message: Message) -> bool:
            """Return whether a message from the same view can be dropped: only the latest one matters."""
            return isinstance(message, LineView.CursorMoved) and message.view is self.view

    may_copy = True
    """Whether text may be copied."""

    first_line = var(1)
    """The number of the text's first line."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.lines = TextLines("")
        self.rows = ScreenRows(self.lines)
        self._strips: LRUCache[int, Strip] = LRUCache(512)
        self._quiet: dict[str, Timer] = {}
        self._placing = False
        self._wanted_cell = 0
        self._wants_sight = False
        self._top = (0, 0)
        """The index of the line at the top of the view, and the column at which its visible part begins."""
        self._cursor_seen = True
        """Whether the cursor was visible before the size changed."""

    # Methods that subclasses override

    def gutter_width(self) -> int:
        """Return the number of cells to the left of the text that don't scroll sideways."""
        return 0

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Return the gutter of the line at an index, as styled pieces of `gutter_width` cells in total."""
        return []

    def line_style(self, line: int) -> str:
        """Return the style of the whole line at an index; empty for none."""
        return ""

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the styles of a part of the line at an index. Later styles are drawn over earlier ones."""
        return []

    def scroll_marks(self) -> Sequence[int]:
        """Return the rows that the scroll bar marks."""
        return ()

    # Text

    @property
    def text(self) -> str:
        """The raw text."""
        return self.lines.text

    @property
    def line_count(self) -> int:
        """The number of lines; an empty string has one."""
        return len(self.lines)

    def show_text(
        self, text: str, *, first_line: int = 1, title: str | None = None, keep_place: bool = False
    ) -> None:
        """Show other text, from its start unless `keep_place` is set. A title of None keeps the title."""
        self.lines = TextLines(text)
        self.set_reactive(LineView.first_line, first_line)
        if title is not None:
            self.border_title = plain_line(title) if title else None
        if not keep_place:
            self.set_reactive(LineView.cursor_line, first_line)
            self.set_reactive(LineView.cursor_column, 0)
            self._wanted_cell = 0
            self._top, self._cursor_seen = (0, 0), True
        self._fold()
        if not keep_place:
            self.place(0, 0)

    def _fold(self) -> None:
        """Wrap the lines again, and update the size of the scrollable area."""
        space = self.size.width - self.styles.scrollbar_size_vertical - self.gutter_width()
        width = max(10, space) if self.wrap and self.size else None
        self.rows = ScreenRows(self.lines, width)
        self._resize_area()
        self.redraw()

    def _resize_area(self) -> None:
        widest = 0 if self.wrap else self.lines.widest()
        size = Size(self.gutter_width() + widest + (0 if self.wrap else 1), len(self.rows))
        if not self.size:
            self.virtual_size = size
        elif size != self.virtual_size:
            # Unlike setting `virtual_size`, this lays out again only if a scroll bar appears or disappears.
            self.set_reactive(_VIRTUAL_SIZE, size)
            self._scroll_update(size)

    def redraw(self) -> None:
        """Draw all visible rows again."""
        self._strips.clear()
        self.refresh()

    def marks_changed(self) -> None:
        """Draw the marks in the scroll bar again."""
        bar = self.vertical_scrollbar
        bar.renderer = partial(MarkedBar, self)  # type: ignore[misc,assignment]  # Textual allows it for one bar
        bar.refresh()

    def notify_style_update(self) -> None:
        """Drop the cached rows, because the colours have changed."""
        super().notify_style_update()
        self._strips.clear()

    # Drawing

    def overlay(self, text: str) -> RichStyle:
        """Return a style, written with theme variables, that has only the attributes it names."""
        key = f"over {text}"
        found = self._styles.get(key)
        if found is None:
            style, full = Style.parse(text), self.style(text)
            found = self._styles[key] = RichStyle(
                color=full.color if style.foreground is not None else None,
                bgcolor=full.bgcolor if style.background is not None else None,
                bold=style.bold,
                dim=style.dim,
                italic=style.italic,
                underline=style.underline,
                reverse=style.reverse,
            )
        return found

    def render_line(self, y: int) -> Strip:
        """Draw a visible row."""
        scroll_x, scroll_y = self.scroll_offset
        row, width = scroll_y + y, self.size.width
        if row >= len(self.rows):
            return Strip.blank(width, self.style(""))
        line, start, end = self.rows.at(row)
        gutter = Strip(
            [Segment(text, self.style(style)) for text, style in self.line_gutter(line, continued=start > 0)]
        )
        body = self._body(row, line, start, end)
        space = max(0, width - gutter.cell_length)
        rest = self._row_background(line)
        body = body.crop_extend(scroll_x, scroll_x + space, rest).apply_offsets(scroll_x, row)
        return Strip.join([gutter, body])

    def _row_background(self, line: int) -> RichStyle:
        style = self.style(self.line_style(line))
        return style + self.overlay("on $boost") if line == self.cursor_index else style

    def _body(self, row: int, line: int, start: int, end: int) -> Strip:
        special = line == self.cursor_index or self.text_selection is not None
        strip = None if special else self._strips.get(row)
        if strip is None:
            strip = self._paint(row, line, start, end)
            if not special:
                self._strips[row] = strip
        return strip

    def _paint(self, row: int, line: int, start: int, end: int) -> Strip:
        text, places = drawn(self.lines[line][start:end])
        on_cursor = line == self.cursor_index and start <= self.cursor_column <= end and self.has_focus
        if on_cursor:
            text += " "
        styles = [self._row_background(line)] * len(text)
        spans = self.spans(line, start, end)
        if on_cursor:
            spans.append((self.cursor_column, self.cursor_column + 1, RichStyle(reverse=True)))
        for first, last, style in spans:
            head = places[min(max(first, start), end) - start]
            tail = places[min(last, end) - start] if last <= end else len(text)
            _lay_over(styles, head, tail, style)
        self._paint_selection(row, styles)
        return Strip(_segments(text, styles))

    def _paint_selection(self, row: int, styles: list[RichStyle]) -> None:
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is None:
            return
        head, tail = span
        style = self.screen.get_component_rich_style("screen--selection")
        _lay_over(styles, head, len(styles) if tail == -1 else min(tail, len(styles)), style)

    # Selection

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the new selection."""
        self.redraw()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the raw text of a selection, and the line ending."""
        first = selection.start.y if selection.start is not None else 0
        last = min(selection.end.y if selection.end is not None else len(self.rows) - 1, len(self.rows) - 1)
        parts: list[str] = []
        for row in range(first, last + 1):
            span = selection.get_span(row)
            if span is None:
                continue
            line, start, end = self.rows.at(row)
            raw = self.lines[line][start:end]
            places = drawn(raw)[1]
            head, tail = span
            kept = [
                c
                for c, place in zip(raw, places, strict=False)
                if place >= head and (tail == -1 or place < tail)
            ]
            if parts and start == 0:
                parts.append("\n")
            parts.extend(kept)
        return "".join(parts), "\n"

    # Positions of the cursor and the view

    @property
    def cursor_index(self) -> int:
        """The index of the cursor's line, counted from 0."""
        return self.cursor_line - self.first_line

    def place(self, x: int, y: int) -> None:
        """Scroll at once, without counting that as a user action."""
        self._placing = True
        self.scroll_to(x, y, animate=False, immediate=True, force=True)
        self._placing = False

    def _note_sight(self) -> None:
        """Record the position at the top, and whether the cursor is visible, for the next change of size."""
        if not self.size:  # hidden: keep the recorded position
            return
        top = round(self.scroll_y)
        if top < len(self.rows):
            self._top = self.rows.at(top)[:2]
        self._cursor_seen = top <= self.cursor_row < top + max(1, self.sight.height)

    # Affordances

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Count scrolling with the mouse wheel and the scroll bar, but not with the cursor."""
        super().watch_scroll_y(old_value, new_value)
        self._note_sight()
        if not self._placing and round(old_value) != round(new_value):
            self.use_affordance("scroll")

    def use_affordance(self, kind: str) -> None:
        """Report the use of an affordance once, after a short pause."""
        timer = self._quiet.get(kind)
        if timer is not None:
            timer.stop()
        self._quiet[kind] = self.set_timer(_QUIET_SECONDS, lambda: self._report(kind))

    def _report(self, kind: str) -> None:
        self._quiet.pop(kind, None)
        self.post_message(AffordanceTaken(kind))

    def refresh_line_at(self, line: int) -> None:
        """Redraw the visible rows of the line at an index."""
        if not 0 <= line < len(self.lines):
            return
        first = self.rows.row_of(line)
        last = self.rows.row_of(line, self.lines.length(line))
        top = self.scroll_offset.y
        for row in range(max(first, top), min(last, top + self.size.height) + 1):
            self.refresh_line(row)

    def rows_changed(self, first: int, last: int) -> None:
        """Drop the cached rows, and draw the visible rows from `first` to `last` again."""
        self._strips.clear()
        top = self.scroll_offset.y
        for row in range(max(first, top), min(last, top + self.size.height) + 1):
            self.refresh_line(row)

    # The cursor

    def action_copy_line(self) -> None:
        """Copy the selection, or the cursor's line if there is none, as raw text."""
        if not self.may_copy:
            self.app.notify("Copying is disabled in this study.")
            return
        self.app.copy_to_clipboard(self.screen.get_selected_text() or self.copied_line())
        self.use_affordance("copy")

    def copied_line(self) -> str:
        """Return the text that is copied for the line with the cursor."""
        return self.lines[self.cursor_index]

    def validate_cursor_line(self, line: int) -> int:
        """Return the nearest line of the text."""
        return min(max(line, self.first_line), self.first_line + len(self.lines) - 1)

    def validate_cursor_column(self, column: int) -> int:
        """Return the nearest column of the line, including the one after its end."""
        return min(max(column, 0), self.lines.length(self.cursor_index))

    def watch_cursor_line(self, old: int, new: int) -> None:
        """Draw the old and the new line, and report that the cursor has moved."""
        self.set_reactive(LineView.cursor_column, self.validate_cursor_column(self.cursor_column))
        for line in (old, new):
            self.refresh_line_at(line - self.first_line)
        self.post_message(self.CursorMoved(self, new))

    def watch_cursor_column(self) -> None:
        """Draw the cursor at its new position."""
        self.refresh_line_at(self.cursor_index)

    def go_to(self, line: int, column: int = 0) -> None:
        """Move the cursor to a line, by its number, or to the nearest one, and scroll there."""
        self.cursor_line = line
        self.cursor_column = column
        self._wanted_cell = 0
        row = self.cursor_row
        if self.size and not self.scroll_offset.y <= row < self.scroll_offset.y + self.sight.height:
            self.place(self.scroll_offset.x, max(0, row - self.sight.height // 3))
        self._show_cursor()

    def _show_cursor(self) -> None:
        """Scroll to the cursor, once the view has a size: vertically, as little as necessary."""
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
        self._cursor_seen = True

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
            self.use_affordance("scroll")

    def _move_to_column(self, column: int) -> None:
        self.cursor_column = column
        row = self.rows.row_of(self.cursor_index, self.cursor_column)
        self._wanted_cell = self.cursor_column - self.rows.at(row)[1]
        self._show_cursor()

    @property
    def cursor_row(self) -> int:
        """The row with the cursor."""
        return self.rows.row_of(self.cursor_index, self.cursor_column)

    def action_cursor_rows(self, rows: int) -> None:
        """Move the cursor down by a number of rows, or up if negative."""
        self._move_to_row(self.cursor_row + rows)

    def action_cursor_pages(self, pages: int) -> None:
        """Move the cursor and the view down by a number of screenfuls, or up if negative."""
        by = pages * max(1, self.sight.height - 1)
        self.place(self.scroll_offset.x, max(0, self.scroll_offset.y + by))
        self._move_to_row(self.cursor_row + by)
        self.use_affordance("scroll")

    def action_cursor_columns(self, columns: int) -> None:
        """Move the cursor right by a number of characters, or left if negative, across the ends of lines."""
        column, length = self.cursor_column + columns, self.lines.length(self.cursor_index)
        if column < 0 and self.cursor_index > 0:
            self.cursor_line -= 1
            column = self.lines.length(self.cursor_index)
        elif column > length and self.cursor_index < len(self.lines) - 1:
            self.cursor_line += 1
            column = 0
        self._move_to_column(column)

    def action_cursor_word(self, direction: int) -> None:
        """Move the cursor to the next or previous start of a word in its line, or to that end of the line."""
        line, column = self.lines[self.cursor_index], self.cursor_column
        is_in_word = [_in_word(character) for character in line]
        begins_word = [now and not before for before, now in pairwise([False, *is_in_word])]
        starts = [start for start, begins in enumerate(begins_word) if begins]
        if direction > 0:
            self._move_to_column(min((start for start in starts if start > column), default=len(line)))
        else:
            self._move_to_column(max((start for start in starts if start < column), default=0))

    def action_cursor_edge(self, direction: int) -> None:
        """Move the cursor to the end of its line; backwards, to its indent, and from there to its start."""
        line = self.lines[self.cursor_index]
        indent = len(line) - len(line.lstrip())
        self._move_to_column(len(line) if direction > 0 else (0 if self.cursor_column == indent else indent))

    def action_first_row(self) -> None:
        """Move the cursor to the first row."""
        self._move_to_row(0)

    def action_last_row(self) -> None:
        """Move the cursor to the last row."""
        self._move_to_row(len(self.rows) - 1)

    def action_toggle_wrap(self) -> None:
        """Switch between wrapping and scrolling lines that are wider than the view."""
        self.wrap = not self.wrap
        self.use_affordance("wrap")

    def watch_wrap(self) -> None:
        """Wrap the lines again, and show the cursor."""
        self.place(0, self.scroll_offset.y)
        self._fold()
        self._show_cursor()

    def on_resize(self, _event: events.Resize) -> None:
        """Wrap the lines to the new width. Keep the same line at the top, and the cursor visible if it was.

        A cursor that was placed before the width was known is shown.
        """
        # Read first, because wrapping the lines again may limit the offset, and thus record another position.
        top, seen = self._top, self._cursor_seen
        if self.wrap:
            self._fold()
        if self._wants_sight:
            self.go_to(self.cursor_line, self.cursor_column)
            return
        line, column = min(top[0], len(self.lines) - 1), top[1]
        self.place(self.scroll_offset.x, self.rows.row_of(line, column))
        if seen:
            self._show_cursor()
        self._top, self._cursor_seen = top, seen  # kept, so that a larger size restores the position

    def _row_under(self, offset: Offset) -> int:
        return min(self.scroll_offset.y + offset.y, len(self.rows) - 1)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked character."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        line, start, end = self.rows.at(self._row_under(offset))
        cell = self.scroll_offset.x + offset.x - self.gutter_width()
        text, places = drawn(self.lines[line][start:end])
        place = Strip([Segment(text)]).crop(0, max(0, cell)).text
        column = next((i for i in range(end - start) if places[i + 1] > len(place)), end - start)
        self.cursor_line = line + self.first_line
        self._move_to_column(start + column)


def _lay_over(styles: list[RichStyle], head: int, tail: int, style: RichStyle) -> None:
    below, combined = None, style
    for place in range(head, tail):
        if styles[place] is not below:
            below = styles[place]
            combined = below + style
        styles[place] = combined


def _segments(text: str, styles: list[RichStyle]) -> list[Segment]:
    segments, place = [], 0
    for _style, run in groupby(styles, key=id):
        length = sum(1 for _ in run)
        segments.append(Segment(text[place : place + length], styles[place]))
        place += length
    return segments


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
