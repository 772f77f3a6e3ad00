"""What is in sight until the task or attempt that was asked for is open."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.screen import Screen

from gistpoint.tui.widgets.plain import Plain


class OpeningScreen(Screen[None]):
    """One line, at once; whoever comes back to it is at home."""

    def __init__(self, came_back: Callable[[], object]) -> None:
        """`came_back` is called when nothing lies above this screen any more."""
        super().__init__()
        self._came_back = came_back
        self._shown = False

    def compose(self) -> ComposeResult:
        """Say that something is being opened."""
        yield Plain("Opening …")

    def on_screen_resume(self) -> None:
        """Give way to home, except at the start."""
        if self._shown and self.app.screen is self:
            self._came_back()
        self._shown = True
