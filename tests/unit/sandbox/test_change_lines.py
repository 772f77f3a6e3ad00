"""The lines that a run must reach for a change of a function to matter to it."""

from __future__ import annotations

import pytest

from gistpoint.core.code.snippet import read_snippet
from gistpoint.sandbox.candidates.change import lines_that_matter

FUNCTION = '''\
def f(xs, y=1):
    """Text."""
    total = 0
    for x in xs:
        if x > 1:
            total += x
        elif x:
            total -= 1
            y = 2
    try:
        return total / y
    except ZeroDivisionError:
        return None
    def inner(z):
        return z + 1
    return [
        inner(x)
        for x in xs
    ]
'''
CASES = {
    "a statement": ("total += x", "total += 2 * x", {6}),
    "a condition": ("if x > 1:", "if x >= 1:", {5}),
    "a branch of it": ("elif x:", "elif not x:", {7}),
    "a loop": ("in xs:\n        if", "in xs[1:]:\n        if", {4}),
    "one statement less": ("            total -= 1\n", "", {7}),
    "one name less": ("            y = 2\n", "", {7}),
    "a name is no longer bound": ("for x in xs:\n        if", "for y in xs:\n        if", None),
    "what leaves its block": ("        return total / y", "        y = total\n        return y", {10, 11, 12, 13}),
    "inside of a try": ("total / y", "y / total", set(range(10, 14))),
    "inside of a nested function": ("z + 1", "z - 1", {15}),
    "a statement of several lines": ("inner(x)\n", "inner(y)\n", {16, 17, 18, 19}),
    "another statement": ("total -= 1", "break", {8}),
    "a block for a statement": ("            total -= 1\n", "            if x:\n                total -= 1\n", {8}),
    "a statement for a block": (
        "        if x > 1:\n            total += x\n        elif x:\n            total -= 1\n            y = 2\n",
        "        total, y = y, total\n",
        {5},
    ),
    "a branch less": ("        elif x:\n            total -= 1\n            y = 2\n", "        y = total\n", {4}),
    "a name becomes local": ("inner(x)\n", "(other := inner(x))\n", None),
    "a generator": ("total += x", "total += yield", None),
    "the text": ("Text.", "Other.", None),
    "the length of the whole": ("    total = 0\n", "    total = 0\n    total = 0\n", None),
    "nothing": ("total", "total", None),
}


@pytest.mark.parametrize(("old", "new", "lines"), CASES.values(), ids=CASES)
def test_lines_that_matter(old: str, new: str, lines: set[int] | None) -> None:
    before, after = (read_snippet(text).node for text in (FUNCTION, FUNCTION.replace(old, new, 1)))
    found = lines_that_matter(before, after)
    assert found == (None if lines is None else frozenset(lines))
