"""An original from elsewhere runs nothing more than the corrupted code while it is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gistpoint.core.confirmation.differences import NotConfirmableError, require_same_at_import
from gistpoint.core.trees import SourceTree, write_tree

GIVEN = """
import os

class Shop:
    rate = 3

    def price(self, amount, rate=5, *, by=None):
        pass


def total(values, start=0):
    return start
"""


@pytest.fixture
def given(tmp_path: Path) -> SourceTree:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "shop.py").write_text(GIVEN)
    write_tree(tmp_path / "tree", tmp_path / "tree.tar")
    return SourceTree.open(tmp_path / "tree.tar")


def original(given: SourceTree, old: str, new: str) -> SourceTree:
    assert old in GIVEN
    return given.with_files({"shop.py": GIVEN.replace(old, new).encode()})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        pass", "        return amount - rate"),
        ("        pass", "        def inner(n=os.getpid()): return n\n        return inner()"),
        ("rate=5", "rate=-1"),
        ("rate=5", "rate=(1, [2.5, {'a': None}])"),
        ("by=None", "by='x'"),
        ("start=0", "start"),
        ("values, start=0", "values=(), start=0"),
    ],
)
def test_bodies_and_literal_defaults_may_differ(given: SourceTree, old: str, new: str) -> None:
    require_same_at_import(given, original(given, old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rate=5", "rate=os.getpid()"),
        ("rate=5", "rate=[x for x in os.environ]"),
        ("by=None", "by=lambda: 1"),
        ("start=0", "start=(0).__class__"),
        ("start=0", "start: os.getpid() = 0"),
        ("start=0):", "start=0) -> os.getpid():"),
        ("def total", "@os.fspath\ndef total"),
        ("    rate = 3", "    rate = 4"),
        ("    rate = 3", "    rate = 3\n    __eq__ = os.getpid"),
        ("import os", "import os, pytest"),
        ("class Shop:", "class Shop(dict):"),
        ("    return start", "    return start\nos.getpid()"),
        ("    return start", "    return start\ndef more(): pass"),
        ("    return start", "    return )"),
    ],
)
def test_nothing_else_may(given: SourceTree, old: str, new: str) -> None:
    with pytest.raises(NotConfirmableError):
        require_same_at_import(given, original(given, old, new))
