"""Parses the text of a failure: its exception, whether a test raised it, and whether it came through corrupted code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gistpoint.core.ports import ProbeFailure

_ENTRIES = (
    re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+): in ", re.MULTILINE),  # pytest's short style
    re.compile(r'^  File "(?P<path>[^"\n]*)", line (?P<line>\d+), in ', re.MULTILINE),  # Python's own
)
_PLACE = re.compile(r"^[^\n]*?:\d+: ")
_TYPE = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?=:|$)")
_EXPECTATIONS = frozenset({"AssertionError", "Failed"})  # pytest.raises and pytest.fail raise the second


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Lines of a file, from 1, both ends inclusive."""

    path: str
    first: int
    last: int


def read_failure(message: str, corrupted: Iterable[LineSpan] = (), *, raised: str = "") -> ProbeFailure:
    """Read a failure as `TestResult.message` words it; `corrupted` are the lines of the corrupted functions.

    `raised` is the name of the exception, if that is known better than from the text.
    """
    error_type = raised or _type_of(message)
    places = [(match["path"], int(match["line"])) for entry in _ENTRIES for match in entry.finditer(message)]
    return ProbeFailure(
        message=message,
        assertion=error_type in _EXPECTATIONS,
        through_target=any(
            path == lines.path and lines.first <= line <= lines.last for lines in corrupted for path, line in places
        ),
        error_type=error_type,
    )


def _type_of(message: str) -> str:
    """Return the name of the exception in the first line, after the location."""
    first = message.partition("\n")[0]
    place = _PLACE.match(first)
    if place is None:
        return ""
    text = first[place.end() :]
    if text.startswith("assert"):
        return "AssertionError"
    found = _TYPE.match(text)
    return found["type"].rpartition(".")[2] if found else ""
