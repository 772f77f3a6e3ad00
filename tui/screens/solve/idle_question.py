"""The question after a time without input: one line beside the code, which stays until it is answered."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.attempts.clock import Clock, Doubt
from gistpoint.tui.keys import key_named, shown_key
from gistpoint.tui.view_models import duration
from gistpoint.tui.widgets.plain import Plain


class IdleAnswer(Plain):
    """One of the two answers, with its key; a click gives it."""

    class Clicked(Message):
        """The answer was clicked."""

        def __init__(self, answer: str) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, answer: str) -> None:
        super().__init__(id=f"idle-{answer}", classes="idle-answer")
        self._answer = answer

    def on_mount(self) -> None:
        """Name the key."""
        key = key_named(f"idle.{self._answer}")
        self.update(f" {shown_key(key.keys.split(',')[0])} {key.description} ")

    def on_click(self, event: events.Click) -> None:
        """Give the answer."""
        event.stop()
        self.post_message(self.Clicked(self._answer))


class IdleQuestion(Horizontal):
    """Out of sight while there is nothing to answer for."""

    words = query_one("#idle-words", Plain)

    def compose(self) -> ComposeResult:
        """Lay out the question and both answers."""
        yield Plain("", id="idle-words")
        yield IdleAnswer("worked")
        yield IdleAnswer("away")

    def update_from(self, doubt: Doubt, clock: Clock) -> None:
        """Show how much time is in question."""
        self.display = bool(doubt)
        if doubt:
            self.words.update(f"Nothing was pressed for {duration(doubt.total_ms(clock))}. Were you working?")
