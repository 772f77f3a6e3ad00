"""The panes with text on the solve screen: the brief, the notes, and the aids of a study's condition."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one

from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.state import AttemptState
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.places import places_in_text
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.kind import SolvingKind
from gistpoint.tui.screens.solve.panes import BriefRead, PaneArea, PanePlace, StatePane, pane_frame
from gistpoint.tui.screens.solve.terms import Terms
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.markdown_text import MarkdownText
from gistpoint.tui.widgets.writing_area import WritingArea

_BEGIN = ("pane.files", "solve.search", "pane.editor", "attempt.submit")
"""The keys that the brief's frame shows, in the order in which they are needed."""


class BriefPane(Vertical):
    """The brief with wrapped lines. In a study, the solver reads it before anything else."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.BRIEF)]

    view = query_one("#brief-view", MarkdownText)

    def __init__(self, brief: str) -> None:
        super().__init__(id="brief")
        self._brief = brief
        self.first = False
        """Whether the other panes are hidden until the solver has read the brief."""
        self.draw_frame()

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield MarkdownText(id="brief-view")

    def on_mount(self) -> None:
        """Show the brief."""
        self.view.show(self._brief)
        self.view.places = places_in_text(self.view.text)
        self.draw_frame()

    def draw_frame(self) -> None:
        """Show in the frame the keys for the next steps, except while only the brief is visible."""
        for view in self.query("#brief-view").results(MarkdownText):
            view.enter_moves_on = not self.first
        keys = [key_named(id) for id in _BEGIN]
        words = [f"{shown_key(key.keys.split(',')[0])} {key.description.lower()}" for key in keys]
        pane_frame(self, "brief", note="" if self.first else " · ".join(words))

    def action_read(self) -> None:
        """Report that the brief was read."""
        self.post_message(BriefRead())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to end the reading only while the other panes are hidden."""
        return self.first if action == "read" else super().check_action(action, parameters)


class NotesPane(Vertical):
    """The solver's notes, which are saved with the attempt."""

    area = query_one("#notes", WritingArea)

    def __init__(self, notes: str) -> None:
        super().__init__(id="notes-pane")
        self._notes = notes
        pane_frame(self, "notes", note="kept as you type")

    def compose(self) -> ComposeResult:
        """Lay out the text area."""
        yield WritingArea(self._notes, id="notes", soft_wrap=True, placeholder="Notes to yourself: kept")


class GistHelpPane(StatePane):
    """The pane with the first failing test's gist, which a study's condition shows with a repair.

    Reading it is free, and it can't be changed.
    """

    def __init__(self, gist: str) -> None:
        super().__init__(id="gist_help")
        self._gist = gist

    def compose(self) -> ComposeResult:
        """Lay out the view."""
        yield CodeView(id="gist-help-view")

    def on_mount(self) -> None:
        """Show the gist."""
        pane_frame(
            self,
            "gist_help",
            "Gist of the first failing test",
            "made from the current code, including the fault",
        )
        self.query_one("#gist-help-view", CodeView).load(self._gist, language="python")

    def update_from(self, state: AttemptState) -> None:
        """Do nothing, because the gist doesn't change."""


def add_aids(kind: SolvingKind, controller: AttemptController, terms: Terms) -> None:
    """Add the panes that the terms of an attempt provide: the chat, and the gist along with a repair."""
    if terms.assistant is not None:
        from gistpoint.tui.screens.solve.assist_pane import AssistPane

        pane = AssistPane(terms.assistant, controller, kind.editor)
        kind.add("assist", PanePlace("#assist-line", Pane.ASSIST), pane)
    if terms.gist_help:
        kind.add("gist_help", PanePlace("#gist-help-view", Pane.GIST_HELP), GistHelpPane(terms.gist_help))


async def insert_code(area: PaneArea) -> None:
    """Insert the newest code in the assistant's answers into the editor."""
    from gistpoint.tui.screens.solve.assist_pane import AssistPane

    await area.make("assist")
    await area.make("editor")
    area.query_one(AssistPane).insert()
