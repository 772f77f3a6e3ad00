"""Python code under the cursor: its lines, what in them is coloured, and which bracket closes which."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len
from textual.document._document import Document, EditResult
from textual.geometry import Size

if TYPE_CHECKING:
    from textual.document._document import Location

CodeSpan: TypeAlias = tuple[int, int, str]
"""Start and end in characters, and a kind of `syntax`."""

LONGEST_LINE = 20_000
"""A longer line, in characters, is not read: neither coloured, nor searched for strings and brackets."""
_REACH = 1_000
"""Lines in which the other bracket is looked for."""

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r"[()\[\]{}]")
_QUOTED = re.compile(
    r"""(?P<comment>\#.*)
    |(?:\b[rbuft]{1,2})?(?P<triple>\"{3}|'{3})
    |(?:\b[rbuft]{1,2})?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)""",
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = {delimiter: re.compile(rf"(?:[^\\]|\\.)*?{delimiter}") for delimiter in ('"""', "'''")}
_CONSTANTS = ("None", "True", "False")
_WORDS = re.compile(
    r"(?P<decorator>^\s*@[\w.]+)"
    r"|(?<=\bdef )(?P<function>\w+)|(?<=\bclass )(?P<class>\w+)"
    rf"|\b(?P<constant>{'|'.join(_CONSTANTS)})\b"
    rf"|\b(?P<keyword>{'|'.join(word for word in keyword.kwlist if word not in _CONSTANTS)})\b"
    rf"|(?<![\w.])(?P<builtin>self|cls|{'|'.join(name for name in dir(builtins) if name[0] != '_')})\b"
    r"|(?<![\w.])(?P<number>\d[\w.]*)"
)


class CodeDocument(Document):
    """The lines of a text area, read as Python where they are looked at.

    Textual's own document for code parses the text and asks for the colours of all its lines after each key. Here a
    line is read when it is drawn, from what is open at its start: nothing, or a string over several lines. An edit
    forgets that for the lines below it.
    """

    _widest: int | None = None

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._open = [("", "")]
        """For the first lines: delimiter and kind of the string that is open at their start."""

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Replace a part of the text."""
        result = super().replace_range(start, end, text)
        del self._open[min(start, end)[0] + 1 :]
        self._widest = None
        return result

    def get_size(self, tab_width: int) -> Size:
        """Return the width in cells of the widest line, and the number of lines."""
        if self._widest is None:
            lines = self._lines
            odd = [line for line in lines if not line.isascii() or "\t" in line]
            wide = max((cell_len(line.expandtabs(tab_width)) for line in odd), default=0)
            self._widest = max(wide, max(map(len, lines)))
        return Size(self._widest, len(self._lines))

    def spans(self, row: int) -> list[CodeSpan]:
        """Return what is coloured in a line; later spans lie over earlier ones."""
        line = self._lines[row]
        if len(line) > LONGEST_LINE:
            return []
        found = [(*match.span(match.lastgroup), match.lastgroup) for match in _WORDS.finditer(line) if match.lastgroup]
        return [*found, *self._quoted(row)]

    def partner(self, place: Location) -> Location | None:
        """Return the place of the bracket that belongs to the one at `place`; None if there is none nearby."""
        row, column = place
        bracket = self._lines[row][column : column + 1]
        forward = bracket in _PAIRS
        if not (forward or bracket in _PAIRS.values()) or place not in self._brackets(row):
            return None
        waiting: list[str] = []
        last = min(row + _REACH, len(self._lines)) if forward else max(row - _REACH, -1)
        for at in range(row, last, 1 if forward else -1):
            for found in self._brackets(at)[:: 1 if forward else -1]:
                if at == row and (found[1] < column if forward else found[1] > column):
                    continue
                here = self._lines[at][found[1]]
                if (here in _PAIRS) == forward:
                    waiting.append(here)
                elif {waiting[-1], here} not in ({"(", ")"}, {"[", "]"}, {"{", "}"}):
                    return None
                else:
                    waiting.pop()
                    if not waiting:
                        return found
        return None

    def _brackets(self, row: int) -> list[Location]:
        """Return the brackets of a line that are neither in strings nor in comments."""
        if len(self._lines[row]) > LONGEST_LINE:
            return []
        quoted = self._quoted(row)
        places = (match.start() for match in _BRACKET.finditer(self._lines[row]))
        return [(row, at) for at in places if not any(start <= at < end for start, end, _ in quoted)]

    def _quoted(self, row: int) -> list[CodeSpan]:
        """Return the strings and comments of a line."""
        while len(self._open) <= row:
            self._open.append(_read(self._lines[len(self._open) - 1], *self._open[-1])[1])
        return _read(self._lines[row], *self._open[row])[0]


def _read(line: str, delimiter: str, kind: str) -> tuple[list[CodeSpan], tuple[str, str]]:
    """Return the strings and comments of a line, and the string that is open at its end."""
    spans: list[CodeSpan] = []
    if len(line) > LONGEST_LINE:
        return spans, ("", "")
    margin = len(line) - len(line.lstrip())
    at = start = 0
    while True:
        if delimiter:
            end = _ENDS[delimiter].match(line, at)
            spans.append((start, end.end() if end is not None else len(line), kind))
            if end is None:
                return spans, (delimiter, kind)
            at, delimiter = end.end(), ""
        match = _QUOTED.search(line, at)
        if match is None:
            return spans, ("", "")
        start, at = match.span()
        if match["comment"] is not None:
            spans.append((start, at, "comment"))
        elif match["triple"]:
            delimiter, kind = match["triple"], "docstring" if start <= margin else "string"
        else:
            spans.append((start, at, "string"))
