"""Tables of records: columns as data, the order of rows, and queries over columns.

All lists of the program and the tables of its commands use these columns (decision 59).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, Generic, TypeVar

from gistpoint.core.queries import QueryField, QueryLanguage, RowQuery
from gistpoint.core.query_grammar import KeptQueries

Row = TypeVar("Row")
Value = float | str
Summary = tuple[float, str]
"""The value of a group in a column: the number by which groups are sorted, and the text."""


def _plain(row: object) -> str:
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Column(Generic[Row]):
    """A column of a table: the text of its cells, and the values for sorting and queries."""

    name: str
    """The heading, which is also the name in queries."""
    shown: Callable[[Row], str]
    value: Callable[[Row], Value | None] | None = None
    """The number or word in the cell, for queries and sorting; None if it is unknown.

    By default, it is the displayed text.
    """
    sort: Callable[[Row], Value | None] | None = None
    """The sort key of rows, if it differs from the value."""
    width: int = 0
    """The width in cells that the column has even if its cells need less, so that it never moves.

    With 0, the column is as wide as its widest cell, and is left out while all its cells are empty.
    """
    right: bool = False
    """Whether cells are aligned at the right."""
    style: Callable[[Row], str] = _plain
    """The style of a cell, written with theme variables."""
    rank: int = 0
    """The rank by importance, counted from 1: if not all columns fit, the highest rank is left out first.

    Columns with 0 are left out before all others, the last one first.
    """
    least: int = 0
    """The width to which the column may be cut; 0 if its cells are never cut, like numbers."""
    readable: int = 36
    """The width that long text needs to be easy to read; columns without a rank are left out first."""
    keeps_end: bool = False
    """Whether text that is too long is cut in the middle instead of at the end."""
    former_names: tuple[str, ...] = ()
    """The names that queries used for the column in earlier versions."""
    marks: Callable[[Row], Sequence[tuple[int, int]]] | None = None
    """Returns the start and end of each part of the text to emphasise; a cell is cut around the first one.

    Such a column has excerpts, for which the list is read. Less important columns are left out
    before the excerpts become too short, and an excerpt continues over empty cells to its right.
    """
    text: Callable[[Row], str] | None = None
    """The text that queries search, if it differs from the displayed text."""
    words: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    """Words that a query matches only as a whole: `solved` does not match `unsolved`."""
    own_words: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    """Words that a query matches only as a whole after the name of the column."""
    summary: Callable[[Sequence[Row]], Summary] | None = None
    """Returns the value of a group in this column, whose text the group's heading shows."""
    grouped: Callable[[Row], str] | None = None
    """Returns the name of a row's group in this column, if it is not the displayed text."""

    def order(self, row: Row) -> tuple[float, str]:
        """Return the sort key of a row."""
        value = (self.sort or self.value or self.shown)(row)
        return (
            (0.0, value.lower()) if isinstance(value, str) else (-inf if value is None else float(value), "")
        )

    def number(self, row: Row) -> float:
        """Return the number in a row's cell; 0 for a word, and NaN, which matches no comparison, for None."""
        value = 0 if self.value is None else self.value(row)
        return 0.0 if isinstance(value, str) else nan if value is None else float(value)


# Widths

_EXCERPT = 48
"""The width in cells that an excerpt needs to show a match with the words around it."""
Laid = tuple[Column[Row], int]
"""A column and its width in cells."""


def informative_columns(columns: Sequence[Column[Row]], cells: Sequence[Sequence[str]]) -> list[Column[Row]]:
    """Return the columns without those that are empty or repeat a more important one.

    `cells` are each column's strings, in the order of the rows; without rows, all columns are returned. A
    column with a fixed width never counts as empty. A column of numbers never counts as a repetition, because
    equal numbers mean different things.
    """
    if not cells or not cells[0]:
        return list(columns)
    found: list[int] = []
    for n in _by_importance(columns):
        column, texts = columns[n], cells[n]
        is_empty = not column.width and not any(texts)
        is_words = column.value is None
        repeats = is_words and any(columns[m].value is None and cells[m] == texts for m in found)
        if not is_empty and not repeats:
            found.append(n)
    return [columns[n] for n in sorted(found)]


def widths_in(wanted: Sequence[Laid[Row]], room: int, gap: int) -> list[Laid[Row]]:
    """Return the columns that fit into `room` cells, each with its width.

    `wanted` has the width that the longest cell of each column needs, and `gap` cells are between two
    columns. Columns without a rank are left out before the others become hard to read. While the rest does
    not fit even if cut, the least important column is left out. The columns that stay share the room, so
    that no cell is cut next to free space (decision 129).
    """
    kept = _by_importance([column for column, _ in wanted])
    has_ranks = any(column.rank for column, _ in wanted)
    need = _least_of
    while len(kept) > 1:
        must_read_well = has_ranks and not wanted[kept[-1]][0].rank
        need = _readable_width if must_read_well else _least_of
        needed = [_with_excerpt(wanted[n], need(wanted[n]), is_last=n == kept[-1]) for n in kept]
        if sum(needed) + gap * (len(kept) - 1) <= room:
            break
        kept.pop()
    if len(kept) == 1:
        column, cells = wanted[kept[0]]
        return [(column, max(1, min(cells, room)))]
    laid = [wanted[n] for n in sorted(kept)]
    least = [_with_excerpt(wanted[n], need(wanted[n]), is_last=n == kept[-1]) for n in sorted(kept)]
    widths = _shared(laid, least, room - gap * (len(kept) - 1))
    return [(column, width) for (column, _), width in zip(laid, widths, strict=True)]


