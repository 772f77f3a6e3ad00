"""The brief: word for word what a model is sent."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.model import Task
from gistpoint.tui.widgets.text_view import TextView


class BriefPane(Vertical):
    """The text of the brief, its lines folded."""

    def __init__(self, task: Task) -> None:
        super().__init__(id="brief")
        self._repair = task

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield TextView(id="brief-view")

    def on_mount(self) -> None:
        """Show the brief."""
        view = self.query_one("#brief-view", TextView)
        view.wrap = True
        view.load(render_brief(self._repair), language="markdown")
