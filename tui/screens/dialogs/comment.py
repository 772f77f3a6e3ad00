"""Asks for a comment on a task; what is typed is kept from the first letter on."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.widgets import Input

from gistpoint.tui.screens.dialogs.ask import TextDialog


class CommentDialog(TextDialog):
    """A comment; Escape leaves it as a draft."""

    def __init__(self, title: str, draft: str, keep: Callable[[str], None]) -> None:
        """`keep` is called with the text as it is typed."""
        super().__init__(title, value=draft, placeholder="Why? Enter says it, Esc keeps it as a draft")
        self._keep = keep

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        """Keep what is typed."""
        self._keep(event.value)
