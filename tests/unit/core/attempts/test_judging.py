"""A corrupted function counts as changed only if it becomes a different program."""

from __future__ import annotations

from pathlib import Path

import pytest

from gistpoint.core.kinds.repair.scoring import changed_targets
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree, write_tree

CORRUPTED = """def total(values, limit=100):
    found = 1
    for value in values:
        found += value
    return found
"""
TARGET = Target("shop.py", "total", CORRUPTED.replace("found = 1", "found = 0"), CORRUPTED)


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "shop.py").write_text(f"{CORRUPTED}\n\ndef after(x):\n    return x\n")
    write_tree(tmp_path / "repository", tmp_path / "tree.tar")
    return SourceTree.open(tmp_path / "tree.tar")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    found = 1\n", "    'Add up.'\n    found = 1\n"),
        ("    found = 1\n", "    'Add up.'\n    'All of them.'\n    found = 1\n"),
        ("    found = 1\n", "    pass\n    ...\n    found = 1\n"),
        ("    found = 1\n", "    found: int = 1\n"),
        ("(values, limit=100):", "(values: list, limit: int = 100) -> int:"),
        ("found", "result"),
        ("value in values:\n        found += value", "v in values:\n        found += v"),
        ("    return found", "\n    # all\n    return (found)"),
        ("def after(x):\n    return x", "def after(x, _patch=1):\n    return x + 1"),
    ],
)
def test_what_leaves_the_function_as_it_was(tree: SourceTree, old: str, new: str) -> None:
    text = tree.read("shop.py").decode()
    assert old in text
    assert changed_targets(tree.with_files({"shop.py": text.replace(old, new).encode()}), (TARGET,)) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("found = 1", "found = 0"),
        ("    found = 1\n", "    if True:\n        found = 1\n"),
        ("found += value", "found += value + 0"),
        ("(values, limit", "(items, limit"),
        ("def total", "def total_of"),
        (CORRUPTED, ""),
    ],
)
def test_what_changes_it(tree: SourceTree, old: str, new: str) -> None:
    text = tree.read("shop.py").decode()
    changed = tree.with_files({"shop.py": text.replace(old, new).encode()})
    assert changed_targets(changed, (TARGET,)) == ("shop.py::total",)
