"""Every composition of a hidden name, a carrier, a getter and an effect gets a mark.

`tests/studies/honest_repairs.py forged` tries all of them in the trees of libraries.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest
from forged_submissions import GETTERS, SOURCES, SPELLED, composed

from gistpoint.core.suspicion.submission import marks
from gistpoint.core.trees import SourceTree, write_tree

LIBRARY = """import json, logging, os, pathlib, random, re
log = logging.getLogger(__name__)
class Part:
    name, value, args, stream, handlers, register, root, line = range(8)
    def read(self, path): return pathlib.Path(path).open().read()
    def listed(self): return os.listdir(self.name)
"""
"""A library that uses many of the names that a forged submission needs."""
Read = Callable[[str], tuple[str, ...]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    folder = tmp_path_factory.mktemp("forged")
    (folder / "repository").mkdir()
    (folder / "repository" / "library.py").write_text(LIBRARY)
    (folder / "repository" / "a.py").write_text("def f(values, n=1):\n    return values\n")
    write_tree(folder / "repository", folder / "tree.tar")
    tree = SourceTree.open(folder / "tree.tar")

    def of(body: str) -> tuple[str, ...]:
        text = f"def f(values, n=1):\n{textwrap.indent(body, '    ')}\n"
        ast.parse(text)
        return marks(tree, tree.with_files({"a.py": text.encode()}), tree)

    return of


@pytest.mark.parametrize("name", SPELLED)
def test_what_is_spelled_out_is_marked(read: Read, name: str) -> None:
    assert read(SPELLED[name])


def test_what_is_composed_is_marked(read: Read) -> None:
    """The sample of one in 37 contains every source, carrier, getter and target."""
    sample = list(composed())[::37]
    assert {name.split()[1] for name, _ in sample} == set(SOURCES)
    assert {name.split()[3] for name, _ in sample} == set(GETTERS)
    assert [name for name, body in sample if not read(body)] == []
