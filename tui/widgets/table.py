"""A table of any number of records, with columns, sorting, groups and a filter.

All cells are literal text. Unlike Textual's `DataTable`, it asks only for the visible rows (decision 59).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from gistpoint.core.text import shortened, visible_line
from gistpoint.tui.tables import WIDE, Column, Heading, Row, RowQuery, arranged, columns_for, parse_query
from gistpoint.tui.widgets.fitted import Fitted
from gistpoint.tui.widgets.record_list import Piece, RecordList, fitted_cells


class Table(Fitted, RecordList, Generic[Row]):
    """Records in rows and columns. A click on a heading sorts by it; a second click reverses the order."""

    DEFAULT_CSS = """
    Table > .table--head { background: $panel; color: $foreground; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--head"}
    HEAD = 1
    MARGIN: ClassVar[int] = 0
    """The number of cells before the first column, for the cursor and the marks of picked rows."""
    GAP: ClassVar[int] = 1
    """The number of cells between two columns."""
    SIDEWAYS: ClassVar[bool] = False
    """Whether rows that are too wide scroll sideways; otherwise they are cut."""
    STRIPED: ClassVar[bool] = False
    """Whether every second row has another background."""

    SPARING: ClassVar[bool] = False
    """Whether columns that are empty in all records are hidden."""

    class Arranged(Message):
        """A message that the displayed rows have changed."""

        def __init__(self, table: Table[Any]) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> Table[Any]:
            """The table, for Textual's message selectors."""
            return self.table

    def __init__(self, columns: Sequence[Column[Row]], *, key: Callable[[Row], object] = id, id: str) -> None:
        """`key` returns the identity of a record, which stays the same when records are loaded again."""
        super().__init__(id=id)
        self.columns, self._key = tuple(columns), key
        self.records: Sequence[Row] = ()
        """All records, including those that don't match the query."""
        self.rows: list[Row | Heading] = []
        """The records that match the query, in order, and the headings of groups."""
        self.picked: list[object] = []
        """The keys of the picked records, in the order of picking."""
        self.column: Column[Row] | None = None
        """The column by which the records are sorted; None for their own order."""
        self.reverse = False
        self.group: Column[Row] | None = None
        self._all_folded = False
        self._turned: set[str] = set()
        """The groups that are folded although most are not, or the other way round."""
        self._query: RowQuery[Row] = RowQuery()
        self._widths: dict[str, int] = {}
        self._wanted: dict[str, int] = {}
        """The width to which each column grows if there is room, by the column's name."""

    # Rows

    @property
    def chosen(self) -> Row | None:
        """The record at the cursor; None on a heading or if there are no rows."""
        row = self.rows[self.cursor] if self.cursor < len(self.rows) else None
        return None if isinstance(row, Heading) else row

    @property
    def shown(self) -> list[Row]:
        """The matching records, in order, including those in folded groups."""
        found: list[Row] = []
        for row in self.rows:
            if not isinstance(row, Heading):
                found.append(row)
            elif row.folded:
                found.extend(row.rows)
        return found

    @property
    def chosen_group(self) -> Heading | None:
        """The heading of the group at the cursor; None if there are no groups."""
        above = (self.rows[n] for n in range(min(self.cursor, len(self.rows) - 1), -1, -1))
        return next((row for row in above if isinstance(row, Heading)), None)

    def show(self, records: Iterable[Row], *, at: object = None) -> None:
        """Show other records.

        The cursor is on the one with the key `at`, or else stays on the same record.
        """
        self.records = list(records)
        self.rearrange(at)

    def renew(self, records: Iterable[Row]) -> None:
        """Show new versions of the records, each in its row, even if it no longer matches the query."""
        self.records = list(records)
        known = {self._key(row): row for row in self.records}
        self.rows = [row if isinstance(row, Heading) else known.get(self._key(row), row) for row in self.rows]
        self._draw()

    def narrow(self, query: str, *, at: object = None) -> None:
        """Show only the records that match a query. Raises `QueryError` for an invalid query."""
        self._query = parse_query(query, self.columns)
        self.rearrange(at)

    def show_none(self) -> None:
        """Show no records until the next query."""
        self._query = RowQuery((lambda row: False,))
        self.rearrange()

    def rearrange(self, at: object = None) -> None:
        """Filter, sort and group the records again."""
        group = self.chosen_group
        if at is None and self.chosen is not None:
            at = self._key(self.chosen)
        self.rows = arranged(
            self.records,
            self._query,
            self.column,
            reverse=self.reverse,
            group=self.group,
            folded=lambda name: (name in self._turned) is not self._all_folded,
        )
        self._draw(self._place(at, group.group if group is not None else None))
        self.post_message(self.Arranged(self))

    def _place(self, at: object, group: str | None) -> int:
        """Return the row of the record with the key `at`, else of its group, else of the first record."""
        first: int | None = None
        heading: int | None = None
        for n, row in enumerate(self.rows):
            if isinstance(row, Heading):
                hides_record = row.folded and at is not None and at in map(self._key, row.rows)
                is_first_of_group = row.group == group and heading is None
                if hides_record or is_first_of_group:
                    heading = n
            elif at is not None and self._key(row) == at:
                return n
            elif first is None:
                first = n
        return next((n for n in (heading, first) if n is not None), 0)

    # Groups

    def group_by(self, column: Column[Row] | None) -> None:
        """Group by a column, or don't group. All groups are folded alike again."""
        self.group = column
        self._turned.clear()
        self.rearrange()

    def fold(self, *, folded: bool) -> None:
        """Fold or unfold the group at the cursor."""
        heading = self.chosen_group
        if heading is not None and heading.folded is not folded:
            self._turned ^= {heading.group}
            self.rearrange()

    def fold_all(self) -> None:
        """Fold or unfold all groups."""
        self._all_folded = not self._all_folded
        self._turned.clear()
        self.rearrange()

    # Order

    def sort_next(self) -> None:
        """Sort by the next column; after the last column, restore the records' own order."""
        at = -1 if self.column is None else self.columns.index(self.column)
        self.column = self.columns[at + 1] if at + 1 < len(self.columns) else None
        self.rearrange()

    def sort_by(self, column: Column[Row]) -> None:
        """Sort by a column; if the records are already sorted by it, reverse the order."""
        self.reverse = self.reverse is not (self.column is column)
        self.column = column
        self.rearrange()

    def turn_round(self) -> None:
        """Reverse the order."""
        self.reverse = not self.reverse
        self.rearrange()

    def pick(self) -> None:
        """Pick or unpick the row, or all rows below the heading, at the cursor, and move to the next row."""
        heading = self.chosen_group
        rows = [self.chosen] if self.chosen is not None else heading.rows if heading is not None else []
        keys = [self._key(row) for row in rows]
        new = [key for key in keys if key not in self.picked]
        self.picked = [*self.picked, *new] if new else [key for key in self.picked if key not in keys]
        if keys:
            self.cursor += 1
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose heading was clicked, if one was."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < self.HEAD:
            right = self.MARGIN
            for column, width in self._laid_out(self.sight.width):
                right += width + self.GAP
                if offset.x + self.scroll_offset.x < right:
                    self.sort_by(column)
                    break

    # Drawing

    def _draw(self, cursor: int | None = None) -> None:
        self._widths = {column.name: self._width_of(column) for column in self.columns}
        self._wanted = {c.name: min(c.most, self._widest(c)) for c in self.columns if c.most}
        self.set_count(len(self.rows), cursor=cursor)

    def _width_of(self, column: Column[Row]) -> int:
        if (
            self.SPARING
            and column is not self.column
            and not any(column.shown(record) for record in self.records)
        ):
            return 0
        if column.width or (column is self.columns[-1] and not self.SIDEWAYS):
            return column.width
        widest = self._widest(column)
        return max(widest, cell_len(self._titled(column))) if self.HEAD else widest

    def _widest(self, column: Column[Row]) -> int:
        texts = {column.shown(row) for row in self.shown}
        return max((cell_len(visible_line(text)) for text in texts), default=0)

    @property
    def row_width(self) -> int:
        """The width of the rows, in cells; 0 if they never scroll sideways."""
        widths = [width + self.GAP for _, width in self._laid_out(self.sight.width)]
        return self.MARGIN + sum(widths) - self.GAP // 2 if self.SIDEWAYS else 0

    def _laid_out(self, width: int) -> list[tuple[Column[Row], int]]:
        """Return the visible columns with their widths. An empty column without a heading takes no room.

        If all columns have a rank for narrow terminals and don't fit, the last ones are left out.
        """
        found = self._candidates(width)
        if not found:
            return found
        if all(column.rank for column, _ in found) and not self.SIDEWAYS:
            room = width - self.MARGIN + self.GAP
            while len(found) > 1 and self._least(found) > room:
                found.pop()
        if self._wanted:
            found = self._grown(found, width)
        if found[-1][0].width and not self.SIDEWAYS:
            column, cells = found[-1]
            room = width - self.MARGIN - sum(cells + self.GAP for _, cells in found[:-1])
            found[-1] = (column, max(1, min(cells, room)))
        return found

    def _candidates(self, width: int) -> list[tuple[Column[Row], int]]:
        """Return the columns for a width with their own widths, without empty ones that take no room."""
        found = [
            (column, self._widths.get(column.name, column.width))
            for column in columns_for(self.columns, width)
        ]
        if self.HEAD and not self.SPARING:
            return found
        return [(column, cells) for column, cells in found if cells or column is self.columns[-1]]

    def _grown(self, found: list[tuple[Column[Row], int]], width: int) -> list[tuple[Column[Row], int]]:
        """Return the columns, grown into the room that is left.

        In a wide terminal, the last column gives up some of its own width for that.
        """
        last, cells = found[-1]
        gives = cells - last.least if last.least and width >= WIDE else 0
        spare = width - self.MARGIN + self.GAP - sum(cells + self.GAP for _, cells in found) + gives
        for n, (column, cells) in enumerate(found):
            more = min(spare, self._wanted.get(column.name, 0) - cells)
            if cells and more > 0:
                found[n] = (column, cells + more)
                spare -= more
        return found

    def _least(self, found: Sequence[tuple[Column[Row], int]]) -> int:
        """Return the width of the columns with the last one cut as far as possible."""
        last, cells = found[-1]
        return sum(cells + self.GAP for _, cells in found[:-1]) + min(cells, last.least or cells) + self.GAP

    def _titled(self, column: Column[Row]) -> str:
        if column is not self.column:
            return column.name
        return f"{column.name}{'' if column.width else ' '}{'▼' if self.reverse else '▲'}"

    def head(self, width: int) -> Strip:
        """Return the headings of the columns, with a symbol at the one by which the rows are sorted."""
        style = self.get_component_rich_style("table--head")
        text = " " * self.MARGIN
        for column, cells in self._laid_out(self.sight.width):
            title = self._titled(column)[: cells or None]
            text += fitted_cells(title, cells, right=column.right) + " " * self.GAP
        return Strip([Segment(text, style)]).extend_cell_length(width, style)

    def ground(self, index: int) -> str:
        """Return the background style of a row; empty if it has none."""
        return super().ground(index) or ("on $foreground 3%" if self.STRIPED and index % 2 == 0 else "")

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the cells of a row, or the heading of a group."""
        row = self.rows[index]
        if isinstance(row, Heading):
            return self._heading(row, here=index == self.cursor)
        picked = bool(self.picked) and self._key(row) in self.picked
        here, sign = "▸" if index == self.cursor else " ", "✔" if picked else " "
        sign = (sign.strip() or here) if self.MARGIN == 1 else here + sign
        mark = (sign.ljust(self.MARGIN), "bold $text-accent")
        pieces: list[Piece] = [mark] if self.MARGIN else []
        for column, cells in self._laid_out(self.sight.width):
            text = fitted_cells(self._cell(column, column.shown(row), cells), cells, right=column.right)
            pieces.append((text + " " * self.GAP, column.style(row)))
        return pieces

    @staticmethod
    def _cell(column: Column[Row], content: str, cells: int) -> str:
        text = visible_line(content)
        return shortened(text, cells) if column.keeps_end and cells else text

    def _heading(self, row: Heading, *, here: bool) -> list[Piece]:
        """Return the heading of a group: its name, and the summary of each column."""
        laid = self._laid_out(self.sight.width)
        at = next((n for n, (column, _) in enumerate(laid) if n and column.summary), len(laid))
        room = sum(cells + self.GAP for _, cells in laid[:at]) - self.GAP
        sign = f"{'+' if row.folded else '-'} {str(row).removesuffix(row.group)}"
        name = sign + shortened(visible_line(row.group), max(8, room - len(sign)))
        text = (
            ("▸" if here else " ").ljust(self.MARGIN)[: self.MARGIN]
            + fitted_cells(name, room)
            + " " * self.GAP
        )
        for column, cells in laid[at:]:
            summary = (
                column.summary(row.rows)[1] if column.summary is not None and column is not self.group else ""
            )
            text += (
                fitted_cells(self._cell(column, summary, cells), cells, right=column.right) + " " * self.GAP
            )
        return [(text, "bold $text-primary")]
