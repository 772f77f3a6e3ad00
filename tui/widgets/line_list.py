"""A list of styled lines with links and a cursor."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from gistpoint.tui import signs
from gistpoint.tui.widgets.record_list import Piece, RecordList

HEADING = "bold $text-primary"
_INDENT = "      "
_NARROWEST = 3 * len(_INDENT)
"""The width, in cells, below which lines are not wrapped: a part needs more than its indent."""
_ANY = 10_000
"""The assumed width, in cells, before the first layout."""
MUTED = "$foreground 60%"
GOOD, BAD, ODD = "$text-success", "$text-error", "$text-warning"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of styled pieces. `link` is the target of Enter; empty if there is none."""

    pieces: tuple[Piece, ...] = ()
    link: str = ""

    @property
    def text(self) -> str:
        """The text of the line, without styles."""
        return "".join(text for text, _ in self.pieces)


def line(text: str, style: str = "", *, link: str = "") -> Line:
    """Return a line with a single piece."""
    return Line(((text, style),), link)


def folded(text: str, width: int, style: str = "", *, indent: str = "  ") -> list[Line]:
    """Return text as indented lines wrapped to `width` characters, with at least 20 after the indent."""
    found: list[Line] = []
    for part in text.split("\n"):
        rows = textwrap.wrap(part, max(20, width - len(indent)), drop_whitespace=True) or [""]
        found += [line(indent + row, style) for row in rows]
    return found


def parts_of(whole: Line, width: int) -> list[Line]:
    """Return a line wrapped to `width` cells, with an indent before all parts but the first.

    Each part has the link of the line. If the width is too small for parts, the line is returned in one
    piece.
    """
    parts: list[Line] = []
    while width >= _NARROWEST and cell_len(whole.text) > width:
        fits = len(set_cell_size(whole.text, width))
        at = whole.text.rfind(" ", width // 2, fits + 1)
        at = at if at > 0 else fits
        first: list[Piece] = []
        rest: list[Piece] = [(_INDENT, "")]
        is_begun = False
        for text, style in whole.pieces:
            first.append((text[:at], style))
            left = text[at:] if is_begun else text[at:].lstrip()
            is_begun = is_begun or bool(left)
            rest.append((left, style))
            at = max(0, at - len(text))
        parts.append(Line(tuple(first), whole.link))
        whole = Line(tuple(rest), whole.link)
    return [*parts, whole]


class LineList(RecordList):
    """A list of lines. Enter on a line with a link posts `Chosen`."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Line] = ()

    @property
    def room(self) -> int:
        """The number of cells that a line can have before it is wrapped; 0 before the list is laid out."""
        return max(0, self.size.width - 2)

    def show(self, lines: Iterable[Line], *, keep_place: bool = True) -> None:
        """Show other lines, wrapped to the width of the list; unless `keep_place`, begin at the top again."""
        width = self.room or _ANY
        self.lines = [part for whole in lines for part in parts_of(whole, width)]
        if not keep_place:
            self.scroll_to(0, 0, animate=False, immediate=True, force=True)
        self.set_count(len(self.lines), cursor=None if keep_place else 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer Enter only on a line with a link."""
        if action == "choose":
            return self.is_link(self.cursor)
        return super().check_action(action, parameters)

    def watch_cursor(self, old: int, new: int) -> None:
        """Move the cursor, and update the offered keys."""
        super().watch_cursor(old, new)
        if self.is_link(old) != self.is_link(new):
            self.refresh_bindings()

    def is_link(self, index: int) -> bool:
        """Return whether Enter on a line opens something."""
        return index < len(self.lines) and bool(self.lines[index].link)

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the pieces of a line, with an arrow if it has a link."""
        shown = self.lines[index]
        return [(signs.LEADS if shown.link else " ", MUTED), *shown.pieces]
