"""The base class of widgets that draw single lines, with styles that use theme variables."""

from __future__ import annotations

from rich.style import Style as RichStyle
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.style import Style


def laid_over(base: Style, text: str) -> RichStyle:
    """Return a style, written with theme variables, laid over `base`; only `base` for an empty string."""
    return (base + Style.parse(text) if text else base).rich_style


class LineCanvas(ScrollView, can_focus=True):
    """A widget that draws single lines. A subclass provides their content."""

    DEFAULT_CSS = """
    LineCanvas { height: 1fr; width: 1fr; background: $background; color: $foreground; }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._styles: dict[str, RichStyle] = {}

    @property
    def sight(self) -> Size:
        """The size of the visible area, without scroll bars."""
        return self.scrollable_content_region.size

    def style(self, text: str) -> RichStyle:
        """Return a style laid over the widget's own."""
        found = self._styles.get(text)
        if found is None:
            found = self._styles[text] = laid_over(self.visual_style, text)
        return found

    def notify_style_update(self) -> None:
        """Drop the cached styles, because the colours have changed."""
        super().notify_style_update()
        self._styles.clear()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Draw again: the cursor shows whether the widget has the focus."""
        super().watch_has_focus(has_focus)
        self.refresh()
