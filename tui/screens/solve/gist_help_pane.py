"""A gist that a study's condition shows beside a repair: what the first failing test does, in one file, to read."""

from __future__ import annotations

from textual.app import ComposeResult

from gistpoint.core.attempts.state import AttemptState
from gistpoint.tui.screens.solve.panes import StatePane, pane_frame
from gistpoint.tui.widgets.code_view import CodeView


class GistHelpPane(StatePane):
    """The gist; it costs nothing to read, and can't be changed."""

    def __init__(self, gist: str) -> None:
        super().__init__(id="gist_help")
        self._gist = gist

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield CodeView(id="gist-help-view")

    def on_mount(self) -> None:
        """Show the gist."""
        pane_frame(self, "gist_help", "Gist of the first failing test", "made of the code as it is: it has the fault")
        self.query_one("#gist-help-view", CodeView).load(self._gist, language="python")

    def update_from(self, state: AttemptState) -> None:
        """Do nothing: the gist stays as it is."""
