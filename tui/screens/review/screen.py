"""Review: one recorded run, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.getters import query_one
from textual.screen import Screen
from textual.widgets import Footer

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Run, Step
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.dialogs.confirm import show_error
from gistpoint.tui.screens.review.pages import Pages
from gistpoint.tui.screens.review.reader import (
    IndexGrew,
    ReadingFailed,
    RowsRead,
    RunOpened,
    RunReaderThread,
    StepRead,
)
from gistpoint.tui.screens.review.ruler import Ruler
from gistpoint.tui.screens.review.step_list import StepList
from gistpoint.tui.screens.review.step_text import compose
from gistpoint.tui.screens.review.step_view import StepView
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList


class ReviewScreen(Screen[None]):
    """A run: its steps, and the step that is looked at."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.REVIEW)]
    HELP_PAGE = "review"
    SCOPES = (Scope.REVIEW,)

    title_line = query_one("#review-title", Plain)
    said = query_one("#review-say", Plain)
    steps = query_one(StepList)
    ruler = query_one(Ruler)
    pages = query_one(Pages)

    def __init__(self, name: str, opening: Callable[[], RunDocument]) -> None:
        """`opening` opens the run and is called in a thread."""
        super().__init__()
        self._run_name = name
        self.reader = RunReaderThread(self, opening)
        self.header: Run | None = None
        self.step: Step | None = None

    def compose(self) -> ComposeResult:
        """Lay out title, strip, steps and pages."""
        yield Plain(self._run_name, id="review-title")
        yield Ruler(id="ruler")
        with Container(id="review-body"):
            yield StepList(id="steps")
            yield Pages({"step": lambda: StepView(id="step")})
        yield Plain("", id="review-say")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Open the run."""
        self.steps.facts = self.reader.rows
        self.steps.focus()
        self.reader.start()

    @on(RunOpened)
    def opened(self, message: RunOpened) -> None:
        """Show what the run is."""
        self.header = message.header
        self.draw()

    @on(StepRead)
    def step_read(self, message: StepRead) -> None:
        """Show a step, unless another one is wanted by now."""
        if message.step.index != self.steps.cursor:
            return
        self.step = message.step
        view = self.pages.made["step"]
        assert isinstance(view, StepView)
        view.show(compose(message.step))
        self.draw_title()

    @on(IndexGrew)
    def grown(self) -> None:
        """More is known of the run."""
        self.draw()

    @on(RowsRead)
    def rows_read(self) -> None:
        """Draw rows that were asked for."""
        self.steps.rows_read()

    @on(StepList.RowsWanted)
    def rows_wanted(self, message: StepList.RowsWanted) -> None:
        """Read rows that came into sight."""
        self.reader.want_rows(message.rows)

    @on(RecordList.Moved, "#steps")
    def moved(self, message: RecordList.Moved) -> None:
        """Look at another step."""
        self.ruler.move(message.index)
        self.reader.want(message.index)

    @on(ReadingFailed)
    def failed(self, message: ReadingFailed) -> None:
        """Say why nothing can be read."""
        if not isinstance(message.error, UserError):
            raise message.error
        show_error(self.app, message.error)

    def draw(self) -> None:
        """Show how much of the run is known."""
        document = self.reader.document
        if document is None:
            return
        self.steps.set_count(document.step_count)
        self.ruler.steps = document.step_count
        self.ruler.refresh()
        self.draw_title()

    def draw_title(self) -> None:
        """Show which run and which step this is."""
        document = self.reader.document
        if document is None or self.header is None:
            return
        total = f"{document.step_count:,}" + ("" if document.finished else "+")
        self.title_line.update(visible_line(f"Step {self.steps.cursor + 1}/{total}  {self.header.task}"))

    def action_step(self, by: int) -> None:
        """Go on or back."""
        self.steps.cursor += by

    def action_edge(self, end: int) -> None:
        """Go to the first or last step."""
        self.steps.action_edge(end)

    def action_leave(self) -> None:
        """Close the run."""
        self.dismiss(None)

    def on_unmount(self) -> None:
        """Let go of the thread."""
        self.reader.stop()
