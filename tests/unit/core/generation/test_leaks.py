"""Parts of a tree that would reveal the original are found; an ordinary tree is clean."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import Link, tree_of

from gistpoint.core.tasks.leaks import leaks_of, telling_lines
from gistpoint.core.tasks.model import Target

ORIGINAL = '''def settle(orders, rates):
    """Return the sum of all orders in the currency of the house."""
    total = sum(order.amount * rates[order.currency] for order in orders)
    return round(total - discount_of(orders), 2)'''
CORRUPTED = ORIGINAL.partition('house."""')[0] + 'house."""\n    pass'
TARGET = Target("pkg/money.py", "settle", ORIGINAL, CORRUPTED)
CLEAN: dict[str, str | bytes | Link] = {
    "pkg/money.py": CORRUPTED + "\n",
    "pkg/other.py": "x = 1\n",
    "alias.py": Link("pkg/other.py"),
    "logo.png": b"\x89PNG\0\xff",
}


def test_ordinary_tree_is_clean(tmp_path: Path) -> None:
    assert list(leaks_of(tree_of(CLEAN, tmp_path), (TARGET,))) == []


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        (".git/HEAD", "ref", "version history"),
        ("vendor/.hg/store", "x", "version history"),
        ("pkg/__pycache__/money.cpython-311.pyc", b"\0", "cache"),
        ("pkg/money.pyc", b"\0", "cache"),
        (".mypy_cache/x.json", "{}", "cache"),
        ("site/pkg.egg-link", "/x", "installed copy"),
        ("site/pkg.pth", "/x", "installed copy"),
        ("env/pyvenv.cfg", "home = /x", "virtual environment"),
        ("out", Link("/usr"), "leads out"),
        ("up", Link("../../elsewhere"), "leads out"),
        ("build_copy/money.py", ORIGINAL, "contains the original lines"),
        ("docs/listing.txt", ORIGINAL.replace("    ", "\t  "), "contains the original lines"),
        ("notes.ipynb", '"' + ORIGINAL + '"', "contains the original lines"),
    ],
)
def test_way_back_to_the_original_is_found(
    tmp_path: Path, path: str, content: str | bytes | Link, said: str
) -> None:
    (found,) = leaks_of(tree_of({**CLEAN, path: content}, tmp_path), (TARGET,))
    assert found.startswith(path)
    assert said in found


def test_short_bodies_prove_no_copy() -> None:
    assert telling_lines(Target("a.py", "f", "def f():\n    return 1", "def f():\n    pass")) == ""
    assert "discount_of(orders)" in telling_lines(TARGET)
