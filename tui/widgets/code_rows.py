"""Draws editable code row by row: the number, mark, syntax, selection, brackets and cursor."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from gistpoint.core.text import visible_line
from gistpoint.tui import signs
from gistpoint.tui.widgets.code_document import LONGEST_LINE, CodeSpan
from gistpoint.tui.widgets.text_lines import drawn

FAULT = signs.BAD
"""The mark of a line that Python can't parse."""
BEFORE, BEHIND = signs.CUT_LEFT, signs.CUT_RIGHT
"""The marks at the ends of a row whose line continues there."""


@dataclass(frozen=True, slots=True)
class CodeRow:
    """All that determines the look of a row's text. Equal rows look the same, so drawn rows can be cached."""

    text: str
    spans: tuple[CodeSpan, ...] = ()
    at_cursor: bool = False
    selected: tuple[int, int] | None = None
    """The start and the end of the selected part of `text`; None if nothing is selected."""
    brackets: tuple[int, ...] = ()
    cursor: int | None = None
    """The character under the cursor; None if the cursor is not drawn in this row."""


@dataclass(frozen=True, slots=True)
class RowStyles:
    """The styles of a row's parts. `syntax` contains a style for each kind of token."""

    base: Style
    line: Style
    gutter: Style
    line_gutter: Style
    fault: Style
    more: Style
    selected: Style
    bracket: Style
    cursor: Style
    syntax: dict[str, Style]


@dataclass(frozen=True, slots=True)
class NumberedRow:
    """A row together with its number and mark."""

    row: CodeRow
    number: int
    fault: bool = False


def numbered(shown: NumberedRow, text: Strip, styles: RowStyles, gutter: int) -> Strip:
    """Return a drawn row with its number and mark before it, in a gutter of `gutter` cells."""
    gutter_style = styles.line_gutter if shown.row.at_cursor else styles.gutter
    mark = Segment(f"{FAULT} ", styles.fault) if shown.fault else Segment("  ", gutter_style)
    number = Segment(f"{shown.number:>{gutter - 2}}", gutter_style)
    return Strip([number, mark, *text], gutter + text.cell_length)


def draw(row: CodeRow, styles: RowStyles, left: int, room: int, console: Console) -> Strip:
    """Return the text of a row in `room` cells, scrolled by `left` cells."""
    text, places, cut = row.text, None, 0
    has_one_cell_each = text.isascii() and text.isprintable()
    if has_one_cell_each or len(text) > LONGEST_LINE:
        # Only the visible part is processed, however long the line is.
        cut, text = min(left, len(text)), visible_line(text[left : left + room + 1])
        length = len(row.text)
    else:
        text, places = drawn(text)
        length = Text(text).cell_len

    def place(column: int) -> int:
        return max(0, column - cut) if places is None else places[min(column, len(places) - 1)]

    shown = Text(f"{text} ", end="", no_wrap=True)
    for start, end, kind in row.spans:
        if (style := styles.syntax.get(kind)) is not None:
            shown.stylize(style, place(start), place(end))
    if row.selected is not None:
        start, end = place(row.selected[0]), place(row.selected[1])
        shown.stylize(styles.selected, start, end + (end == start or row.selected[1] > len(row.text)))
    for column in row.brackets:
        if column >= cut:
            shown.stylize(styles.bracket, place(column), place(column) + 1)
    if row.cursor is not None and row.cursor >= cut:
        shown.stylize(styles.cursor, place(row.cursor), place(row.cursor) + 1)
    base = styles.line if row.at_cursor else styles.base
    strip = Strip(shown.render(console)).crop(left - cut, left - cut + room).extend_cell_length(room)
    return _with_ends(strip, left, room, length, styles).apply_style(base)


def _with_ends(strip: Strip, left: int, room: int, length: int, styles: RowStyles) -> Strip:
    """Return a row with a mark at each end beyond which its line of `length` cells continues."""
    if length > left + room:
        strip = Strip([*strip.crop(0, room - 1), Segment(BEHIND, styles.more)], room)
    if left and length:
        strip = Strip([Segment(BEFORE, styles.more), *strip.crop(1, room)], room)
    return strip
