"""The attempts of a run that are in progress, next to one another as tiles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from gistpoint.core.readable import duration
from gistpoint.core.text import plural, visible_line
from gistpoint.tui import signs
from gistpoint.tui.agent_rows import (
    JobRow,
    budget_words,
    call_line,
    cost_words,
    result_bar,
    state_style,
    state_words,
)
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.line_canvas import LineCanvas
from gistpoint.tui.widgets.record_list import Piece, fitted_cells

WIDTH = 47
"""The minimum width of a tile, in cells, if there are several in a row."""
HEIGHT = 5
"""The number of lines in a tile."""
_GAP = 2
_MARGIN = 2
"""The number of cells before the lines of a tile, in which the cursor is drawn."""
_LEAST_RULE = 1
_FAINT = "$foreground 60%"
_SCROLL_BAR = 1
"""The width of the scroll bar, whose space is always reserved, so that the bar can't cause an overflow."""


def places_after(before: Sequence[Hashable], at_work: Sequence[Hashable]) -> list[Hashable]:
    """Return the job in each place; running jobs keep their places.

    A job that has ended keeps its place until another needs it, so that its result can be seen.
    """
    places = list(before)
    free = [n for n, key in enumerate(places) if key not in set(at_work)]
    for key in at_work:
        if key in places:
            continue
        if free:
            places[free.pop(0)] = key
        else:
            places.append(key)
    return places


