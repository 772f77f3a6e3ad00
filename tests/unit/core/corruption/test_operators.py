"""Each family finds its fault in a small function, and leaves alone what it must."""

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
    """The corrupted texts of a function, by family."""
    index = index_source("m.py", textwrap.dedent(source).encode())
    found: dict[str, list[str]] = {}
    for item in enumerate_corruptions(index, index.find(name), vocabulary_of([index])).kept:
        found.setdefault(item.families[0], []).append(item.target.corrupted)
    return found


def changed(source: str, family: str, name: str = "f") -> set[str]:
    """The lines that a family's corruptions bring or move, white space at the ends cut."""
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
    ("flipped comparison", "def f(a, b):\n    return b, (a + 1) >= (b)", "return b, (a + 1) <= (b)"),
    ("negated comparison", "def f(a, b):\n    return b, a not in b", "return b, a in b"),
    ("negated comparison", "def f(a):\n    return a.g(a is None)", "return a.g(a is not None)"),
    ("sentinel", "def f(a):\n    if a is None:\n        a = 1\n    return a", "if not a:"),
    ("sentinel", "def f(a):\n    return 1 if a is not None else a", "return 1 if a else a"),
    ("sentinel", "def f(a):\n    if not a.b:\n        a = 1\n    return a", "if a.b is None:"),
    ("weakened condition", "def f(a, b):\n    return (a or b) and b > 1", "return a or b"),
    ("weakened condition", "def f(a, b):\n    return [x.c for x in a if x > b] + [b]", "return [x.c for x in a] + [b]"),
    ("and for or", "def f(a, b):\n    return a or b", "return a and b"),
    ("inverted condition", "def f(a):\n    while not a.x():\n        a.y(1 if a.z else 2)", "while a.x():"),
    ("exchanged branches", "def f(a):\n    return 1 if a else -a", "return -a if a else 1"),
    ("lost case", "def f(a):\n    if a:\n        return 1\n    return a", "return a"),
    ("lost case",
     "def f(a):\n    if a > 1:\n        b = 1\n    elif a:\n        b = 2\n    else:\n        b = a\n    return b",
     "else:"),
    ("lost guard", "def f(a):\n    if a:\n        a.x()\n    return a", "a.x()"),
    ("separate if", "def f(a):\n    if a.b:\n        a.c()\n    elif a.d:\n        a.e()", "if a.d:"),
    ("break for continue", "def f(a):\n    for x in a:\n        if x:\n            continue\n        a.y()", "break"),
    ("wrong block", "def f(a):\n    for x in a:\n        x.y()\n        a.z()", "a.z()"),
    ("skipped call", "def f(a):\n    a.x()\n    a.y()\n    return a", "return a"),
    ("skipped update", "def f(a):\n    a.x = 1\n    a.y = 2\n    return a", "return a"),
    ("unrestored state",
     "def f(a):\n    old = a.x\n    try:\n        a.y(old)\n    finally:\n        a.x = old\n        a.z()",
     "a.z()"),
    ("plain assignment", "def f(a):\n    for x in a.b:\n        a.n += x", "a.n = x"),
    ("opposite update", "def f(a):\n    for x in a.b:\n        a.n += x", "a.n -= x"),
    ("wrong order", "def f(a):\n    a.x()\n    a.y()", "a.y()"),
    ("off by one", "def f(a):\n    return a[len(a) - 1]", "return a[len(a)]"),
    ("off by one", "def f(a):\n    return 2 * (a - 1)", "return 2 * a"),
    ("inverted condition", "def f(a, b):\n    if not (a < b):\n        a.x(1 if a.y else 2)", "if a < b:"),
    ("off by one", "def f(a):\n    return list(range(1, a))", "return list(range(1, a - 1))"),
    ("slice bound", "def f(a):\n    return a[1:]", "return a[2:]"),
    ("end index", "def f(a):\n    return a[-1]", "return a[0]"),
    ("counting start", "def f(a):\n    n = 0\n    for x in a:\n        n += x\n    return n", "n = 1"),
    ("constant", "def f(a):\n    return a > 10", "return a > 11"),
    ("arithmetic", "def f(a, b):\n    return a // b", "return a / b"),
    ("swapped operands", "def f(a, b):\n    return a.x - b.x", "return b.x - a.x"),
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
    ("turned flag", "def f(a):\n    return a.b(True)", "return a.b(False)"),
    ("dropped option", "def f(a):\n    return a.b(1, c=a.d)", "return a.b(1)"),
    ("skipped normalisation", "def f(a):\n    return a.lower()", "return a"),
    ("sibling method", "def f(a):\n    return a.lstrip()", "return a.rstrip()"),
    ("sibling method", "def f(a):\n    return min(a)", "return max(a)"),
    ("sibling function",
     "def get_a(x):\n    return x\n\ndef get_b(x):\n    return x\n\ndef f(a):\n    return get_a(a), get_a",
     "return get_b(a), get_a"),
    ("sibling attribute",
     "class C:\n    def g(self):\n        self.old_x = 1\n        self.new_x = self.old_x\n"
     "\n    def f(self):\n        return self.old_x",
     "return self.new_x"),
    ("sibling name", "def f(start, end):\n    return start.x(end) + start.y", "return end.x(end) + start.y"),
    ("swapped arguments", "def f(a, m, k):\n    return a(m, k)", "return a(k, m)"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "source", "line"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_family_finds_its_fault(family: str, source: str, line: str) -> None:
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


def test_what_would_stand_out_is_not_tried() -> None:
    dead = "def f(a, b):\n    c = a\n    c += b\n    return c\n"
    assert "plain assignment" not in results(dead)
    assert "opposite update" not in results("def f(a):\n    a.n -= 1\n")
    assert "constant" not in results("def f(a):\n    return a + ' ' * 4\n")
    assert "lost guard" not in results("def f(a):\n    if a is None:\n        a = 1\n    return a\n")
    assert "skipped update" not in results(
        "class C:\n    def __init__(self):\n        self.a = 1\n        self.b = 2\n", "C.__init__"
    )


def test_a_handler_that_says_what_went_wrong_is_left_alone() -> None:
    source = "def f(a):\n    try:\n        return a.b()\n    except KeyError:\n        {}\n"
    assert "widened exception" in results(source.format("return 1"))
    assert "widened exception" not in results(source.format("raise ValueError('no such key')"))


def test_sibling_attribute_is_as_public_and_used_alike() -> None:
    source = (
        "class C:\n    def g(self):\n        self.old_x = self._new_x = self.new_x = {}\n"
        "        return self.old_x, self._new_x, self.new_x\n"
        "\n    def f(self):\n        return self.old_x.items(), self.new_x"
    )
    assert changed(source, "sibling attribute") == {
        "return self.new_x.items(), self.new_x",
        "return self.old_x.items(), self.old_x",
    }
    assert changed(source + ".y", "sibling attribute") == set()


def test_an_operator_that_cannot_be_loaded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path, monkeypatch, "[gistpoint.operators]\ncart = cart_operators:SWAP\n")
    all_operators.cache_clear()
    try:
        with pytest.raises(PluginError, match=r"'cart' \(gistpoint\.operators, from cart 1\.0\) can't be loaded"):
            all_operators()
    finally:
        all_operators.cache_clear()
