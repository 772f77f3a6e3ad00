"""What code changes of objects that were made is found, so that only such values must not occur again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.confirmation.changeable import unchangeable
from gistpoint.sandbox.payload.process_state import OF_VALUE

WORD = f"{OF_VALUE}kit:Token.uses"


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[str], SourceTree]:
    def make(source: str) -> SourceTree:
        (tmp_path / "repository").mkdir()
        (tmp_path / "repository" / "a.py").write_text(source)
        write_tree(tmp_path / "repository", tmp_path / "tree.tar")
        return SourceTree.open(tmp_path / "tree.tar")

    return make


@pytest.mark.parametrize(
    "source",
    [
        "def use(self): self.uses += 1",
        "one.uses = 1",
        "del one.uses",
        "for one.uses in range(3): pass",
        "(one.uses, two) = 1, 2",
        "setattr(one, 'uses', 1)",
        "object.__setattr__(one, 'uses', 1)",
        "monkeypatch.setattr(one, 'uses', 1)",
        "setattr(one, name, 1)",
        "one.__dict__['uses'] = 1",
        "one.__dict__.update(uses=1)",
        "def test_it(): assert f(1) is not f(1)",
        "def test_it(): assert one and not (id(one) == id(two))",
        "def test_it(self): self.assertIsNot(f(1), f(1))",
        "what is no code",
    ],
)
def test_an_attribute_may_be_changed(tree: Callable[[str], SourceTree], source: str) -> None:
    assert unchangeable(tree(source), [WORD]) == frozenset()


@pytest.mark.parametrize(
    "source",
    [
        "class Token:\n    def __init__(self): self.uses = 0",
        "class Token:\n    def __hash__(self):\n        self.uses = 1",
        "print(one.uses, self.used)",
        "one.used = 1",
        "setattr(one, 'used', 1)",
        "if one is not two: pass",
        "def test_it(): assert f(1) is not None",
        "one.__dict__ == two.__dict__",
    ],
)
def test_an_attribute_is_never_changed(tree: Callable[[str], SourceTree], source: str) -> None:
    assert unchangeable(tree(source), ["signals", WORD]) == {WORD}
