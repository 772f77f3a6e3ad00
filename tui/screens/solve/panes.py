"""The panes of the solve screen: where they stand, what they show of the state, and which has the focus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.ports import TimeSource
from gistpoint.tui.screens.dialogs.ask import TextDialog
from gistpoint.tui.screens.solve.brief_pane import BriefPane
from gistpoint.tui.screens.solve.code_pane import CodePane
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.editor_pane import EditorPane
from gistpoint.tui.screens.solve.files_pane import FilesPane
from gistpoint.tui.screens.solve.idle_question import IdleQuestion
from gistpoint.tui.screens.solve.recorded import RecordedScreen
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.screens.solve.status import PANES, PaneTab, PaneTabs, RunLine
from gistpoint.tui.view_models import allowed, is_gist, shown_sources
from gistpoint.tui.widgets.budget_bar import BudgetBar
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.writing_area import WritingArea

_FOCUS = {
    "brief": "#brief-view",
    "files": "#known",
    "code": "#code-view",
    "console": "#console-line",
    "editor": "#function-editor",
    "results": "#calls",
    "notes": "#notes",
    "trace": "#trace-tree",
}
_READING = ("brief", "code", "results", "notes", "trace")


WIDE, VERY_WIDE = 110, 150
"""Cells from which the files stay in sight, and the editor as well."""


class PanesScreen(RecordedScreen):
    """Lays out the panes and draws the attempt's state in them."""

    PANES: ClassVar[tuple[str, ...]] = PANES

    bar = query_one(BudgetBar)
    tabs = query_one(PaneTabs)
    run_line = query_one(RunLine)
    idle_question = query_one(IdleQuestion)
    reading = query_one("#reading", ContentSwitcher)
    files = query_one(FilesPane)
    code = query_one(CodePane)
    editor = query_one(EditorPane)
    results = query_one(ResultsPane)
    notes = query_one("#notes", WritingArea)
    console = query_one(Console)

    def __init__(self, attempt: Attempt, clock: TimeSource) -> None:
        super().__init__(attempt)
        self._time = clock
        self._region = "reading"

    def compose(self) -> ComposeResult:
        """Lay out budgets, panes and console."""
        state = self._attempt.state
        yield BudgetBar()
        yield PaneTabs(self.PANES)
        with Horizontal(id="work"):
            yield FilesPane("step" if is_gist(state) else "tool use")
            with ContentSwitcher(initial="brief", id="reading"):
                yield BriefPane(self._attempt.task)
                yield CodePane()
                yield ResultsPane(self.start_of, self._attempt.judgements.get)
                yield from self.more_panes()
                with Vertical(id="notes-pane"):
                    yield WritingArea(state.notes, id="notes", soft_wrap=True, placeholder="Notes to yourself: kept")
            yield self.make_editor()
        yield IdleQuestion()
        yield RunLine()
        yield Console(self._attempt)
        yield KeyBar()

    def make_editor(self) -> EditorPane:
        """Return the pane in which the solver writes."""
        return EditorPane(self._attempt.task, self._attempt.state)

    def more_panes(self) -> Iterable[Widget]:
        """Return further panes to read in; for subclasses."""
        return ()

    def start_of(self, name: str) -> str:
        """Return the code that a function's buffer starts with."""
        return self.editor.start_of(name)

    def draw(self) -> None:
        """Show the attempt as it is now."""
        state = self._attempt.state
        suspects = [suspect.name for suspect in state.suspects]
        self.files.tree_view.update_from(state.knowledge, suspects=suspects)
        self.code.update_from(state)
        self.editor.update_from(state)
        self.results.update_from(state)
        self.draw_clock()

    def draw_clock(self) -> None:
        """Show budgets, clock and the time that is in question as they stand now."""
        state = self._attempt.state
        clock = state.clock.at(self._time.mono_ms(), self._time.utc_ms())
        self.bar.update_from(state, clock, backend=self._attempt.backend)
        self.idle_question.update_from(state.doubt, clock)

    def pane_entered(self, pane: str) -> None:
        """Mark the name of the pane that has the focus."""
        self.tabs.mark(pane)

    def show_last_source(self) -> None:
        """Show the code that was read last."""
        for call in reversed(self._attempt.state.calls):
            shown = shown_sources(call)
            if shown is not None:
                self.code.show(shown)
                return

    # Panes

    def action_pane(self, pane: str) -> None:
        """Show a pane and put the focus into it, at once: the next key is meant for it."""
        self.show_pane(pane)
        widget = self.query_one(_FOCUS[pane], Widget)
        if widget.focusable:
            self.set_focus(widget)
        else:
            self.call_after_refresh(widget.focus)

    def show_pane(self, pane: str) -> None:
        """Show a pane and leave the focus where it is."""
        if pane in _READING:
            self.reading.current = "notes-pane" if pane == "notes" else pane
        if pane != "console":
            self._region = pane if pane in ("files", "editor") else "reading"
            self.place_regions()
        if pane == "editor":
            self.editor.show_writing()

    def place_regions(self) -> None:
        """Show as many regions as there is room for, the one with the focus always."""
        wide, very_wide = self.size.width >= WIDE, self.size.width >= VERY_WIDE
        self.files.display = wide or self._region == "files"
        self.editor.display = very_wide or self._region == "editor"
        self.reading.display = very_wide or self._region == "reading" or (wide and self._region == "files")
        self.set_class(wide, "-wide")
        self.set_class(very_wide, "-very-wide")

    def on_resize(self) -> None:
        """Arrange the regions for another width."""
        self.place_regions()

    @on(PaneTab.Clicked)
    def tab_clicked(self, message: PaneTab.Clicked) -> None:
        """Go to a pane by the mouse."""
        self.action_pane(message.pane)

    def action_find(self) -> None:
        """Search in the text that has the focus, else in the code."""
        if not allowed(self._attempt.state, "search"):
            self.notify("Searching in what was shown is switched off in this study.")
            return
        view = self.focused if isinstance(self.focused, CodeView) else self.code.view

        def answered(words: str | None) -> None:
            if words is None:
                return
            count = view.search(words)
            if words:
                self.console.say(f"{count} found; n and N go through them" if count else f"Not found: {words}")

        self.app.push_screen(TextDialog("Find in this text", placeholder="text, upper or lower case"), answered)
