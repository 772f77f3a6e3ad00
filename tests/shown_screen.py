"""Reads what a running app shows."""

from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widget import Widget


class Stage(App[None]):
    """An app with one widget on it."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


def rows(app: App[None]) -> list[str]:
    """The rows of the screen as text, blanks at their ends removed."""
    strips: list[Strip] = app.screen._compositor.render_strips()
    return [strip.text.rstrip() for strip in strips]
