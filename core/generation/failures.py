"""What the text of a failure says: the exception, whether it is a test's own expectation, and where it came through."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gistpoint.core.ports import ProbeFailure

_ENTRY = re.compile(r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+): in ", re.MULTILINE)
_PLACE = re.compile(r"^[^\n]*?:\d+: ")
_TYPE = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?=:|$)")
_EXPECTATIONS = frozenset({"AssertionError", "Failed"})  # the second is what pytest.raises and pytest.fail raise


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, from 1, both ends included."""

    path: str
    first: int
    last: int


def read_failure(message: str, corrupted: Iterable[Lines] = (), *, raised: str = "") -> ProbeFailure:
    """Read a failure as `TestResult.message` words it; `corrupted` are the lines of the corrupted functions.

    `raised` is the name of the exception where that is known better than from the text.
    """
    error_type = raised or _type_of(message)
    places = [(match["path"], int(match["line"])) for match in _ENTRY.finditer(message)]
    return ProbeFailure(
        message=message,
        assertion=error_type in _EXPECTATIONS,
        through_target=any(
            path == lines.path and lines.first <= line <= lines.last for lines in corrupted for path, line in places
        ),
        error_type=error_type,
    )


def _type_of(message: str) -> str:
    """Return the name of the exception that the first line tells behind the place."""
    first = message.partition("\n")[0]
    place = _PLACE.match(first)
    if place is None:
        return ""
    text = first[place.end() :]
    if text.startswith("assert"):
        return "AssertionError"
    found = _TYPE.match(text)
    return found["type"].rpartition(".")[2] if found else ""
