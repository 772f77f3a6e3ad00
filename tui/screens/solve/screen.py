"""Solve: an attempt under way, its panes, budgets and clock."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Footer, TextArea, Tree
from textual.worker import Worker

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.known import call_of, shown_function
from gistpoint.tui.screens.dialogs.ask import TextDialog
from gistpoint.tui.screens.dialogs.confirm import ConfirmDialog, show_error
from gistpoint.tui.screens.solve.brief_pane import BriefPane
from gistpoint.tui.screens.solve.call_desk import CallDesk
from gistpoint.tui.screens.solve.calls import CallBridge, CallFailed, CallFinished, CallProgressed, StateChanged
from gistpoint.tui.screens.solve.code_pane import CodePane
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.editor_pane import EditorPane
from gistpoint.tui.screens.solve.files_pane import FilesPane
from gistpoint.tui.screens.solve.interruptions import Interruptions
from gistpoint.tui.screens.solve.recording import EDIT_SECONDS, Recording
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.screens.solve.status import PANES, PaneTab, PaneTabs, RunLine
from gistpoint.tui.view_models import allowed, price_words, shown_sources, shows_evidence, target_name
from gistpoint.tui.widgets.budget_bar import BudgetBar
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree
from gistpoint.tui.widgets.line_view import LineView

How = Literal["ended", "left"]
PANE_EVENTS = {
    "brief": Pane.BRIEF,
    "files": Pane.TREE,
    "code": Pane.CODE,
    "console": Pane.CONSOLE,
    "editor": Pane.EDITOR,
    "results": Pane.RESULT,
    "notes": Pane.NOTES,
}
_FOCUS = {
    "brief": "#brief-view",
    "files": "#known",
    "code": "#code-view",
    "console": "#console-line",
    "editor": "#function-editor",
    "results": "#calls",
    "notes": "#notes",
}
_READING = ("brief", "code", "results", "notes")


class SolveScreen(Screen[How]):
    """The attempt; dismissed with `ended`, or with `left` where it can be resumed."""

    CSS_PATH = "solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.SOLVE)]
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [
        (0, "-narrow"),
        (110, "-wide"),
        (150, "-very-wide"),
    ]
    HELP_PAGE = "solve"
    SCOPES = (Scope.SOLVE, Scope.CONSOLE, Scope.FILES, Scope.CODE, Scope.EDITOR, Scope.RESULTS)

    bar = query_one(BudgetBar)
    tabs = query_one(PaneTabs)
    run_line = query_one(RunLine)
    reading = query_one("#reading", ContentSwitcher)
    files = query_one(FilesPane)
    code = query_one(CodePane)
    editor = query_one(EditorPane)
    results = query_one(ResultsPane)
    console = query_one(Console)

    def __init__(self, attempt: Attempt, clock: TimeSource) -> None:
        super().__init__()
        self._attempt, self._time = attempt, clock
        self._bridge = CallBridge(self, attempt, self._in_thread)
        self._recording = Recording(attempt, lambda error: self.post_message(CallFailed(error)))
        self._desk = CallDesk(self, attempt, self._bridge, self._begun)
        self._interruptions = Interruptions(self, attempt, self._recording, clock, self.action_leave)
        self._pane = ""
        self._stopped = False

    def compose(self) -> ComposeResult:
        """Lay out budgets, panes and console."""
        state = self._attempt.state
        yield BudgetBar()
        yield PaneTabs()
        with Horizontal(id="work"):
            yield FilesPane()
            with ContentSwitcher(initial="brief", id="reading"):
                yield BriefPane(self._attempt.task)
                yield CodePane()
                yield ResultsPane(self._start_of, self._attempt.judgements.get)
                with Vertical(id="notes-pane"):
                    yield TextArea(state.notes, id="notes", soft_wrap=True, placeholder="Notes to yourself: kept")
            yield EditorPane(self._attempt.task, state)
        yield RunLine()
        yield Console(self._attempt)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show what the attempt holds so far, go where its solver was, and go on with what was under way."""
        self.run_line.display = False
        self._draw()
        self._show_last_source()
        self.set_interval(EDIT_SECONDS, self._second)
        pane = next(name for name, event in PANE_EVENTS.items() if event is self._attempt.state.pane)
        self.action_pane(pane)
        if self._attempt.state.pause is not None:
            self._interruptions.cover()
        if self._attempt.state.pending is not None:
            self._begun("finishing what was under way", self._attempt.state.pending.tool not in ("read_file",))
            self._bridge.finish_pending()

    def _start_of(self, name: str) -> str:
        return self.editor.start_of(name)

    def _in_thread(self, body: object) -> Worker[None]:
        assert callable(body)
        return self.run_worker(body, thread=True, group="call", exit_on_error=False)

    def _second(self) -> None:
        self._recording.flush()
        self._interruptions.check_idle()
        self._draw_clock()

    # Drawing

    @on(StateChanged)
    def state_changed(self) -> None:
        """Draw what has changed; leave where the attempt is over."""
        self._draw()
        self._leave_if_over()

    def _draw(self) -> None:
        state = self._attempt.state
        suspects = [suspect.name for suspect in state.suspects]
        self.files.tree_view.update_from(state.knowledge, suspects=suspects)
        self.code.update_from(state)
        self.editor.update_from(state)
        self.results.update_from(state)
        self._draw_clock()

    def _draw_clock(self) -> None:
        state = self._attempt.state
        clock = state.clock.at(self._time.mono_ms(), self._time.utc_ms())
        self.bar.update_from(state, clock, backend=self._attempt.judge.runner.backend)

    def _show_last_source(self) -> None:
        for call in reversed(self._attempt.state.calls):
            shown = shown_sources(call)
            if shown is not None:
                self.code.show(shown)
                return

    # Panes

    def action_pane(self, pane: str) -> None:
        """Show a pane and put the focus into it."""
        if pane in _READING:
            self.reading.current = "notes-pane" if pane == "notes" else pane
        if pane != "console":
            for name in ("files", "reading", "editor"):
                self.set_class(name == (pane if pane in ("files", "editor") else "reading"), f"-shows-{name}")
        if pane == "editor":
            self.editor.switcher.current = "function-editor"
        self.call_after_refresh(self.query_one(_FOCUS[pane], Widget).focus)

    @on(PaneTab.Clicked)
    def tab_clicked(self, message: PaneTab.Clicked) -> None:
        """Go to a pane by the mouse."""
        self.action_pane(message.pane)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Record what has the focus: it decides which clock runs."""
        pane = next((n for n in event.widget.ancestors_with_self if n.id in (*PANES, "notes-pane")), None)
        if pane is None or pane.id is None:
            return
        name = pane.id.removesuffix("-pane")
        if name != self._pane:
            self._pane = name
            self.tabs.mark(name)
            self._recording.view(PANE_EVENTS[name])

    # Calls

    @on(Console.CallAsked)
    @on(CodePane.CallAsked)
    def call_asked(self, message: Console.CallAsked | CodePane.CallAsked) -> None:
        """Call what was typed or pointed at."""
        self._desk.ask(message.tool, message.arguments)

    @on(KnowledgeTree.ListFolder)
    def list_folder(self, message: KnowledgeTree.ListFolder) -> None:
        """An unlisted folder is listed."""
        self._desk.ask("list_directory", {"path": message.path})

    @on(KnowledgeTree.OpenFile)
    def open_file(self, message: KnowledgeTree.OpenFile) -> None:
        """An unread file is read."""
        self._desk.ask("read_file", {"file_path": message.path})

    @on(KnowledgeTree.OpenFunction)
    def open_function(self, message: KnowledgeTree.OpenFunction) -> None:
        """A function is shown from a file that was read, else read."""
        self._reopen_function(message.function)

    @on(KnowledgeTree.ShowAgain)
    def show_again(self, message: KnowledgeTree.ShowAgain) -> None:
        """What was shown is shown again, free of charge."""
        call = call_of(self._attempt.state, message.call_id)
        if "::" in message.place:
            self._reopen_function(message.place)
        elif call is not None and (shown := shown_sources(call)) is not None:
            self.code.show(shown)
            self.action_pane("code")
            self._recording.comfort("reopen")

    def _reopen_function(self, name: str) -> None:
        self.code.go_to_function(name)
        if shown_function(self._attempt.state, name) is not None:
            self.action_pane("code")

    @on(Tree.NodeHighlighted)
    def tell_price(self, event: Tree.NodeHighlighted[object]) -> None:
        """Say what opening the node at the cursor costs."""
        tree = self.files.tree_view
        if self._pane == "files" and tree.place is not None:
            tool = next((t for t in self._attempt.offered() if not t.submits), None)
            if tool is not None:
                words = price_words(self._attempt.price(tool), self._attempt.state)
                self.console.say(f"{tree.place.name or 'the repository'}: what was not shown yet {words}")

    def _begun(self, words: str, runs_tests: bool) -> None:
        self.console.remember(words)
        self.console.say(f"… {words}")
        if runs_tests:
            self.run_line.begin(f"… {words}")
        self.refresh_bindings()

    @on(CallProgressed)
    def progressed(self, message: CallProgressed) -> None:
        """Show how far the tests are; what fails only where more than the answer may be shown."""
        evidence = shows_evidence(self._attempt.state)
        self.run_line.progress(message.progress, message.failed if evidence else None)

    @on(CallFinished)
    def finished(self, message: CallFinished) -> None:
        """Show the answer where it belongs."""
        self.run_line.end()
        self.refresh_bindings()
        self._draw()
        if message.result is not None:
            self._show_answer(message.result.call_id, message.tool)
        self._leave_if_over()

    def _show_answer(self, call_id: str, tool: str) -> None:
        call = call_of(self._attempt.state, call_id)
        if call is None:
            return
        self.results.show_call(call_id)
        lines = (call.text or "").split("\n")
        self.console.say(f"{'✘ ' if call.refused else ''}{lines[0]}  {lines[-1]}")
        shown = shown_sources(call)
        if shown is not None:
            self.code.show(shown)
        typing = self._pane == "console"
        if tool == "list_directory" and not call.refused and self._pane == "files":
            return
        pane = "results" if shown is None else "code"
        self.action_pane(pane)
        if typing:
            self.action_pane("console")

    @on(CallFailed)
    def failed(self, message: CallFailed) -> None:
        """Say why no call could be made; anything unexpected goes on as a crash."""
        self.run_line.end()
        self.refresh_bindings()
        if not isinstance(message.error, UserError):
            raise message.error
        show_error(self.app, message.error)

    def _leave_if_over(self) -> None:
        if self._attempt.state.ended and not self._bridge.busy and not self._stopped:
            self.stop()
            while self.app.screen is not self and len(self.app.screen_stack) > 1:
                self.app.pop_screen()
            self.dismiss("ended")

    # What costs nothing

    @on(LineView.Comfort)
    def comfort(self, message: LineView.Comfort) -> None:
        """Count what a model does not have."""
        self._recording.comfort(message.kind)

    @on(CodePane.Comfort)
    @on(EditorPane.Comfort)
    def pane_comfort(self, message: CodePane.Comfort | EditorPane.Comfort) -> None:
        """Count what a pane offers beyond the tools."""
        self._recording.comfort(message.kind)

    @on(Console.Completed)
    def completed(self) -> None:
        """Count completion."""
        self._recording.comfort("completion")

    @on(FunctionEditor.Edited)
    def edited(self, message: FunctionEditor.Edited) -> None:
        """Keep half-written code."""
        if message.buffer:
            self._recording.edited(message.buffer, message.text)

    @on(TextArea.Changed, "#notes")
    def noted(self, event: TextArea.Changed) -> None:
        """Keep the notes."""
        self._recording.noted(event.text_area.text)

    @on(CodePane.FunctionAsked)
    def function_asked(self, message: CodePane.FunctionAsked) -> None:
        """Edit a function, or mark it."""
        if message.what == "suspect":
            marked = all(s.name != message.name for s in self._attempt.state.suspects)
            self._recording.do(lambda: self._attempt.suspect(message.name, marked=marked))
            return
        target = target_name(self._attempt.task)
        if target and message.name != target:
            self.notify(f"Only {target} may be changed in this task.", severity="warning")
        elif not target and not self._start_of(message.name):
            self.notify("Its source was not shown yet: read it first.", severity="warning")
        else:
            self.editor.open(message.name)
            self.action_pane("editor")

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

    # The attempt

    @on(Console.SubmitAsked)
    def action_submit(self) -> None:
        """Run the tests on the code in the editor."""
        self.editor.editor.flush()
        if not self.editor.buffer:
            self.notify("The editor holds no function yet: read one and press e on it.", severity="warning")
            return
        self._desk.submit(self.editor.buffer, self.editor.code)

    def action_pause(self) -> None:
        """Stop the clock, with a reason."""
        if self._bridge.busy:
            self.notify("A call is under way: pause when it has answered.", severity="warning")
        else:
            self._interruptions.pause()

    def action_end(self) -> None:
        """Give up, or skip where nothing was called."""
        if self._bridge.busy:
            self.notify("A call is under way: wait for it, or cancel it.", severity="warning")
        else:
            self._interruptions.end()

    def action_cancel_run(self) -> None:
        """Stop the running tests, after a warning."""
        question = ConfirmDialog(
            "Cancel the test run?",
            "The submission counts all the same, with score 0.",
            yes="Cancel the run",
            no="Let it run",
            careful=True,
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._bridge.cancel()

        self.app.push_screen(question, answered)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Cancelling is possible only while tests run."""
        if action == "cancel_run":
            return self.is_mounted and self._bridge.busy and self.run_line.display
        return True

    def action_leave(self) -> None:
        """Go home; the attempt stays as it is."""
        if self._bridge.busy:
            self.notify("A call is under way: wait for it, or cancel it.", severity="warning")
            return
        self.stop()
        self.dismiss("left")

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._bridge.busy

    def input_happened(self) -> None:
        """A key or the mouse was used."""
        self._interruptions.input_happened()

    def stop(self) -> None:
        """Write everything that waits; nothing is recorded from here on."""
        if not self._stopped:
            self._stopped = True
            self.editor.editor.flush()
            self._recording.edited(self.editor.buffer, self.editor.code) if self.editor.buffer else None
            self._bridge.close()
            self._recording.close()
