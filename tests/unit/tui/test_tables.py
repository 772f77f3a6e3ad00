"""Columns, the order of rows and the query language, without a screen."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.errors import CancelledError
from gistpoint.core.queries import RowQuery
from gistpoint.core.query_grammar import QueryError
from gistpoint.tui import tables
from gistpoint.tui.commands.output import print_records
from gistpoint.tui.tables import (
    Column,
    arranged,
    informative_columns,
    parse_query,
    widths_in,
)


@dataclass(frozen=True)
class Book:
    title: str
    year: int
    lent: bool = False


BOOKS = [Book("a::b", 1990), Book("Two Towers", 1954, lent=True), Book("numpy==2", 2024)]
COLUMNS: tuple[Column[Book], ...] = (
    Column("title", lambda book: book.title, rank=2),
    Column("year", lambda book: str(book.year), lambda book: book.year, right=True, rank=1),
    Column(
        "state",
        lambda book: "lent" if book.lent else "unlent",
        text=lambda book: "lent away" if book.lent else "unlent",
        words={"lent": lambda book: book.lent, "unlent": lambda book: not book.lent},
    ),
)


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("", "a::b Two Towers numpy==2"),
        ("TOW", "Two Towers"),
        ("tow two", "Two Towers"),
        ("-tow", "a::b numpy==2"),
        ("-", ""),
        ("a::b", "a::b"),
        ("numpy==2", "numpy==2"),
        ("19:54", ""),
        ("year>1989", "a::b numpy==2"),
        ("y<=1990 -ti:tow", "a::b"),
        ("-year=1954", "a::b numpy==2"),
        ("year >= 1,990", "a::b numpy==2"),
        ("YEAR:9", "a::b Two Towers"),
        ("year=19x", ""),
        ("lent", "Two Towers"),
        ("-lent", "a::b numpy==2"),
        ("unlent", "a::b numpy==2"),
        ("away", "Two Towers"),
        ("state:lent", "Two Towers"),
        ("state:len", "a::b Two Towers numpy==2"),
        ("title=2", "numpy==2"),
    ],
)
def test_a_query_finds(query: str, titles: str) -> None:
    fitting = parse_query(query, COLUMNS)
    assert " ".join(book.title for book in BOOKS if fitting.matches(book)) == titles


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("yeer>1", "There is no column yeer."),
        ("year>many", "many is not a number."),
        ("year<", "expected a number"),
        ("title>0", "The column title"),
    ],
)
def test_a_query_that_means_nothing_is_refused(query: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_query(query, COLUMNS)
    assert said in refused.value.message
    assert refused.value.hint


def test_rows_are_sorted_by_values_and_grouped_by_what_is_shown() -> None:
    title, year, state = COLUMNS
    assert [book.year for book in arranged(BOOKS, RowQuery(), year) if isinstance(book, Book)] == [
        1954,
        1990,
        2024,
    ]
    assert [getattr(book, "year", 0) for book in arranged(BOOKS, RowQuery(), title)] == [1990, 2024, 1954]
    by_length: Column[Book] = Column("title", lambda book: book.title, sort=lambda book: len(book.title))
    assert arranged(BOOKS, RowQuery(), by_length, reverse=True)[0] == BOOKS[1]
    # The only lent book has no heading, which would repeat the row.
    assert arranged(BOOKS, RowQuery(), group=state) == ["2× unlent", BOOKS[0], BOOKS[2], BOOKS[1]]


def column(name: str, *, rank: int = 0, least: int = 0, width: int = 0) -> Column[str]:
    return Column(name, str, rank=rank, least=least, width=width)


def test_a_narrow_terminal_has_the_columns_that_matter_most() -> None:
    columns = [column("a", rank=2, least=5), column("b"), column("c", rank=1), column("d", rank=3)]
    wanted = [(one, 10) for one in columns]

    def laid(room: int) -> str:
        return " ".join(f"{one.name}{cells}" for one, cells in widths_in(wanted, room, 1))

    assert laid(43) == "a10 b10 c10 d10"
    assert laid(42) == "a10 c10 d10"
    assert laid(28) == "a6 c10 d10"
    assert laid(20) == "a9 c10"
    assert laid(15) == "c10"
    assert laid(7) == "c7"


LAID = st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 8, 20]), st.integers(1, 90))


@given(st.lists(LAID, min_size=1, max_size=12), st.integers(1, 200), st.integers(0, 3))
def test_no_cell_is_cut_beside_free_space(shapes: list[tuple[int, int, int]], room: int, gap: int) -> None:
    wanted = [
        (column(str(n), rank=rank, least=least), cells) for n, (rank, least, cells) in enumerate(shapes)
    ]
    needs = {one.name: cells for one, cells in wanted}
    laid = widths_in(wanted, room, gap)
    used = sum(cells + gap for _, cells in laid) - gap
    assert used <= room
    assert [one.name for one, _ in laid] == sorted((one.name for one, _ in laid), key=int)
    cut = [one for one, cells in laid if cells < needs[one.name]]
    assert not cut or used == room
    if len(laid) > 1:
        assert all(
            one.least and cells >= min(one.least, needs[one.name]) for one, cells in laid if one in cut
        )
    left_out = [one for one, _ in wanted if one.name not in {kept.name for kept, _ in laid}]
    assert all((kept.rank or 99) <= (gone.rank or 99) for kept, _ in laid for gone in left_out)


def test_a_column_that_is_empty_or_repeats_another_is_left_out() -> None:
    columns = [
        column("outcome", rank=2),
        column("end reason"),
        column("labels"),
        column("seen", width=1),
        Column("steps", str, len),
        Column("calls", str, len),
    ]
    cells = [["routine", "solved"], ["routine", "solved"], ["", ""], ["", ""], ["4", "5"], ["4", "5"]]
    assert [one.name for one in informative_columns(columns, cells)] == ["outcome", "seen", "steps", "calls"]
    cells[1] = ["routine", "stopped"]
    assert "end reason" in [one.name for one in informative_columns(columns, cells)]
    assert informative_columns(columns, [[]] * 6) == columns


def test_a_query_may_use_the_former_name_of_a_column() -> None:
    columns = [Column("end reason", str, former_names=("ending",))]
    for query in ("end:stop", "end_reason:stop", "ending:stop", "end_reason = stopped"):
        assert parse_query(query, columns).matches("stopped")
        assert not parse_query(query, columns).matches("solved")


def test_a_column_is_printed_by_the_same_entry(capsys: pytest.CaptureFixture[str]) -> None:
    print_records((*COLUMNS, Column("decade", lambda book: f"{book.year // 10}0s")), BOOKS[1:2])
    assert capsys.readouterr().out == "title\tyear\tstate\tdecade\nTwo Towers\t1954\tlent\t1950s\n"


@pytest.mark.parametrize("reverse", [False, True])
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, float("-inf")]), st.sampled_from("abc")), max_size=60))
def test_rows_sorted_in_runs_are_in_the_order_of_one_sort(
    reverse: bool, keys: list[tuple[float, str]]
) -> None:
    rows = [f"{n} {key}" for n, key in enumerate(keys)]
    known = dict(zip(rows, keys, strict=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "_RUN", 7)
        found = tables._in_order(rows, keys, reverse=reverse)
    assert found == sorted(rows, key=known.__getitem__, reverse=reverse)


def test_a_long_arrangement_can_be_ended() -> None:
    checks: list[int] = []

    def check() -> None:
        checks.append(len(checks))
        if len(checks) == 3:
            raise CancelledError("ended")

    with pytest.raises(CancelledError):
        arranged(range(10_000), RowQuery(), check=check)
    assert len(checks) == 3
