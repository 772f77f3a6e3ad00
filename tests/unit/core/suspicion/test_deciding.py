"""Ordinary names that decide comparisons, and code that could hide a failed check, are marked."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest

from gistpoint.core.suspicion.deciding import called_by_assertions, compared_by, deciding_names
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.trees import SourceTree, write_tree

LIBRARY = """
class Version:
    part = None
    sign: int = 1
    of_shop = Column(1)

    def __init__(self, value): self.value = value
    def __eq__(self, other): return self._compare(other) == 0 and self.sign and self.of_shop
    def __len__(self): return self.count()
    def _compare(self, other): return self.key() - other.key()
    def key(self): return self.value + self.slack
    def count(self): return 1
    def shown(self): return str(self.part)

class Slack:
    slack = 0

def noted(version, count): version.count = count
"""
TESTS = """
import unittest
from library import Version, f

def test_f():
    assert f(1).equals(2, 3) and f(1).is_ready()
    f(1).update(2)

class TestF(unittest.TestCase):
    def test_f(self): self.assertTrue(f(1).is_close(2))
"""
Read = Callable[..., tuple[str, ...]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """A function that returns the marks of a body that replaces another one."""
    folder = tmp_path_factory.mktemp("deciding")
    (folder / "repository").mkdir()
    (folder / "repository" / "library.py").write_text(LIBRARY)
    (folder / "repository" / "test_a.py").write_text(TESTS)
    (folder / "repository" / "a.py").write_text(_function("return values"))
    write_tree(folder / "repository", folder / "tree.tar")
    tree = SourceTree.open(folder / "tree.tar")

    def of(body: str, right: str = "return values") -> tuple[str, ...]:
        submitted, original = (tree.with_files({"a.py": _function(text).encode()}) for text in (body, right))
        return marks(tree, submitted, original, ["test_a.py"])

    return of


def _function(body: str) -> str:
    return f"def f(values, n=1):\n{textwrap.indent(body, '    ')}\n"


def _class(base: str, member: str, head: str = "") -> str:
    return f"{head}class A({base}):\n    {member}\nreturn A(1)"


VERSION = "from library import Version\n"
DECIDING = {
    "a private method of a list": "from collections import UserList\nfound = UserList()\n"
    "found._UserList__cast = lambda other: []\nreturn found",
    "the same by setattr": "from collections import UserList\nfound = UserList()\n"
    "setattr(found, '_UserList__cast', [].copy)\nreturn found",
    "the same in a class": _class(
        "UserList", "def _UserList__cast(self, other): return []", "from collections import UserList\n"
    ),
    "the same in a class of that name": "import collections\nclass B(collections.UserList): pass\n"
    "class UserList(B):\n    def __cast(self, other): return []\nreturn UserList()",
    "a fraction": _class(
        "Fraction", "def from_float(self, other): return self", "from fractions import Fraction\n"
    ),
    "a fraction, by an expression": _class(
        "fractions.Fraction", "from_float = lambda self, other: self", "import fractions\n"
    ),
    "an address": _class("ipaddress.IPv4Address", "_ip = property(len)", "import ipaddress\n"),
    "a method of an object of the library": VERSION
    + "found = Version(0)\nfound._compare = lambda other: 0\nreturn found",
    "a method that such a method calls": VERSION + "found = Version(0)\nfound.key = [].__len__\nreturn found",
    "a value of a class of the library": VERSION + "found = Version(0)\nfound.slack = 10 ** 9\nreturn found",
    "a method in a class": _class("Version", "def _compare(self, other): return 0", VERSION),
    "what an assertion calls": _class("object", "def equals(self, other): return True"),
    "what a check of unittest calls": _class("object", "def is_close(self, other): return True"),
    "what an assertion calls, of another object": "import types\n"
    "return types.SimpleNamespace(equals=lambda one, other: True)",
}
HARMLESS = {
    "a class": _class("object", "def walk(self): return 1"),
    "an attribute that the library sets": VERSION + "found = Version(0)\nfound.value = 5\nreturn found",
    "a method that the library replaces": VERSION + "found = Version(0)\nfound.count = len\nreturn found",
    "a field": VERSION + "found = Version(0)\nfound.sign = -1\nfound.of_shop = 3\nreturn found",
    "what no comparison asks for": VERSION + "found = Version(0)\nfound.part = 1\nreturn found",
    "what only a statement of a test calls": _class("object", "def update(self, other): return True"),
    "what an assertion calls without arguments": _class("object", "def is_ready(self): return True"),
    "a list": _class("UserList", "def shown(self): return len(self)", "from collections import UserList\n"),
}
HIDING = {
    "every exception": "try: values(n)\nexcept: pass",
    "base exceptions": "try: values(n)\nexcept BaseException: return 5",
    "assertions among others": "try: values(n)\nexcept (KeyError, AssertionError): return 5",
    "assertions by another name": "kind = AssertionError\ntry: values(n)\nexcept kind: return 5",
    "exceptions of a block": "try:\n    yield 1\nexcept Exception: pass",
    "exceptions of a block that is delegated": "try:\n    yield from values\nexcept Exception: pass",
    "a jump out of a finally": "try:\n    yield 1\nfinally:\n    return",
    "suppressed assertions": "import contextlib\nwith contextlib.suppress(AssertionError): values(n)",
    "an answer that suppresses them": "import contextlib\nreturn contextlib.suppress(BaseException)",
    "suppressed exceptions by any name": "import contextlib\nreturn contextlib.suppress(*values)",
    "suppressed exceptions of a block": "from contextlib import suppress\nwith suppress(Exception):\n    yield 1",
    "the end of a block": "class A:\n    def __enter__(self): return 1\n"
    "    def __exit__(self, *error): return True\nreturn A()",
    "the end of a stack": "import contextlib\nfound = contextlib.ExitStack()\n"
    "found.push(lambda *error: True)\nreturn found",
}
SHOWING = {
    "raised again": "try: values(n)\nexcept BaseException:\n    n = 2\n    raise",
    "raised as another": "try:\n    yield 1\nexcept Exception as error:\n    raise ValueError from error",
    "one kind": "try:\n    yield 1\nexcept KeyError: pass",
    "most kinds without a block": "try: return values(n)\nexcept Exception: return None",
    "a block in another function": "try:\n    def g(): yield 1\nexcept Exception: pass",
    "a jump in a try": "try: return 1\nfinally: n = 2",
    "suppressed of one kind": "import contextlib\nwith contextlib.suppress(KeyError): return values[n]",
    "an end that answers nothing": "class A:\n    def __enter__(self): return 1\n"
    "    def __exit__(self, *error):\n        self.x = 1\n        return False\nreturn A()",
    "a stack of functions": "import contextlib\nfound = contextlib.ExitStack()\nfound.callback(len)\nreturn found",
    "a push without a stack": "values.append(n)\nreturn values.append",
}


@pytest.mark.parametrize("name", DECIDING)
def test_an_ordinary_name_that_decides_a_comparison_is_marked(read: Read, name: str) -> None:
    assert any("decides comparisons" in mark for mark in read(DECIDING[name])), read(DECIDING[name])
    assert read(DECIDING[name], DECIDING[name]) == (), "the original does the same"


@pytest.mark.parametrize("name", HIDING)
def test_what_could_hide_a_failed_check_is_marked(read: Read, name: str) -> None:
    assert read(HIDING[name])
    assert read(HIDING[name], HIDING[name]) == (), "the original does the same"


@pytest.mark.parametrize("name", [*HARMLESS, *SHOWING])
def test_what_decides_and_hides_nothing_is_not(read: Read, name: str) -> None:
    assert read({**HARMLESS, **SHOWING}[name]) == ()


def test_the_names_by_which_classes_compare_are_found_in_their_code() -> None:
    assert deciding_names("collections.UserList") == {"_UserList__cast"}
    assert "from_float" in deciding_names("fractions.Fraction")
    assert deciding_names("collections.abc.Mapping") == {"items"}
    for name in ("collections.deque", "collections.missing", "decimal.Decimal", "builtins.list", "x", ""):
        assert deciding_names(name) == frozenset()
    compared, members, stored = compared_by(ast.parse(LIBRARY))
    assert {"_compare", "key", "slack", "count", "value"} <= compared
    assert "shown" not in compared
    assert {"_compare", "slack", "part"} <= members
    assert not {"sign", "of_shop", "value"} & members
    assert stored == {"value", "count"}
    assert called_by_assertions(ast.parse(TESTS)) == {"equals", "is_close"}
