"""A table of any number of records, with columns, sorting, groups and a filter.

All cells are literal text. Unlike Textual's `DataTable`, it draws only the visible rows, and measures
each record once (decision 59). A long list is filtered and sorted in a thread, and a sample of its rows
decides the widths of the columns (decision 219).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from operator import is_
from typing import Any, ClassVar, Generic, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from gistpoint.core.queries import ContentTerm, QueryField, RowQuery
from gistpoint.core.query_grammar import KeptQueries
from gistpoint.core.text import shortened, visible_line
from gistpoint.tui import signs
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.tables import (
    Column,
    Heading,
    Laid,
    Row,
    arranged,
    informative_columns,
    parse_query,
    widths_in,
)
from gistpoint.tui.widgets.fitted import Fitted
from gistpoint.tui.widgets.record_list import Piece, RecordList, fitted_cells

_LONGEST = 500
"""The number of characters in a cell that are measured. No terminal is wider."""
_SAMPLED = 500
"""The number of rows up to which all are measured; of a longer list, these are the first ones and others."""
_MARK = "bold underline $text-warning"
"""The style of emphasised parts in a cell, which is visible without colours."""
_LONGEST_WORD = 24
"""The maximum number of characters in a word that is left out as a whole where an excerpt is cut."""
_NAME_SHARE = 0.6
"""The share of a line up to which the name of a group takes room from the summaries of the group."""
_INDENT = "  "
"""The indent of the rows below the heading of a group. The only row of a group has none."""


class Measured(NamedTuple, Generic[Row]):
    """The text of a record's cells, with their widths in cells.

    The record is kept, so that no other object gets its `id`, by which the text is looked up.
    """

    row: Row
    texts: tuple[str, ...]
    widths: tuple[int, ...]


class Arrangement(NamedTuple):
    """Rows in order, the rows of the headings of those below one, and the row of the cursor."""

    rows: list[Any]
    grouped: dict[int, int]
    cursor: int


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
    """Whether rows that are too wide scroll sideways; otherwise columns are cut or left out."""
    MANY: ClassVar[int] = 2_000
    """The number of records from which they are filtered and sorted in a thread."""
    STRIPED: ClassVar[bool] = False
    """Whether every second row has another background."""

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
        self._jobs = Jobs(self, "rows")
        self.records: Sequence[Row] = ()
        """All records, including those that don't match the query."""
        self.rows: list[Row | Heading] = []
        """The matching records outside folded groups, in order, and the headings of groups."""
        self.picked: list[object] = []
        """The keys of the picked records, in the order of picking."""
        self.column: Column[Row] | None = None
        """The column by which the records are sorted; None for their original order."""
        self.reverse = False
        self.group: Column[Row] | None = None
        self._all_folded = False
        self._toggled_groups: set[str] = set()
        """The groups that are folded although most are not, or vice versa."""
        self.query_now: RowQuery[Row] = RowQuery()
        """The query that the displayed records match."""
        self._grouped: dict[int, int] = {}
        """The headings of the rows below one, both by their index. A group of one row has no heading."""
        self._measured_columns: Sequence[Column[Row]] = ()
        self._measured: dict[int, Measured[Row]] = {}
        """The text of each record's cells with their widths, by the record's `id`.

        Lists grow by batches of rows. If all rows were measured at each batch, typing would be delayed.
        """
        self._summaries: dict[str, tuple[Sequence[Row], tuple[str, ...]]] = {}
        """The rows that each heading summarises, and its text for each column, by the name of the group."""
        self._laid: tuple[int, list[Laid[Row]]] | None = None
        """The width for which columns were laid out, and the columns with their widths; None if outdated."""

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
        """The heading of the group at the cursor; None if the row is in no group, or is alone in it."""
        return self._heading_of(self.cursor)

    def _heading_of(self, index: int) -> Heading | None:
        """Return the heading of the group that a row is in or begins; None if there is none."""
        at = self._grouped.get(index, index)
        row = self.rows[at] if at < len(self.rows) else None
        return row if isinstance(row, Heading) else None

    def show(self, records: Iterable[Row], *, at: object = None) -> None:
        """Show other records.

        The cursor moves to the record with the key `at`, otherwise it stays on the same record.
        """
        self.records = list(records)
        self.rearrange(at)

    def update_records(self, records: Iterable[Row]) -> None:
        """Show new versions of the records, each in its row, even if it no longer matches the query."""
        self.records = list(records)
        known = {self._key(row): row for row in self.records}
        self.rows = [row if isinstance(row, Heading) else known.get(self._key(row), row) for row in self.rows]
        self._draw()

    def narrow(self, query: str, *, at: object = None) -> None:
        """Show only the records that match a query. Raises `QueryError` for an invalid query."""
        found = parse_query(query, self.columns, self.further_fields(), self.kept_queries())
        self.query_now = replace(found, find=self.find_content)
        self.rearrange(at)

    def further_fields(self) -> Sequence[QueryField[Row]]:
        """Return the fields that queries can ask for besides the columns."""
        return ()

    def kept_queries(self) -> KeptQueries:
        """Return the queries that are kept under names."""
        return KeptQueries()

    def find_content(self, row: Row, term: ContentTerm) -> bool | None:
        """Return whether content is in a row; None if that is not known yet."""
        return None

    def show_none(self) -> None:
        """Show no records until the next query."""
        self.query_now = RowQuery(lambda row, find: False)
        self.rearrange()

    def rearrange(self, at: object = None) -> None:
        """Filter, sort and group the records again."""
        group = self.chosen_group
        if at is None and self.chosen is not None:
            at = self._key(self.chosen)
        arrange = partial(self._arrange, at, group.group if group is not None else None)
        if len(self.records) < self.MANY:
            self._jobs.cancel()
            self._show_arranged(arrange(lambda: None))
        else:
            self._jobs.do(lambda job: arrange(job.cancel.check), self._show_arranged, key="rows")

    def _arrange(self, at: object, group: str | None, check: Callable[[], object]) -> Arrangement:
        """Return the rows to display, possibly in a thread; see `rearrange`."""
        toggled_groups, all_folded = frozenset(self._toggled_groups), self._all_folded
        rows = arranged(
            self.records,
            self.query_now,
            self.column,
            reverse=self.reverse,
            group=self.group,
            folded=lambda name: (name in toggled_groups) is not all_folded,
            check=check,
        )
        return Arrangement(rows, _below_headings(rows), self._place(rows, at, group))

    def _show_arranged(self, found: Arrangement) -> None:
        self.rows, self._grouped = found.rows, found.grouped
        self._draw(found.cursor)
        self.post_message(self.Arranged(self))

    def on_unmount(self) -> None:
        """Stop the thread."""
        self._jobs.stop()

    def _place(self, rows: Sequence[Row | Heading], at: object, group: str | None) -> int:
        """Return the row of the record with the key `at`, otherwise of its group or of the first record."""
        first: int | None = None
        heading: int | None = None
        for n, row in enumerate(rows):
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
        self._summaries.clear()
        self._toggled_groups.clear()
        self.rearrange()

    def fold(self, *, folded: bool) -> None:
        """Fold or unfold the group at the cursor."""
        heading = self.chosen_group
        if heading is not None and heading.folded is not folded:
            self._toggled_groups ^= {heading.group}
            self.rearrange()

    def fold_all(self) -> None:
        """Fold or unfold all groups."""
        self._all_folded = not self._all_folded
        self._toggled_groups.clear()
        self.rearrange()

    # Order

    def sort_next(self) -> None:
        """Sort by the next column; after the last column, restore the records' original order."""
        at = -1 if self.column is None else self.columns.index(self.column)
        self.column = self.columns[at + 1] if at + 1 < len(self.columns) else None
        self.rearrange()

    def sort_by(self, column: Column[Row]) -> None:
        """Sort by a column; if the records are already sorted by it, reverse the order."""
        self.reverse = self.reverse is not (self.column is column)
        self.column = column
        self.rearrange()

    def reverse_order(self) -> None:
        """Reverse the order."""
        self.reverse = not self.reverse
        self.rearrange()

    def pick(self) -> None:
        """Pick or unpick the row, or all rows below the heading, at the cursor, and move to the next row."""
        heading, record = self.chosen_group, self.chosen
        below = heading.rows if heading is not None else []
        keys = [self._key(row) for row in (below if record is None else [record])]
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

    # Scrolling

    def row_on(self, y: int) -> int:
        """Return the row on a line: on the first one the heading of a group whose rows have scrolled."""
        row = super().row_on(y)
        return self._grouped.get(row, row) if y == self.HEAD else row

    def show_cursor(self) -> None:
        """Scroll as little as necessary to show the cursor, also below the heading of its group."""
        super().show_cursor()
        left, top = self.scroll_offset
        if self.cursor == top and top in self._grouped and self._rows_in_sight > 1:
            self.scroll_to(left, top - 1, animate=False, immediate=True, force=True)

    # Drawing

    def _draw(self, cursor: int | None = None) -> None:
        self._laid = None
        self.set_count(len(self.rows), cursor=cursor)

    @property
    def row_width(self) -> int:
        """The width of the rows, in cells; 0 if they never scroll sideways."""
        if not self.SIDEWAYS:
            return 0
        widths = [width + self.GAP for _, width in self._laid_out(self.sight.width)]
        return self.MARGIN + sum(widths) - self.GAP // 2

    def _laid_out(self, width: int) -> list[Laid[Row]]:
        """Return the visible columns with their widths, which follow the contents of the measured rows."""
        if self._laid is None or self._laid[0] != width:
            self._laid = width, self._lay_out(width)
        return self._laid[1]

    @property
    def full_width(self) -> int:
        """The width, in cells, at which no column is cut or left out."""
        widths = [width + self.GAP for _, width in self._wanted()]
        return self.MARGIN + sum(widths) - self.GAP

    def _lay_out(self, width: int) -> list[Laid[Row]]:
        wanted = self._wanted()
        if self.SIDEWAYS or not wanted:
            return wanted
        return widths_in(wanted, max(1, width - self.MARGIN), self.GAP)

    def _wanted(self) -> list[Laid[Row]]:
        """Return the columns worth showing, with the widths of their longest cells."""
        measured = self._measure(_sample(self.shown))
        none: Sequence[tuple[Any, ...]] = [()] * len(self.columns)
        texts = list(zip(*(one.texts for one in measured), strict=True)) or none
        widths = [*zip(*(one.widths for one in measured), strict=True)] or [*none]
        headings = [self._summary(row) for row in self.rows if isinstance(row, Heading)]
        needed = {*informative_columns(self.columns, texts), self.column, self.group}
        if self.group is not None and headings:
            at = self.columns.index(self.group)
            widths[at] = tuple(self._unrepeated_widths(measured, at))
            has_only_repeats = not any(widths[at])
            if has_only_repeats:
                needed.discard(self.group)
        wanted: list[Laid[Row]] = []
        for n, column in enumerate(self.columns):
            if column in needed:
                of_headings = [cell_len(summary[n]) for summary in headings]
                widest = max([max(widths[n], default=0), *of_headings])
                wanted.append((column, self._width_of(column, widest, first=not wanted)))
        return [laid for laid in wanted if laid[1]]

    def _unrepeated_widths(self, measured: Iterable[Measured[Row]], n: int) -> list[int]:
        """Return the widths of the cells in column `n`, the grouping one, that differ from their heading."""
        headings = [row for row in self.rows if isinstance(row, Heading)]
        group_of = {id(row): heading.group for heading in headings for row in heading.rows}
        return [one.widths[n] for one in measured if one.texts[n] != group_of.get(id(one.row))]

    def _width_of(self, column: Column[Row], widest: int, *, first: bool) -> int:
        """Return the width that a column needs for its widest text; the first also shows names of groups."""
        cells = [column.width, widest]
        if first and self._grouped:
            cells.append(widest + len(_INDENT))
        if first:
            groups = (row for row in self.rows if isinstance(row, Heading))
            cells += [cell_len(visible_line(f"- {row}"[:_LONGEST])) for row in groups]
        if self.HEAD:
            cells.append(cell_len(self._titled(column)))
        return max(cells)

    def _measure(self, rows: Sequence[Row]) -> list[Measured[Row]]:
        """Return the text and widths of rows; only new rows are measured."""
        if self._measured_columns is not self.columns or len(self._measured) > 2 * len(rows) + _LONGEST:
            self._measured, self._measured_columns = {}, self.columns
        found = []
        for row in rows:
            known = self._measured.get(id(row))
            if known is None:
                texts = tuple(column.shown(row) for column in self.columns)
                widths = tuple(cell_len(visible_line(text[:_LONGEST])) for text in texts)
                known = self._measured[id(row)] = Measured(row, texts, widths)
            found.append(known)
        return found

    def _summary(self, heading: Heading) -> tuple[str, ...]:
        """Return a heading's text for each column; empty for the groups' column, or if it has no summary."""
        rows, texts = self._summaries.get(heading.group, ((), ()))
        same_rows = len(rows) == len(heading.rows) and all(map(is_, rows, heading.rows))
        if texts and same_rows:
            return texts
        texts = tuple(
            column.summary(heading.rows)[1] if column.summary is not None and column is not self.group else ""
            for column in self.columns
        )
        self._summaries[heading.group] = heading.rows, texts
        return texts

    def _titled(self, column: Column[Row]) -> str:
        if column is not self.column:
            return column.name
        return f"{column.name} {signs.DESCENDING if self.reverse else signs.ASCENDING}"

    def head(self, width: int) -> Strip:
        """Return the headings of the columns, with a symbol at the column by which the rows are sorted."""
        style = self.get_component_rich_style("table--head")
        text = " " * self.MARGIN
        for column, cells in self._laid_out(self.sight.width):
            title = self._titled(column)
            text += fitted_cells(title, cells, right=column.right) + " " * self.GAP
        return Strip([Segment(text, style)]).extend_cell_length(width, style)

    def row_style(self, index: int) -> str:
        """Return the background style of a row; empty if the row has none."""
        return super().row_style(index) or ("on $foreground 3%" if self.STRIPED and index % 2 == 0 else "")

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the cells of a row, or the heading of a group."""
        row = self.rows[index]
        if isinstance(row, Heading):
            return self._heading(row, here=index == self.cursor)
        picked = bool(self.picked) and self._key(row) in self.picked
        here, sign = signs.HERE if index == self.cursor else " ", signs.GOOD if picked else " "
        sign = (sign.strip() or here) if self.MARGIN == 1 else here + sign
        mark = (sign.ljust(self.MARGIN), "bold $text-accent")
        pieces: list[Piece] = [mark] if self.MARGIN else []
        heading = self._heading_of(index)
        indent = _INDENT if heading is not None else ""
        laid, covered = self._laid_out(self.sight.width), 0
        for n, (column, cells) in enumerate(laid):
            if covered:  # an empty cell, over which an excerpt continues
                covered -= 1
                continue
            style = column.style(row)
            if column.marks is not None:
                free = self._free_after(row, laid[n + 1 :])
                covered = len(free)
                pieces += _marked(column.shown(row), column.marks(row), cells + sum(free), style)
                pieces.append((" " * self.GAP, style))
                continue
            repeats = column is self.group and heading is not None and heading.group == column.shown(row)
            text = self._cell(column, "" if repeats else column.shown(row), cells - len(indent))
            pieces.append((indent + text + " " * self.GAP, style))
            indent = ""
        return pieces

    def _free_after(self, row: Row, following: Sequence[Laid[Row]]) -> list[int]:
        """Return the widths, with their gaps, of the empty cells that directly follow a cell of a row."""
        empty = takewhile(lambda laid: not laid[0].shown(row), following)
        return [width + self.GAP for _, width in empty]

    @staticmethod
    def _cell(column: Column[Row], content: str, cells: int) -> str:
        """Return the text of a cell, padded or cut to `cells` cells; `keeps_end` cuts it in the middle."""
        text = visible_line(content)
        text = shortened(text, cells) if column.keeps_end else text
        return fitted_cells(text, max(1, cells), right=column.right)

    def _room_for(self, name: int) -> tuple[int, int]:
        """Return the number of columns that the name of a group covers, and their width in cells.

        They are those before the first summary. A longer name also covers summaries, as long as it has less
        than `_NAME_SHARE` of the line, because a group is read by its name.
        """
        laid = self._laid_out(self.sight.width)
        at = next((n for n, (column, _) in enumerate(laid) if n and column.summary), len(laid))
        wanted = min(name, int(self.sight.width * _NAME_SHARE))
        widths = [cells + self.GAP for _, cells in laid]
        while at < len(laid) and sum(widths[:at]) - self.GAP < wanted:
            at += 1
        return at, sum(widths[:at]) - self.GAP

    def _heading(self, row: Heading, *, here: bool) -> list[Piece]:
        """Return the heading of a group: its name, and the summary of each column."""
        laid, summary = self._laid_out(self.sight.width), self._summary(row)
        sign = f"{'+' if row.folded else '-'} {str(row).removesuffix(row.group)}"
        at, room = self._room_for(cell_len(sign + visible_line(row.group)))
        name = sign + shortened(visible_line(row.group), max(8, room - len(sign)))
        margin = (signs.HERE if here else " ").ljust(self.MARGIN)[: self.MARGIN]
        text = margin + fitted_cells(name, room) + " " * self.GAP
        for column, cells in laid[at:]:
            text += self._cell(column, summary[self.columns.index(column)], cells) + " " * self.GAP
        return [(text, "bold $text-primary")]


def _sample(rows: Sequence[Row]) -> Sequence[Row]:
    """Return all rows, or some of a long list: half of the sample are the first ones, half evenly spread."""
    if len(rows) <= _SAMPLED:
        return rows
    half = _SAMPLED // 2
    return [*rows[:half], *(rows[half + n * (len(rows) - half) // half] for n in range(half))]


def _marked(text: str, spans: Sequence[tuple[int, int]], cells: int, style: str) -> list[Piece]:
    """Return a cell with emphasised parts, cut around the first one if it is too long."""
    shown, shift = _excerpt(visible_line(text), spans[0] if spans else (0, 0), cells)
    pieces, at = [], 0
    for first, end in spans:
        first, end = max(at, first - shift), max(at, end - shift)
        pieces += [(shown[at:first], style), (shown[first:end], _MARK)]
        at = end
    return [(part, look) for part, look in [*pieces, (shown[at:], style)] if part]


def _excerpt(text: str, span: tuple[int, int], cells: int) -> tuple[str, int]:
    """Return the part of text around a span that fits `cells` cells, and the distance by which it has moved.

    It is cut between words, if there is a gap between words near the cut. An ellipsis marks each cut.
    """
    if cell_len(text) <= cells:
        return fitted_cells(text, cells), 0
    start = 0
    if span[1] >= cells:
        start = max(0, span[0] - cells // 3)
        if text.isascii():  # only then is the number of characters that fill the cell known
            start = min(start, len(text) - cells + 1)
        start = text.find(" ", start, span[0]) + 1 or start
    shift = start - 1 if start else 0
    shown = f"…{text[start:]}" if start else text
    if cell_len(shown) > cells:
        shown = _ended_at_a_word(set_cell_size(shown, cells - 1), shown, span[1] - shift) + "…"
    return fitted_cells(shown, cells), shift


def _ended_at_a_word(cut: str, whole: str, least: int) -> str:
    """Return the beginning of text without a word cut at its end, but at least `least` characters."""
    if len(cut) >= len(whole):
        return cut
    splits_a_word = not whole[len(cut) - 1].isspace() and not whole[len(cut)].isspace()
    gap = cut.rfind(" ", max(least, len(cut) - _LONGEST_WORD)) if splits_a_word else -1
    return cut[:gap] if gap >= 0 else cut


def _below_headings(rows: Sequence[object]) -> dict[int, int]:
    """Return the heading of each row below one, both by their index."""
    found: dict[int, int] = {}
    for n, row in enumerate(rows):
        if isinstance(row, Heading) and not row.folded:
            found.update(dict.fromkeys(range(n + 1, n + 1 + len(row.rows)), n))
    return found
