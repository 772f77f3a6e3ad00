"""A gist to read, with a gutter that tells of each line whether it ran and whether it stands in the original."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gistpoint.core.gist.evidence import LineEvidence
from gistpoint.tui.gist_marks import Marks, glyphs
from gistpoint.tui.widgets.code_view import CodeView


class GistView(CodeView):
    """`show_gist` shows a text with its evidence; Enter asks for the original line."""

    HELP = "● ran, ○ did not; = stands in the original, + does not, ~ is glue. Enter shows the original line."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "original", "Original line", show=False, id="gist.original_line"),
    ]

    class OriginalAsked(Message):
        """The original line of the line at the cursor is wanted."""

        def __init__(self, evidence: LineEvidence | None) -> None:
            super().__init__()
            self.evidence = evidence

    class CursorMoved(CodeView.CursorMoved):
        """The cursor stands on another line."""

    class Comfort(CodeView.Comfort):
        """Something that costs no budget was used, see `RowView.Comfort`."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.evidence: Marks = {}

    def show_gist(self, text: str, evidence: Marks, *, title: str = "") -> None:
        """Show a gist and what is known of its lines."""
        self.evidence = evidence
        self.load(text, title=title)

    def gutter_width(self) -> int:
        """Two cells more than code has."""
        return super().gutter_width() + 3

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Both glyphs of a line in front of its number."""
        ran, stands = glyphs(None if continued else self.evidence.get(line + 1))
        return [ran, stands, (" ", ""), *super().line_gutter(line, continued=continued)]

    def action_original(self) -> None:
        """Ask for the original line."""
        self.post_message(self.OriginalAsked(self.evidence.get(self.cursor_index + 1)))
