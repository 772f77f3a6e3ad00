"""Python code in an editor: its lines, their syntax highlighting, and matching brackets."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rich.cells import cell_len
from textual.document._document import Document, DocumentBase, EditResult
from textual.document._wrapped_document import WrappedDocument
from textual.expand_tabs import get_tab_widths
from textual.geometry import Size

if TYPE_CHECKING:
    from textual.document._document import Location

Item = TypeVar("Item")

CodeSpan: TypeAlias = tuple[int, int, str]
"""The start and the end of a token, in characters, and its kind."""

LONGEST_LINE = 20_000
"""The length of a line, in characters, above which it gets no colours and no matching brackets."""
_MOST_SEARCHED = 1_000
"""The maximum number of lines that are searched for a matching bracket."""

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
    """The lines of a text area, which are highlighted as Python when they are drawn.

    Textual's document for code parses the whole text, and highlights all lines, after each key. Here, a line
    is parsed when it is drawn, given the state at its start: the string that is open there, if any. An edit
    discards the states of the lines below it (decision 99).
    """

    _widest: int | None = None
    _tab = 4

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._open = [("", "")]
        """The delimiter and kind of the string open at the start of each line, for the lines read so far."""

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Replace a part of the text. Return the end of the new part, and the text that it replaces."""
        top, bottom = sorted((start[0], end[0]))
        old_lines = self._lines[top : bottom + 1]
        result = super().replace_range(start, end, text)
        del self._open[top + 1 :]
        if self._widest is not None:
            new_lines = self._lines[top : result.end_location[0] + 1]
            loses_widest = max(map(self._width, old_lines), default=0) == self._widest
            self._widest = None if loses_widest else max(self._widest, *map(self._width, new_lines))
        return result

    def get_size(self, tab_width: int) -> Size:
        """Return the width, in cells, of the widest line, and the number of lines."""
        if self._widest is None or tab_width != self._tab:
            self._tab = tab_width
            self._widest = max(map(self._width, self._lines))
        return Size(self._widest, len(self._lines))

    def _width(self, line: str) -> int:
        plain = line.isascii() and "\t" not in line
        return len(line) if plain else cell_len(line.expandtabs(self._tab))

    def spans(self, row: int) -> tuple[CodeSpan, ...]:
        """Return the highlighted spans of a line. Later spans override earlier ones."""
        return (*_word_spans(self._lines[row]), *self._quoted(row))

    def partner(self, place: Location) -> Location | None:
        """Return the position of the bracket matching the one at `place`; None if none is found nearby."""
        row, column = place
        bracket = self._lines[row][column : column + 1]
        forward = bracket in _PAIRS
        is_bracket = forward or bracket in _PAIRS.values()
        if not is_bracket or place not in self._brackets(row):
            return None
        waiting: list[str] = []
        last = min(row + _MOST_SEARCHED, len(self._lines)) if forward else max(row - _MOST_SEARCHED, -1)
        for at in range(row, last, 1 if forward else -1):
            for found in self._brackets(at)[:: 1 if forward else -1]:
                is_outside = found[1] < column if forward else found[1] > column
                if at == row and is_outside:
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
        """Return the positions of a line's brackets outside strings and comments; empty if it is too long."""
        if len(self._lines[row]) > LONGEST_LINE:
            return []
        quoted = self._quoted(row)
        places = (match.start() for match in _BRACKET.finditer(self._lines[row]))
        return [(row, at) for at in places if not any(start <= at < end for start, end, _ in quoted)]

    def _quoted(self, row: int) -> tuple[CodeSpan, ...]:
        """Return the spans of a line's strings and comments."""
        while len(self._open) <= row:
            self._open.append(_read(self._lines[len(self._open) - 1], *self._open[-1])[1])
        return _read(self._lines[row], *self._open[row])[0]


class _EachLine(Sequence[Item]):
    """A sequence with a value for each line of a document, computed when it is read."""

    def __init__(self, document: DocumentBase, item: Callable[[int], Item]) -> None:
        self._document, self._item = document, item

    def __len__(self) -> int:
        return self._document.line_count

    def __getitem__(self, row: Any) -> Any:
        at = row if row >= 0 else len(self) + row
        if not 0 <= at < len(self):
            raise IndexError(row)
        return self._item(at)


class UnfoldedLines(WrappedDocument):
    """The rows of text whose lines are not wrapped: one for each line, so that an edit renumbers no rows.

    Textual's class keeps lists of all rows, and rewrites those below an edit.
    """

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        """Adopt a tab width; `width` is ignored, because no line is wrapped."""
        self._width, self._tab_width = 0, tab_width or self._tab_width
        self._wrap_offsets = _EachLine(self.document, lambda _: [])  # type: ignore[assignment]
        self._offset_to_line_info = _EachLine(self.document, lambda row: (row, 0))  # type: ignore[assignment]
        self._line_index_to_offsets = _EachLine(self.document, lambda row: [row])  # type: ignore[assignment]

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        """Do nothing: without wrapped lines, there is nothing to update after an edit."""

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.document.line_count

    def get_tab_widths(self, line_index: int) -> list[int]:
        """Return the widths of a line's tabs."""
        return [width for _, width in get_tab_widths(self.document.get_line(line_index), self._tab_width)]


@lru_cache(maxsize=1_024)
def _word_spans(line: str) -> tuple[CodeSpan, ...]:
    found = _WORDS.finditer(line) if len(line) <= LONGEST_LINE else ()
    return tuple((*match.span(match.lastgroup), match.lastgroup) for match in found if match.lastgroup)


@lru_cache(maxsize=1_024)
def _read(line: str, delimiter: str, kind: str) -> tuple[tuple[CodeSpan, ...], tuple[str, str]]:
    """Return the spans of a line's strings and comments, and delimiter and kind of a string left open."""
    spans: list[CodeSpan] = []
    if len(line) > LONGEST_LINE:
        return (), ("", "")
    margin = len(line) - len(line.lstrip())
    at = start = 0
    while True:
        if delimiter:
            end = _ENDS[delimiter].match(line, at)
            spans.append((start, end.end() if end is not None else len(line), kind))
            if end is None:
                return tuple(spans), (delimiter, kind)
            at, delimiter = end.end(), ""
        match = _QUOTED.search(line, at)
        if match is None:
            return tuple(spans), ("", "")
        start, at = match.span()
        if match["comment"] is not None:
            spans.append((start, at, "comment"))
        elif match["triple"]:
            delimiter, kind = match["triple"], "docstring" if start <= margin else "string"
        else:
            spans.append((start, at, "string"))
