"""Conditions on functions: their meaning, and the messages for invalid ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.metrics.centrality import Centrality
from gistpoint.core.metrics.complexity import Complexity
from gistpoint.core.metrics.conditions import filter_rows, read_condition
from gistpoint.core.metrics.table import COLUMNS, ColumnError, FunctionMetrics


def row(name: str, lines: int, out: float, kind: str = "function", degree: int = 2) -> FunctionMetrics:
    complexity = Complexity(lines, 1, 1, 0.0, 0.0, 0) if lines else None
    return FunctionMetrics(
        f"src/m.py::{name}", kind, 1, complexity, Centrality(out, 0, 0, 0, 0, 0, degree, 0, degree, None)
    )


ROWS = [
    row("load", 3, 0.0),
    row("Store.load", 8, 0.1, "method"),
    row("Store.save", 12, 0.2, "method", degree=4),
    row("save.<locals>.and_then", 20, 0.3),
    row("generated", 0, 0.4, degree=9),
]


def names(*conditions: str) -> list[str]:
    return [item.function.removeprefix("src/m.py::") for item in filter_rows(ROWS, conditions)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("code_lines >= 12", ["Store.save", "save.<locals>.and_then"]),
        ("code_lines>=12", ["Store.save", "save.<locals>.and_then"]),
        ("code_lines >= 12 and harmonic_out > .2", ["save.<locals>.and_then"]),
        ("code_lines == 3 or kind=method and degree = 4", ["load", "Store.save"]),
        ("(code_lines = 3 or kind=method) and degree != 4", ["load", "Store.load"]),
        ("not code_lines > 3", ["load", "generated"]),
        ("not not kind != method and degree<5", ["load", "save.<locals>.and_then"]),
        ("load", ["load", "Store.load"]),
        ("load and not Store.", ["load"]),
        ("save.<locals>", ["save.<locals>.and_then"]),
        ("'and' and code_lines > 1", ["save.<locals>.and_then"]),
        ("function = src/m.py::save.<locals>.and_then", ["save.<locals>.and_then"]),
        ('function="src/m.py::load"', ["load"]),
        ("harmonic_out >= p75", ["save.<locals>.and_then", "generated"]),
        ("code_lines <= p0", ["load"]),
        ("harmonic_out > p62.5", ["save.<locals>.and_then", "generated"]),
        ("degree > code_lines", []),
        ("degree < code_lines and degree >= 4", ["Store.save"]),
        ("eigenvector >= 0", []),
        ("eigenvector <= p50", []),
    ],
)
def test_meaning(condition: str, expected: list[str]) -> None:
    assert names(condition) == expected


def test_several_conditions_must_all_hold() -> None:
    assert names("kind=method", "degree < 4") == ["Store.load"]


def test_percentiles_are_those_of_the_population() -> None:
    assert [item.cell("degree") for item in filter_rows(ROWS[:3], ["degree >= p100"])] == [4]
    assert not filter_rows(ROWS[:3], ["degree >= p100"], ROWS)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("degree >", "ends too early"),
        ("degree >= many", "'many' at 11"),
        ("degree > nan", "'nan' at 10"),
        ("degree < 1e999", "'1e999' at 10"),
        ("kind > p50", "'>' at 6"),
        ("degree > p101", "'p101' at 10"),
        ("(degree > 3", "'(' at 1"),
        ("degree > 3)", "')' at 11"),
        ("degree > 3 4", "'4' at 12"),
        ("load save", "'save' at 6"),
        ("and degree > 3", "'and' at 1"),
        ("degree > 3 and", "ends too early"),
        ("degree > and", "'and' at 10"),
        ("1 < degree < 3", "no column '1' (at 1"),
        ("degree = 'a", '"\'" at 10'),
        ("(" * 60 + "degree > 3" + ")" * 60, "nested"),
        ("a or " * 2000 + "a", "at most"),
    ],
)
def test_mistakes_are_told_with_their_place(condition: str, told: str) -> None:
    with pytest.raises(ColumnError, match=r"\.") as caught:
        read_condition(condition)
    assert told in caught.value.message


def test_an_unknown_column_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ColumnError) as caught:
        read_condition("degree > 1 and colour > 3")
    assert "'colour' (at 16" in caught.value.message
    assert all(column in caught.value.hint for column in COLUMNS)


_PIECES = [
    "degree",
    "kind",
    "p90",
    "3",
    "and",
    "or",
    "not",
    "(",
    ")",
    ">=",
    "=",
    "<",
    "load",
    "'x",
    "<locals>",
    "\x00",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    """What is a condition has a negation, which holds where it does not."""
    try:
        found = filter_rows(ROWS, [text])
    except ColumnError as error:
        told = error.message
        assert told.endswith(".")
        assert told.isprintable()
        return
    assert filter_rows(ROWS, [f"not ({text})"]) == [item for item in ROWS if item not in found]
    assert filter_rows(ROWS, [f"({text}) and ({text})", text]) == found
