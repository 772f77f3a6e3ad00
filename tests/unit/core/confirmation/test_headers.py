"""The changes to a header that affect no caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import write_tar

from gistpoint.core.confirmation.differences import NotConfirmableError, changed_functions
from gistpoint.core.trees import SourceTree

SUITS = [
    ("a, b", "a, b, c=1"),
    ("a, b", "a, b=1"),
    ("a, b=1", "a=0, b=1"),
    ("a, b", "a, b, *, c=1"),
    ("a, b", "a, b, *rest, **more"),
    ("a, /, b", "a, /, b, c=None"),
    ("a, *, b", "a, *, b=2, c=1"),
    ("a, *, b, c", "a, *, c, b"),
    ("a, *rest", "a=1, *rest"),
    ("", "_memo={}"),
]
AFFECTS = [
    ("a, b", "b, a"),
    ("a, b", "a"),
    ("a, b", "a, c"),
    ("a, b", "a, b, c"),
    ("a, b", "c=1, a=2, b=3"),
    ("a, b=1", "a, b=2"),
    ("a, b=1", "a, b"),
    ("a, b", "a, *, b"),
    ("a, b", "a, b, /"),
    ("a, *, b", "a, *, c=1"),
    ("a, *rest", "a, b=1, *rest"),
    ("a, **more", "a, b=1, **more"),
    ("a, *rest", "a"),
    ("a, *rest", "a, *others"),
    ("a", "a, *, b"),
]


def changed(tmp_path: Path, old: str, new: str) -> list[str]:
    text = "def f({}):\n    return 1\n"
    original = SourceTree.open(write_tar({"mod.py": text.format(old)}, tmp_path / "tree.tar"))
    code = text.format(new).replace("1\n", "2\n").encode()
    tree = SourceTree(original.tar, original.members, {**original.overlay, "mod.py": code})
    return [str(name) for name in changed_functions(original, tree)]


@pytest.mark.parametrize(("old", "new"), SUITS)
def test_a_header_that_suits_every_caller_is_no_change(tmp_path: Path, old: str, new: str) -> None:
    assert changed(tmp_path, old, new) == ["mod.py::f"]


@pytest.mark.parametrize(("old", "new"), AFFECTS)
def test_a_header_that_a_caller_could_notice_is_one(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(NotConfirmableError):
        changed(tmp_path, old, new)
