"""The header of a screen: its name on the left, and facts on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from gistpoint.core.text import shortened
from gistpoint.tui.widgets.one_line import OneLine
from gistpoint.tui.widgets.plain import plain_line

_LEAST = 12
"""The minimum number of characters to which the name is shortened."""
_GAP = 2
"""The minimum number of cells between the text and the fields."""


class HeaderField(NamedTuple):
    """A named value with a Textual style, such as `$text-success`."""

    name: str
    value: str
    style: str = "bold"

    @property
    def content(self) -> Content:
        """The field as it is drawn. Without a name, only the value is drawn."""
        value = plain_line(self.value).stylize(self.style)
        return Content.assemble((f"{self.name} ", "$foreground 60%"), value) if self.name else value


class HeaderBar(OneLine):
    """A name as a badge, text, and fields. In a narrow line, fields are left out, the last one first.

    The first field and the text are kept as long as shortening the name makes enough room for them.
    """

    DEFAULT_CSS = """
    HeaderBar { dock: top; height: 1; background: $panel; color: $foreground; padding: 0 1 0 0; }
    HeaderBar:ansi { background: ansi_default; }
    """
    ALLOW_SELECT = False

    def __init__(self, name: str, words: str | Content = "", fields: Sequence[HeaderField] = ()) -> None:
        """`name` is the text of the badge: the program, or the title of the displayed content."""
        super().__init__()
        self._badge, self._words, self._fields = name, words, tuple(fields)

    def show(
        self,
        *,
        name: str | None = None,
        words: str | Content | None = None,
        fields: Sequence[HeaderField] | None = None,
    ) -> None:
        """Show another name, text or fields; None keeps the current one."""
        before = (self._badge, self._words, self._fields)
        self._badge = self._badge if name is None else name
        self._words = self._words if words is None else words
        self._fields = self._fields if fields is None else tuple(fields)
        if before != (self._badge, self._words, self._fields):
            self.redraw()

    def line(self) -> Content:
        """Return as much of the header as fits.

        All fields but the first are left out if necessary. Then the name is shortened, and if that does not
        make enough room, the first field is left out as well. The text is cut only if it does not fit next to
        the shortest name.
        """
        width = self.content_size.width
        drawn = [field.content for field in self._fields if field.value]
        while len(drawn) > 1 and self._left().cell_length + _GAP + _length(drawn) > width:
            drawn.pop()
        if drawn:
            excess = self._left().cell_length + _GAP + _length(drawn) - width
            if len(self._badge) - excess >= _LEAST or excess <= 0:
                left = self._left(excess)
                gap = " " * (width - left.cell_length - _length(drawn))
                return Content.assemble(left, gap, Content("   ").join(drawn))
        return self._left(self._left().cell_length - width).truncate(width, ellipsis=True)

    def _left(self, excess: int = 0) -> Content:
        """Return the name and the text; the name is shortened by up to `excess` cells."""
        words = plain_line(self._words) if isinstance(self._words, str) else self._words
        shortest = min(len(self._badge), _LEAST)
        name = shortened(self._badge, max(shortest, len(self._badge) - max(0, excess)))
        badge = plain_line(f" {name} ").stylize("bold $text-warning reverse")
        return Content.assemble(badge, "  ", words) if words.plain else badge


def _length(fields: Sequence[Content]) -> int:
    return sum(field.cell_length for field in fields) + 3 * max(0, len(fields) - 1)
