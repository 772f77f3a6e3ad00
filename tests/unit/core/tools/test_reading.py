"""The tools that show files, folders and functions: exact text, limits, refusals."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from small_trees import Link, ask, context_of

from gistpoint.core.tasks.model import ToolLimits
from gistpoint.core.tools.declaration import NOTHING_REVEALED

MODULE = '''"""A module."""
import functools


@functools.cache
def cached(n):
    """Return n."""
    return n


class Shape:
    """A shape."""

    def area(self):
        return 0

    @property
    def name(self):
        return "shape"

    @name.setter
    def name(self, value):
        pass


class Square(Shape):
    def area(self):
        def inner():
            return 4
        return inner()


async def fetch(): return 1
'''


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"x = 1\n", "a.py: 1 line\nx = 1\n"),
        (b"", "a.py: 0 lines\n"),
        (b"x", "a.py: 1 line\nx"),
        (b"x\r\ny\r\n", "a.py: 2 lines\nx\r\ny\r\n"),
        (codecs.BOM_UTF8 + b"x = 1\n", "a.py: 1 line\nx = 1\n"),
        (
            "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
            "a.py: 2 lines\n# -*- coding: latin-1 -*-\nx = 'é'\n",
        ),
        ("# coding: cp1251\nx = 'ж'\n".encode("cp1251"), "a.py: 2 lines\n# coding: cp1251\nx = 'ж'\n"),
        (b"# coding: utf-16\n", None),
        (b"x = '[/red]\x1b[0m'\n", "a.py: 1 line\nx = '[/red]\x1b[0m'\n"),
        (b"x = '\xe9'\n", None),
        (b"x = 1\0\n", None),
        (b"\0" * 70_000, None),
        (b"x" * 70_000 + b"\0", None),
        (b"# coding: nonsense\n", None),
        (b"# coding: undefined\n", None),
        (b"# coding: hex\n", None),
        (b"# coding: idna\nx = '\xff'\n", None),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", None),
    ],
)
def test_python_file_is_shown_in_its_declared_encoding_or_refused(
    tmp_path: Path, data: bytes, expected: str | None
) -> None:
    output = ask(context_of({"a.py": data}, tmp_path), "read_file", file_path="a.py")
    if expected is None:
        assert output.refused
        assert len(output.text) < 400
    else:
        assert output.text == expected


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0", b"\xff\xfe\xfd", "grün".encode("latin-1"), b"plain" + b"\0" * 3]
)
def test_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    output = ask(context_of({"logo.dat": data}, tmp_path), "read_file", file_path="logo.dat")
    assert output.refused
    assert output.revealed == NOTHING_REVEALED


@pytest.mark.parametrize("tool", ["list_file_functions", "read_function"])
@pytest.mark.parametrize(
    "data",
    [b"def f(:\n", b"\xff", b"x\0", b"(" * 5000, b"# coding: undefined\n", b"x = " + b"-" * 90_000 + b"1"],
)
def test_unparsable_python_is_refused_by_the_tools_that_need_it_parsed(
    tmp_path: Path, tool: str, data: bytes
) -> None:
    more = {"function_name": "f"} if tool == "read_function" else {}
    output = ask(context_of({"a.py": data}, tmp_path), tool, file_path="a.py", **more)
    assert output.refused
    assert len(output.text) < 500


def test_large_python_file_answers_with_its_functions(tmp_path: Path) -> None:
    big = MODULE + "\n# " + "x" * 60_000
    output = ask(context_of({"a.py": big}, tmp_path), "read_file", file_path="a.py")
    assert output.text.startswith(f"a.py has {len(big)} characters, more than the limit of 60000.")
    assert "5-8  cached (function): Return n." in output.text
    assert "x" * 100 not in output.text
    assert output.revealed.files == ()
    assert ("a.py::Square.area", 27, 30) in output.revealed.functions


def test_limit_of_read_file_counts_characters_not_bytes(tmp_path: Path) -> None:
    exactly = "é" * 60_000
    assert exactly in ask(context_of({"a.md": exactly}, tmp_path), "read_file", file_path="a.md").text
    output = ask(context_of({"a.md": exactly + "x"}, tmp_path), "read_file", file_path="a.md")
    assert "60001 characters" in output.text
    assert output.text.endswith("é")
    assert output.revealed.files == ()


def test_listing_a_file_names_methods_of_all_classes_and_nested_functions(tmp_path: Path) -> None:
    output = ask(context_of({"a.py": MODULE}, tmp_path), "list_file_functions", file_path="a.py")
    names = [line.split()[1] for line in output.text.splitlines()[1:]]
    assert names == [
        "cached", "Shape", "Shape.area", "Shape.name", "Shape.name#2", "Square", "Square.area",
        "Square.area.<locals>.inner", "fetch",
    ]  # fmt: skip


def test_listing_limits_and_says_how_many_are_left_out(tmp_path: Path) -> None:
    many = {f"f{n:03}.py": "" for n in range(150)}
    output = ask(context_of(many, tmp_path), "list_directory", path="")
    lines = output.text.splitlines()
    assert lines[0] == ".: 150 entries"
    assert lines[1:-1] == [f"  f{n:03}.py" for n in range(100)]
    assert lines[-1] == "  ... 50 more, not shown"
    assert len(output.revealed.entries) == 100
    functions = "".join(f"def f{n}(): pass\n" for n in range(250))
    output = ask(context_of({"a.py": functions}, tmp_path), "list_file_functions", file_path="a.py")
    assert len(output.text.splitlines()) == 202
    assert output.text.endswith("... 50 more, not shown")


def test_listing_is_sorted_whatever_the_order_in_the_tar(tmp_path: Path) -> None:
    output = ask(
        context_of({"z.py": "", "b/x.py": "", "a.py": "", "B.py": "", "l": Link("b")}, tmp_path),
        "list_directory",
    )
    assert output.text.splitlines()[1:] == ["  B.py", "  a.py", "  b/", "  l", "  z.py"]


@pytest.mark.parametrize(
    ("name", "first", "last", "begins", "ends"),
    [
        ("cached", 5, 8, "@functools.cache", "return n"),
        ("Shape.name", 0, 0, "", ""),
        ("Shape.name#2", 21, 23, "    @name.setter", "pass"),
        ("Shape.name#1", 17, 19, "    @property", 'return "shape"'),
        ("Square.area.<locals>.inner", 28, 29, "        def inner", "return 4"),
        ("inner", 28, 29, "        def inner", "return 4"),
        ("fetch", 33, 33, "async def fetch", "return 1"),
        ("Square", 26, 30, "class Square", "return inner()"),
    ],
)
def test_function_is_read_with_its_exact_span(
    tmp_path: Path, name: str, first: int, last: int, begins: str, ends: str
) -> None:
    output = ask(
        context_of({"a.py": MODULE}, tmp_path), "read_function", file_path="a.py", function_name=name
    )
    if not first:
        assert output.refused
        assert "Shape.name#1" in output.text
        assert "Shape.name#2" in output.text
        return
    head, source = output.text.split("\n", 1)
    assert head.endswith(f"lines {first}-{last}")
    assert source == "\n".join(MODULE.splitlines()[first - 1 : last])
    assert source.startswith(begins)
    assert source.endswith(ends)


def test_ambiguous_and_unknown_names_are_refused_with_candidates(tmp_path: Path) -> None:
    context = context_of({"a.py": MODULE, "empty.py": ""}, tmp_path)
    ambiguous = ask(context, "read_function", file_path="a.py", function_name="area")
    assert ambiguous.refused
    assert "Shape.area" in ambiguous.text
    assert "Square.area" in ambiguous.text
    near = ask(context, "read_function", file_path="a.py", function_name="fetched")
    assert near.refused
    assert "fetch" in near.text
    for name in ("", "nothing_like_it", "a.b.c", "\0", "x" * 9000, "Shape.", ".area.", "<locals>", "#2"):
        assert ask(context, "read_function", file_path="a.py", function_name=name).refused
    assert ask(context, "read_function", file_path="empty.py", function_name="f").refused


def test_long_function_is_cut_at_the_stated_limit(tmp_path: Path) -> None:
    source = "def f():\n" + "".join(f"    x = {n}\n" for n in range(100))
    context = context_of({"a.py": source}, tmp_path, limits=ToolLimits(read_file_characters=200))
    head, text = ask(context, "read_function", file_path="a.py", function_name="f").text.split("\n", 1)
    assert "of which the first 200" in head
    assert len(text) == 200
