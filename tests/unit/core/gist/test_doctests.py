"""Docstrings with examples: found, compared, and inserted into a gist."""

from __future__ import annotations

import pytest

from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.doctests import docstring_lines, docstring_sha256, documented
from gistpoint.core.kinds.gist.original_test import splice_doctest

ORIGINAL = '''r"""The module.

>>> 1
1
"""
import pkg


class Box:
    if True:
        def get(self):
            """Return it.

            >>> from pkg import Box; import os
            >>> from pkg import Box
            >>> Box().get() + "é"
            \'7é\'
            """
            return "7"
'''


IN_BOX = "class Box:\n    def get(self):"


@pytest.mark.parametrize(
    ("name", "gist", "first", "end"),
    [
        ("Box.get", f"{IN_BOX}\n        return 7\n", "    def get(self):\n        ", "\n        return 7\n"),
        ("Box.get", f"{IN_BOX} return 'é'; x = 1\n", "    def get(self):\n        ", "\n        return 'é'; x = 1\n"),
        ("Box.get", f"{IN_BOX}\n        'old'; return 7\n", "    def get(self):\n        ", "; return 7\n"),
        ("Box.get", f"{IN_BOX}\n        @deco\n        def f(): x\n", "   ", "\n        @deco\n        def f(): x\n"),
        ("", "x = 1\n", "", "\nx = 1\n"),
        ("", "'old'\nx = 1\n", "", "\nx = 1\n"),
    ],
)  # fmt: skip
def test_a_docstring_takes_the_place_of_the_gists_own(name: str, gist: str, first: str, end: str) -> None:
    spliced = splice_doctest(gist, ORIGINAL, name, {"pkg"})
    assert spliced.text.endswith(end)
    assert first in spliced.text
    tree = parse(spliced.text)
    lines = docstring_lines(tree, name)
    assert lines[0] == ("Return it." if name else "The module.")
    if name:
        assert lines[1:4] == [">>> pass; import os", ">>> pass", '>>> Box().get() + "é"']
        assert len(docstring_lines(parse(ORIGINAL), name)) == len(lines)
    kept = [spliced.text.splitlines()[n] for n, number in enumerate(spliced.origin) if number is not None]
    assert kept[0] in ("class Box:", "x = 1")


def test_a_hash_does_not_depend_on_the_indentation() -> None:
    inner, outer = parse('def f():\n    """A.\n\n    >>> 1\n    """\n'), parse('"""A.\n\n>>> 1\n"""\n')
    assert (
        docstring_sha256(documented(inner, "f"))
        == docstring_sha256(outer)
        != docstring_sha256(parse("x = 1\n"))
    )


def test_what_is_not_there_is_told() -> None:
    assert documented(parse(ORIGINAL), "Box.put") is None
    with pytest.raises(TaskError, match=r"no docstring of 'Box\.get'"):
        splice_doctest("x = 1\n", ORIGINAL, "Box.get", ())
    with pytest.raises(TaskError, match="no docstring of 'Box'"):
        splice_doctest("class Box: pass\n", ORIGINAL, "Box", ())


@pytest.mark.parametrize(
    ("example", "left"),
    [
        (">>> import os, pkg", ">>> import os"),
        (">>> import pkg, os as o", ">>> import os as o"),
        (">>> from pkg import (\n...     a,\n... )", ">>> pass"),
        (">>> from os import (\n...     path,\n... )", ">>> from os import (\n...     path,\n... )"),
        (">>> import pkg; pkg.f()\n7", ">>> pass; pkg.f()\n7"),
        (">>> for n in x:\n...   import pkg\n...   f(n)\n...\n1", ">>> for n in x:\n...   pass\n...   f(n)\n...\n1"),
        (">>> import pkg  # why", ">>> pass  # why"),
        (">>> import", ">>> import"),
        (">>> f('import pkg')", ">>> f('import pkg')"),
        (">>> 'é'; import pkg", ">>> 'é'; pass"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("begin", ['"""', '"""\n    ', "r'''"])
def test_examples_lose_only_imports_of_the_codebase(example: str, left: str, begin: str) -> None:
    text = example.replace("\n", "\n    ")
    original = f"def f():\n    {begin}{text}\n    {begin.strip().lstrip('r')}\n"
    spliced = splice_doctest("def f(): ...\n", original, "f", {"pkg"})
    assert docstring_lines(parse(spliced.text), "f") == left.split("\n")
