"""The versions of functions that a blind reader sees, their order, and the changed lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from gistpoint.core.corruption.blind import BlindItem, ShownVersion, in_order
from gistpoint.core.tasks.model import Target

ORIGINAL = "def f(x):\n    a = x + 1\n    b = a * 2\n    log(b)\n    return b\n"


def item(number: int = 0, corrupted: str = ORIGINAL.replace("+ 1", "- 1"), source: str = "shop") -> BlindItem:
    return BlindItem(f"{number:064}", source, Target("f.py", f"f{number}", ORIGINAL, corrupted))


def test_a_seed_decides_the_version_and_its_neighbour_shows_the_other_one() -> None:
    items = [item(number) for number in range(200)]
    counts = Counter(one.version(4) for one in items)
    assert 70 < counts[ShownVersion.CORRUPTED] < 130
    assert all({one.version(4), one.version(5)} == set(ShownVersion) for one in items)
    assert any(one.version(4) is not one.version(6) for one in items)


def test_each_reader_and_round_has_an_order_of_its_own_and_a_function_comes_once() -> None:
    items = [item(number) for number in range(20)]
    again = replace(items[3], task="9" * 64)  # the same function in another task
    elsewhere = replace(items[4], source="market", task="8" * 64)
    ada = in_order([*items, again, elsewhere], 1, "ada")
    bob = in_order([elsewhere, again, *items], 1, "bob")
    assert len(ada) == 21
    assert {id(one) for one in ada} == {id(one) for one in bob}
    assert ada != bob
    assert ada == in_order([again, *reversed(items), elsewhere], 1, "ada")
    assert ada != in_order([*items, again, elsewhere], 1, "ada", 2)


@pytest.mark.parametrize(
    ("corrupted", "changed", "hits"),
    [
        (ORIGINAL.replace("+ 1", "- 1"), {2}, {2, 3}),
        (ORIGINAL.replace("    log(b)\n", ""), {3, 4}, {2, 3, 4, 5}),
        (ORIGINAL.replace("    log(b)\n", "    log(b)\n    b += 1\n    b -= 2\n"), {5, 6}, {4, 5, 6, 7}),
        (ORIGINAL.replace("    return b\n", ""), {4}, {3, 4, 5}),
    ],
)
def test_a_mark_names_the_changed_place_or_one_beside_it_but_not_the_signature(
    corrupted: str, changed: set[int], hits: set[int]
) -> None:
    made = item(corrupted=corrupted)
    assert made.changed_lines == changed
    assert {line for line in range(10) if made.is_hit(line)} == hits


def test_blanks_at_the_ends_tell_nothing() -> None:
    made = item(corrupted=ORIGINAL.replace("+ 1", "- 1  ") + "\n\n")
    assert made.text(ShownVersion.CORRUPTED) == ORIGINAL.replace("+ 1", "- 1")
    assert made.changed_lines == {2}
