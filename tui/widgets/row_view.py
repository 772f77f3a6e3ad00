"""The base of every widget that shows long text: it draws the rows in sight, whatever the text's length.

Subclasses say what stands in the gutter and how a line is styled. Moving the cursor is `line_view`'s.
"""

from __future__ import annotations

from itertools import groupby

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive, reactive, var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from gistpoint.tui.widgets.plain import plain_line
from gistpoint.tui.widgets.text_lines import Rows, TextLines, drawn

Span = tuple[int, int, RichStyle]
"""First character and one past the last, in characters of the raw line, and a style to lay over them."""

_QUIET_SECONDS = 0.4
"""A comfort is told when it has not been used for so long: one scroll is one, however many rows."""

_VIRTUAL_SIZE: Reactive[Size] = vars(Widget)["virtual_size"]


class RowView(ScrollView, can_focus=True):
    """Text by lines, drawn by rows, with a place for a cursor."""

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    RowView { height: 1fr; width: 1fr; background: $background; color: $foreground; }
    RowView:focus { background-tint: $foreground 3%; }
    """

    cursor_line: reactive[int] = reactive(1, init=False, repaint=False)
    """The line of the cursor, as numbered in the file."""
    cursor_column: reactive[int] = reactive(0, init=False, repaint=False)
    """The character of the raw line that the cursor stands on."""
    wrap: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether lines wider than the view are folded, instead of scrolled."""

    class Comfort(Message):
        """Something that costs no budget was used: `scroll`, `search`, `jump`, `copy`, `wrap` or `terminal`."""

        def __init__(self, view: RowView, kind: str) -> None:
            super().__init__()
            self.view = view
            self.kind = kind

        @property
        def control(self) -> RowView:
            """The view."""
            return self.view

    first_line = var(1)
    """The number of the first line shown."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.lines = TextLines("")
        self.rows = Rows(self.lines)
        self._strips: LRUCache[int, Strip] = LRUCache(512)
        self._styles: dict[str, RichStyle] = {}
        self._quiet: dict[str, Timer] = {}
        self._placing = False
        self._wanted_cell = 0
        self._wants_sight = False

    # What a subclass may say

    def gutter_width(self) -> int:
        """Cells to the left of the text that do not scroll sideways."""
        return 0

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Return the gutter of a line (by index) as texts with styles; their widths add up to `gutter_width`."""
        return []

    def line_style(self, line: int) -> str:
        """Return the style of a whole line (by index), empty for none."""
        return ""

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return what is laid over the characters `start` to `end` of a line (by index), lowest first."""
        return []

    # Text

    @property
    def text(self) -> str:
        """The raw text."""
        return self.lines.text

    @property
    def line_count(self) -> int:
        """How many lines the text has; an empty text has one."""
        return len(self.lines)

    def show_text(self, text: str, *, first_line: int = 1, title: str | None = None, keep_place: bool = False) -> None:
        """Show another text, from its start unless `keep_place`; a title of None leaves the one there is."""
        self.lines = TextLines(text)
        self.set_reactive(RowView.first_line, first_line)
        if title is not None:
            self.border_title = plain_line(title) if title else None
        if not keep_place:
            self.set_reactive(RowView.cursor_line, first_line)
            self.set_reactive(RowView.cursor_column, 0)
            self._wanted_cell = 0
        self._fold()
        if not keep_place:
            self.place(0, 0)

    @property
    def sight(self) -> Size:
        """Columns and rows that can be seen, the gutter's among them, scroll bars not."""
        return self.scrollable_content_region.size

    def _fold(self) -> None:
        """Compute rows and the scrolled area anew."""
        space = self.size.width - self.styles.scrollbar_size_vertical - self.gutter_width()
        width = max(10, space) if self.wrap and self.size else None
        self.rows = Rows(self.lines, width)
        self._resize_area()
        self.redraw()

    def _resize_area(self) -> None:
        widest = 0 if self.wrap else self.lines.widest()
        size = Size(self.gutter_width() + widest + (0 if self.wrap else 1), len(self.rows))
        if not self.size:
            self.virtual_size = size
        elif size != self.virtual_size:
            # As the reactive would, but the screen is laid out anew only where a scroll bar comes or goes.
            self.set_reactive(_VIRTUAL_SIZE, size)
            self._scroll_update(size)

    def redraw(self) -> None:
        """Draw everything in sight again."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        """Forget what was drawn in other colours."""
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    # Drawing

    def style(self, text: str) -> RichStyle:
        """Return a style written with theme variables, over this widget's own."""
        found = self._styles.get(text)
        if found is None:
            base = self.visual_style
            found = self._styles[text] = (base + Style.parse(text) if text else base).rich_style
        return found

    def overlay(self, text: str) -> RichStyle:
        """Return a style written with theme variables, without what it leaves unsaid."""
        key = f"over {text}"
        found = self._styles.get(key)
        if found is None:
            said, full = Style.parse(text), self.style(text)
            found = self._styles[key] = RichStyle(
                color=full.color if said.foreground is not None else None,
                bgcolor=full.bgcolor if said.background is not None else None,
                bold=said.bold, dim=said.dim, italic=said.italic, underline=said.underline, reverse=said.reverse,
            )  # fmt: skip
        return found

    def render_line(self, y: int) -> Strip:
        """Draw the row at `y` of the view."""
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
        """Draw what is selected."""
        self.redraw()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the raw text under a selection, and what ends it."""
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
            kept = [c for c, place in zip(raw, places, strict=False) if place >= head and (tail == -1 or place < tail)]
            if parts and start == 0:
                parts.append("\n")
            parts.extend(kept)
        return "".join(parts), "\n"

    # The place of the cursor, and of the view

    @property
    def cursor_index(self) -> int:
        """The index of the cursor's line, from 0."""
        return self.cursor_line - self.first_line

    def place(self, x: int, y: int) -> None:
        """Scroll at once, without counting it as the user's doing."""
        self._placing = True
        self.scroll_to(x, y, animate=False, immediate=True, force=True)
        self._placing = False

    # Comforts

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Count scrolling by wheel and scroll bar; moves of the cursor count themselves."""
        super().watch_scroll_y(old_value, new_value)
        if not self._placing and round(old_value) != round(new_value):
            self.comfort("scroll")

    def comfort(self, kind: str) -> None:
        """Tell once that a comfort was used, when it has been quiet for a moment."""
        timer = self._quiet.get(kind)
        if timer is not None:
            timer.stop()
        self._quiet[kind] = self.set_timer(_QUIET_SECONDS, lambda: self._tell(kind))

    def _tell(self, kind: str) -> None:
        self._quiet.pop(kind, None)
        self.post_message(self.Comfort(self, kind))

    def refresh_line_at(self, line: int) -> None:
        """Draw the rows of a line (by index) again, those in sight."""
        if not 0 <= line < len(self.lines):
            return
        first = self.rows.row_of(line)
        last = self.rows.row_of(line, self.lines.length(line))
        top = self.scroll_offset.y
        for row in range(max(first, top), min(last, top + self.size.height) + 1):
            self.refresh_line(row)

    def rows_changed(self, first: int, last: int) -> None:
        """Forget how rows were drawn, and draw those in sight again."""
        top = self.scroll_offset.y
        if first < top + self.size.height and last >= top:
            self.redraw()
        else:
            self._strips.clear()


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
