"""Solve: an attempt under way, its panes, budgets and clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Tree
from textual.worker import Worker

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.state import Submission
from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.known import call_of, shown_function
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog, show_error
from gistpoint.tui.screens.solve.call_desk import CallDesk
from gistpoint.tui.screens.solve.calls import CallBridge, CallFailed, CallFinished, CallProgressed, StateChanged
from gistpoint.tui.screens.solve.code_pane import CodePane
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.idle_question import IdleAnswer
from gistpoint.tui.screens.solve.interruptions import Interruptions
from gistpoint.tui.screens.solve.panes import PanesScreen
from gistpoint.tui.screens.solve.playing import Playback, StepPlayed
from gistpoint.tui.screens.solve.recorded import PANE_EVENTS
from gistpoint.tui.screens.solve.recording import FLUSH_SECONDS
from gistpoint.tui.view_models import price_words, shown_sources, shows_evidence, target_name
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree
from gistpoint.tui.widgets.writing_area import WritingArea


class SolveScreen(PanesScreen):
    """The attempt; dismissed with `ended`, or with `left` where it can be resumed."""

    CSS_PATH = "solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.SOLVE)]
    HELP_PAGE = "solve"
    SCOPES: ClassVar[tuple[Scope, ...]] = (
        Scope.SOLVE,
        Scope.CONSOLE,
        Scope.FILES,
        Scope.CODE,
        Scope.EDITOR,
        Scope.RESULTS,
    )

    def __init__(
        self, attempt: Attempt, clock: TimeSource, *, play: tuple[Sequence[Mapping[str, Any]], float] | None = None
    ) -> None:
        """`play` are recorded steps, and how many times as fast to play them."""
        super().__init__(attempt, clock)
        self._bridge = CallBridge(self, attempt, self._in_thread)
        self._desk = self.make_desk()
        self._interruptions = Interruptions(self, attempt, self._recording, clock, self.action_leave)
        self._asked_from: Widget | None = None
        """What had the focus when the call under way began."""
        self._stopped = False
        self._playback = Playback(self, attempt, *play) if play is not None else None

    def make_desk(self) -> CallDesk:
        """Return where calls are asked for."""
        return CallDesk(self, self._attempt, self._bridge, self._begun, lambda: self.playing)

    def on_mount(self) -> None:
        """Show what the attempt holds so far, go where its solver was, and go on with what was under way."""
        self.run_line.display = False
        self.editor.keep = self._recording.edited
        self.editor.came_back = self._interruptions.input_happened
        self.draw()
        self.show_last_source()
        self.set_interval(FLUSH_SECONDS, self._second)
        pane = next(name for name, event in PANE_EVENTS.items() if event is self._attempt.state.pane)
        self.action_pane(pane)
        if self._attempt.state.pause is not None:
            self._interruptions.cover()
        if self._attempt.state.pending is not None:
            self._begun("finishing what was under way", self._pending_tool())
            self._bridge.finish_pending()
        if self._playback is not None:
            self._playback.start()
            self.console.say("▶ A recorded attempt is played, through the real tools and tests. Ctrl+L leaves it.")

    def _in_thread(self, body: Callable[[], None]) -> Worker[None]:
        return self.run_worker(body, thread=True, group="call", exit_on_error=False)

    def _second(self) -> None:
        self._recording.flush()
        if self._playback is None:
            self._interruptions.check_idle()
        self._recording.do(self._attempt.check_time)
        self.draw_clock()

    # Drawing

    @on(StateChanged)
    def state_changed(self) -> None:
        """Draw what has changed; leave where the attempt is over."""
        self.draw()
        if self.playing:
            tool = self._pending_tool()
            runs = tool is not None and tool.runs_code
            if runs and not self.run_line.display:
                self.run_line.begin("… the code of the recorded call runs", hint="")
            elif not runs:
                self.run_line.end()
        self._leave_if_over()

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

    def _pending_tool(self) -> Tool | None:
        """Return the tool of the call under way; None if there is no such call or no such tool."""
        pending = self._attempt.state.pending
        return next((tool for tool in self._attempt.tools if pending and tool.name == pending.tool), None)

    def _begun(self, words: str, tool: Tool | None) -> None:
        self._asked_from = self.focused
        self.console.remember(words)
        self.console.say(f"… {words}")
        if tool is not None and tool.runs_code:
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
        self.draw()
        if message.result is not None:
            self._show_answer(message.result.call_id, message.tool, moves=not self._writes())
        self._leave_if_over()
        self._bridge.came_back()

    def _writes(self) -> bool:
        """Whether the solver began to write since the call did: an answer must not take the next keys."""
        area = self.focused
        return isinstance(area, WritingArea) and (area is not self._asked_from or area.waits)

    def _show_answer(self, call_id: str, tool: str, *, moves: bool = True) -> None:
        """Show an answer; only if it `moves` the screen, other panes than the one in sight."""
        call = call_of(self._attempt.state, call_id)
        if call is None:
            return
        self.results.show_call(call_id)
        lines = (call.text or "").split("\n")
        self.console.say(f"{'✘ ' if call.refused else ''}{lines[0]}  {lines[-1]}")
        shown = shown_sources(call)
        if shown is not None:
            self.code.show(shown)
        if not moves or (tool == "list_directory" and not call.refused and self._pane == "files"):
            return
        pane = "results" if shown is None else "code"
        if self.focused is self.console.line:
            self.show_pane(pane)
        else:
            self.action_pane(pane)

    @on(StepPlayed)
    def step_played(self, message: StepPlayed) -> None:
        """Show what a recorded attempt has done."""
        self.draw()
        step = message.step
        if message.result is not None:
            submission = self._attempt.state.submissions[-1:]
            if submission and submission[0].call_id == message.result.call_id:
                self.show_submitted(submission[0])
            self._show_answer(message.result.call_id, str(step["tool"]))
        elif step["kind"] == "note":
            self.notes.text = self._attempt.state.notes
            self.action_pane("notes")
        self._leave_if_over()

    def show_submitted(self, submission: Submission) -> None:
        """Show in the editor what a recorded attempt has submitted."""
        replacement = submission.replacement
        self.editor.show_code(f"{replacement.path}::{replacement.qualname}", replacement.code)

    @on(CallFailed)
    def failed(self, message: CallFailed) -> None:
        """Say why no call could be made; anything unexpected goes on as a crash."""
        self.run_line.end()
        self.refresh_bindings()
        if not isinstance(message.error, UserError):
            raise message.error
        self._bridge.came_back()
        show_error(self.app, message.error)

    def _leave_if_over(self) -> None:
        if self._attempt.state.ended and not self._bridge.busy and not self._stopped:
            self.stop()
            while self.app.screen is not self and len(self.app.screen_stack) > 1:
                self.app.pop_screen()
            self.dismiss("ended")

    # Functions

    @on(CodePane.FunctionAsked)
    def function_asked(self, message: CodePane.FunctionAsked) -> None:
        """Edit a function, or mark it."""
        if message.what == "suspect":
            marked = all(s.name != message.name for s in self._attempt.state.suspects)
            self._recording.do(lambda: self._attempt.suspect(message.name, marked=marked))
            return
        target = target_name(self._attempt.task)
        if target and message.name != target:
            self.app.notify(f"Only {target} may be changed in this task.", severity="warning")
        elif not target and not self.start_of(message.name):
            self.notify("Its source was not shown yet: read it first.", severity="warning")
        else:
            self.editor.open(message.name)
            self.action_pane("editor")

    # The attempt

    @on(Console.SubmitAsked)
    def submit_asked(self) -> None:
        """Submit what the editor holds, as the key does."""
        self.action_submit()

    def action_submit(self) -> None:
        """Run the tests on the code in the editor."""
        self.editor.editor.flush()
        if not self.editor.buffer:
            self.notify("The editor holds no function yet: read one and press e on it.", severity="warning")
            return
        self._desk.submit(self.editor.buffer, self.editor.code)

    def action_pause(self) -> None:
        """Stop the clock, with a reason."""
        if not self._bridge.when_free(self._interruptions.pause):
            self.notify("A call is under way: pause when it has answered.", severity="warning")

    def action_end(self) -> None:
        """Give up, or skip where nothing was called."""
        if not self._bridge.when_free(self._interruptions.end):
            self.notify("A call is under way: wait for it, or cancel it.", severity="warning")

    def action_cancel_run(self) -> None:
        """Stop the code that a call runs, after a warning."""
        tool = self._pending_tool()
        submission = tool is not None and tool.submits
        question = ConfirmDialog(
            "Cancel the test run?" if submission else "Cancel the call?",
            "The submission counts all the same, with score 0."
            if submission
            else "The call counts all the same, and its answer says that it was cancelled.",
            yes="Cancel the run" if submission else "Cancel the call",
            no="Let it run",
            careful=True,
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._bridge.cancel()

        self.app.push_screen(question, answered)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Cancelling is possible only while a call runs code, an answer only while there is a question."""
        if action == "cancel_run":
            return self.is_mounted and self._bridge.cancellable
        if action == "idle":
            return bool(self._attempt.state.doubt)
        return True

    def action_leave(self) -> None:
        """Go home; the attempt stays as it is."""
        if self.playing:
            self._leave()
        elif not self._bridge.when_free(self._leave):
            self.notify("A call is under way: wait for it, or cancel it.", severity="warning")

    def _leave(self) -> None:
        self.stop()
        self.dismiss("left")

    @property
    def busy(self) -> bool:
        """Whether a call is under way, or a recorded attempt is played."""
        return self._bridge.busy or self.playing

    def when_free(self, do: Callable[[], None]) -> bool:
        """Do something now, or when a call that is answered has come back; False while one runs or is played."""
        return not self.playing and self._bridge.when_free(do)

    @property
    def playing(self) -> bool:
        """Whether a recorded attempt is played."""
        return self._playback is not None and self._playback.running

    def input_happened(self, at: float) -> None:
        """Note that a key or the mouse was used."""
        self._interruptions.input_happened(at)

    def action_idle(self, answer: str) -> None:
        """Answer the question after a time without input."""
        self._interruptions.answer_idle(away=answer == "away")

    @on(IdleAnswer.Clicked)
    def idle_clicked(self, message: IdleAnswer.Clicked) -> None:
        """Answer it by the mouse."""
        self.action_idle(message.answer)

    def stop(self) -> None:
        """Write everything that waits; nothing is recorded from here on."""
        if not self._stopped:
            self.editor.editor.flush()
            if self.editor.changed:
                self._recording.edited(self.editor.buffer, self.editor.code)
            if self.notes.waits:
                self._recording.noted(self.notes.text)
            self.on_unmount()

    def on_unmount(self) -> None:
        """Let go of the threads, however the screen came to its end."""
        if not self._stopped:
            self._stopped = True
            if self._playback is not None:
                self._playback.stop()
            self._bridge.close()
            self._recording.close()
