"""Draws rows of code to edit: number, mark, syntax, selection, brackets and cursor."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from gistpoint.core.text import visible_line
from gistpoint.tui.widgets.code_document import LONGEST_LINE, CodeSpan
from gistpoint.tui.widgets.text_lines import drawn

FAULT = "✘"
"""Beside the number of a line that Python refuses."""
BEFORE, BEHIND = "‹", "›"
"""At the ends of a row whose line goes on there."""


@dataclass(frozen=True, slots=True)
class CodeRow:
    """All that a row shows; equal ones look alike, whatever line of the text they are."""

    text: str
    number: int
    spans: tuple[CodeSpan, ...] = ()
    at_cursor: bool = False
    fault: bool = False
    selected: tuple[int, int] | None = None
    brackets: tuple[int, ...] = ()
    cursor: int | None = None
    """The character at which the cursor is drawn."""


@dataclass(frozen=True, slots=True)
class RowStyles:
    """How the parts are drawn; `syntax` by kind."""

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


def draw(row: CodeRow, styles: RowStyles, *, left: int, width: int, gutter: int, console: Console) -> Strip:
    """Return a row of `width` cells with its gutter, whose text is scrolled by `left` cells."""
    room = width - gutter
    text, places, cut = row.text, None, 0
    if len(text) > LONGEST_LINE or (text.isascii() and text.isprintable()):  # the cost is that of the part in sight
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
    if length > left + room:
        strip = Strip([*strip.crop(0, room - 1), Segment(BEHIND, styles.more)], room)
    if left and length:
        strip = Strip([Segment(BEFORE, styles.more), *strip.crop(1, room)], room)
    number = f"{row.number:>{gutter - 2}}"
    beside = styles.line_gutter if row.at_cursor else styles.gutter
    mark = Segment(f"{FAULT} ", styles.fault) if row.fault else Segment("  ", beside)
    return Strip([Segment(number, beside), mark, *strip.apply_style(base)], width)
