"""The static gates: each reason, on the smallest function that has it."""

from __future__ import annotations

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.gates import Dropped, gate
from gistpoint.core.corruption.vocabulary import vocabulary_of
from gistpoint.core.tasks.model import Target

MODULE = '''import re
import os

LIMIT = 10


def once(x):
    return x


class Base:
    def shared(self):
        return self.size


class Shop(Base):
    def f(self, text, other):
        """Look."""
        old = other  # the one before
        if old is None:
            raise ValueError("give the other one")
        found = re.match(text, old) or once(old)
        # The size grows with each.
        self.size += len(text)
        self.count = self.size + 1
        if self.count:
            return found
        return None
'''
INDEX = index_source("m.py", MODULE.encode())
FUNCTION = INDEX.find("Shop.f")
SCOPE = vocabulary_of([INDEX]).scope(FUNCTION)
CASES = [
    (Dropped.DOES_NOT_PARSE, "self.size + 1", "self.size +"),
    (Dropped.DOES_NOT_PARSE, "return None", "break"),
    (Dropped.HEADER, "text, other)", "text, other=None)"),
    (Dropped.DOCSTRING, "Look.", "Look!"),
    (Dropped.COMMENTS, "other  # the one before", "other or 1  # before"),
    (Dropped.TOLD, "self.size += len(text)", "self.size -= len(text)"),
    (Dropped.TOLD, "old = other  #", "old = other or text  #"),
    (Dropped.SAME_TREE, "self.size + 1", "(self.size  + 1)"),
    (Dropped.SAME_CODE, "self.size + 1", "self.size + (2 - 1)"),
    (Dropped.UNKNOWN_NAME, "self.size + 1", "self.size + SIZE"),
    (Dropped.NEW_STRING, "self.size + 1", "self.size + 'a'"),
    (Dropped.LONG_LINE, "self.size + 1", "self.size" + " + self.size" * 10),
    (Dropped.UNBOUND, "found = re.match(text, old) or once(old)", "found = re.match(text, old) or once(found)"),
    (Dropped.UNUSED, "(text, old)", "(other, old)"),
    (Dropped.ORPHANED, " or once(old)", ""),
    (Dropped.UNREACHABLE, "if self.count:\n        return found", "return found"),
    (Dropped.ODD, "self.size + 1", "self.size - self.size"),
    (Dropped.ODD, "if self.count:", "if True:"),
    (Dropped.ODD, "if self.count:", "if self.count == self.count:"),
    (Dropped.ODD, "self.count = self.size + 1", "self.count = self.count"),
    (Dropped.TOLD, "old is None", "not old"),
    (None, "self.size + 1", "self.size - 1"),
    (None, "self.size + 1", "self.size + LIMIT"),
    (None, "if self.count:", "if not self.count:"),
]


@pytest.mark.parametrize(("reason", "old", "new"), CASES)
def test_reason(reason: Dropped | None, old: str, new: str) -> None:
    original = FUNCTION.dedented
    assert original.count(old) == 1
    corrupted = original.replace(old, new)
    if reason is Dropped.UNUSED:
        corrupted = corrupted.replace("len(text)", "len(other)").replace("# The size grows with each.\n    ", "")
        original = original.replace("# The size grows with each.\n    ", "")
    assert gate(Target("m.py", "Shop.f", original, corrupted), SCOPE) is reason


def test_lines_are_counted_where_they_are_limited() -> None:
    original = "def f(a):\n    a.b()\n    a.c()\n    a.d()\n    a.e()\n    return a"
    corrupted = original.replace(".b(", ".x(").replace(".c(", ".x(1, ").replace(".d(", ".x(2, ").replace(".e(", ".y(")
    target = Target("m.py", "f", original, corrupted)
    assert gate(target) is Dropped.TOO_MANY_LINES
    assert gate(target, most_lines=None) is None


def test_without_a_scope_names_of_the_module_are_unknown() -> None:
    target = Target("m.py", "f", "def f(a):\n    return a + 1", "def f(a):\n    return a + LIMIT")
    assert gate(target) is Dropped.UNKNOWN_NAME
    assert gate(target, SCOPE) is None


def test_a_variable_of_the_function_around_compiles() -> None:
    original = "def f(a):\n    nonlocal n\n    n += a\n    return n"
    assert gate(Target("m.py", "g.<locals>.f", original, original.replace("+=", "-="))) is None
    assert (
        gate(Target("m.py", "g.<locals>.f", original, original.replace("return n", "return (n)"))) is Dropped.SAME_TREE
    )


def test_names_of_the_class_and_its_bases_are_known() -> None:
    assert SCOPE.own.attributes >= {"size", "count"}
    assert set(SCOPE.own.methods) >= {"f", "shared"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in a:\n        b = x\n    return a, b", "for x in a:\n        b = x\n        break\n    return a, b"),
        ("try:\n        b = a()\n    except KeyError:\n        b = 1\n    return b",
         "try:\n        b = a()\n    except KeyError:\n        b = 2\n    return b"),
        ("with a as b:\n        c = b\n    return c", "with a as b:\n        c = -b\n    return c"),
        ("return [b for b in a if b]", "return [b for b in a if not b]"),
        ("while True:\n        b = a()\n        if b:\n            break\n    return b",
         "while True:\n        b = a()\n        if not b:\n            break\n    return b"),
    ],
)  # fmt: skip
def test_variables_bound_on_every_way_are_no_reason(before: str, after: str) -> None:
    assert gate(Target("m.py", "f", f"def f(a):\n    {before}", f"def f(a):\n    {after}")) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a:\n        b = 1\n    else:\n        b = 2\n    return b", "if a:\n        b = 1\n    return b"),
        ("b = 1\n    if a:\n        b = 2\n    return b", "if a:\n        b = 2\n    return b"),
        ("b = a\n    c = b\n    return c", "c = b\n    b = a\n    return c, b"),
        ("if a:\n        b = 1\n    else:\n        return 2\n    return b",
         "if a:\n        b = 1\n    else:\n        a()\n    return b"),
    ],
)  # fmt: skip
def test_variables_that_may_be_unbound_are(before: str, after: str) -> None:
    assert gate(Target("m.py", "f", f"def f(a):\n    {before}", f"def f(a):\n    {after}")) is Dropped.UNBOUND