def _by_importance(columns: Sequence[Column[Row]]) -> list[int]:
    """Return the indexes of columns, most important first."""
    return sorted(range(len(columns)), key=lambda n: (not columns[n].rank, columns[n].rank, n))


def _readable_width(laid: Laid[Row]) -> int:
    """Return the width at which a column is easy to read."""
    column, cells = laid
    return max(_least_of(laid), min(cells, column.readable)) if column.rank else _least_of(laid)


def _with_excerpt(laid: Laid[Row], least: int, *, is_last: bool) -> int:
    """Return the least width of a column; for excerpts more, unless they are the least important column."""
    column, cells = laid
    return least if column.marks is None or is_last else max(least, min(cells, _EXCERPT))


def _least_of(laid: Laid[Row]) -> int:
    column, cells = laid
    return min(cells, column.least) if column.least else cells


def _shared(laid: Sequence[Laid[Row]], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that share the room, in their order; each has its `least` width.

    Of the remaining width, each column gets an equal share, starting with the narrowest; the excess
    goes to the wider ones.
    """
    order = sorted(range(len(laid)), key=lambda n: (bool(laid[n][0].least), laid[n][1]))
    widths = list(least)
    left = room - sum(widths)
    for position, n in enumerate(order):
        cells = laid[n][1]
        # Each column already has its least width; `left` is the width that remains to be shared.
        later = [widths[m] for m in order[position:]]
        share = (left + sum(later)) // len(later)
        more = max(0, min(left, min(cells, share) - widths[n]))
        widths[n] += more
        left -= more
    return widths


# Queries


def parse_query(
    text: str,
    columns: Sequence[Column[Row]],
    fields: Sequence[QueryField[Row]] = (),
    kept: KeptQueries | None = None,
) -> RowQuery[Row]:
    """Parse a query over the columns of a table and over further fields (decision 173).

    `kept` are the kept queries. Raises `QueryError` if the query can't be understood.
    """
    return QueryLanguage([*map(field_of, columns), *fields], kept, what="column").query(text)


def field_of(column: Column[Row]) -> QueryField[Row]:
    """Return the field with which queries refer to a column."""
    return QueryField(
        column.name,
        texts=lambda row, key: ((column.text or column.shown)(row),),
        numbers=None if column.value is None else lambda row, key: [column.number(row)],
        shown=column.shown,
        former_names=column.former_names,
        words=column.words,
        own_words=column.own_words,
    )


# Order


class Heading(str):
    """The line above a group of rows: its text, the name of the group and its rows."""

    __slots__ = ("folded", "group", "rows")
    folded: bool
    """Whether the rows are hidden."""
    group: str
    rows: Sequence[Any]

    def __new__(
        cls, text: str, group: str = "", rows: Sequence[Any] = (), *, folded: bool = False
    ) -> Heading:
        """Return the line, a string that also has the group's name and rows."""
        made = super().__new__(cls, text)
        made.group, made.rows, made.folded = group, rows, folded
        return made


def arranged(
    rows: Iterable[Row],
    query: RowQuery[Row],
    column: Column[Row] | None = None,
    *,
    reverse: bool = False,
    group: Column[Row] | None = None,
    folded: Callable[[str], bool] = lambda name: False,
    check: Callable[[], object] = lambda: None,
) -> list[Row | Heading]:
    """Return the matching rows in their own order or a column's, grouped by the column `group` if given.

    A heading precedes each group, unless it has only one row, which the heading would repeat. Groups are in
    the order of the column's summary or, if it has none, of their names. Without a column, the largest group
    is first. `reverse` reverses rows and groups. The rows of a group are left out if `folded` returns true
    for its name. `check` is called every thousand rows, and may end the work with an error.
    """
    kept = [row for row in _checked(rows, check) if query.matches(row)]
    if column is not None:
        kept = _in_order(kept, [column.order(row) for row in _checked(kept, check)], reverse=reverse)
    elif reverse:
        kept.reverse()
    return [*kept] if group is None else _grouped(kept, group, column, folded, reverse=reverse)


def _grouped(
    rows: Iterable[Row],
    group: Column[Row],
    column: Column[Row] | None,
    folded: Callable[[str], bool],
    *,
    reverse: bool,
) -> list[Row | Heading]:
    """Return rows with a heading before each group of more than one row, as `arranged` describes it."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault((group.grouped or group.shown)(row) or "not known", []).append(row)
    names = sorted(groups)
    summary = column.summary if column is not None else lambda rows: (-len(rows), "")
    if summary is not None:
        names.sort(key=lambda name: summary(groups[name])[0], reverse=reverse)
    elif reverse:
        names.reverse()
    found: list[Row | Heading] = []
    for name in names:
        members = groups[name]
        if len(members) == 1:
            found += members
            continue
        heading = Heading(f"{len(members):,}× {name}", name, members, folded=folded(name))
        found += [heading, *(() if heading.folded else members)]
    return found


_OFTEN = 1_000
_RUN = 8_192
"""The number of rows that are sorted at once."""


def _checked(rows: Iterable[Row], check: Callable[[], object]) -> Iterator[Row]:
    for n, row in enumerate(rows):
        if n % _OFTEN == 0:
            check()
        yield row


def _in_order(rows: Sequence[Row], keys: Sequence[tuple[float, str]], *, reverse: bool) -> list[Row]:
    """Return rows in the order of their keys; rows with equal keys stay in their own order.

    No other thread runs while Python sorts, so runs are sorted first: to merge them takes less time.
    """
    places = list(range(len(rows)))
    for start in range(0, len(rows), _RUN):
        run = places[start : start + _RUN]
        run.sort(key=keys.__getitem__, reverse=reverse)
        places[start : start + _RUN] = run
    places.sort(key=keys.__getitem__, reverse=reverse)
    return [rows[n] for n in places]
