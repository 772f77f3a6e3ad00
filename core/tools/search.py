"""Matching lines in many texts, as grep finds them, with a limit on time.

A pattern that can't match without some literal text is tried on the lines that hold that text. Another is tried on
whole texts, which is fast, and every match is then held against its line. Where a pattern could match on a line and yet
be missed on the whole text (look-around, atomic groups, anchors of the text), it is tried line by line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gistpoint.core.tools.declaration import RefusalError
from gistpoint.core.tools.literals import required_literals

if TYPE_CHECKING:
    from regex import Pattern

MAX_PATTERN_CHARACTERS = 1_000
MAX_REPEATED_CHARACTERS = 100_000
"""Length of a pattern times all counts in braces: `regex` writes repetitions out when it compiles, without a limit."""
_LITERAL = re.compile(r"[^\\.^$*+?{}\[\]|()\n]+")
_LEAST_REQUIRED = 3
_LONG_LINE = 1_000
"""Shorter lines are searched without letting other threads in between, which costs more than the search."""
_COUNTS = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_ONLY_BY_LINE = re.compile(r"\\[AZzGKXRN]|\(\?(?!:|P<|i\))|[*+?}]\+|\{[a-zA-Z]|\\n|\\r")


class LinePattern:
    """A pattern in the dialect of the `regex` package that is looked for within single lines."""

    def __init__(self, pattern: str, seconds: float) -> None:
        self.seconds = seconds
        self.literal = pattern if _LITERAL.fullmatch(pattern) else None
        self.required = required_literals(pattern)
        self.by_line = bool(_ONLY_BY_LINE.search(pattern))
        self.compiled: Pattern[str] = _compiled(pattern)
        self._deadline = 0.0

    def start(self) -> None:
        """Start the time that all searches together may take."""
        self._deadline = time.monotonic() + self.seconds

    def lines(self, text: str) -> Iterator[int]:
        """Yield offsets of the starts of the lines of `text` that match. Raises `TimeoutError` past the time."""
        if self.literal is not None:
            return self._literal_lines(text, self.literal)
        if self.required and len(self.required[0]) >= _LEAST_REQUIRED:
            return self._lines_with(text, *self.required)
        return self._lines_one_by_one(text, 0, len(text)) if self.by_line else self._lines_of_whole(text)

    def _literal_lines(self, text: str, literal: str) -> Iterator[int]:
        at = text.find(literal)
        while at >= 0:
            yield text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            at = text.find(literal, end) if end >= 0 else -1

    def _lines_with(self, text: str, first: str, *others: str) -> Iterator[int]:
        for start in self._literal_lines(text, first):
            line = text[start : _line_end(text, start)]
            if others and not all(other in line for other in others):
                continue
            if self.compiled.search(line, timeout=self._left(), concurrent=len(line) > _LONG_LINE):
                yield start

    def _lines_of_whole(self, text: str) -> Iterator[int]:
        at, size = 0, len(text)
        while at <= size:
            match = self.compiled.search(text, at, timeout=self._left(), concurrent=True)
            if match is None:
                return
            start = text.rfind("\n", 0, match.start()) + 1
            end = _line_end(text, match.start())
            if match.end() <= end:
                if start < size:
                    yield start
                at = end + 1
            else:
                last = _line_end(text, match.end() - 1)
                yield from self._lines_one_by_one(text, start, last + 1)
                at = last + 1

    def _lines_one_by_one(self, text: str, start: int, stop: int) -> Iterator[int]:
        while start < stop:
            end = _line_end(text, start)
            if self.compiled.search(text[start:end], timeout=self._left(), concurrent=True):
                yield start
            start = end + 1

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _repeated(pattern: str) -> int:
    size = len(pattern)
    for low, high in _COUNTS.findall(pattern):
        if len(low) > 9 or len(high) > 9:
            return MAX_REPEATED_CHARACTERS + 1
        size *= max(int(low or 1), int(high or 1), 1)
    return size


def _compiled(pattern: str) -> Pattern[str]:
    import regex

    if not pattern:
        raise RefusalError("The pattern is empty.")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise RefusalError(f"The pattern has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS} are taken.")
    if _repeated(pattern) > MAX_REPEATED_CHARACTERS:
        raise RefusalError("The pattern repeats too much in braces; smaller counts, or fewer of them, will do.")
    try:
        return regex.compile(pattern, regex.MULTILINE)
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        escaped = regex.escape(pattern)
        raise RefusalError(
            f"The pattern is not a valid regular expression ({error}). To search for it as text: {escaped}"
        ) from error
