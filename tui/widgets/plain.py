"""Data as literal Textual content: text, lines, cells, and a widget."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static

from gistpoint.core.text import visible, visible_line
from gistpoint.tui.widgets.fitted import Fitted


def plain_text(text: str) -> Content:
    """Return text as literal content: no markup, and control characters as glyphs."""
    return Content(visible(text))


def plain_line(text: str) -> Content:
    """Return text as a line of literal content, with newlines and tabs as glyphs, too."""
    return Content(visible_line(text))


def plain_cell(text: str, style: str | Style = "") -> Text:
    """Return text as a literal line for table cells and tree labels, which accept only Rich text."""
    return Text(visible_line(text), style=style, no_wrap=True, end="")


class Plain(Fitted, Static):
    """A `Static` that shows strings literally. Other content is shown unchanged."""

    def __init__(
        self,
        text: VisualType = "",
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
        disabled: bool = False,
    ) -> None:
        super().__init__(_literal(text), markup=False, name=name, id=id, classes=classes, disabled=disabled)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show other text. Strings are shown literally."""
        super().update(_literal(content), layout=layout)


def _literal(content: VisualType) -> VisualType:
    return plain_text(content) if isinstance(content, str) else content
