"""Rewrites keep the meaning; faults in rewritten code, and those made at several places, change it."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.edits import apply, edits_between
from gistpoint.core.corruption.operators.rewrites import REWRITES
from gistpoint.core.corruption.subject import NamesInReach, read_text, vocabulary_of

FUNCTIONS = {
    "any as a loop": [
        """
        def f(a):
            return any(x > 2 for x in a if x != 3)
        """,
        """
        def f(a):
            return all(x > 2 or x == 1 for x in a)
        """,
    ],
    "comprehension as a loop": [
        """
        def f(a):
            b = [x + 1 for x in a if x]
            return b
        """,
        """
        def f(a):
            return {x: x + 1 for x in a}
        """,
    ],
    "loop as a comprehension": [
        """
        def f(a):
            b = []
            for x in a:
                if x > 1:
                    b.append(x * 2)
            return b
        """,
    ],
    "joined ifs": [
        """
        def f(a):
            if a and a[0] > 1:
                return a[0]
            return 0
        """,
        """
        def f(a):
            if a:
                if a[0] > 1:
                    a = [a[0]]
            return a
        """,
    ],
    "turned if": [
        """
        def f(a):
            if len(a) > 1 and a[0] or not a:
                b = 1
            else:
                b = 2
            return b
        """,
    ],
    "de Morgan": [
        """
        def f(a):
            if not (a or len(a) > 2):
                return 1
            return 2
        """,
        """
        def f(a):
            if not a and not a[1:]:
                return 1
            return 2
        """,
    ],
    "choice as an if": [
        """
        def f(a):
            b = len(a) if a else 7
            return b
        """,
        """
        def f(a):
            if a:
                return len(a)
            else:
                return 7
        """,
    ],
    "early continue": [
        """
        def f(a):
            b = 0
            for x in a:
                if x > 1:
                    b += x
                    b += 1
            return b
        """,
        """
        def f(a):
            b = 0
            for x in a:
                if x > 1:
                    continue
                b += x
            return b
        """,
    ],
    "inlined variable": [
        """
        def f(a):
            b = sorted(a)
            return b + [1]
        """,
    ],
    "else after return": [
        """
        def f(a):
            if a:
                return 1
            b = 2
            return b
        """,
        """
        def f(a):
            if a:
                return 1
            else:
                b = 2
                return b
        """,
    ],
}
GIVEN = ([], [0], [1], [3], [2, 1], [1, 2, 3], [3, 3, 0], [5, 1, 4])


def value_of(text: str, given: object) -> object:
    names: dict[str, Any] = {}
    exec(text, names)
    return names["f"](given)


def test_every_rewrite_has_an_example() -> None:
    assert {name for name, _ in REWRITES} == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rewrite_keeps_the_meaning(name: str) -> None:
    for source in FUNCTIONS[name]:
        text = textwrap.dedent(source).strip()
        subject = read_text(text, NamesInReach())
        assert subject is not None
        rewritten = [apply(sorted(edits), text) for edits in dict(REWRITES)[name](subject)]
        assert rewritten, text
        for other in rewritten:
            assert other != text
            assert [value_of(other, list(given)) for given in GIVEN] == [
                value_of(text, list(given)) for given in GIVEN
            ]


def families_of(source: str) -> dict[tuple[str, ...], list[str]]:
    index = index_source("m.py", textwrap.dedent(source).strip().encode())
    found: dict[tuple[str, ...], list[str]] = {}
    for item in enumerate_corruptions(index, index.find("f"), vocabulary_of([index])).kept:
        found.setdefault(item.families, []).append(item.target.corrupted)
    return found


def test_a_fault_in_rewritten_code_has_the_names_of_both() -> None:
    found = families_of(
        """
        def f(a, b):
            if isinstance(a, (list, tuple)):
                c = a[0]
            else:
                c = b
            return c
        """
    )
    (text,) = [text for text in found["lost alternative", "turned if"] if "tuple" in text]
    assert text.split("\n")[1:5] == [
        "    if not isinstance(a, tuple):",
        "        c = b",
        "    else:",
        "        c = a[0]",
    ]


def test_a_fault_is_made_wherever_the_same_text_stands() -> None:
    source = """
        def f(a, b, c):
            for x in a.items(multi=True):
                b.add(x)
            for x in b.items(multi=True):
                c.add(x)
            return c
        """
    found = families_of(source)
    (text,) = found["dropped option", "consistent"]
    assert "multi" not in text
    assert ("dropped option",) not in found


def test_composed_ones_can_be_left_out() -> None:
    index = index_source("m.py", b"def f(a):\n    return a.b(c=1) + f.b(c=1)\n")
    vocabulary = vocabulary_of([index])
    for item in enumerate_corruptions(index, index.find("f"), vocabulary, composed=False).kept:
        assert len(item.families) == 1


@pytest.mark.parametrize(
    ("before", "after"), [("a\nb\nc", "a\nx\nc"), ("a", "a\nb"), ("a\nb", "b"), ("", "a"), ("a\n", "a")]
)
def test_edits_between_two_texts_make_one_into_the_other(before: str, after: str) -> None:
    assert apply(edits_between(before, after), before) == after
