"""Rewrites keep the meaning; faults in rewritten code, and those made at several places, change it."""

from __future__ import annotations

import ast
import math
import textwrap
from collections.abc import Callable, Sequence
from itertools import product
from random import Random
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
            return all(x == 2 or x == 1 for x in a)
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
            if len(a) > 1 and a[0] or not a or 2 < len(a[1:]):
                b = 1
            else:
                b = 2
            return b
        """,
    ],
    "de Morgan": [
        """
        def f(a):
            if not (a or len(a) > 2 - 1):
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
                if x != 1:
                    b += x
                    b += 1
            return b
        """,
        """
        def f(a):
            b = 0
            for x in a:
                if x == 1:
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
        """
        def f(a):
            b = sorted(a)
            if b and a:
                return 1
        """,
        """
        def f(a):
            b = a[1:]
            return len(b)
        """,
        """
        def f(a):
            b = a[1:]
            a.extend(b)
            return a
        """,
        """
        def f(a):
            b = a.pop()
            a += [1, b]
            return a
        """,
        """
        def f(a):
            b = len(a)
            return 1 < b < 3
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


def values_of(text: str, given: Sequence[Sequence[object]]) -> list[str]:
    """Return the results of a function, or its errors, for several lists."""
    names: dict[str, Any] = {}
    exec(text, names)
    return [_value(names["f"], list(values)) for values in given]


def _value(function: Callable[[list[object]], object], given: list[object]) -> str:
    try:
        return repr(function(given))
    except Exception as error:
        return type(error).__name__


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
            assert values_of(other, GIVEN) == values_of(text, GIVEN)


UNEQUAL = [
    # Declared names
    ("inlined variable", "global b\nb = a()\nreturn b"),
    ("inlined variable", "b = 1\ndef g():\n    nonlocal b\n    b = a()\n    return b\nb = a()\nreturn g"),
    ("inlined variable", "b = a.pop()\ng = lambda: f'{b}'\nreturn g"),
    ("inlined variable", "b = a.pop()\nc = [b]\ndef g():\n    return b\nreturn g, c"),
    # Not evaluated, or repeatedly, or later
    ("inlined variable", "b = a.pop()\nreturn ok and b"),
    ("inlined variable", "b = a.pop()\nreturn 1 if a else b"),
    ("inlined variable", "b = a.pop()\nreturn b if a else 1"),
    ("inlined variable", "b = a.pop()\nreturn 0 < len(a) < b"),
    ("inlined variable", "b = a.pop()\nreturn 0 < 1 < b"),
    ("inlined variable", "b = a.pop()\nreturn lambda: b"),
    ("inlined variable", "b = a.pop()\nreturn [b for c in a]"),
    ("inlined variable", "b = a.pop()\nassert b"),
    ("inlined variable", "b = a.pop()\nmatch a:\n    case [1]:\n        return b"),
    # After other work
    ("inlined variable", "b = a.pop()\nreturn len(a) + b"),
    ("inlined variable", "b = a.pop()\nreturn g(a[0], b)"),
    ("inlined variable", "b = a.pop()\nc[g()] = a[b] = 1"),
    ("inlined variable", "b = a.step()\nreturn STATE + b"),
    ("inlined variable", "b = a.step()\na.total += b"),
    # Stored
    ("inlined variable", "b = a.n\nb += 1"),
    ("inlined variable", "b = a.n\nb = 1"),
    ("inlined variable", "b = a.n\ndel b"),
    ("comprehension as a loop", "b = 0\ntry:\n    b = [g(x) for x in a]\nfinally:\n    return b"),
    ("comprehension as a loop", "global b\nb = [g(x) for x in a]"),
    ("comprehension as a loop", "b = [lambda: x for x in a]\nreturn b"),
    ("comprehension as a loop", "return {a.pop(): a.pop() for _ in c}"),
    ("comprehension as a loop", "b = [x for x in a]\nreturn f'{x} {b}'"),
    ("loop as a comprehension", "b = c = []\nfor x in a:\n    b.append(x)\nreturn b, c"),
    ("loop as a comprehension", "b = []\nfor x in a:\n    b.append(x)\nreturn b, x"),
    ("loop as a comprehension", "a.b = []\nfor x in a:\n    if x not in a.b:\n        a.b.append(x)"),
    ("loop as a comprehension", "b = []\nfor x in a:\n    b.append(lambda: x)\nreturn b"),
    ("loop as a comprehension", "try:\n    b = []\n    for x in a:\n        b.append(g(x))\nfinally:\n    return b"),
    ("de Morgan", "return not (not a or c)"),
    ("choice as an if", "if a:\n    b = 1\nelse:\n    b = c = 2\nreturn c"),
    ("choice as an if", "if a:\n    b = yield from c\nelse:\n    b = 2"),
]  # fmt: skip


ORDERS = {
    "len(a) < 3": True,
    "2 >= len(a)": True,
    "-1.5 <= len(a) - len(c) * 2": True,
    "'a' > f'{a}'": True,
    "ord(a[0]) < 65": True,
    "a < c": False,
    "a[0] > 1": False,
    "1 >= a[0]": False,
    "'a' < 1": False,
    "b'a' < 'a'": False,
    "len(a) <= c": False,
    "a.len(c) < 3": False,
    "sum(a) < 3": False,
    "1.5 * 2 < 3": False,
    "len(a) / 2 < 3": False,
    "{1} < {2}": False,
    "not a < c": True,
    "a == c": True,
    "a in c": True,
    "a and a < c": False,
    "a or len(a) < 3": True,
}
"""Conditions, and whether their negation has the opposite operators."""
WITH_CONDITIONS = {
    "any as a loop": "return all({} for x in a)",
    "turned if": "if {}:\n    b = 1\nelse:\n    b = 2\nreturn b",
    "early continue": "for x in a:\n    if {}:\n        b = 1\n        c = 2\nreturn b",
}


@pytest.mark.parametrize("name", [*WITH_CONDITIONS, "a nested rest", "de Morgan"])
@pytest.mark.parametrize("test", ORDERS)
def test_an_order_is_turned_round_only_if_it_is_known_to_be_total(name: str, test: str) -> None:
    bodies = {
        **WITH_CONDITIONS,
        "a nested rest": "for x in a:\n    if {}:\n        continue\n    b = 1\nreturn b",
        "de Morgan": "if not ({} or c):\n    return 1",
    }
    body = bodies[name].format(test if name != "de Morgan" or "or" not in test else f"({test})")
    subject = read_text("def f(a, c):\n" + textwrap.indent(body, "    "), NamesInReach())
    assert subject is not None
    rewrite = dict(REWRITES)["early continue" if name == "a nested rest" else name]
    if name == "de Morgan" and " and " in test:
        return
    assert bool([*rewrite(subject)]) is ORDERS[test]


BUILT_IN_NAMES = {
    ("turned if", "len"): "if len(a) < 3:\n    b = 1\nelse:\n    b = 2\nreturn b",
    ("any as a loop", "any"): "return any(x for x in a)",
    ("any as a loop", "all"): "return all(x for x in a)",
    ("comprehension as a loop", "set"): "return {x for x in a}",
}
"""Bodies that a rewrite takes apart only if a name means the built-in."""
BUILT_IN = ["def f(a):\n    ...", "class b:\n    any = all = set = len = 1\n    def f(a):\n        ..."]
"""Code with a function in which a name means the built-in; its body replaces the dots."""
NOT_BUILT_IN = [
    "def f(a, {0}):\n    ...",
    "def f(a):\n    {0} = a\n    ...",
    "def f(a):\n    from b import {0}\n    ...",
    "def f(a):\n    def {0}(b): return b\n    ...",
    "{0} = print\ndef f(a):\n    ...",
    "from b import {0}\ndef f(a):\n    ...",
    "if c:\n    import b as {0}\ndef f(a):\n    ...",
    "from b import *\ndef f(a):\n    ...",
    "class {0}: pass\ndef f(a):\n    ...",
    "def g({0}):\n    def f(a):\n        ...",
]
"""Code with a function in which a name means, or may mean, something else."""


@pytest.mark.parametrize(("name", "word"), BUILT_IN_NAMES)
@pytest.mark.parametrize("source", BUILT_IN)
def test_a_builtin_is_known_by_its_name(name: str, word: str, source: str) -> None:
    assert is_rewritten(name, word, source)


@pytest.mark.parametrize(("name", "word"), BUILT_IN_NAMES)
@pytest.mark.parametrize("source", NOT_BUILT_IN)
def test_a_name_of_a_builtin_that_means_something_else_is_not_known(
    name: str, word: str, source: str
) -> None:
    assert not is_rewritten(name, word, source.format(word))


def is_rewritten(name: str, word: str, source: str) -> bool:
    """Return whether a rewrite changes the body about this word in a function `f`."""
    before, margin = source.removesuffix("..."), " " * (len(source) - source.rindex("\n") - 4)
    text = before + textwrap.indent(BUILT_IN_NAMES[name, word], margin).lstrip()
    index = index_source("m.py", text.encode())
    definition = index.find("f")
    subject = read_text(definition.dedented, vocabulary_of([index]).scope(definition))
    assert subject is not None
    return bool([*dict(REWRITES)[name](subject)])


@pytest.mark.parametrize(("name", "body"), UNEQUAL)
def test_code_that_would_change_its_meaning_is_not_rewritten(name: str, body: str) -> None:
    subject = read_text("def f(a, c):\n" + textwrap.indent(body, "    "), NamesInReach())
    assert subject is not None
    assert [*dict(REWRITES)[name](subject)] == []


def condition(random: Random, depth: int = 3) -> str:
    """Return a condition about the three elements of `a`."""
    kinds = ["name", "not", "and", "or", "choice", "equal", "less"]
    kind = random.choice(kinds if depth else ["name"])
    if kind == "name":
        return random.choice(["a[0]", "a[1]", "a[2]"])
    parts = [condition(random, depth - 1) for _ in range(3)]
    match kind:
        case "not":
            return f"(not {parts[0]})"
        case "choice":
            return f"({parts[0]} if {parts[1]} else {parts[2]})"
        case "equal":
            return f"({parts[0]} == {parts[1]})"
        case "less":
            return f"({random.choice(['a[0]', 'len(a)', '2'])} < {random.choice(['a[1]', 'a[2]', '4'])})"
    return f"({f' {kind} '.join(parts[random.randint(0, 1) :])})"


BODIES = (
    "if {0}:\n    return 1\nelse:\n    return 2",
    "if {0}:\n    return 1\nb = {1}\nreturn b",
    "if {0}:\n    if {1}:\n        a[0] = 5\nreturn a",
    "return {0}",
    "b = {0}\nreturn b",
    "b = a.pop()\nreturn {0}, b",
    "b = len(a)\nif {0} and b:\n    return b",
    "return any({0} for x in a if {1})",
    "return all({0} for x in a if {1})",
    "b = [{0} for x in a if {1}]\nreturn b",
    "b = []\nfor x in a:\n    if {0}:\n        b.append({1})\nreturn b",
    "b = 0\nfor x in a:\n    if {0}:\n        continue\n    b += 1\nreturn b",
    "b = 0\nfor x in a:\n    if {0}:\n        b += 1\n        b += 2\nreturn b",
)


def unparenthesised(text: str) -> str:
    """Return code with no more parentheses than it needs."""
    return ast.unparse(ast.parse(text))


@pytest.mark.parametrize("body", BODIES)
def test_rewrites_of_any_conditions_keep_the_meaning(body: str) -> None:
    random = Random(body)
    for _ in range(12):
        text = unparenthesised(
            "def f(a):\n" + textwrap.indent(body.format(condition(random), condition(random)), "    ")
        )
        subject = read_text(text, NamesInReach())
        assert subject is not None
        given = [*product((0, 1, ""), repeat=3), *product((math.nan, frozenset({1}), 2), repeat=3)]
        expected = values_of(text, given)
        for name, rewrite in REWRITES:
            for edits in rewrite(subject):
                other = apply(sorted(edits), text)
                if read_text(other, NamesInReach()) is not None:
                    assert values_of(other, given) == expected, (name, text, other)


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
