"""A widget of one line, such as a header with a clock, that redraws only its end if nothing else changes."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

END = 40
"""The number of cells at the end of a line that are drawn separately, unless the line says otherwise."""


class OneLine(Widget):
    """A widget of one line, whose end is drawn separately.

    The end may contain a clock, which changes every second; drawing the whole line each time would send 45 kB
    a minute. Textual draws any part of a widget from its beginning, so the end is a separate widget.
    """

    DEFAULT_CSS = """
    OneLine > LineEnd { dock: right; height: 1; width: 40; max-width: 100%; }
    """
    _drawn: Content | None = None
    """The line at the last `redraw`; None before the first."""
    _end = END

    def end_cells(self) -> int:
        """Return the number of cells at the end of the line that change often."""
        return END

    def line(self) -> Content:
        """Return the line, which is at most as wide as the widget."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Lay out the end of the line."""
        yield LineEnd()

    def render(self) -> Content:
        """Return the line, padded to the width; `LineEnd` covers its end."""
        line = self.line()
        return line.pad_right(max(0, self.content_size.width - line.cell_length))

    def on_resize(self) -> None:
        """Draw the end again: it keeps its own width, so Textual would keep what it showed."""
        for part in self.query(LineEnd):
            part.refresh()

    def redraw(self) -> None:
        """Draw the line again, or only its end if nothing else has changed."""
        before, self._drawn = self._drawn, self.render()
        former, self._end = self._end, self.end_cells()
        if before is None or former != self._end or not self.is_mounted:
            self.refresh()
            for part in self.query(LineEnd):
                part.styles.width = self._end
                part.refresh()
            return
        (kept, end), (new_kept, new_end) = split(before, self._end), split(self._drawn, self._end)
        if not kept.is_same(new_kept):
            self.refresh()
        if not end.is_same(new_end):
            self.query_one(LineEnd).refresh()


class LineEnd(Widget):
    """The widget that draws the last cells of a line."""

    ALLOW_SELECT = False

    def render(self) -> Content:
        """Return the end of the parent's line."""
        assert isinstance(self.parent, OneLine)
        return split(self.parent.render(), self.parent._end)[1]


def split(line: Content, cells: int = END) -> tuple[Content, Content]:
    """Return a line without its last cells, and these cells; half a wide character becomes a space."""
    text = line.plain
    place = max(0, len(text) - cells)
    while cell_len(text[place:]) > cells:
        place += 1
    if place == 0:
        return Content(""), line
    kept, end = line.divide([place])
    return kept, end.pad_left(cells - end.cell_length)
