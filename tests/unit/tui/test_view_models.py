from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from builders import build_services, build_task
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.repair.brief import stub
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.readable import duration
from gistpoint.core.tasks.model import Brief, Mode, Source, Suite, Task
from gistpoint.core.tools.declaration import Revealed
from gistpoint.tui.known import definitions_named, enclosing, shown_function, shown_sources

BRIEF = Brief("repair-remove-1", "", (), "a.py::f", "@cached\nasync def f(a, *, b=1) -> int:")


def _stub_of(docstring: str) -> str:
    source = Source("folder", "x", "1")
    brief = replace(BRIEF, docstring=docstring)
    return stub(Task("0", Mode.REMOVE, source, "", brief, Suite(1, "", 1.0, 1.0), EnvironmentPins()))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().split("\n")]


@given(st.text(st.sampled_from("ab \n\"'\\#\u00e9{}"), min_size=1, max_size=60))
def test_the_stub_is_a_function_with_the_docstring_of_the_brief(docstring: str) -> None:
    text = inspect.cleandoc(docstring)
    if not text:
        return
    node = ast.parse(_stub_of(text)).body[0]
    assert isinstance(node, ast.AsyncFunctionDef)
    assert _lines(ast.get_docstring(node) or "") == _lines(inspect.cleandoc(text.strip()))


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0:00"), (61_999, "1:01"), (3_600_000, "1:00:00"), (-5, "0:00")]
)
def test_durations_are_never_rounded_up(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_what_a_result_shows_is_taken_out_of_it_whole(tmp_path: Path) -> None:
    services = build_services(tmp_path)
    task = build_task(services.locations.tasks, Mode.DISCOVERY)
    opened = services.start(task)
    attempt = opened.attempt
    attempt.call("read_file", {"file_path": "shop/prices.py"})
    attempt.call("read_function", {"function_name": "Basket.add", "file_path": "shop/prices.py"})
    attempt.call("search_code", {"pattern": "total"})
    opened.close()
    whole, alone, search = (shown_sources(call) for call in attempt.state.calls)
    assert whole is not None
    assert whole.text == attempt.tree.read("shop/prices.py").decode()
    assert alone is not None
    assert (alone.function, alone.first_line) == ("shop/prices.py::Basket.add", 15)
    assert alone.text.startswith("    def add(self, name, price, count=1):")
    assert search is None
    cut = shown_function(attempt.state, "shop/prices.py::discount")
    assert cut is not None
    assert (cut.first_line, cut.text.split("\n")[0]) == (4, "def discount(price, percent):")
    assert shown_function(attempt.state, "shop/stock/shelf.py::capacity") is None


def test_the_innermost_definition_is_around_a_line() -> None:
    functions = [("a::C", 1, 10), ("a::C.m", 3, 5), ("a::f", 12, 13)]
    assert [enclosing(functions, line) for line in (1, 4, 11, 13)] == ["a::C", "a::C.m", "", "a::f"]


def test_a_name_means_the_definition_in_its_own_file_first() -> None:
    state = AttemptState()
    names = ("a.py::f", "b.py::f", "b.py::C.f")
    knowledge = state.knowledge.with_revealed(
        Revealed(functions=tuple((name, 1, 2) for name in names)), "call-1"
    )
    known = structs.replace(state, knowledge=knowledge)
    assert definitions_named(known, "f", "a.py") == ["a.py::f"]
    assert definitions_named(known, "x.C.f", "a.py") == ["a.py::f"]
    assert definitions_named(known, "C.f", "c.py") == ["b.py::C.f"]
    assert definitions_named(known, "g", "a.py") == []
