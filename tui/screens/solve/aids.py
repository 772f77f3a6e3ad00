"""The panes that the condition of a study adds to the solve screen: the chat, and a gist beside a repair."""

from __future__ import annotations

from gistpoint.core.attempts.events import Pane
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.kind import SolvingKind
from gistpoint.tui.screens.solve.panes import PaneArea, PanePlace
from gistpoint.tui.screens.solve.terms import Terms


def add_aids(kind: SolvingKind, controller: AttemptController, terms: Terms) -> None:
    """Add what the terms of an attempt give."""
    if terms.assistant is not None:
        from gistpoint.tui.screens.solve.assist_pane import AssistPane

        pane = AssistPane(terms.assistant, controller, kind.editor)
        kind.add("assist", PanePlace("#assist-line", Pane.ASSIST), pane)
    if terms.gist_help:
        from gistpoint.tui.screens.solve.gist_help_pane import GistHelpPane

        kind.add("gist_help", PanePlace("#gist-help-view", Pane.GIST_HELP), GistHelpPane(terms.gist_help))


async def insert_code(area: PaneArea) -> None:
    """Put the code of the assistant's newest answer into the editor."""
    from gistpoint.tui.screens.solve.assist_pane import AssistPane

    await area.make("assist")
    await area.make("editor")
    area.query_one(AssistPane).insert()
