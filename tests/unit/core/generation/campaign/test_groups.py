"""The best parts found for a group that together still make a task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gistpoint.core.generation.candidates import nested
from gistpoint.core.generation.trials.discovery import Rated
from gistpoint.core.generation.trials.groups import best_parts


def part(name: str, value: float, failed: str, glance: float = 0.2) -> Rated:
    """Return a part with this subtlety and glance score; each letter of `failed` is a failing test."""
    made: Any = SimpleNamespace(
        name=name,
        subtlety=SimpleNamespace(value=value),
        glance=SimpleNamespace(value=glance),
        report=SimpleNamespace(failed=dict.fromkeys(failed)),
    )
    return cast("Rated", made)


@pytest.mark.parametrize(
    ("size", "parts", "chosen"),
    [
        (3, [("a", 0.9, "xy"), ("b", 0.85, "yz"), ("c", 0.8, "zx")], "abc"),
        (2, [("a", 0.82, "xy"), ("b", 0.85, "yz"), ("c", 0.9, "zw")], "bc"),
        (3, [("a", 0.9, "xy"), ("b", 0.5, "yz"), ("c", 0.9, "zw")], "ac"),
        (2, [("a", 0.5, "xy"), ("b", 0.6, "yz")], "ab"),
        (3, [("a", 0.5, "xy"), ("b", 0.6, "yz"), ("c", 0.7, "zw")], "bc"),
    ],
    ids=[
        "all are good",
        "the worst of too many",
        "a weak one",
        "no group without the weak",
        "the better of the weak",
    ],
)
def test_a_weak_part_is_left_out_where_a_group_remains(
    size: int, parts: list[tuple[str, float, str]], chosen: str
) -> None:
    found = best_parts([part(*each) for each in parts], size)
    assert "".join(cast("Any", each).name for each in found) == chosen


def test_of_too_many_the_one_that_readers_see_most_of_is_left_out() -> None:
    found = best_parts([part("a", 0.82, "xy", 0.1), part("b", 0.95, "yz", 0.4), part("c", 0.9, "zx", 0.2)], 2)
    assert [cast("Any", each).name for each in found] == ["a", "c"]


@pytest.mark.parametrize(
    ("one", "other", "is_nested"),
    [
        ("f", "f", True),
        ("f", "f.<locals>.g", True),
        ("f#2", "f.<locals>.g", True),
        ("C.m#3", "C.m.<locals>.D.g#2", True),
        ("f.<locals>.g#2", "f.<locals>.g.<locals>.h", True),
        ("f", "f#2", False),
        ("f", "fa.<locals>.g", False),
        ("f.<locals>.g", "f.<locals>.h", False),
        ("C.m", "C.n", False),
    ],
)
def test_a_function_and_one_inside_it_are_nested_whichever_definition_it_is(
    one: str, other: str, is_nested: bool
) -> None:
    for first, second in ((one, other), (other, one)):
        assert nested(f"a#1/b.py::{first}", f"a#1/b.py::{second}") is is_nested
        assert nested(f"a.py::{first}", f"b.py::{second}") is False
