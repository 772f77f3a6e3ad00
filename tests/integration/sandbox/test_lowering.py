"""Modules rewritten for Python 3.9 behave as before."""

from __future__ import annotations

import ast
import enum
from typing import Any

import msgspec
import pytest

from gistpoint.core.tasks.model import CANARY
from gistpoint.sandbox.verifier.bundle import bundle, bundled_files
from gistpoint.sandbox.verifier.bundled import later_names, records
from gistpoint.sandbox.verifier.lowering import OLDEST, LoweringError, lowered

SOURCE = """
from __future__ import annotations

import ast
import re
from dataclasses import dataclass

Both = ast.Name | ast.Attribute
Shown = tuple[str, int | None]
FLAGS = re.M | re.S


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int | None = None
    y: int = 0


def named(value: object, other: int | str = 1) -> object:
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case Point(x=None):
            return "no x"
        case Point(x=int(x), y=y) if y > x:
            return x, y
        case ["raised", str(kind)] | [str(kind), 1, _]:
            return kind
        case -1 | None | True:
            return "constant"
        case bool():
            return "bool"
        case (first, second):
            return [*zip((first,), (second,), strict=True)]
        case _ if isinstance(value, int | float) and isinstance(other, Both | str):
            return "number"
    return "nothing"
"""

VALUES: tuple[Any, ...] = (
    ast.Name("a"), ast.Attribute(ast.Name("b"), "c"), ["raised", "E"], ["k", 1, 2], ["k", 2, 2], -1, None, True, False,
    (1, 2), [3, 4], 5, 5.5, "text", "xy", {}, [],
)  # fmt: skip


def _namespace(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {"__name__": __name__}
    exec(compile(text, "<text>", "exec"), made)
    return made


def test_lowered_module_answers_as_the_module_itself() -> None:
    new, old = _namespace(SOURCE), _namespace(lowered(SOURCE))
    points = [{"x": None}, {"x": 1, "y": 2}, {"x": 2, "y": 1}]
    for other in ("text", 1):
        for value in VALUES:
            assert old["named"](value, other) == new["named"](value, other), value
        for fields in points:
            assert old["named"](old["Point"](**fields), other) == new["named"](new["Point"](**fields), other)
    assert old["FLAGS"] == new["FLAGS"]


@pytest.mark.parametrize("pattern", ["{'a': 1}", "[1, *rest]", "Point(1)"])
def test_pattern_that_is_not_covered_is_refused(pattern: str) -> None:
    with pytest.raises(LoweringError, match="Line 2"):
        lowered(f"match x:\n    case {pattern}:\n        pass\n")


def test_newer_syntax_that_is_not_covered_is_refused() -> None:
    with pytest.raises(LoweringError, match="newer syntax"):
        lowered("try:\n    pass\nexcept* ValueError:\n    pass\n")


def test_every_file_of_the_bundle_is_python_3_9_with_the_standard_library_alone() -> None:
    assert CANARY.encode() in bundle()
    found = bundled_files()
    assert {"__main__.py", "msgspec.py", "gistpoint/core/kinds/repair/scoring.py"} <= found.keys()
    for name, text in found.items():
        if name.endswith(".py"):
            ast.parse(text, name, feature_version=OLDEST)
            assert "slots=True" not in text
            assert "strict=True" not in text.replace("xfail(strict=True)", "")


class _Known(msgspec.Struct, tag_field="e"):
    n: int


class _First(_Known, tag="first"):
    id: str | int
    ids: list[str]


class _Second(_Known, tag="second"):
    count: float
    some: list[object] = []


class _OurKnown(records.Struct, tag_field="e"):
    n: int


class _OurFirst(_OurKnown, tag="first"):
    id: int | str
    ids: list[str]


class _OurSecond(_OurKnown, tag="second"):
    count: float
    some: list[object] = []  # noqa: RUF012 - only compared, never changed


@pytest.mark.parametrize(
    "value",
    [
        {"e": "first", "n": 1, "id": "a", "ids": ["b"]},
        {"e": "first", "n": 1, "id": 2, "ids": []},
        {"e": "first", "n": "1", "id": 2, "ids": []},
        {"e": "first", "n": True, "id": 2, "ids": []},
        {"e": "first", "n": 1, "id": None, "ids": []},
        {"e": "first", "n": 1, "id": 2, "ids": [1]},
        {"e": "first", "n": 1, "id": 2},
        {"e": "second", "n": 1, "count": 1},
        {"e": "second", "n": 1, "count": 1.5, "some": [None, 1], "more": 2},
        {"e": "second", "n": 1, "count": "1"},
        {"e": "third", "n": 1},
        {"n": 1},
        [],
        None,
    ],
)
def test_records_of_the_bundle_are_taken_and_refused_as_msgspec_does(value: object) -> None:
    def read(convert: Any, kinds: Any, fault: type[Exception]) -> object:
        try:
            made = convert(value, kinds)
        except fault:
            return "refused"
        return {
            name: getattr(made, name) for name in ("n", "id", "ids", "count", "some") if hasattr(made, name)
        }

    assert issubclass(records.RecordMismatchError, ValueError)
    ours = read(records.convert, (_OurFirst, (_OurSecond,)), records.RecordMismatchError)
    assert ours == read(msgspec.convert, _First | _Second, msgspec.ValidationError)


def test_a_string_enumeration_of_the_bundle_is_written_as_pythons() -> None:
    theirs = enum.StrEnum("Word", {"ONE": "one"})
    ours: Any = later_names._StrEnum("Word", {"ONE": "one"})
    for word in (theirs("one"), ours("one")):
        assert (str(word), f"{word:>5}", word == "one", {word: 1}["one"]) == ("one", "  one", True, 1)


def test_too_old_a_python_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.version_info", (3, 8, 18))
    with pytest.raises(SystemExit) as left:
        exec(bundled_files()["__main__.py"], {"__name__": "__main__"})
    assert left.value.code == 2
    assert "3.9 or newer" in capsys.readouterr().err
