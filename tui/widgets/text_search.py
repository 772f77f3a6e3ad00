"""Search in a text that is already on the screen: literal or regular expression, bounded in time."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

from gistpoint.core.errors import UserError

REGEX_SECONDS = 0.5
"""Longest that a regular expression may take: it runs while the keyboard waits."""


class PatternError(UserError):
    """A pattern is no valid regular expression, or takes too long."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Where a pattern was found, as offsets of the raw text in order, without overlaps or empty matches."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.starts)


def find_all(text: str, pattern: str, *, regex: bool = False) -> Matches:
    """Return all matches, case-insensitive where literal.

    Raises `PatternError` for an invalid regular expression and for one that takes more than `REGEX_SECONDS`.
    """
    found = Matches()
    if not pattern:
        return found
    if regex:
        _find_regex(text, pattern, found)
    elif text.isascii() and pattern.isascii():
        _find_ascii(text.lower(), pattern.lower(), found)
    else:
        for match in re.finditer(re.escape(pattern), text, re.IGNORECASE):
            found.starts.append(match.start())
            found.ends.append(match.end())
    return found


def _find_ascii(text: str, pattern: str, found: Matches) -> None:
    length = len(pattern)
    place = text.find(pattern)
    while place >= 0:
        found.starts.append(place)
        found.ends.append(place + length)
        place = text.find(pattern, place + length)


def _find_regex(text: str, pattern: str, found: Matches) -> None:
    import regex

    try:
        compiled = regex.compile(pattern, regex.MULTILINE)
    except regex.error as error:
        raise PatternError(
            f"{pattern!r} is no regular expression: {error}.", hint="Search for it as plain text, or escape it."
        ) from error
    try:
        for match in compiled.finditer(text, timeout=REGEX_SECONDS):
            if match.end() > match.start():
                found.starts.append(match.start())
                found.ends.append(match.end())
    except TimeoutError as error:
        raise PatternError(
            f"{pattern!r} takes more than {REGEX_SECONDS} seconds on this text.", hint="Make it simpler."
        ) from error
