"""Any value may have another type than its tool writes: each format reads on, or refuses in a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import share
from mutants import read_all
from recorded_runs import make_all

from gistpoint.core.errors import UserError
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.folders import _sorted
from gistpoint.sessions.runs.changes import _insertion, changes_of, window_path
from gistpoint.sessions.runs.commands import ViewedPart, _opened_in_window, views_in
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.profile import profile_of

OTHERS: tuple[object, ...] = (
    ["x"], {"a": ["b"]}, None, True, -1, 10**40, 1e308, float("nan"), "", "text", "--5", "1²", "9" * 5_000,
)  # fmt: skip
"""A value of each JSON type, and strings and numbers that look convertible."""


@dataclass
class Place:
    """A value of a file: `holder[key]`."""

    holder: Any
    key: Any
    path: str
    """The keys and the types of records that lead to the value, without indices."""


def places(value: Any, path: str = "") -> Iterator[Place]:
    """Yield the place of every value inside `value`."""
    if isinstance(value, dict):
        kind = value.get("type", value.get("event", value.get("kind", "")))
        path += f"<{kind}>" if isinstance(kind, str) else ""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(inner):
        below = f"{path}.{key}" if isinstance(key, str) else f"{path}[]"
        yield Place(value, key, below)
        if isinstance(item, dict | list):
            yield from places(item, below)


def decoded(data: bytes) -> tuple[bool, Any]:
    """Return whether a file has a value on each line, and its values; None if they are not JSON."""
    try:
        return False, json.loads(data)
    except ValueError:
        pass
    try:
        return True, [json.loads(line) for line in data.splitlines()]
    except ValueError:
        return False, None


def encoded(in_lines: bool, value: Any) -> str:
    return "\n".join(map(json.dumps, value)) if in_lines else json.dumps(value)


def read_deep(path: Path) -> None:
    """Read a file as every list, screen and figure of a run does, ignoring user errors."""
    read_all(path, steps=20)
    try:
        document = open_run(path)
    except UserError:
        return
    profile_of(document)
    for step in document.steps():
        changes_of(step)
        views_in(step)
        window_path(step)


def changed(folder: Path, stride: int) -> Iterator[tuple[str, str]]:
    """Yield files of every format, each with another value in one place, and a description of the change.

    Of places with equal paths, only the first is changed; of all changes, every `stride`th is made.
    """
    seen = set[tuple[str, str]]()
    number = 0
    for made in make_all(folder):
        in_lines, value = decoded(made.path.read_bytes() if made.path.is_file() else b"")
        for place in () if value is None else places(value):
            if (made.format, place.path) in seen:
                continue
            seen.add((made.format, place.path))
            kept = place.holder[place.key]
            for other in OTHERS:
                number += 1
                if number % stride:
                    continue
                place.holder[place.key] = other
                yield encoded(in_lines, value), f"{made.path.name}: {other!r:.40} at {place.path}"
            place.holder[place.key] = kept


def test_no_value_of_another_type_breaks_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "changed"
    # A stride without a factor in common with the number of values tries each of them in many places.
    stride = max(1, 33_000 // share(1_000)) | 1
    while math.gcd(stride, len(OTHERS)) > 1:
        stride += 2
    for text, what in changed(tmp_path / "made", stride):
        path.write_text(text, encoding="utf-8")
        try:
            read_deep(path)
        except Exception as error:
            raise AssertionError(what) from error


@pytest.mark.parametrize("status", OTHERS, ids=range(len(OTHERS)))
def test_a_status_of_any_type_is_read(status: object, tmp_path: Path) -> None:
    record = {"type": "item.completed", "item": {"id": "i", "type": "command_execution", "status": status}}
    path = tmp_path / "codex"
    path.write_text(
        "".join(json.dumps(one) + "\n" for one in ({"type": "thread.started", "thread_id": "t"}, record)),
        encoding="utf-8",
    )
    assert open_run(path).header.format == "codex-exec"
    read_deep(path)
    message = {"type": "gemini", "id": "m", "toolCalls": [{"id": "c", "name": "x", "status": status}]}
    path = tmp_path / "gemini"
    path.write_text(
        json.dumps(
            {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "messages": [message]}
        ),
        encoding="utf-8",
    )
    assert open_run(path).header.format == "gemini-cli"
    read_deep(path)


def test_a_line_without_a_record_is_a_step_of_its_own(tmp_path: Path) -> None:
    path, formats = tmp_path / "x", set[str]()

    def steps(values: list[Any]) -> int:
        path.write_text(encoded(True, values), encoding="utf-8")
        document = open_run(path)
        document.build()
        return document.step_count

    for made in make_all(tmp_path / "made"):
        in_lines, value = decoded(made.path.read_bytes() if made.path.is_file() else b"")
        if not in_lines or not value:
            continue
        path.write_text(encoded(True, [None, *value[1:], None]), encoding="utf-8")
        read_deep(path)
        try:
            before = steps(value)
        except RunFileError:  # it holds several runs
            continue
        assert steps([*value, None]) == steps([value[0], None, *value[1:]]) == before + 1
        formats.add(made.format)
    assert len(formats) >= 14


def test_what_int_refuses_is_no_line_and_no_number_of_a_file() -> None:
    for digits in ("9" * 5_000, "1²"):
        assert list(_opened_in_window("a.py", digits)) == [ViewedPart("a.py", 1)]
        given = {"command": "insert", "insert_line": digits, "new_str": "x"}
        assert _insertion("a.py", given) is None
    names = ["e9", "e10", "1²2", "e" + "9" * 200]
    assert [path.name for path in _sorted(map(Path, names))] == ["1²2", "e9", "e10", "e" + "9" * 200]
