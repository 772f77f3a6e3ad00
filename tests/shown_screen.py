"""Reads the screen of a running app."""

from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widget import Widget


class Stage(App[None]):
    """An app with a single widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


def rows(app: App[None]) -> list[str]:
    """Return the rows of the screen as text without trailing spaces."""
    strips: list[Strip] = app.screen._compositor.render_strips()
    return [strip.text.rstrip() for strip in strips]