class AttemptTiles(LineCanvas):
    """Tiles with a cursor. Only tiles that have changed are drawn again."""

    DEFAULT_CSS = """
    AttemptTiles { overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    """
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TILES)]
    cursor: reactive[int] = reactive(0, init=False, repaint=False)
    """The index of the tile at the cursor."""

    class Chosen(Message):
        """A message that Enter was pressed on a tile, or that the tile was clicked twice."""

        def __init__(self, row: JobRow) -> None:
            super().__init__()
            self.row = row

    def __init__(self, spent_ms: Callable[[JobRow], int], *, id: str) -> None:
        """`spent_ms` returns the time of an attempt so far, in milliseconds."""
        super().__init__(id=id)
        self._spent_ms = spent_ms
        self.rows: list[JobRow] = []
        self._times: list[str] = []
        """The time that each tile shows."""
        self._clicked: int | None = None

    # Content

    def show(self, rows: Sequence[JobRow]) -> None:
        """Show other tiles, and draw those that differ from the ones before."""
        before, self.rows = self.rows, list(rows)
        self._times = [self._time(row) for row in self.rows]
        if len(before) != len(self.rows):
            self._fit()
            self.cursor = self.validate_cursor(self.cursor)
            self.refresh()
            return
        for index, (old, new) in enumerate(zip(before, self.rows, strict=True)):
            if old is not new:
                self._refresh_tile(index)

    def tick(self) -> None:
        """Draw the times that have changed."""
        for index, row in enumerate(self.rows):
            words = self._time(row)
            if words != self._times[index]:
                self._times[index] = words
                self._refresh_tile(index, HEIGHT - 1)

    def _time(self, row: JobRow) -> str:
        return duration(self._spent_ms(row)) if row.begun else ""

    @property
    def chosen(self) -> JobRow | None:
        """The job of the tile at the cursor; None if there are no tiles."""
        return self.rows[self.cursor] if self.rows else None

    # Layout

    @staticmethod
    def in_a_row(width: int) -> int:
        """Return how many tiles fit next to one another into `width` cells; at least 1."""
        return max(1, (width + _GAP) // (WIDTH + _GAP))

    @classmethod
    def lines_for(cls, tiles: int, width: int) -> int:
        """Return the number of lines that all tiles need in `width` cells, with a scroll bar."""
        return cls._rows_in(tiles, width - _SCROLL_BAR) * HEIGHT

    @classmethod
    def _rows_in(cls, tiles: int, width: int) -> int:
        return -(-tiles // cls.in_a_row(width))

    @property
    def columns(self) -> int:
        """The number of tiles in a row."""
        return self.in_a_row(self.sight.width)

    def _span(self, column: int) -> tuple[int, int]:
        """Return the first cell in a column of tiles, and the one after its last."""
        columns, width = self.columns, self.sight.width + _GAP
        return column * width // columns, (column + 1) * width // columns - _GAP

    def _fit(self) -> None:
        self.virtual_size = Size(0, self._rows_in(len(self.rows), self.sight.width) * HEIGHT)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay the tiles out again."""
        self._fit()
        self._show_cursor()

    def _refresh_tile(self, index: int, line: int | None = None) -> None:
        """Draw a tile again, or one of its lines."""
        row, column = divmod(index, self.columns)
        left, right = self._span(column)
        top = row * HEIGHT - self.scroll_offset.y
        height = HEIGHT
        if line is not None:
            top, height = top + line, 1
        seen = Region(left, top, right - left, height).intersection(Region(0, 0, *self.sight))
        if seen:
            self.refresh(seen)

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw a line of all tiles that are next to one another."""
        row, line = divmod(y + self.scroll_offset.y, HEIGHT)
        width = self.size.width
        segments: list[Segment] = []
        at = 0
        for column in range(self.columns):
            index = row * self.columns + column
            if index >= len(self.rows):
                break
            left, right = self._span(column)
            tile_style = self._tile_style(index)
            if left > at:
                segments.append(Segment(" " * (left - at), self.style("")))
            pieces = self.tile(index, right - left)[line]
            drawn = Strip(
                [Segment(text, self.style(f"{style} {tile_style}".strip())) for text, style in pieces]
            )
            segments += drawn.crop_extend(0, right - left, self.style(tile_style))
            at = right
        return Strip(segments).crop_extend(0, width, self.style(""))

    def _tile_style(self, index: int) -> str:
        if index != self.cursor or not self.has_focus:
            return ""
        return "" if self.app.no_color or self.app.native_ansi_color else "on $block-cursor-background"

    def tile(self, index: int, width: int) -> list[list[Piece]]:
        """Return the lines of a tile as styled pieces, with visible signs for control characters."""
        row = self.rows[index]
        shown = row.shown
        room = max(1, width - _MARGIN)
        bar, words = result_bar(shown, room)
        spent = filter(
            None, [cost_words(shown), plural(shown.usage.tokens, "token"), self._times[index] or "0:00"]
        )
        budgets = next(
            (text for text in budget_words(shown) if cell_len(text) <= room), budget_words(shown)[-1]
        )
        lines: list[list[Piece]] = [
            self._head(row, index, width),
            [(fitted_cells(budgets, room), "")],
            [(fitted_cells(visible_line(call_line(shown)), room), "")],
            [(bar, "$primary"), (words, "" if bar else _FAINT)],
            [(fitted_cells(" · ".join(spent), room), _FAINT)],
        ]
        indent: Piece = (" " * _MARGIN, "")
        return [lines[0], *([indent, *line] for line in lines[1:])]

    def _head(self, row: JobRow, index: int, width: int) -> list[Piece]:
        """Return the first line: the cursor, the job's number, its task, a rule, and its state."""
        state = "waiting" if row.at_work and row.shown.waits else visible_line(state_words(row))
        mark = signs.HERE if index == self.cursor else " "
        repeat = f" (repeat {row.job.job.repeat})" if row.job.job.repeat > 1 else ""
        name = visible_line(f"{row.number} {row.title or row.job.job.task[:12]}")
        room = max(1, width - _MARGIN - cell_len(state) - _LEAST_RULE - 2 - len(repeat))
        name = (fitted_cells(name, room) if cell_len(name) > room else name) + repeat
        rule = signs.HEADING[0] * max(0, width - _MARGIN - cell_len(name) - cell_len(state) - 2)
        chosen = index == self.cursor and self.has_focus
        return [
            (f"{mark} ", "bold"),
            (name, "bold $text-primary" if chosen else "bold"),
            (f" {rule} ", _FAINT if chosen else "$border-blurred"),
            (state, state_style(row)),
        ]

    # The cursor

    def validate_cursor(self, index: int) -> int:
        """Return the index of the nearest tile; 0 if there are none."""
        return min(max(0, index), max(0, len(self.rows) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        """Draw the old and the new tile, and scroll to the new one."""
        for index in (old, new):
            self._refresh_tile(index)
        self._show_cursor()

    def _show_cursor(self) -> None:
        top, height = self.cursor // self.columns * HEIGHT, self.sight.height
        y = self.scroll_offset.y
        if height > 0 and not y <= top <= y + height - HEIGHT:
            wanted = top if top < y or height < HEIGHT else top + HEIGHT - height
            self.scroll_to(0, wanted, animate=False, immediate=True, force=True)

    def action_move(self, by: int) -> None:
        """Move the cursor by a number of tiles."""
        self.cursor += by

    def action_row(self, by: int) -> None:
        """Move the cursor down by a number of rows of tiles, or up if negative."""
        there = self.cursor + by * self.columns
        if 0 <= there < len(self.rows):
            self.cursor = there
        elif by > 0 and self.cursor // self.columns < (len(self.rows) - 1) // self.columns:
            self.cursor = len(self.rows) - 1

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or the last tile."""
        self.cursor = 0 if end < 0 else len(self.rows) - 1

    def action_choose(self) -> None:
        """Report that the tile at the cursor was chosen."""
        if self.chosen is not None:
            self.post_message(self.Chosen(self.chosen))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked tile; a second click on it, however much later, chooses it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = (offset.y + self.scroll_offset.y) // HEIGHT
        column = next((n for n in range(self.columns) if offset.x < self._span(n)[1] + _GAP), None)
        index = -1 if column is None else row * self.columns + column
        if not 0 <= index < len(self.rows):
            return
        again = index == self._clicked == self.cursor
        self.cursor = index
        self._clicked = None if again else index
        if again:
            self.action_choose()
