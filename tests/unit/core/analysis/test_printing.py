"""The formatting of numbers."""

from __future__ import annotations

import math

import pytest

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Shortfall, Value
from gistpoint.core.analysis.printing import (
    Extent,
    extent_of_table,
    iid_words,
    interval_words,
    shortfall_words,
    value_words,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"), (math.nan, "–"), (-math.inf, "-∞"), (0, "0"), (0.0, "0.00"), (7, "7"), (12345, "12,345"),
        (0.6314, "0.631"), (-0.51, "-0.510"), (2.345, "2.35"), (23.45, "23.4"), (234.5, "234"), (2345.6, "2,346"),
        (0.00012, "1.2e-04"), ("a\u202eb\n", "a⇄b␊"),
    ],
)  # fmt: skip
def test_a_value(value: Value, words: str) -> None:
    assert value_words(value) == words


def test_an_interval_needs_both_ends() -> None:
    assert interval_words(Number(0.5, 0.25, 0.75)) == "[0.250, 0.750]"
    assert interval_words(Number(0.5, 0.25)) == ""


def test_the_second_interval_says_what_it_is() -> None:
    assert iid_words(Number(0.5, iid=(0.25, 0.75))) == "i.i.d. [0.250, 0.750]"
    assert iid_words(Number(0.5, iid=(0.25, 0.75), iid_label="bootstrap")) == "bootstrap [0.250, 0.750]"
    assert iid_words(Number(0.5)) == ""


def test_what_lacks_the_same_is_told_in_one_sentence() -> None:
    found = [
        Shortfall("The curve of a,", "tasks", 10, 1),
        Shortfall("B", "tasks", 10, 4),
        Shortfall("C", "tasks", 10, 1),
    ]
    assert shortfall_words(found) == [
        "2 are not estimated, as each needs at least 10 tasks, and there is 1: The curve of a; C.",
        "B is not estimated: it needs at least 10 tasks, and there are 4.",
    ]


def test_a_table_tells_how_many_persons_and_tasks_it_rests_on() -> None:
    whole, table = Extent(9, 9, 99), FindingsTable("t", ("a",), ((1,),))
    numbers = {"x": Number(0.5, persons=8, tasks=16, rows=64)}
    own = FindingsTable(
        "t", ("a",), ((Number(0.5, persons=3, tasks=4, rows=5),), (Number(0.1, persons=1, tasks=1, rows=1),))
    )
    assert (
        extent_of_table(own, Findings(numbers), whole).words
        == "a number rests on up to 3 persons, 4 tasks, 5 attempts"
    )
    assert extent_of_table(table, Findings(numbers), whole).words == "8 persons, 16 tasks, 64 attempts"
    assert extent_of_table(table, Findings(), whole) == whole
    assert Extent(0, 1, 1).words == "1 task, 1 attempt"
