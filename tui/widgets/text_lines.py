"""The lines of text and their rows on the screen, for widgets that draw only visible rows.

Text of a million lines takes one string and one array. Only a newline ends a line. A line that is too long
for a row is wrapped into several.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain
from operator import sub

from rich.cells import cell_len

from gistpoint.core.text import visible

TAB = 4
"""The number of cells from one tab stop to the next."""

LONGEST_ROW = 4_000
"""The maximum length of a row of unwrapped lines, in characters; it limits the time for drawing a row."""

_WIDE = (
    "[\u1100-\u115f\u2329\u232a\u231a-\u27bf\u2b1b-\u2b55\u2e80-\ua4cf"
    "\uac00-\ud7a3\uf900-\ufaff\ufe0f\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\U00016fe0-\U0003ffff]"
)
"""A pattern of characters that may take two cells. It is compiled for the first text that isn't ASCII."""

_LONGEST_MEASURED = 20_000
"""The length, in characters, above which a line with tabs or beyond ASCII is not measured when wrapped.

Measuring it would take too long, so it is wrapped at a quarter of the width.
"""


_LONGEST_BY_WORDS = 1_000_000
"""The length of a line, in characters, above which it is wrapped without regard to words."""


class TextLines:
    """Text with the offset of each line. A newline at the end of the text starts no further line."""

    def __init__(self, text: str) -> None:
        self.text = text
        lengths = map((1).__add__, map(len, text.split("\n")))
        self.starts = array("q", chain((0,), accumulate(lengths)))
        """The offset of each line, followed by the offset at which a further line would start."""
        if len(self.starts) > 2 and text.endswith("\n"):
            self.starts.pop()

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> str:
        return self.text[self.starts[index] : self.starts[index + 1] - 1]

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def line_of(self, offset: int) -> int:
        """Return the index of the line at an offset in the text."""
        return min(max(0, bisect_right(self.starts, offset) - 1), len(self) - 1)

    def length(self, index: int) -> int:
        """Return the number of characters in a line, without its newline."""
        return self.starts[index + 1] - 1 - self.starts[index]

    def longest(self) -> int:
        """Return the number of characters in the longest line."""
        lengths: Iterator[int] = map(sub, self.starts[1:], self.starts)
        return max(lengths) - 1

    def widest(self) -> int:
        """Return the width of the widest row, in cells.

        This is an upper bound if the text contains tabs or is not ASCII.
        """
        starts, longest = self.starts, LONGEST_ROW
        if self.text.isascii() and "\t" not in self.text:
            return min(longest, self.longest())
        widest = 0
        for index in range(len(self)):
            length = min(longest, self.length(index))
            if length * TAB > widest:
                part = self.text[starts[index] : starts[index] + length]
                wide = 0 if part.isascii() else len(re.findall(_WIDE, part))
                widest = max(widest, length + wide + part.count("\t") * (TAB - 1))
        return widest


class ScreenRows:
    """The rows of text: the line, and the part of it, in each row. Only wrapped lines take memory."""

    def __init__(self, lines: TextLines, width: int | None = None) -> None:
        """Wrap lines wider than `width` cells; if `width` is None, only those longer than `LONGEST_ROW`."""
        self._lines = lines
        self._folded: list[int] = []
        self._columns: list[list[int]] = []
        self._first: list[int] = []
        self._extra: list[int] = [0]
        for line in _too_long(lines, width):
            columns = _breaks(lines[line], width)
            if len(columns) > 1:
                self._folded.append(line)
                self._columns.append(columns)
                self._first.append(line + self._extra[-1])
                self._extra.append(self._extra[-1] + len(columns) - 1)

    def __len__(self) -> int:
        return len(self._lines) + self._extra[-1]

    def at(self, row: int) -> tuple[int, int, int]:
        """Return the index of the line in a row, and the start and end of the line's part in it."""
        place = bisect_right(self._first, row) - 1
        if place < 0:
            return row, 0, self._lines.length(row)
        columns = self._columns[place]
        within = row - self._first[place]
        if within >= len(columns):
            line = row - self._extra[place + 1]
            return line, 0, self._lines.length(line)
        line = self._folded[place]
        end = columns[within + 1] if within + 1 < len(columns) else self._lines.length(line)
        return line, columns[within], end

    def row_of(self, line: int, column: int = 0) -> int:
        """Return the row with a character of a line."""
        place = bisect_left(self._folded, line)
        row = line + self._extra[place]
        if place < len(self._folded) and self._folded[place] == line:
            row += bisect_right(self._columns[place], column) - 1
        return row


def _too_long(lines: TextLines, width: int | None) -> Iterator[int]:
    starts = lines.starts
    limit = LONGEST_ROW if width is None else max(1, width)
    all_narrow = width is None or _narrow(lines.text)
    if all_narrow and lines.longest() <= limit:
        return
    for index in range(len(lines)):
        length = starts[index + 1] - starts[index] - 1
        if length > limit or (not all_narrow and length * TAB > limit and not _narrow(lines[index])):
            yield index


def _narrow(text: str) -> bool:
    return text.isascii() and "\t" not in text


def _breaks(line: str, width: int | None) -> list[int]:
    if width is None:
        return list(range(0, len(line), LONGEST_ROW)) or [0]
    width = max(TAB, width)
    if _narrow(line):
        return (
            _word_breaks(line, width) if len(line) <= _LONGEST_BY_WORDS else list(range(0, len(line), width))
        )
    if len(line) > _LONGEST_MEASURED:
        return list(range(0, len(line), max(1, width // TAB)))
    columns, used = [0], 0
    for column, character in enumerate(visible(line)):
        cells = _cells(character, used)
        if used + cells > width:
            columns.append(column)
            used, cells = 0, _cells(character, 0)
        used += cells
    return columns


def _word_breaks(line: str, width: int) -> list[int]:
    """Return where to break a line: after a space in the second half of a row, otherwise at its end."""
    breaks, start = [0], 0
    while start + width < len(line):
        blank = line.rfind(" ", start + width // 2, start + width)
        start = blank + 1 if blank >= 0 else start + width
        breaks.append(start)
    return breaks


def _cells(character: str, used: int) -> int:
    if character == "\t":
        return TAB - used % TAB
    # U+FE0F takes a cell in terminals that then draw the character before it as a wide emoji.
    return 1 if character == "\ufe0f" else cell_len(character)


def drawn(raw: str) -> tuple[str, range | array[int]]:
    """Return a row as drawn, and the positions in it of each raw character and of the end.

    Control characters are drawn as glyphs, one for each. A tab is drawn as the spaces up to the next tab
    stop.
    """
    text = visible(raw)
    if "\t" not in text:
        return text, range(len(text) + 1)
    parts: list[str] = []
    places = array("q")
    place = used = 0
    for character in text:
        places.append(place)
        cells = _cells(character, used)
        part = " " * cells if character == "\t" else character
        parts.append(part)
        place += len(part)
        used += cells
    places.append(place)
    return "".join(parts), places
