"""Each family makes its fault in a small function and leaves other code unchanged."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from shelves import install_package

from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.registry import all_operators
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.plugins import PluginError


def results(source: str, name: str = "f") -> dict[str, list[str]]:
    """Return the corrupted texts of a function by family."""
    index = index_source("m.py", textwrap.dedent(source).encode())
    found: dict[str, list[str]] = {}
    for item in enumerate_corruptions(index, index.find(name), vocabulary_of([index])).kept:
        found.setdefault(item.families[0], []).append(item.target.corrupted)
    return found


def changed(source: str, family: str, name: str = "f") -> set[str]:
    """Return the lines that a family's corruptions add or move, stripped."""
    index = index_source("m.py", textwrap.dedent(source).encode())
    before = index.find(name).dedented.split("\n")
    return {
        line.strip()
        for text in results(source, name).get(family, [])
        for place, line in enumerate(text.split("\n"))
        if place >= len(before) or line != before[place]
    }


CASES = [
    ("boundary", "def f(a, b):\n    return a < b", "return a <= b"),
    ("boundary", "def f(a, b, c):\n    return a <= b < c", "return a <= b <= c"),
    ("sentinel", "def f(a):\n    if a is None:\n        a = 1\n    return a", "if not a:"),
    ("sentinel", "def f(a):\n    return 1 if a is not None else 2", "return 1 if a else 2"),
    ("sentinel", "def f(a):\n    if not a.b:\n        a = 1\n    return a", "if a.b is None:"),
    ("weakened condition", "def f(a, b):\n    return (a or b) and b > 1", "return a or b"),
    ("weakened condition", "def f(a, b):\n    return [x.c for x in a if x > b] + [b]", "return [x.c for x in a] + [b]"),
    ("and for or", "def f(a, b):\n    return a or b", "return a and b"),
    ("lost case", "def f(a):\n    if a:\n        return 1\n    return a", "return a"),
    ("lost case",
     "def f(a):\n    if a > 1:\n        b = 1\n    elif a:\n        b = 2\n    else:\n        b = a\n    return b",
     "else:"),
    ("lost guard", "def f(a):\n    if a:\n        a.x()\n    return a", "a.x()"),
    ("break for continue", "def f(a):\n    for x in a:\n        if x:\n            continue\n        a.y()", "break"),
    ("skipped call", "def f(a):\n    a.x()\n    a.y()\n    return a", "return a"),
    ("skipped update", "def f(a):\n    a.x = 1\n    a.y = 2\n    return a", "return a"),
    ("unrestored state",
     "def f(a):\n    old = a.x\n    try:\n        a.y(old)\n    finally:\n        a.x = old\n        a.z()",
     "a.z()"),
    ("off by one", "def f(a):\n    return a[len(a) - 1]", "return a[len(a)]"),
    ("off by one", "def f(a):\n    return 2 * (a - 1)", "return 2 * a"),
    ("off by one", "def f(a):\n    return list(range(1, a))", "return list(range(1, a - 1))"),
    ("slice bound", "def f(a):\n    return a[1:]", "return a[2:]"),
    ("rounding", "def f(a, b):\n    return a // b", "return a / b"),
    ("narrowed exception", "def f(a):\n    try:\n        a.x()\n    except (KeyError, OSError):\n        a.y()",
     "except KeyError:"),
    ("widened exception", "def f(a):\n    try:\n        a.x()\n    except KeyError:\n        a.y()",
     "except Exception:"),
    ("swallowed exception",
     "def f(a):\n    try:\n        a.x()\n    except KeyError:\n        a.y()\n        raise\n    return a",
     "return a"),
    ("lost copy", "def f(a):\n    b = a.copy()\n    return a, b", "b = a"),
    ("lost copy", "def f(a):\n    b = a.c[:]\n    return a, b", "b = a.c"),
    ("keys for values", "def f(a):\n    return a.values()", "return a.keys()"),
    ("sort key", "def f(a, b):\n    return sorted(a, key=b) or b", "return sorted(a) or b"),
    ("other order", "def f(a):\n    for x in reversed(a):\n        x.y()", "for x in a:"),
    ("wrong default", "def f(a):\n    return a.get(1, 0)", "return a.get(1, 1)"),
    ("dropped option", "def f(a):\n    return a.b(1, c=a.d)", "return a.b(1)"),
    ("skipped normalisation", "def f(a):\n    return a.lower()", "return a"),
    ("case order",
     "def f(a):\n    if a.b:\n        return 1\n    if a.c:\n        return 2\n    return a.d", "if a.c:"),
    ("case order",
     "def f(a):\n    if a.b:\n        c = 1\n    elif a.c > 2:\n        c = 2\n    else:\n        c = 3\n    return c",
     "if a.c > 2:"),
    ("added guard", "def f(a):\n    for x in a:\n        x.b()\n        x.c()", "if not x:"),
    ("lost alternative", "def f(a):\n    return a.b(a.c in (1, 2, 3))", "return a.b(a.c in (1, 3))"),
    ("lost alternative", "def f(a):\n    return a.b(a not in (1, 2))", "return a.b(a != 2)"),
    ("lost alternative", "def f(a):\n    return a.b(isinstance(a, (int, str)))", "return a.b(isinstance(a, str))"),
    ("lost limit", "def f(a):\n    return a.split(',', 1)", "return a.split(',')"),
    ("lost limit", "def f(a):\n    return a.b.pop(0)", "return a.b.pop()"),
    ("looser match", "def f(a, b):\n    if not a.b.startswith(b):\n        a.c(b)", "if b not in a.b:"),
    ("looser match", "def f(a, b):\n    if isinstance(b, int):\n        a.c(b)", "if type(b) is int:"),
    ("other identity", "def f(a, b):\n    return b.c(a.b is b)", "return b.c(a.b == b)"),
    ("falsy default", "def f(a, b):\n    c = a.get(b, f)\n    return c", "c = a.get(b) or f"),
    ("falsy default", "def f(a, b):\n    return a if a is not None else b", "return a or b"),
    ("falsy default", "def f(a, b):\n    if a is None:\n        a = b.c\n    return a", "a = a or b.c"),
    ("first wins", "def f(a, b):\n    for x in a:\n        b[x.c] = x\n    return b.items()", "b.setdefault(x.c, x)"),
    ("first wins",
     "def f(a, b):\n    for x in a:\n        b[x.c] = x\n    return b.items()", "if x.c not in b:"),
    ("first wins", "async def f(a, b):\n    async for x in a:\n        b[x.c] = x\n    return b.items()",
     "b.setdefault(x.c, x)"),
    ("first wins", "def f(a, b):\n    a.setdefault(b, 1)\n    return a", "a[b] = 1"),
    ("lost clamp", "def f(a, b):\n    return b.d(min(a, b.c))", "return b.d(a)"),
    ("early reset",
     "def f(a):\n    for x in a:\n        n = []\n        for y in x:\n            n.append(y)\n        x.z(n)",
     "n = []"),
    ("lost break",
     "def f(a):\n    b = 0\n    for x in a:\n        if x.y:\n            b = x\n            break\n    return b",
     "return b"),
    ("lost finally",
     "def f(a):\n    a.b = 1\n    try:\n        a.c()\n    finally:\n        a.b = 2", "a.b = 2"),
    ("wider try",
     "def f(a):\n    c = a.b()\n    try:\n        c.d()\n    except KeyError:\n        return 1\n    return 2",
     "c = a.b()"),
    ("other time",
     "def f(a):\n    a.b = 1\n    b = f(2)\n    a.e(b)\n    return f(a.b)", "a.b = 1"),
    ("stale value",
     "def f(self):\n    if self.a:\n        self.b()\n        self.c(self.a)", "a = self.a"),
    ("lost step", "def f(a):\n    for x in a.b:\n        x.c()\n    return a.d()", "return a.d()"),
    ("lost step", "def f(a):\n    if a.b:\n        a.c = 2\n    return a.d()", "return a.d()"),
    ("lost preparation", "def f(a):\n    a = a.strip()\n    return a.b(a)", "return a.b(a)"),
    ("lost yield", "def f(a):\n    yield a.b\n    yield a.c", "yield a.c"),
    ("lost handler",
     "def f(a):\n    try:\n        a.b()\n    except KeyError:\n        a.c()\n    except TypeError:\n        a.d()",
     "except TypeError:"),
    ("lost entry", "def f(a):\n    return {1: a.b, 2: a.c, 3: a.d}", "return {1: a.b, 3: a.d}"),
    ("lost alternative", "def f(a):\n    for x in (1, 2, 3):\n        a.b(x)", "for x in (2, 3):"),
    ("lost alternative",
     "def f(a):\n    kinds = (a.Int,\n    a.Float, a.Str)\n    a.b(kinds)", "kinds = (a.Int, a.Str)"),
    ("lost alternative", "def f(a):\n    return a.b(a.c or a.d or a.e)", "return a.b(a.c or a.e)"),
    ("lost case",
     "def f(a):\n    if a == 1:\n        return 2\n    elif a == 3:\n        return 4\n    return a", "if a == 3:"),
    ("lost term", "def f(a):\n    return a.b + a.c + a.d", "return a.b + a.c"),
    ("lost argument", "def f(a):\n    return g(a, a.b)\n\ndef g(a, b=None):\n    return a", "return g(a)"),
    ("lost choice", "def f(a, b, c):\n    return f(a.c, b if c.d else 2, c)", "return f(a.c, b, c)"),
    ("lost term", "def f(a):\n    return a.b + a.c + a.d", "return a.b + a.d"),
    ("weaker method", "def f(a):\n    return a.rsplit(',', 1)", "return a.split(',', 1)"),
    ("weaker method", "def f(a):\n    return a.casefold()", "return a.lower()"),
    ("weaker method", "def f(a):\n    return _RE.fullmatch(a)", "return _RE.match(a)"),
    ("weaker function", "def f(a):\n    return f(sorted(a))", "return f(list(a))"),
    ("narrower type",
     "def f(a):\n    return f(isinstance(a, Mapping), Mapping)", "return f(isinstance(a, dict), Mapping)"),
    ("part of a duration", "def f(a):\n    return a.total_seconds()", "return a.seconds"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "source", "line"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)]
)
def test_family_makes_its_fault(family: str, source: str, line: str) -> None:
    assert line in changed(source, family)


