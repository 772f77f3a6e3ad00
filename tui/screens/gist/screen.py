"""Write a gist: the solve screen with the gist in place of a function, and scores where they may be shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from gistpoint.core.attempts.state import Submission
from gistpoint.core.kinds.gist.text import GIST_BUFFER
from gistpoint.core.kinds.gist.tools import SCORE_GIST, TRACE
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui.gist_marks import does_not_parse
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.known import shown_function
from gistpoint.tui.screens.gist.gist_pane import GistPane
from gistpoint.tui.screens.gist.hand_in import GistDesk
from gistpoint.tui.screens.gist.trace_pane import TracePane
from gistpoint.tui.screens.solve.call_desk import CallDesk
from gistpoint.tui.screens.solve.calls import CallFailed, CallFinished
from gistpoint.tui.screens.solve.code_pane import CodePane
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.screens.solve.status import PANES
from gistpoint.tui.widgets.function_editor import FunctionEditor

PAUSE_SECONDS = 0.4
"""This long after the last key it is said if a text does not parse."""
QUIET_SECONDS = 2.0
"""This long after the last key a text is scored by itself, if scores have no limit."""


class GistScreen(SolveScreen):
    """An attempt at a gist; dismissed as `SolveScreen` is."""

    CSS_PATH = "../solve/solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.GIST_SOLVE)]
    HELP_PAGE = "gist"
    SCOPES = (*SolveScreen.SCOPES, Scope.GIST_SOLVE, Scope.GIST, Scope.TRACE)
    PANES = (*PANES, "trace")

    pane: GistPane
    _live = True
    _scoring = False
    _typed_at = 0.0
    _scored = ""
    _waiting: Callable[[], None] | None = None

    def make_editor(self) -> GistPane:
        """Return the pane of the gist."""
        self.pane = GistPane(self._attempt.task, self._attempt.state)
        return self.pane

    def make_desk(self) -> CallDesk:
        """Return where calls are asked for."""
        self.gist_desk = GistDesk(self, self._attempt, self._bridge, self._begun, lambda: self.playing)
        return self.gist_desk

    def more_panes(self) -> Iterable[Widget]:
        """Return the trace."""
        yield TracePane()

    def on_mount(self) -> None:
        """Score by itself where scores have no limit."""
        self.set_interval(0.5, self._score_by_itself)
        if TRACE not in self._attempt.tools:
            self.query_one("#tab-trace").display = False

    def draw(self) -> None:
        """Show the attempt as it is now."""
        super().draw()
        self.query_one(TracePane).update_from(self._attempt.state)

    def show_submitted(self, submission: Submission) -> None:
        """Show the gist that a recorded attempt has handed in."""
        self.pane.show_code(GIST_BUFFER, submission.gist)

    # Scores

    @property
    def scores_freely(self) -> bool:
        """Whether scores have no limit: in practice, demo and validation."""
        return self._attempt.state.budgets.scores is None

    @on(FunctionEditor.Edited)
    def typed(self) -> None:
        """Wait until the keys are quiet."""
        self._typed_at = time.monotonic()

    def _score_by_itself(self) -> None:
        quiet = time.monotonic() - self._typed_at
        if not self.scores_freely or quiet < PAUSE_SECONDS or self.pane.editor.waits:
            return
        text, fault = self.pane.code, self.pane.fault()
        if fault or not self._live or quiet < QUIET_SECONDS or self.busy or text == self._scored:
            return
        if text.strip() and not self._attempt.state.ended:
            self._score(text)

    def _score(self, text: str) -> None:
        self._scored = text
        self._scoring = self.gist_desk.score(text)

    def action_score(self) -> None:
        """Score the gist as it stands."""
        if SCORE_GIST not in self._attempt.tools:
            self.app.notify("There is no score before the hand-in in this attempt.")
            return
        self.pane.editor.flush()
        if self.scores_freely and self.pane.fault():
            self.app.notify(f"The gist {does_not_parse(self.pane.fault())}.", severity="warning")
            return
        self._score(self.pane.code)

    def action_live(self) -> None:
        """Score by itself, or only when asked."""
        if not self.scores_freely:
            self.app.notify("Scores are counted in this attempt: Alt+S asks for one.")
            return
        self._live = not self._live
        self.app.notify("The gist is scored whenever you pause." if self._live else "Alt+S scores the gist.")

    def _begun(self, words: str, tool: Tool | None) -> None:
        super()._begun(words.partition("\n")[0][:60] if "\n" in words else words, tool)
        if tool is SCORE_GIST and self.scores_freely:
            self.run_line.end()  # a line that comes and goes while one types would move the text each time

    def action_cancel_run(self) -> None:
        """Stop the code that a call runs; a score that costs nothing without a question."""
        if self._scoring and self.scores_freely:
            self._bridge.cancel()
        else:
            super().action_cancel_run()

    @on(CallFinished)
    @on(CallFailed)
    def score_finished(self) -> None:
        """Go on with what was asked for while a score was worked out."""
        waiting, self._waiting, self._scoring = self._waiting, None, False
        if waiting is not None:
            self.call_after_refresh(waiting)

    def _show_answer(self, call_id: str, tool: str, *, moves: bool = True) -> None:
        """Show an answer; that of a score is in the gutter, and leaves the panes as they are."""
        if tool == SCORE_GIST.name:
            self.results.show_call(call_id)
        else:
            super()._show_answer(call_id, tool, moves=moves)
            if moves and tool == TRACE.name and self.focused is not self.console.line:
                self.action_pane("trace")

    def _after_score(self, then: Callable[[], None]) -> bool:
        """Have `then` run when the score under way was stopped; False where there is none."""
        if not self._scoring:
            return False
        self._waiting = then
        self._scored = ""
        self._bridge.cancel()
        return True

    # Calls

    @on(Console.CallAsked)
    @on(CodePane.CallAsked)
    def call_asked(self, message: Console.CallAsked | CodePane.CallAsked) -> None:
        """Call what was typed or pointed at; what the editor holds is kept before."""
        message.prevent_default()
        self._ask(message.tool, message.arguments)

    def _ask(self, tool: str, arguments: dict[str, str]) -> None:
        def ask() -> None:
            self.pane.editor.flush()
            self._recording.edited(GIST_BUFFER, self.pane.code)
            self._recording.do(lambda: None, done=lambda _: self.app.call_from_thread(self._desk.ask, tool, arguments))

        if not self._after_score(ask):
            ask()

    @on(TracePane.TraceWanted)
    def trace_wanted(self) -> None:
        """Ask for the trace of the task's command."""
        if TRACE in self._attempt.tools:
            self._ask(TRACE.name, {})

    @on(TracePane.FunctionWanted)
    def function_wanted(self, message: TracePane.FunctionWanted) -> None:
        """Show a function of the trace, reading it where it was not shown."""
        if shown_function(self._attempt.state, message.name) is not None:
            self._reopen_function(message.name)
            return
        path, _, qualname = message.name.partition("::")
        self._ask("read_function", {"function_name": qualname, "file_path": path})

    @on(CodePane.FunctionAsked)
    def function_asked(self, message: CodePane.FunctionAsked) -> None:
        """Take a function that was shown into the gist, or mark it."""
        if message.what == "suspect":
            self.app.notify("There is no suspect here: nothing is corrupted.")
            message.prevent_default()
            return
        message.prevent_default()
        shown = shown_function(self._attempt.state, message.name)
        if shown is None:
            self.app.notify("Its source was not shown yet: read it first.", severity="warning")
            return
        code = self.pane.code.rstrip("\n")
        text = f"{code}\n\n\n{shown.text.rstrip()}\n" if code else f"{shown.text.rstrip()}\n"
        self.pane.editor.replace(text, self.pane.editor.document.start, self.pane.editor.document.end)
        self._recording.comfort("copy_function")
        self.app.notify(f"{message.name} stands at the end of the gist.")

    def action_submit(self) -> None:
        """Hand in the gist, after a question."""

        def hand_in() -> None:
            self.pane.editor.flush()
            self._recording.edited(GIST_BUFFER, self.pane.code)
            self._recording.do(lambda: None, done=lambda _: self.app.call_from_thread(self._hand_in))

        if not self._after_score(hand_in):
            hand_in()

    def _hand_in(self) -> None:
        self.gist_desk.hand_in(self.pane.code)
