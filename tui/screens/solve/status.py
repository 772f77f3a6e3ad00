"""Lines shown at times between panes and console: the run under way, and the question about idle time."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.getters import query_one
from textual.message import Message
from textual.widgets import ProgressBar

from gistpoint.core.attempts.clock import Clock, Doubt
from gistpoint.core.running import RunProgress
from gistpoint.tui.keys import key_named, shown_key
from gistpoint.tui.view_models import duration
from gistpoint.tui.widgets.plain import Plain

CANCEL_HINT = "   Esc cancels"


class RunLine(Horizontal):
    """The progress of the code that a call runs; hidden while none runs."""

    bar = query_one(ProgressBar)
    words = query_one("#run-words", Plain)

    def compose(self) -> ComposeResult:
        """Lay out words and bar."""
        yield Plain("", id="run-words")
        yield ProgressBar(show_eta=False, show_percentage=False)

    _hint = ""

    def begin(self, words: str, *, hint: str = CANCEL_HINT) -> None:
        """Show that code of unknown length runs, and how to cancel it."""
        self.display = True
        self._hint = hint
        self.words.update(f"{words}{hint}")
        self.bar.update(total=None, progress=0)

    def progress(self, progress: RunProgress, failed: int | None) -> None:
        """Show the progress of a run; `failed` only if it may be shown."""
        found = f", {failed} failed so far" if failed is not None else ""
        count = f" {progress.done} of {progress.total}" if progress.total else ""
        self.words.update(f"… {progress.phase}{count}{found}{self._hint}")
        if progress.total:
            self.bar.update(total=progress.total, progress=progress.done)

    def end(self) -> None:
        """Hide the line."""
        self.display = False


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
        """Show the key."""
        key = key_named(f"idle.{self._answer}")
        self.update(f" {shown_key(key.keys.split(',')[0])} {key.description} ")

    def on_click(self, event: events.Click) -> None:
        """Give the answer."""
        event.stop()
        self.post_message(self.Clicked(self._answer))


class IdleQuestion(Horizontal):
    """Asks after a time without input, and stays until it is answered; hidden while no time is in question."""

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
