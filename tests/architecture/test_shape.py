"""Modules stay short, and text is drawn through the one function that makes it safe."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from project_files import ROOT, source_files

# The tests run in one worker, so that the modules are parsed only once.
pytestmark = pytest.mark.xdist_group("house")
MODULE_LINES = 600
LONG_MODULES: dict[str, str] = {}
"""Reasons why modules are longer, by path."""
VAGUE = {"utils", "util", "helpers", "helper", "manager", "misc", "common", "stuff"}
SAFE = {"tui/widgets/plain.py"}
DRAWING = {"Static", "Label"}


def test_modules_are_short_or_say_why_not() -> None:
    long = {
        p for p in source_files() if len((ROOT / p).read_text(encoding="utf-8").splitlines()) > MODULE_LINES
    }
    assert long == set(LONG_MODULES)
    assert all(LONG_MODULES.values())


def test_modules_are_named_after_what_they_hold() -> None:
    for path in source_files():
        assert not VAGUE & set(PurePosixPath(path).with_suffix("").parts), path


@pytest.fixture(scope="module")
def shapes() -> dict[str, Shape]:
    """The shape of every module by its path, each parsed once."""
    return {path: shape_of(path) for path in source_files()}


def test_every_public_module_says_what_it_is(shapes: dict[str, Shape]) -> None:
    assert [path for path, shape in shapes.items() if not shape.says_what_it_is] == []


@dataclass
class Shape:
    """The properties of a module that these tests check."""

    says_what_it_is: bool
    """Whether it has a docstring or needs none."""
    unsafe: list[str]
    """The lines that could draw external text as markup."""
    locks: bool
    appends: bool
    reads_digits: bool
    """Whether a function tests a string for digits and calls `int`, which refuses some strings that pass."""
    dates: bool


def shape_of(path: str) -> Shape:
    text = (ROOT / path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return Shape(
        says_what_it_is=bool(ast.get_docstring(tree) or not tree.body),
        unsafe=list(_unsafe(path, nodes, calls)) if path.startswith("tui/") and path not in SAFE else [],
        locks="flock" in text or "lockf" in text,
        appends="O_APPEND" in text or any(map(_appends, calls)),
        reads_digits=any(test in text for test in _DIGIT_TESTS) and any(map(_reads_digits, nodes)),
        dates=any(getattr(call.func, "attr", "") == "fromtimestamp" for call in calls),
    )


def _harmless(values: list[ast.expr]) -> bool:
    """Return whether all drawn values are literals in gistpoint's source."""
    return all(isinstance(value, ast.Constant) for value in values)


def _drawn(call: ast.Call) -> list[ast.expr]:
    return call.args[:1] + [
        k.value for k in call.keywords if k.arg in ("content", "label", "message", "title")
    ]


def test_only_the_safe_widgets_draw_external_text(shapes: dict[str, Shape]) -> None:
    """`Static` and `Label` parse markup, so all modules but one give them literals or nothing.

    Whatever has an `update` is then one of the safe widgets.
    """
    assert sum(path.startswith("tui/") for path in shapes) > 100
    assert [line for shape in shapes.values() for line in shape.unsafe] == []


def _unsafe(path: str, nodes: list[ast.AST], calls: list[ast.Call]) -> Iterator[str]:
    fine = {id(c.func) for c in calls if isinstance(c.func, ast.Name) and _harmless(_drawn(c))}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in DRAWING and id(node) not in fine:
            yield f"{path}:{node.lineno}: {node.id}"
        if isinstance(node, ast.Attribute) and (node.attr == "from_markup" or node.attr in DRAWING):
            yield f"{path}:{node.lineno}: {node.attr}"
    for call in calls:
        notes = (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "notify"
            and not _harmless(_drawn(call))
        )
        if notes and ast.unparse(call.func).split(".")[-2] not in ("app", "super()"):
            yield f"{path}:{call.lineno}: notify, which parses markup except as the app's own"


APPENDING = {
    "core/logs/locks.py": "the flags by which logs and locks are opened",
    "sessions/team/attempts.py": "takes in lines of a journal that the team's store has",
    "sessions/team/study_exchange.py": "takes in lines of a study's log that the team's store has",
}
"""The modules that open a file to append to it, with the reasons; all others use an `AppendLog`."""


def _appends(call: ast.Call) -> bool:
    """Return whether a call opens a file to append to it."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    modes = [
        part.value
        for part in [*call.args, *(k.value for k in call.keywords)]
        if isinstance(part, ast.Constant)
    ]
    return name in {"open", "fdopen"} and any(
        isinstance(m, str) and set("a") <= set(m) <= set("ab+t") for m in modes
    )


def test_one_module_locks_files_and_one_log_appends_to_them(shapes: dict[str, Shape]) -> None:
    inside = "sandbox/payload/"  # it runs without gistpoint
    ours = {path: shape for path, shape in shapes.items() if not path.startswith(inside)}
    assert {path for path, shape in ours.items() if shape.locks} == {"core/logs/locks.py"}
    assert {path for path, shape in ours.items() if shape.appends} == APPENDING.keys()


_DIGIT_TESTS = {"isdigit", "isdecimal", "isnumeric"}
_OF_THE_KERNEL = ("sandbox/payload/", "sandbox/backends/", "sandbox/attacks/")
"""Modules that read the names in /proc, and that run where there is no gistpoint."""


def _reads_digits(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    calls = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    tests = any(isinstance(called, ast.Attribute) and called.attr in _DIGIT_TESTS for called in calls)
    return tests and any(isinstance(called, ast.Name) and called.id == "int" for called in calls)


def test_one_function_reads_numbers_in_texts_from_outside(shapes: dict[str, Shape]) -> None:
    """`int` raises for superscripts, which are digits, and for thousands of digits."""
    ours = {path: shape for path, shape in shapes.items() if not path.startswith(_OF_THE_KERNEL)}
    typed = "tui/widgets/options.py"  # a pressed key is one character
    assert {path for path, shape in ours.items() if shape.reads_digits} == {"core/text.py", typed}


DATING = {
    "core/readable.py": "every time that a person or another program reads",
    "sessions/exports/atif.py": "after a test of the range",
    "sessions/runs/rendering.py": "times of runs, which `when` and `later` keep within the calendar",
}
"""The modules that convert numbers to dates; `datetime` raises for numbers outside the calendar."""


def test_dates_are_made_of_numbers_in_one_place(shapes: dict[str, Shape]) -> None:
    assert {path for path, shape in shapes.items() if shape.dates} == DATING.keys()
