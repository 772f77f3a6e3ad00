"""A table of any number of records with columns, an order, groups and a query as filter; cells are literal text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar, Generic

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from gistpoint.core.text import visible_line
from gistpoint.tui.tables import Column, Heading, Row, RowQuery, arranged, columns_for, count_heading, parse_query
from gistpoint.tui.widgets.fitted import Fitted
from gistpoint.tui.widgets.record_list import Piece, RecordList, fitted_cells


class Table(Fitted, RecordList, Generic[Row]):
    """Rows in columns, below their headings. A click on a heading sorts; a second one reverses the order."""

    DEFAULT_CSS = """
    Table > .table--head { background: $panel; color: $foreground; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--head"}
    HEAD = 1
    MARGIN: ClassVar[int] = 0
    """Cells before the first column, which hold the mark of picked rows."""
    GAP: ClassVar[int] = 1
    """Cells between two columns."""
    SIDEWAYS: ClassVar[bool] = False
    """Whether rows that are too wide can be scrolled; if not, they are cut."""
    STRIPED: ClassVar[bool] = False
    """Whether every second row has another background."""

    class Arranged(Message):
        """The shown rows have changed."""

        def __init__(self, table: Table[Any]) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> Table[Any]:
            """The table."""
            return self.table

    def __init__(self, columns: Sequence[Column[Row]], *, key: Callable[[Row], object] = id, id: str) -> None:
        """`key` returns the identity of a row, which stays the same when rows are read again."""
        super().__init__(id=id)
        self.columns, self._key = tuple(columns), key
        self.records: Sequence[Row] = ()
        """All rows, including those that do not match the query."""
        self.rows: list[Row | Heading] = []
        """The matching rows, in order, and the headings of groups."""
        self.picked: list[object] = []
        """The keys of picked rows, in the order of picking."""
        self.column: Column[Row] | None = None
        """The column by which the rows are sorted; None for their own order."""
        self.reverse = False
        self.group: Column[Row] | None = None
        self._query: RowQuery[Row] = RowQuery()
        self._widths: dict[str, int] = {}

    # Rows

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor; None on a heading, or without rows."""
        row = self.rows[self.cursor] if self.cursor < len(self.rows) else None
        return None if isinstance(row, Heading) else row

    @property
    def shown(self) -> list[Row]:
        """The matching rows, in order."""
        return [row for row in self.rows if not isinstance(row, Heading)]

    def show(self, records: Iterable[Row], *, at: object = None) -> None:
        """Show other rows; the cursor goes to the row with the key `at`, or stays on its own."""
        self.records = list(records)
        self.rearrange(at)

    def renew(self, records: Iterable[Row]) -> None:
        """Show updated rows, each in its place, whether it still matches or not."""
        self.records = list(records)
        known = {self._key(row): row for row in self.records}
        self.rows = [row if isinstance(row, Heading) else known.get(self._key(row), row) for row in self.rows]
        self._draw()

    def narrow(self, query: str, *, at: object = None) -> None:
        """Show only the rows that match a query. Raises `QueryError`."""
        self._query = parse_query(query, self.columns)
        self.rearrange(at)

    def show_none(self) -> None:
        """Show no rows until the next query."""
        self._query = RowQuery((lambda row: False,))
        self.rearrange()

    def rearrange(self, at: object = None) -> None:
        """Put the rows in order."""
        if at is None and self.chosen is not None:
            at = self._key(self.chosen)
        self.rows = arranged(
            self.records, self._query, self.column, reverse=self.reverse, group=self.group, heading=self.heading
        )
        places = ((n, row) for n, row in enumerate(self.rows) if not isinstance(row, Heading))
        first = next(places, (0, None))
        self._draw(next((n for n, row in chain([first], places) if row is not None and self._key(row) == at), first[0]))
        self.post_message(self.Arranged(self))

    def heading(self, name: str, rows: Sequence[Row]) -> str:
        """Return the heading of a group."""
        return count_heading(name, rows)

    # Order

    def sort_next(self) -> None:
        """Sort by the next column; after the last, by none."""
        at = -1 if self.column is None else self.columns.index(self.column)
        self.column = self.columns[at + 1] if at + 1 < len(self.columns) else None
        self.rearrange()

    def sort_by(self, column: Column[Row]) -> None:
        """Sort by a column; by the same one again, in reverse order."""
        self.reverse = self.reverse is not (self.column is column)
        self.column = column
        self.rearrange()

    def turn_round(self) -> None:
        """Reverse the order."""
        self.reverse = not self.reverse
        self.rearrange()

    def pick(self) -> None:
        """Pick or unpick the row under the cursor, and go to the next."""
        if self.chosen is not None:
            key = self._key(self.chosen)
            if key in self.picked:
                self.picked.remove(key)
            else:
                self.picked.append(key)
            self.cursor += 1
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose heading was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < self.HEAD:
            right = self.MARGIN
            for column, width in self._laid_out(self.size.width):
                right += width + self.GAP
                if offset.x + self.scroll_offset.x < right:
                    self.sort_by(column)
                    break

    # Drawing

    def _draw(self, cursor: int | None = None) -> None:
        self._widths = {column.name: self._width_of(column) for column in self.columns}
        self.set_count(len(self.rows), cursor=cursor)

    def _width_of(self, column: Column[Row]) -> int:
        if column.width or (column is self.columns[-1] and not self.SIDEWAYS):
            return column.width
        texts = {column.shown(row) for row in self.shown}
        widest = max((cell_len(visible_line(text)) for text in texts), default=0)
        return max(widest, cell_len(self._titled(column))) if self.HEAD else widest

    @property
    def row_width(self) -> int:
        """How wide rows are, in cells; 0 if they are never scrolled sideways."""
        widths = [width + self.GAP for _, width in self._laid_out(self.size.width)]
        return self.MARGIN + sum(widths) - self.GAP // 2 if self.SIDEWAYS else 0

    def _laid_out(self, width: int) -> list[tuple[Column[Row], int]]:
        """Return the shown columns with their widths; an empty one without a heading takes no room.

        Of columns that have a position in narrow terminals, those without room are left out, the last first.
        """
        found = [(column, self._widths.get(column.name, column.width)) for column in columns_for(self.columns, width)]
        found = [(column, cells) for column, cells in found if cells or self.HEAD or column is self.columns[-1]]
        if found and all(column.rank for column, _ in found) and not self.SIDEWAYS:
            while len(found) > 1 and self.MARGIN + sum(cells + self.GAP for _, cells in found) - self.GAP > width:
                found.pop()
        if found and found[-1][0].width and not self.SIDEWAYS:
            column, cells = found[-1]
            room = width - self.MARGIN - sum(cells + self.GAP for _, cells in found[:-1])
            found[-1] = (column, max(1, min(cells, room)))
        return found

    def _titled(self, column: Column[Row]) -> str:
        if column is not self.column:
            return column.name
        return f"{column.name}{'' if column.width else ' '}{'▼' if self.reverse else '▲'}"

    def head(self, width: int) -> Strip:
        """Return the headings of the columns, with a sign at the one that rows are sorted by."""
        style = self.get_component_rich_style("table--head")
        text = " " * self.MARGIN
        for column, cells in self._laid_out(self.size.width):
            title = self._titled(column)[: cells or None]
            text += fitted_cells(title, cells, right=column.right) + " " * self.GAP
        return Strip([Segment(text, style)]).extend_cell_length(width, style)

    def ground(self, index: int) -> str:
        """Return the background style of a row."""
        return super().ground(index) or ("on $foreground 3%" if self.STRIPED and index % 2 == 0 else "")

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the cells of a row, or the heading of a group."""
        row = self.rows[index]
        if isinstance(row, Heading):
            return [(f"── {row}", "bold $text-primary")]
        picked = bool(self.picked) and self._key(row) in self.picked
        here, sign = "▸" if index == self.cursor else " ", "✓" if picked else " "
        sign = (sign.strip() or here) if self.MARGIN == 1 else here + sign
        mark = (sign.ljust(self.MARGIN), "bold $text-accent")
        pieces: list[Piece] = [mark] if self.MARGIN else []
        for column, cells in self._laid_out(self.size.width):
            text = fitted_cells(visible_line(column.shown(row)), cells, right=column.right)
            pieces.append((text + " " * self.GAP, column.style(row)))
        return pieces
