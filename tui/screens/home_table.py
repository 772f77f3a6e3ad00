"""A table of rows that can be filtered and sorted; every cell is literal text."""

from __future__ import annotations

from textual import on
from textual.message import Message
from textual.widgets import DataTable

from gistpoint.tui.home_rows import Row, arranged
from gistpoint.tui.widgets.fitted import Fitted
from gistpoint.tui.widgets.plain import plain_cell


class HomeTable(Fitted, DataTable[object]):
    """Shows `Row`s; keeps its place when they are read again."""

    class Arranged(Message):
        """The rows in sight have changed."""

        def __init__(self, table: HomeTable) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> HomeTable:
            """The table."""
            return self.table

    def __init__(self, columns: tuple[str, ...], *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=True)
        self._columns = columns
        self._rows: tuple[Row, ...] = ()
        self._in_sight: list[Row] = []
        self._words = ""
        self._column: int | None = None
        self._reverse = False

    @property
    def chosen(self) -> str | None:
        """The key of the row under the cursor; None where there is no row."""
        at = self.cursor_row
        return self._in_sight[at].key if 0 <= at < len(self._in_sight) else None

    @property
    def total(self) -> int:
        """How many rows there are, hidden ones included."""
        return len(self._rows)

    @property
    def in_sight(self) -> int:
        """How many rows the filter lets through."""
        return len(self._in_sight)

    def show_rows(self, rows: tuple[Row, ...]) -> None:
        """Show other rows."""
        self._rows = rows
        self._draw()

    def filter(self, words: str) -> None:
        """Show only rows that hold all of the words."""
        self._words = words
        self._draw()

    def sort_next(self) -> None:
        """Sort by the next column; behind the last, by none."""
        column = -1 if self._column is None else self._column
        self._column = column + 1 if column + 1 < len(self._columns) else None
        self._draw()

    def reverse_order(self) -> None:
        """Turn the order round."""
        self._reverse = not self._reverse
        self._draw()

    @on(DataTable.HeaderSelected)
    def sort_by_header(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column that was clicked; a second time, the other way round."""
        event.stop()
        if self._column == event.column_index:
            self._reverse = not self._reverse
        self._column = event.column_index
        self._draw()

    def _draw(self) -> None:
        kept = self.chosen
        self._in_sight = arranged(self._rows, self._words, self._column, reverse=self._reverse)
        self.clear(columns=True)
        for number, name in enumerate(self._columns):
            arrow = (" ▼" if self._reverse else " ▲") if number == self._column else ""
            self.add_column(plain_cell(name + arrow))
        self.add_rows([[plain_cell(cell) for cell in row.cells] for row in self._in_sight])
        at = next((n for n, row in enumerate(self._in_sight) if row.key == kept), 0)
        if self._in_sight:
            self.move_cursor(row=at, animate=False)
        self.post_message(self.Arranged(self))