def test_a_long_statement_keeps_its_layout() -> None:
    source = "def f(a, b):\n    return g(\n        a,   b,\n        x = (a <\n             b),\n    )\n"
    assert results(source)["boundary"] == [source.rstrip().replace("(a <\n", "(a <=\n")]


def test_places_behind_other_alphabets_are_right() -> None:
    source = 'def f(größe, b):\n    ä = "ß€😀"; return größe < b, ä\n'
    assert results(source)["boundary"] == [source.rstrip().replace(" < ", " <= ")]


def test_formatted_strings_and_nested_functions_are_left_alone() -> None:
    source = 'def f(a):\n    def g(b):\n        return b < a\n    return f"{a < 1} {g}"\n'
    assert "boundary" not in results(source)
    assert changed(source, "boundary", "f.<locals>.g") == {"return b <= a"}


@pytest.mark.parametrize("loop", ["while a", "for x in a", "async for x in a"])
def test_a_search_in_a_loop_keeps_its_start(loop: str) -> None:
    source = "async def f(a, b):\n    {}:\n        a.c(b.y.find(a, b.z))\n    return b\n"
    assert "lost limit" in results(source.format("if a"))
    assert "lost limit" not in results(source.format(loop))


def test_what_would_stand_out_is_not_tried() -> None:
    assert "lost alternative" not in results("def f(a):\n    key = (a, 1, a.b)\n    return key\n")
    assert "lost alternative" not in results("def f(a):\n    return isinstance(a, (a.Def, a.AsyncDef))\n")
    assert "lost alternative" not in results("def f(a):\n    return isinstance(a, (list, tuple, set))\n")
    assert "lost step" not in results("def f(a):\n    a.b()\n    for x in a:\n        x.c()\n")
    assert "lost term" not in results("def f(a):\n    return '<' + a.b + '>'\n")
    assert "skipped update" not in results("def f(a):\n    a.n += 1\n    return a\n")
    assert "lost entry" not in results("def f(a):\n    return '%s %s %s' % (a.b, a.c, a.d)\n")
    assert "lost entry" not in results("def f(a):\n    return ''.join([a.b, a.c, a.d])\n")
    assert "lost guard" not in results("def f(a):\n    if a is None:\n        a = 1\n    return a\n")
    assert "skipped update" not in results(
        "class C:\n    def __init__(self):\n        self.a = 1\n        self.b = 2\n", "C.__init__"
    )


def test_a_handler_that_says_what_went_wrong_is_left_alone() -> None:
    source = "def f(a):\n    try:\n        return a.b()\n    except KeyError:\n        {}\n"
    assert "widened exception" in results(source.format("return 1"))
    assert "widened exception" not in results(source.format("raise ValueError('no such key')"))


def test_an_operator_that_cannot_be_loaded_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(tmp_path, monkeypatch, "[gistpoint.operators]\ncart = cart_operators:SWAP\n")
    all_operators.cache_clear()
    try:
        with pytest.raises(
            PluginError, match=r"'cart' \(gistpoint\.operators, from cart 1\.0\) can't be loaded"
        ):
            all_operators()
    finally:
        all_operators.cache_clear()
