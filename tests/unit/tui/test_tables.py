"""Columns, the order of rows, and the language of queries, without a screen."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gistpoint.tui.commands.output import print_records
from gistpoint.tui.tables import WIDE, Column, QueryError, RowQuery, arranged, columns_for, parse_query


@dataclass(frozen=True)
class Book:
    title: str
    year: int
    lent: bool = False


BOOKS = [Book("a::b", 1990), Book("Two Towers", 1954, lent=True), Book("numpy==2", 2024)]
COLUMNS: tuple[Column[Book], ...] = (
    Column("title", lambda book: book.title, width=10, rank=2),
    Column("year", lambda book: str(book.year), lambda book: book.year, width=4, right=True, rank=1),
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
        ("state:lent", "a::b Two Towers numpy==2"),
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
        ("year<", "nothing is not"),
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
    assert arranged(BOOKS, RowQuery(), group=state) == ["2× unlent", BOOKS[0], BOOKS[2], "1× lent", BOOKS[1]]


def test_a_narrow_terminal_has_the_columns_that_matter_most() -> None:
    assert [column.name for column in columns_for(COLUMNS, WIDE)] == ["title", "year", "state"]
    assert [column.name for column in columns_for(COLUMNS, WIDE - 1)] == ["year", "title"]
    assert [column.name for column in columns_for(COLUMNS[2:], 10)] == ["state"]


def test_a_column_is_printed_by_the_same_entry(capsys: pytest.CaptureFixture[str]) -> None:
    print_records((*COLUMNS, Column("decade", lambda book: f"{book.year // 10}0s")), BOOKS[1:2])
    assert capsys.readouterr().out == "title\tyear\tstate\tdecade\nTwo Towers\t1954\tlent\t1950s\n"
