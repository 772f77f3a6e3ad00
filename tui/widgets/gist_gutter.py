"""The gutter beside an editor: what is known of each line in sight, scrolled with it."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget
from textual.widgets import TextArea

from gistpoint.tui.gist_marks import Marks, glyphs


class GistGutter(Widget):
    """Two glyphs a line; nothing at all where `marks` is empty."""

    DEFAULT_CSS = """
    GistGutter { width: 3; height: 1fr; background: $background; }
    """

    def __init__(self, editor: TextArea, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._editor = editor
        self._marks: Marks = {}

    def on_mount(self) -> None:
        """Follow the editor."""
        self.watch(self._editor, "scroll_y", self._follow, init=False)

    def _follow(self) -> None:
        self.refresh()

    @property
    def marks(self) -> Marks:
        """What is known of the lines."""
        return self._marks

    @marks.setter
    def marks(self, marks: Marks) -> None:
        self._marks = marks
        self.display = bool(marks)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the glyphs of the line at `y` of the view."""
        ran, stands = glyphs(self._marks.get(round(self._editor.scroll_y) + y + 1))
        return Strip([self._segment(*ran), self._segment(*stands), Segment(" ", self._style(""))], 3)

    def _segment(self, text: str, style: str) -> Segment:
        return Segment(text, self._style(style))

    def _style(self, style: str) -> RichStyle:
        base = self.visual_style
        return (base + Style.parse(style) if style else base).rich_style
