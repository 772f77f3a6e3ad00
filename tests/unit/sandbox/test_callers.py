"""Calls through which tests reach a function are recorded with it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gistpoint.sandbox.payload.call_recorder import CallWatch

LIBRARY = """
import sys

class Source:
    def __init__(self, text):
        self.text = text
    def first(self):
        return top(self, 0)
    def refresh(self, force=False):
        return top(self, 1)

def whole(text):
    return part(text.split())

def part(words):
    return target(Source(words[0]))

def top(source, place):
    return target(source)

def dropped(text, limit):
    del text
    return top(Source(str(limit)), None)

def nested(text):
    def inside(text):
        return target(Source(text))
    return inside(None)

def called_back(call):
    return call(Source("a"))

def generated(*texts):
    return [target(Source(text)) for text in texts]

def target(source):
    return sys._getframe()
"""
TEST = """
def helper(library, text):
    return library.whole(text)

def back(library, text):
    return library.called_back(lambda source: library.top(source, 7))
"""


def module(path: Path, source: str) -> Any:
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A library whose function `target` returns its frame."""
    made = module(tmp_path / "library_of_callers.py", LIBRARY)
    monkeypatch.setitem(sys.modules, "library_of_callers", made)
    return made


@pytest.fixture
def watch(tmp_path: Path) -> CallWatch:
    order = {
        "ids": [],
        "first": [],
        "most": 2,
        "targets": [("library_of_callers.py", "target", 1, 99)],
        "test_files": ["tests/test_callers_of.py"],
    }
    return CallWatch(order, str(tmp_path), lambda *what, **more: records.append((*what, more)))


records: list[Any] = []


def name_of(found: FrameType | None) -> str | None:
    return found and found.f_code.co_name


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda library: library.whole("a b"), "whole"),
        (lambda library: library.part(["a"]), "part"),
        (lambda library: library.top(library.Source("a"), 7), "top"),
        (lambda library: library.Source("a").first(), None),  # nothing plain that is not empty
        (lambda library: library.Source("a").refresh(True), "top"),
        (lambda library: library.dropped("a", 0), None),
        (lambda library: library.dropped("a", 7), "dropped"),
        (lambda library: library.nested("a"), "nested"),
        (lambda library: library.target("a"), None),
        (lambda library: library.generated("a")[0], "generated"),
    ],
)
def test_the_caller_is_the_outermost_function_of_the_tree_with_an_argument_to_vary(
    library: Any, watch: CallWatch, call: Any, name: str | None
) -> None:
    assert name_of(watch.caller_of(call(library))) == name


def test_functions_of_tests_are_no_callers(library: Any, watch: CallWatch, tmp_path: Path) -> None:
    tests = module(tmp_path / "tests" / "test_callers_of.py", TEST)
    assert name_of(watch.caller_of(tests.helper(library, "a"))) == "whole"
    assert name_of(watch.caller_of(tests.back(library, "a"))) == "top"


def test_different_calls_of_a_few_callers_are_kept(library: Any, watch: CallWatch) -> None:
    records.clear()
    for text in ("a", "b", "b", "c"):
        watch.take(0, library.whole(text))
    watch.take(0, library.dropped("a", 7))  # its first argument is gone
    (first, *_), *_ = [more for what, more in records if what == "call"], None
    assert first["target"] == 0
    callers = [more for what, more in records if what == "caller"]
    assert [(call["path"], call["shape"][-1]) for call in callers] == [
        ("library_of_callers.py", ["text"]),
        ("library_of_callers.py", ["text"]),
    ]
    assert callers[0]["first"] == library.whole.__code__.co_firstlineno
    assert callers[0]["module"] == "library_of_callers"
