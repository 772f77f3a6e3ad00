"""Conditions on a replacement before a test runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import Link, ask, context_of

from gistpoint.core.tools.declaration import ToolContext, ToolOutput

MODULE = """import os


@staticmethod
def f(x):
    return x


class C:
    def f(self):
        return 1

    def g(self):
        return 2
"""
GOOD = "def g(self):\n    return 3\n"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_of(
        {
            "pkg/mod.py": MODULE,
            "pkg/latest.py": MODULE,
            "contest/x.py": MODULE,
            "tests/test_mod.py": MODULE,
            "pkg/checks.py": MODULE,
            "pkg/specs.py": Link("checks.py"),
            "conftest.py": MODULE,
            "pkg/alias.py": Link("../tests/test_mod.py"),
            "more": Link("tests"),
            "notes.txt": "def g(): pass\n",
        },
        tmp_path,
        test_files=frozenset({"tests/test_mod.py", "pkg/specs.py"}),
    )


def submit(context: ToolContext, code: str, name: str = "C.g", path: str = "pkg/mod.py") -> ToolOutput:
    return ask(context, "replace_function", func_code=code, func_name=name, file_path=path)


@pytest.mark.parametrize("path", ["pkg/mod.py", "pkg/latest.py", "contest/x.py"])
def test_code_of_the_repository_can_be_replaced(context: ToolContext, path: str) -> None:
    output = submit(context, GOOD, path=path)
    assert not output.refused
    assert output.replacement is not None
    data = output.replacement.on(context.tree).read(path)
    assert data == MODULE.replace("return 2", "return 3").encode()


@pytest.mark.parametrize(
    "path",
    ["tests/test_mod.py", "conftest.py", "pkg/specs.py", "pkg/checks.py", "pkg/alias.py", "more/test_mod.py"],
)
def test_files_of_tests_are_refused_also_through_links(context: ToolContext, path: str) -> None:
    output = submit(context, GOOD, path=path)
    assert output.refused
    assert "belongs to the tests" in output.text
    assert output.replacement is None


@pytest.mark.parametrize(
    "code",
    [
        "",
        "   \n# only a comment\n",
        "def g(self:\n    return 3\n",
        "def h(self):\n    return 3\n",
        "class g:\n    pass\n",
        "def g(self):\n    return 3\n\ndef extra():\n    pass\n",
        "import sys\n\ndef g(self):\n    return 3\n",
        "x = 1",
        "```python\ndef g(self):\n    return 3\n```",
        "def g(self):\n    return '\0'\n",
        "def g(self):\n    return '\ud800'\n",
        "def g(self):\nreturn 3\n",
        "lambda: 3",
        "@property\ndef g(self):\n    return 3\n",
        "def g(self):\n    return 3\n" + "#" * 1_000_001,
        "def g(self):\n    return " + "(" * 3000 + ")" * 3000,
    ],
)
def test_code_that_is_not_one_definition_of_that_name_is_refused(context: ToolContext, code: str) -> None:
    output = submit(context, code)
    assert output.refused
    assert output.replacement is None
    assert len(output.text) < 1000


@pytest.mark.parametrize(
    ("name", "path", "why"),
    [
        ("f", "pkg/mod.py", None),
        ("C.f", "pkg/mod.py", "defines g, not f"),
        ("nope", "pkg/mod.py", "defines no 'nope'"),
        ("g", "notes.txt", "not a Python file"),
        ("g", "pkg", "folder"),
        ("g", "../mod.py", "leads upwards"),
    ],
)
def test_target_that_does_not_fit_is_refused(
    context: ToolContext, name: str, path: str, why: str | None
) -> None:
    output = submit(context, GOOD, name=name, path=path)
    assert output.refused
    assert why is None or why in output.text


def test_ambiguous_name_is_refused_with_candidates(tmp_path: Path) -> None:
    context = context_of(
        {"a.py": "class A:\n    def f(self): pass\n\nclass B:\n    def f(self): pass\n"}, tmp_path
    )
    output = submit(context, "def f(self): return 1", name="f", path="a.py")
    assert output.refused
    assert "A.f" in output.text
    assert "B.f" in output.text


def test_submission_goes_to_the_target_alone(tmp_path: Path) -> None:
    context = context_of({"a.py": MODULE}, tmp_path, target="a.py::C.g")
    output = ask(context, "submit_attempt", func_code=GOOD)
    assert output.replacement is not None
    assert (output.replacement.path, output.replacement.qualname) == ("a.py", "C.g")
    assert ask(context, "submit_attempt", func_code="def f(self):\n    return 1\n").refused


def test_class_can_be_replaced(context: ToolContext) -> None:
    output = submit(context, "class C:\n    def g(self):\n        return 3\n", name="C")
    assert output.replacement is not None
    assert b"return 1" not in output.replacement.on(context.tree).read("pkg/mod.py")
