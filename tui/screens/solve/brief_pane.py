"""The brief: word for word what a model gets, drawn as text, with the keys to begin with below."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one

from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.model import Task
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.places import places_in_text
from gistpoint.tui.screens.solve.panes import BriefRead, pane_frame
from gistpoint.tui.widgets.markdown_text import MarkdownText

_BEGIN = ("pane.files", "solve.search", "pane.editor", "attempt.submit")
"""The keys that the brief ends with."""


class BriefPane(Vertical):
    """The brief with long lines folded; in a study it is read before all else."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.BRIEF)]

    view = query_one("#brief-view", MarkdownText)

    def __init__(self, task: Task) -> None:
        super().__init__(id="brief")
        self._brief = render_brief(task)
        self.first = False
        """Whether it has yet to be read."""
        self.draw_frame()

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield MarkdownText(id="brief-view")

    def on_mount(self) -> None:
        """Show the brief."""
        self.view.show(self._brief)
        self.view.places = places_in_text(self.view.text)

    def draw_frame(self) -> None:
        """Say in the frame what to press."""
        keys = [key_named(id) for id in _BEGIN]
        words = [f"{shown_key(key.keys.split(',')[0])} {key.description.lower()}" for key in keys]
        pane_frame(self, "brief", note="" if self.first else " · ".join(words))

    def action_read(self) -> None:
        """Say that the brief was read."""
        self.post_message(BriefRead())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer it while it was not."""
        return self.first if action == "read" else super().check_action(action, parameters)
