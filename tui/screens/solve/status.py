"""Temporary lines above the console: the run under way, and the question after a period without input."""

from __future__ import annotations

from time import monotonic

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.timer import Timer

from gistpoint.core.attempts.clock import Clock, Doubt
from gistpoint.core.readable import duration
from gistpoint.core.running import RunProgress
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui import signs
from gistpoint.tui.keys import key_named, shown_key
from gistpoint.tui.screens.solve.controller import Failing
from gistpoint.tui.widgets.charts import gauge
from gistpoint.tui.widgets.one_line import OneLine
from gistpoint.tui.widgets.plain import Plain, plain_line

CANCEL_HINT, SPENT_HINT = "Esc cancels", "Esc cancels (the submission is spent)"
_BAR = 20


class RunLine(OneLine):
    """The progress of the code that a call runs, in one line that is hidden while no code runs.

    Failures are drawn only if the solver may see them. If the line is too short, the hint on cancelling is
    the last part to be left out.
    """

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__(id="run-line")
        self._words = self._hint = ""
        self._progress: RunProgress | None = None
        self._failed: Failing | None = None
        self._since = 0.0
        self._ticking: Timer | None = None

    def begin(self, words: str, *, hint: str = CANCEL_HINT) -> None:
        """Show that code is running for an unknown time, and how to cancel it."""
        self.display = True
        self._words, self._hint = words, hint
        self._progress = self._failed = None
        self._since = monotonic()
        if self._ticking is None:
            self._ticking = self.set_interval(1.0, self.redraw)
        self._ticking.resume()
        self.refresh()

    def follow(self, tool: Tool | None) -> None:
        """Show the line while the tool of a recorded call runs code."""
        runs = tool is not None and tool.runs_code
        if runs and not self.display:
            self.begin("running the code of the recorded call", hint="")
        elif not runs:
            self.end()

    def show(self, progress: RunProgress, failed: Failing | None) -> None:
        """Show the progress of a run. `failed` is None if the solver may not see failures."""
        self._progress, self._failed = progress, failed
        self.redraw()

    def end(self) -> None:
        """Hide the line."""
        self.display = False
        if self._ticking is not None:
            self._ticking.pause()

    def line(self) -> Content:
        """Return as much of the progress as fits into the line."""
        progress, failed = self._progress, self._failed
        elapsed = duration(round((monotonic() - self._since) * 1000))
        parts: list[Content] = []
        if progress is None or not progress.total:
            parts.append(plain_line(f"… {progress.phase if progress is not None else self._words}"))
        else:
            count = f" {progress.done} of {progress.total}"
            parts.append(
                Content.assemble((gauge(progress.done, progress.total, _BAR), "$text-success"), count)
            )
        if failed is not None and progress is not None and progress.total:
            passed = progress.done - failed.count
            counts = Content.assemble(
                (f"{signs.GOOD} {passed}", "$text-success"),
                "  ",
                (f"{signs.BAD} {failed.count}", "$text-error"),
            )
            parts.append(counts)
        parts.append(plain_line(elapsed))
        if failed is not None and failed.first:
            parts.append(plain_line(f"first: {failed.first}"))
        hint = Content.styled(self._hint, "bold")
        width = self.content_size.width
        line = Content("  ").join(parts)
        room = width - hint.cell_length - 2
        if line.cell_length > room:
            line = line.truncate(max(0, room), ellipsis=True)
        return Content.assemble(line, " " * max(2, width - line.cell_length - hint.cell_length), hint)


class IdleAnswer(Plain):
    """One of the two answers to an `IdleQuestion`, with its key. A click gives the answer."""

    class Clicked(Message):
        """A message that the answer was clicked."""

        def __init__(self, answer: str) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self, answer: str) -> None:
        super().__init__(id=f"idle-{answer}", classes="idle-answer")
        self._answer = answer

    def on_mount(self) -> None:
        """Show the key and the answer."""
        key = key_named(f"idle.{self._answer}")
        self.update(f" {shown_key(key.keys.split(',')[0])} {key.description} ")

    def on_click(self, event: events.Click) -> None:
        """Report that the answer was clicked."""
        event.stop()
        self.post_message(self.Clicked(self._answer))


class IdleQuestion(Horizontal):
    """The question whether a period without input was work. It is visible until it has been answered."""

    words = query_one("#idle-words", Plain)

    def __init__(self, doubt: Doubt, clock: Clock) -> None:
        super().__init__()
        self._first = (doubt, clock)

    def compose(self) -> ComposeResult:
        """Lay out the question and both answers."""
        yield Plain("", id="idle-words")
        yield IdleAnswer("worked")
        yield IdleAnswer("away")

    def on_mount(self) -> None:
        """Show the question."""
        self.update_from(*self._first)

    def update_from(self, doubt: Doubt, clock: Clock) -> None:
        """Show how much time is in question; hide the question if there is none."""
        self._first = (doubt, clock)
        self.display = bool(doubt)
        if doubt and self.is_mounted:
            self.words.update(f"No key was pressed for {duration(doubt.total_ms(clock))}. Were you working?")
