"""A view of source code of any length, with line numbers, marks, syntax highlighting and search."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.worker import get_current_worker

from gistpoint.core.errors import UserError
from gistpoint.core.folding import places_of
from gistpoint.tui import signs
from gistpoint.tui.widgets.line_view import LineView, Span
from gistpoint.tui.widgets.syntax import ANSI_STYLES, KINDS, STYLES, LineTokens, tokens_by_line
from gistpoint.tui.widgets.text_lines import TextLines

REGEX_SECONDS = 0.5
"""The time limit for a regular expression, in seconds. The keyboard waits meanwhile."""


class PatternError(UserError):
    """A pattern that is not a valid regular expression, or takes too long."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of a pattern, as offsets in the text: in order, not overlapping, and not empty."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.starts)


def find_all(text: str, pattern: str, *, regex: bool = False) -> Matches:
    """Return all matches of a pattern; case is ignored for a literal pattern.

    Raises `PatternError` for a regular expression that is invalid or takes more than `REGEX_SECONDS`.
    """
    found = Matches()
    if not pattern:
        return found
    if regex:
        _find_regex(text, pattern, found)
    else:
        for start, end in places_of(pattern, text):
            found.starts.append(start)
            found.ends.append(end)
    return found


def _find_regex(text: str, pattern: str, found: Matches) -> None:
    import regex

    try:
        compiled = regex.compile(pattern, regex.MULTILINE)
    except regex.error as error:
        raise PatternError(
            f"{pattern!r} is not a regular expression: {error}.",
            hint="Search for it as plain text, or escape it.",
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


MATCH = "bold underline $text-warning on $warning-muted"
ANSI_MATCH = "bold underline ansi_black on ansi_yellow"
CURRENT_MATCH = "bold reverse $text-warning"
_DOTTED = re.compile(r"\w+(?:\.\w+)*")
_REST = re.compile(r"\w*")
"""Matches the part of a word after a position in it."""
_MARKED = 500
"""Fewer than twice this number of matches are marked in the scroll bar, which has fewer rows than that."""


class CodeView(LineView):
    """A view of code with a gutter, syntax highlighting and search."""

    DEFAULT_CSS = """
    CodeView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    HELP = (
        "Arrows, page keys, home, end, g and G move; n and N go through the matches of a search; w wraps; y"
        " copies."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "next_match", "Next match", show=False, id="code.next_match"),
        Binding("N", "previous_match", "Previous match", show=False, id="code.previous_match"),
        Binding("escape", "end_search", "End the search", show=False, id="find.end"),
    ]

    found: reactive[tuple[int, int]] = reactive((0, 0), init=False, repaint=False)
    """The number of the current match (counted from 1, 0 for none) and of all matches, for watchers."""
    finding = False
    """Whether a find bar is open for this text, in which case Escape ends the search."""

    class _Coloured(Message):
        """A message that more lines have been highlighted."""

        def __init__(self, tokens: list[LineTokens], first: int, last: int) -> None:
            super().__init__()
            self.tokens = tokens
            self.first = first
            self.last = last

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._tokens: list[LineTokens] = []
        self._matches = Matches()
        self._match: int | None = None
        self._pattern: tuple[str, bool] = ("", False)
        self._marks: Mapping[int, str] = {}
        self.numbers = True
        """Whether the gutter shows line numbers."""

    def load(
        self, text: str, *, language: str | None = "python", first_line: int = 1, title: str = ""
    ) -> None:
        """Show text whose first line has the number `first_line`. A thread adds the colours."""
        self._forget_search()
        self._marks = {}
        self.show_text(text, first_line=first_line, title=title)
        self.colour(language)

    def clear(self) -> None:
        """Show no text."""
        self.load("", language=None)

    @property
    def marks(self) -> Mapping[int, str]:
        """The one-cell glyphs in the gutter, by the number of the line."""
        return self._marks

    @marks.setter
    def marks(self, marks: Mapping[int, str]) -> None:
        self._marks = dict(marks)
        self.redraw()

    # Highlighting

    def colour(self, language: str | None) -> None:
        """Highlight the text in a thread; if the language is None, remove the colours."""
        self.workers.cancel_group(self, "colour")
        tokens: list[LineTokens] = []
        self._tokens = tokens
        lines = self.lines
        if language is not None and self.is_attached:
            self.run_worker(
                lambda: self._find_tokens(lines, language, tokens),
                thread=True,
                group="colour",
                exit_on_error=False,
            )

    def _find_tokens(self, lines: TextLines, language: str, tokens: list[LineTokens]) -> None:
        worker = get_current_worker()
        for chunk in tokens_by_line(lines, language, lambda: worker.is_cancelled):
            if worker.is_cancelled:
                return
            first = len(tokens)
            tokens.extend(chunk)
            self.post_message(self._Coloured(tokens, first, len(tokens)))

    def on_code_view__coloured(self, message: _Coloured) -> None:
        """Draw the lines that have been highlighted, if they are visible."""
        message.stop()
        if message.tokens is self._tokens:
            self.rows_changed(self.rows.row_of(message.first), self.rows.row_of(message.last - 1))

    # Drawing

    def gutter_width(self) -> int:
        """Return the width of the gutter: the cursor, the mark and, if shown, the number with a space."""
        if not self.numbers:
            return 2
        return max(3, len(str(self.first_line + len(self.lines) - 1))) + 3

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Return the cursor, mark and number of a line. The rows of a wrapped line show the number once."""
        here = line == self.cursor_index
        cursor = (signs.HERE if here and not continued else " ", "bold $text-primary")
        mark = (" " if continued else self._marks.get(line + self.first_line, " "), "bold $text-warning")
        if not self.numbers:
            return [cursor, mark]
        width = self.gutter_width() - 3
        number = signs.WRAPPED.rjust(width) if continued else str(line + self.first_line).rjust(width)
        return [cursor, mark, (f"{number} ", "bold" if here else "$foreground 60%")]

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the syntax colours of a part of a line, followed by the matches in it."""
        found: list[Span] = []
        tokens = self.line_tokens(line)
        if tokens:
            styles = ANSI_STYLES if self.app.native_ansi_color else STYLES
            for place in range(0, len(tokens), 3):
                first, last, kind = tokens[place : place + 3]
                style = styles.get(KINDS[kind])
                overlaps = last > start and first < end
                if style is not None and overlaps:
                    found.append((max(first, start), min(last, end), self.overlay(style)))
        if self._matches:
            found.extend(self._match_spans(line, start, end))
        return found

    def line_tokens(self, line: int) -> LineTokens | None:
        """Return the tokens of the line at an index; None if they are not known yet."""
        return self._tokens[line] if line < len(self._tokens) else None

    def _match_spans(self, line: int, start: int, end: int) -> list[Span]:
        offset = self.lines.starts[line]
        matches, found = self._matches, list[Span]()
        usual = ANSI_MATCH if self.app.native_ansi_color else MATCH
        place = bisect_right(matches.ends, offset + start)
        beyond = bisect_left(matches.starts, offset + end)
        for index in range(place, beyond):
            style = CURRENT_MATCH if index == self._match else usual
            first, last = matches.starts[index] - offset, matches.ends[index] - offset
            found.append((max(first, start), min(last, end), self.overlay(style)))
        return found

    # Search

    def search(self, pattern: str, *, regex: bool = False, start: tuple[int, int] | None = None) -> int:
        """Highlight all matches of a pattern, and return their number; an empty pattern ends the search.

        Case is ignored unless `regex` is set. The cursor moves to the first match at or after its position or
        `start` (line and column), wrapping around at the end. Raises `PatternError` for a regular expression
        that is invalid or takes too long.
        """
        self._forget_search()
        self._matches = find_all(self.text, pattern, regex=regex)
        self._pattern = (pattern, regex)
        if start is not None:
            self.go_to(*start)
        if self._matches:
            here = self.lines.starts[self.cursor_index] + self.cursor_column
            self._show_match(bisect_left(self._matches.starts, here) % len(self._matches))
        self.redraw()
        self.marks_changed()
        if pattern:
            self.use_affordance("search")
        return len(self._matches)

    @property
    def pattern(self) -> str:
        """The pattern of the current search; empty if there is none."""
        return self._pattern[0]

    def scroll_marks(self) -> list[int]:
        """Return the rows of the matches to mark in the scroll bar; of many matches, every n-th is marked."""
        starts = self._matches.starts[:: max(1, len(self._matches) // _MARKED)]
        return [self._row_at(offset) for offset in starts]

    def _row_at(self, offset: int) -> int:
        line = self.lines.line_of(offset)
        return self.rows.row_of(line, offset - self.lines.starts[line])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer Escape for ending a search only while its bar is open; otherwise, the screen handles it."""
        return self.finding if action == "end_search" else super().check_action(action, parameters)

    def action_end_search(self) -> None:
        """End the search, and remove its marks; the cursor stays."""
        self.finding = False
        self.search("")

    @property
    def match_place(self) -> tuple[int, int]:
        """The number of the current match (counted from 1, 0 for none) and of all matches."""
        return (0 if self._match is None else self._match + 1), len(self._matches)

    def next_match(self) -> bool:
        """Move to the next match, wrapping around at the end. Return whether there is one."""
        return self._step_match(1)

    def previous_match(self) -> bool:
        """Move to the previous match, wrapping around at the start. Return whether there is one."""
        return self._step_match(-1)

    def action_next_match(self) -> None:
        """Move to the next match. If there is none, leave the key to the screen."""
        if not self.next_match():
            raise SkipAction

    def action_previous_match(self) -> None:
        """Move to the previous match. If there is none, leave the key to the screen."""
        if not self.previous_match():
            raise SkipAction

    def _step_match(self, by: int) -> bool:
        if not self._matches:
            return False
        if self._match is None:
            here = self.lines.starts[self.cursor_index] + self.cursor_column
            following = bisect_left(self._matches.starts, here) + min(by, 0)
        else:
            following = self._match + by
        self._show_match(following % len(self._matches))
        self.redraw()
        self.use_affordance("search")
        return True

    def _show_match(self, index: int) -> None:
        self._match = index
        self.found = self.match_place
        offset = self._matches.starts[index]
        line = self.lines.line_of(offset)
        self.go_to(line + self.first_line, offset - self.lines.starts[line])

    def _forget_search(self) -> None:
        self._matches, self._match, self._pattern = Matches(), None, ("", False)
        self.found = (0, 0)

    def search_again(self) -> None:
        """Repeat the search in text that has grown, without moving the cursor.

        The current match stays the current one if it is still a match. The search ends if it takes too long.
        """
        pattern, regex = self._pattern
        if not pattern:
            return
        current = None if self._match is None else self._matches.starts[self._match]
        try:
            self._matches = find_all(self.text, pattern, regex=regex)
        except PatternError:
            self._forget_search()
        else:
            starts = self._matches.starts
            place = len(starts) if current is None else bisect_left(starts, current)
            self._match = place if place < len(starts) and starts[place] == current else None
            self.found = self.match_place
        self.redraw()
        self.marks_changed()

    # Words

    def word_at_cursor(self) -> str:
        """Return the dotted name up to the word at the cursor; empty if there is none.

        On `b` of `a.b.c`, that is `a.b`.
        """
        line, column = self.lines[self.cursor_index], self.cursor_column
        for found in _DOTTED.finditer(line):
            if found.start() <= column <= found.end():
                rest = _REST.match(line, column)
                word = line[found.start() : rest.end() if rest else column]
                return "" if word[0].isdigit() else word
        return ""
