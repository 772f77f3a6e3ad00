"""A view of Markdown as readable text, with headings, lists and code drawn as such."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.selection import Selection
from textual.worker import get_current_worker

from gistpoint.tui import signs
from gistpoint.tui.widgets.line_view import Span
from gistpoint.tui.widgets.syntax import LineTokens, tokens_by_line
from gistpoint.tui.widgets.text_lines import TextLines
from gistpoint.tui.widgets.text_view import TextView

_FENCE = re.compile(r"(`{3,}|~{3,})\s*([\w+-]*)\s*$")
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"(\s*)[-*+] +(.*)")
_INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")
_CODE = "  "
"""The indent before a line of code, in place of the fences."""
_CODE_LINE = re.compile(
    r"\s*(?:@[\w.]+(?:\(.*)?$|(?:async )?def \w+\(|class \w+\s*[(:]|import \w|from [\w.]+ import )"
)
"""Matches a line that only code has."""
_OUTPUT = re.compile(
    r"\.py\b|^E |^\s*(?:File \"|Traceback |>>> |\.\.\. )"
    r"|^\w*(?:Error|Exception|Failed)\b|^(?:assert|python|pytest) "
)
"""Matches a line of a program's output or of a command; such lines are not changed."""
_HEAD_LINES = 3
"""The number of lines at the start of a block that show whether it is code, output or prose."""
_BEGINS = re.compile(r"\s*(?:[-*+\N{BULLET}:@>#|=~]|\d+[.)]\s|\w[\w ,*]*:(?:\s|$))")
"""Matches a line that begins an entry of a list, a field or a table."""
_FULL_LINE = 50
"""The minimum number of characters in a line that was wrapped, rather than ended."""
_PROSE = "italic"
_HEADINGS = ("bold underline $text-primary", "bold $text-primary")
_LOOKS = {"code": "$text-accent", "bold": "bold"}


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line of a Markdown text as it is drawn."""

    text: str
    source: int
    """The line of the source, counted from 0."""
    style: str = ""
    looks: tuple[tuple[int, int, str], ...] = ()
    """The start, end and style of each styled part."""
    code: bool = False
    more: int = 0
    """The number of further lines of the source that are drawn in this one."""


def drawn_lines(source: str) -> list[DrawnLine]:
    """Return the lines of a Markdown text as they are drawn, without lines that are only markup."""
    found: list[DrawnLine] = []
    block: list[tuple[int, str]] = []
    fence = language = ""
    for number, line in enumerate(source.split("\n")):
        opening = _FENCE.match(line)
        if fence and line.strip() == fence:
            found += _block(block, language)
            fence, block = "", []
        elif fence:
            block.append((number, line))
        elif opening:
            fence, language = opening[1], opening[2]
        elif heading := _HEADING.match(line):
            style = _HEADINGS[min(len(heading[1]), len(_HEADINGS)) - 1]
            found.append(replace(_inline(heading[2], number), style=style))
        else:
            item = _ITEM.match(line)
            found.append(_inline(f"{item[1]}{signs.SEEN} {item[2]}" if item else line, number))
    return found + _block(block, language)


def _block(block: list[tuple[int, str]], language: str) -> list[DrawnLine]:
    """Return the lines of a fenced block: code, output of a program, or prose such as a docstring.

    Only code gets colours. Prose that was wrapped at a fixed width is wrapped to the view's width instead.
    """
    texts = [text for _, text in block]
    code = bool(language) or any(_CODE_LINE.match(text) for text in texts[:_HEAD_LINES])
    if code or any(_OUTPUT.search(text) for text in texts[:_HEAD_LINES]):
        return [DrawnLine(f"{_CODE}{text}", number, code=code) for number, text in block]
    found: list[DrawnLine] = []
    for number, text in block:
        last = found[-1] if found else None
        if last is not None and _continues(last.text, texts[number - block[0][0] - 1], text):
            joined = f"{last.text} {text.strip()}"
            found[-1] = replace(last, text=joined, more=last.more + 1)
        else:
            found.append(DrawnLine(text, number, style=_PROSE))
    return found


def _continues(paragraph: str, before: str, line: str) -> bool:
    """Return whether a line of prose continues a paragraph, whose last line is `before`.

    A short line ends a paragraph; a different margin or the symbol of a list begins one. The output of a
    program is never continued.
    """
    is_output = _OUTPUT.search(before) or _OUTPUT.search(line)
    if is_output or not line.strip():
        return False
    full = len(before.rstrip()) >= _FULL_LINE
    margin, further = (len(text) - len(text.lstrip()) for text in (paragraph, line))
    return full and margin == further and not _BEGINS.match(line)


def _inline(line: str, number: int) -> DrawnLine:
    text, looks, at = "", list[tuple[int, int, str]](), 0
    for match in _INLINE.finditer(line):
        text += line[at : match.start()]
        words = match[1] or match[2]
        looks.append((len(text), len(text) + len(words), "code" if match[1] else "bold"))
        text += words
        at = match.end()
    return DrawnLine(text + line[at:], number, looks=tuple(looks))


class MarkdownText(TextView):
    """A view of a Markdown text. Copied lines are lines of the source."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "first_row", "Top", show=False, id="markdown.top"),
        Binding("end", "last_row", "Bottom", show=False, id="markdown.bottom"),
        Binding("v", "toggle_source", "Source", show=False, id="markdown.source"),
    ]

    as_source: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether the source is shown instead of the drawn text."""

    class _BlocksColoured(Message):
        """A message that the blocks of code have been highlighted."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._drawn: list[DrawnLine] = []
        self._blocks: dict[int, LineTokens] = {}

    def show(self, source: str) -> None:
        """Show a Markdown text, given its source."""
        self._drawn = drawn_lines(source)
        self._blocks = {}
        self.wrap = True
        self.load(source)
        self.run_worker(self._colour_blocks, thread=True, group="blocks", exit_on_error=False)

    def _shown(self) -> str:
        return self.raw if self.as_source else "\n".join(line.text for line in self._drawn)

    def watch_as_source(self) -> None:
        """Show the text in the other form."""
        self.load(self.raw, language="markdown" if self.as_source else None)

    def action_toggle_source(self) -> None:
        """Switch between the drawn text and its source."""
        self.as_source = not self.as_source

    # Drawing

    def line_style(self, line: int) -> str:
        """Return the style of a heading, or of prose in a block; empty for any other line."""
        return "" if self.as_source or line >= len(self._drawn) else self._drawn[line].style

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the styles of a part of a line, followed by its matches."""
        looks = () if self.as_source or line >= len(self._drawn) else self._drawn[line].looks
        marked = [
            (max(first, start), min(last, end), self.overlay(_LOOKS[look]))
            for first, last, look in looks
            if last > start and first < end
        ]
        return marked + super().spans(line, start, end)

    def line_tokens(self, line: int) -> LineTokens | None:
        """Return the tokens in a line of code; None for other lines, and until the code is highlighted."""
        return super().line_tokens(line) if self.as_source else self._blocks.get(line)

    def _colour_blocks(self) -> None:
        """Highlight each block of code separately, because an open quote in one must not affect the next."""
        worker, drawn = get_current_worker(), self._drawn
        block: list[int] = []
        for number in range(len(drawn) + 1):
            if number < len(drawn) and drawn[number].code:
                block.append(number)
            elif block:
                lines = TextLines("\n".join(drawn[at].text for at in block))
                tokens = [
                    line
                    for chunk in tokens_by_line(lines, "python", lambda: worker.is_cancelled)
                    for line in chunk
                ]
                self._blocks.update(zip(block, tokens, strict=False))
                block = []
        self.post_message(self._BlocksColoured())

    def on_markdown_text__blocks_coloured(self, message: _BlocksColoured) -> None:
        """Draw the text again, with the colours."""
        message.stop()
        self.redraw()

    # Copying

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text selected in a line as it is drawn, or the source of several lines."""
        last = len(self.rows) - 1
        rows = (selection.start.y if selection.start else 0, selection.end.y if selection.end else last)
        first, end = (self.rows.at(min(row, last))[0] for row in rows)
        if self.as_source or first == end:
            return super().get_selection(selection)
        return self._source(first, end), "\n"

    def copied_line(self) -> str:
        """Return the source of the line with the cursor."""
        return super().copied_line() if self.as_source else self._source(self.cursor_index, self.cursor_index)

    def _source(self, first: int, last: int) -> str:
        lines = self.raw.split("\n")
        return "\n".join(
            lines[self._drawn[first].source : self._drawn[last].source + self._drawn[last].more + 1]
        )
