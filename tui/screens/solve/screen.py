"""The solve screen: an attempt under way, with its panes, budgets and clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Tree

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import PauseReason
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import title_in_attempt
from gistpoint.core.ports import TimeSource
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.known import call_of, last_source, shown_sources
from gistpoint.tui.places import NamedPlace, shown_at
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.screens.solve.console import SEARCH, Console
from gistpoint.tui.screens.solve.controller import (
    AttemptController,
    CallBegun,
    CallFailed,
    CallFinished,
    CallProgressed,
    StateChanged,
    StepPlayed,
)
from gistpoint.tui.screens.solve.interruptions import How, Interruptions, LeaveRequested
from gistpoint.tui.screens.solve.kind import CallAsking, EditorPane, SolvingKind
from gistpoint.tui.screens.solve.left_place import PlaceKeeper
from gistpoint.tui.screens.solve.panes import (
    BriefRead,
    CallRequested,
    FunctionRequested,
    PaneArea,
    SourceRequested,
    StatePane,
    SubmitRequested,
    pane_around,
    pane_tabs,
)
from gistpoint.tui.screens.solve.reading import CodePane, FilesPane
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.screens.solve.status import CANCEL_HINT, SPENT_HINT, IdleAnswer, IdleQuestion, RunLine
from gistpoint.tui.screens.solve.terms import OUTSIDE_OF_A_STUDY, Terms, brief_is_first, switch_off
from gistpoint.tui.screens.solve.text_panes import BriefPane, NotesPane, add_aids, insert_code
from gistpoint.tui.view_models import allowed, shows_evidence
from gistpoint.tui.widgets.budget_bar import BudgetBar
from gistpoint.tui.widgets.find_bar import find_in
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.line_view import AffordanceTaken
from gistpoint.tui.widgets.name_tabs import NameTabs
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView
from gistpoint.tui.widgets.writing_area import Pasted, WritingArea

FLUSH_SECONDS = 1.0
"""Seconds between two writes of counted affordances."""
_BUSY = "A call is under way: wait for it, or cancel it with Esc."
_PLAYING = f"{signs.FORWARD} A recorded attempt is playing, with the real tools and tests. Ctrl+L leaves it."
_BRIEF_FIRST = "Read the task: the clock is running. Press F9 afterwards to open the tools."


class SolveScreen(BaseScreen[How]):
    """The screen of an attempt under way. Dismissed with `ended`, or with `left` if it can be resumed."""

    CSS_PATH = "solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.SOLVE)]
    HELP_PAGE = "solve"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (
        KeyScope.SOLVE,
        KeyScope.CONSOLE,
        KeyScope.FILES,
        KeyScope.CODE,
        KeyScope.EDITOR,
        KeyScope.RESULTS,
    )
    ALLOW_IN_MAXIMIZED_VIEW = "BudgetBar, FindBar, IdleQuestion, RunLine, Console, KeyBar"
    KIND: ClassVar[type[SolvingKind]] = SolvingKind
    """The part that depends on the kind of task."""

    bar = query_one(BudgetBar)
    tabs = query_one(NameTabs)
    area = query_one(PaneArea)
    run_line = query_one(RunLine)
    console = query_one(Console)

    def __init__(
        self,
        attempt: Attempt,
        clock: TimeSource,
        *,
        play: tuple[Sequence[Mapping[str, Any]], float] | None = None,
        terms: Terms = OUTSIDE_OF_A_STUDY,
    ) -> None:
        """`play` contains recorded steps and the speed to play them at; `terms` are the study's terms."""
        super().__init__()
        self.controller = AttemptController(self, attempt, self.hold_keys)
        self.when_left(self.controller.close)
        self.kind = self.KIND(self.controller)
        self._attempt, self._time, self._play = attempt, clock, play
        self._interruptions = Interruptions(self, self.controller, clock, terms)
        self._terms = terms
        add_aids(self.kind, self.controller, terms)
        self._brief_first = terms.brief_first and brief_is_first(attempt.state)
        self.code = CodePane()
        self.results = ResultsPane(self.editor.start_of, self.controller.judgement_of)
        self.notes_pane = NotesPane(attempt.state.notes)
        self._pane = ""
        """The name of the focused pane."""
        self._asking = CallAsking(self, self.controller, self.kind)
        self._focused_at_call: Widget | None = None
        """The widget that had the focus when the call under way began."""
        self._typed_since_call: Widget | None = None
        """The widget in which the user has typed since the call under way began."""
        self._stopped = False
        self._places = PlaceKeeper(self, attempt)

    @property
    def drafts_about(self) -> tuple[str, str]:
        """The participant, and the attempt's id."""
        return self._attempt.state.header.participant or "", self._attempt.state.attempt_id

    @property
    def editor(self) -> EditorPane:
        """The pane with the solver's text. It is mounted when it is first shown."""
        return self.kind.editor

    @property
    def notes(self) -> WritingArea:
        """The text area of the notes. It exists after the notes have been shown."""
        return self.notes_pane.area

    def compose(self) -> ComposeResult:
        """Lay out budgets, panes and console."""
        yield BudgetBar(title_in_attempt(self._attempt.task, self._attempt.state.header))
        yield pane_tabs(self.kind.panes)
        files, brief = FilesPane(self._attempt.state.of_kind.unit), BriefPane(self._attempt.brief)
        read = (brief, self.code, *self.kind.own_panes, self.notes_pane, self.results)
        yield PaneArea(self.kind.panes, files, read, self.editor, first="brief", made=self._made)
        if self._brief_first:
            yield Plain(_BRIEF_FIRST, id="brief-first")
        yield RunLine()
        yield Console(self._attempt)
        yield KeyBar()

    async def on_mount(self) -> None:
        """Show the attempt's last pane, or only the brief; continue a pause or a call; play a recording."""
        self._show_locked()
        self.area.repeats = lambda: self.code.shows_only(self.editor.buffer)
        self.editor.keep = self.controller.edited
        self.editor.on_return = self._interruptions.input_happened
        switch_off(self, self._attempt.state)
        self._draw()
        self.set_interval(FLUSH_SECONDS, self._second)
        state = self._attempt.state
        shown = (name for name, place in self.kind.panes.items() if place.event is state.pane)
        pane = "brief" if self._brief_first else next(shown, "brief")  # a model's attempt records no pane
        if last_source(state) is not None:
            await self._show_pane("code")
        await self.action_pane(pane)
        if state.pause is not None and state.pause.reason == PauseReason.QUESTIONNAIRE:
            self._ask_after_brief()
        elif state.pause is not None:
            self._interruptions.cover()
        if state.pending is not None:
            self.controller.finish_pending()
        if self._play is not None:
            self.area.at_side = True  # so that submitted code stays visible next to the answers
            self.controller.play(*self._play)
            self.console.show_message(_PLAYING)

    def _made(self, pane: Widget) -> None:
        """Show the attempt so far in a newly mounted pane."""
        switch_off(pane, self._attempt.state)
        if isinstance(pane, StatePane | EditorPane):
            pane.update_from(self._attempt.state)
        if pane is self.code:
            self._places.show_code(self.code)
        elif pane is self.editor:
            self._places.open_editor(self.editor)
        elif pane is self.results and self._attempt.state.calls:
            self.call_later(self.results.show_call, self._attempt.state.calls[-1].call_id)

    def _second(self) -> None:
        self.controller.flush()
        if self._play is None:
            self._interruptions.check_idle()
        self.controller.write(self._attempt.check_time)
        self._draw_clock()

    def _draw(self) -> None:
        state = self._attempt.state
        for pane in (*self.query(StatePane), self.editor):
            if pane.is_mounted:  # a pane that is still being mounted gets the state from `_made`
                pane.update_from(state)
        self.area.editing = self.area.editing or bool(state.buffers)
        self._draw_clock()

    def _draw_clock(self) -> None:
        """Show the budgets, the clock, and the question about a period without input."""
        state = self._attempt.state
        clock = state.clock.at(self._time.mono_ms(), self._time.utc_ms())
        self.bar.update_from(state, clock, backend=self._attempt.backend)
        if question := self.query(IdleQuestion):
            question.first().update_from(state.doubt, clock)
        elif state.doubt:
            self.mount(IdleQuestion(state.doubt, clock), before=self.run_line)

    @on(StateChanged)
    def state_changed(self) -> None:
        """Draw the new state, complete a pending automatic call, and leave if the attempt is over."""
        self._draw()
        if self.controller.playing:
            self.run_line.follow(self.controller.tool)
        pending = self._attempt.state.pending
        if pending is not None and pending.automatic and not self.busy:
            self.controller.finish_pending()
        self._leave_if_over()

    # Reading the brief first

    @on(BriefRead)
    def brief_read(self) -> None:
        """If the brief had to be read first, ask the study's questions about it, and show the other panes."""
        if self._brief_first:
            self._ask_after_brief()

    def _ask_after_brief(self) -> None:
        if self._terms.after_brief is None:
            self._begin_work()
        else:
            self._terms.after_brief(self._begin_work)

    def _begin_work(self) -> None:
        self._brief_first = False
        self._show_locked()
        self._interruptions.input_happened()
        self.call_later(self.action_pane, "files")

    def _show_locked(self) -> None:
        """Show only the brief until it has been read, and everything afterwards."""
        locked = self._brief_first
        brief = self.query_one(BriefPane)
        brief.first = locked
        if brief.is_mounted:
            brief.draw_frame()
        for line in self.query("#brief-first"):
            line.display = locked
        self.tabs.display = self.console.display = not locked
        self.area.show_alone(brief=locked)
        self.refresh_bindings()

    # Panes

    async def action_pane(self, pane: str) -> None:
        """Show a pane, and focus it, at once if it can take the focus: the next key is meant for it."""
        await self._show_pane(pane)
        widget = self.query_one(self.kind.panes[pane].focus, Widget)
        if widget.focusable:
            self.set_focus(widget)
        else:
            self.focus_later(widget)
        if pane == "console":
            self.console.opened()

    async def _show_pane(self, pane: str) -> None:
        """Show a pane without moving the focus."""
        if self.maximized is not None:
            self.minimize()
        await self.area.make(pane)
        if pane == "assist":
            await self.area.make("editor")  # the assistant gets the code in the editor
        if pane == "editor":
            self.editor.open_function_in(self.code)
            self.editor.show_writing()
            self.area.editing = self.area.editing or bool(self.editor.buffer)
        self.area.show(pane)
        if pane != "console":
            self.tabs.mark(pane)

    def action_side(self) -> None:
        """Put the editor next to the code, or below it."""
        if notice := self.area.turn_editor():
            self.app.notify(notice)

    @on(NameTabs.Clicked)
    async def tab_clicked(self, message: NameTabs.Clicked) -> None:
        """Show and focus the pane whose tab was clicked."""
        await self.action_pane(message.target)

    def action_find(self) -> None:
        """Search in the focused text, otherwise in the text being read, if the study allows it."""
        if not allowed(self._attempt.state, "search"):
            self.app.notify("Searching the visible text is disabled in this study.")
        elif (view := self.area.text_meant(self.focused)) is not None:
            find_in(view)

    def action_wrap(self) -> None:
        """Switch between wrapping and scrolling the long lines of the text being read."""
        if (view := self.area.text_meant(self.focused)) is not None:
            view.action_toggle_wrap()

    def action_rule(self) -> None:
        """Show how the score is calculated."""
        self.app.notify(kind_of(self._attempt.task).score_rule, title="The score", timeout=20)

    def action_search(self) -> None:
        """Ask for the pattern of a search in the repository."""
        self.console.search()

    def action_copy_text(self) -> None:
        """Copy the selected text, if the study allows it."""
        if allowed(self._attempt.state, "copy"):
            super().action_copy_text()
        else:
            self.app.notify("Copying is disabled in this study.")

    # Recording other events

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Record which pane has the focus, because that determines which clock runs."""
        pane = pane_around(event.widget, self.kind.panes)
        if pane and pane != self._pane:
            self._pane = pane
            self._asking.withdraw()
            if pane != "console":
                self.tabs.mark(pane)
            self.controller.view(self.kind.panes[pane].event)

    @on(AffordanceTaken)
    def affordance_taken(self, message: AffordanceTaken) -> None:
        """Count the use of an affordance."""
        self.controller.use_affordance(message.kind)

    @on(FunctionEditor.Edited)
    def edited(self, message: FunctionEditor.Edited) -> None:
        """Save the unfinished code."""
        self._typed_since_call = message.area
        if message.buffer:
            self.controller.edited(message.buffer, message.text)

    @on(WritingArea.Edited, "#notes")
    def noted(self, message: WritingArea.Edited) -> None:
        """Save the notes."""
        self._typed_since_call = message.area
        self.controller.noted(message.text)

    @on(Pasted)
    def pasted(self, message: Pasted) -> None:
        """Record that text was pasted."""
        self.controller.pasted(message.text, outside=message.outside)

    async def action_insert_code(self) -> None:
        """Insert the latest code in the assistant's answers into the editor."""
        await insert_code(self.area)

    # Calls

    @on(CallRequested)
    def call_requested(self, message: CallRequested) -> None:
        """Make the call that was typed or clicked, after a question if it would use up a budget."""
        self._asking.ask(message.tool, message.arguments, priced=message.priced)

    @on(SubmitRequested)
    async def action_submit(self) -> None:
        """Submit the editor's code, after a question with the changes and the price."""
        await self.area.make("editor")
        self._asking.submit()

    @on(CallBegun)
    def begun(self, message: CallBegun) -> None:
        """Show that a call is under way."""
        self._focused_at_call, self._typed_since_call = self.focused, None
        words = message.words.partition("\n")[0][:60] if "\n" in message.words else message.words
        self.console.call_began(words)
        if message.tool is not None and message.tool.runs_code and not self.kind.is_unobtrusive(message.tool):
            self.run_line.begin(words, hint=SPENT_HINT if message.tool.submits else CANCEL_HINT)
        self.refresh_bindings()

    @on(CallProgressed)
    def progressed(self, message: CallProgressed) -> None:
        """Show the progress of a test run; failures only if the solver may see them."""
        evidence = shows_evidence(self._attempt.state)
        self.run_line.show(message.progress, message.failed if evidence else None)

    @on(CallFinished)
    async def finished(self, message: CallFinished) -> None:
        """Show the answer to a call, and run the action that waited for the call."""
        if self._stopped:
            return
        self.run_line.end()
        self.console.call_ended()
        self.refresh_bindings()
        self._draw()
        if message.result is not None:
            await self._show_answer(message.result.call_id, moves=not self._writes())
        self._leave_if_over()
        self.controller.run_waiting()

    def _writes(self) -> bool:
        """Return whether the solver is writing, in which case an answer must not take the focus."""
        area = self.focused
        if not isinstance(area, WritingArea):
            return False
        return area is not self._focused_at_call or area is self._typed_since_call or area.waits

    async def _show_answer(self, call_id: str, *, moves: bool = True) -> None:
        """Show the answer to a call; with `moves`, also go to its pane."""
        call = call_of(self._attempt.state, call_id)
        place = self.kind.in_place.get(call.tool) if call is not None else None
        if call is None or place == "":
            return
        asked = self._asking.take_place()
        await self.area.make("results")
        await self.results.show_call(call_id)
        refused = f"{signs.BAD} " if call.refused else ""
        self.console.show_message(refused + (call.text or "").split("\n")[0])
        if (shown := shown_sources(call)) is not None:
            await self.area.make("code")
            self.code.show(shown, line=asked.line_in(shown.path) if asked is not None else None)
        already_in_place = place == self._pane and not call.refused
        if already_in_place or not moves:
            self.area.lay_out()
            return
        pane = "results" if shown is None else "code"
        if self.focused is self.console.line:
            await self._show_pane(pane)
            return
        await self.action_pane(pane)
        if call.tool == SEARCH:
            self.results.read_hits()

    @on(CallFailed)
    def failed(self, message: CallFailed) -> None:
        """Show why a call failed. An error that is not a `UserError` is raised again."""
        self.run_line.end()
        self.console.call_ended()
        self.refresh_bindings()
        if not isinstance(message.error, UserError):
            raise message.error
        self.controller.run_waiting()
        show_error(self.app, message.error)

    @on(StepPlayed)
    async def step_played(self, message: StepPlayed) -> None:
        """Show a step of a recorded attempt."""
        if self._stopped:
            return
        self._draw()
        state = self._attempt.state
        if message.result is not None:
            if state.last is not None and state.last.call_id == message.result.call_id:
                await self._show_pane("editor")
                self.editor.show_submitted(state.last)
            await self._show_answer(message.result.call_id)
        elif message.step["kind"] == "note":
            await self.action_pane("notes")
            self.notes.text = state.notes
        self._leave_if_over()

    def _leave_if_over(self) -> None:
        if self._attempt.state.ended and not self.controller.calling and not self._stopped:
            self._close("ended")

    def _close(self, how: How) -> None:
        """Leave the screen, closing any dialog on top of it."""
        if self not in self.app.screen_stack:
            return
        self.stop()
        while not self.is_active:
            self.app.pop_screen()
        self.dismiss(how)

    @on(SourceRequested)
    async def source_requested(self, message: SourceRequested) -> None:
        """Show a known source free of charge, or ask to read it."""
        await self.area.make("code")
        if self.code.go_to(message.name, priced=message.priced):
            await self.action_pane("code")

    @on(TextView.PlaceRequested)
    async def place_requested(self, message: TextView.PlaceRequested) -> None:
        """Show a known place free of charge. Any other place costs a call, made on the second request."""
        place = message.place
        if not isinstance(place, NamedPlace):
            return
        state = self._attempt.state
        if (found := shown_at(state, place)) is not None:
            shown, line = found
            await self.area.make("code")
            self.code.show(shown, line=line)
            self.code.view.use_affordance("reopen")
            await self.action_pane("code")
        elif place.folder and place.path in state.knowledge.listed:
            await self.action_pane("files")
        else:
            self._asking.ask_for(place)

    @on(FunctionRequested)
    async def function_requested(self, message: FunctionRequested) -> None:
        """Edit a function, or mark it as suspect if this kind of task has suspects."""
        if message.what == "edit":
            await self.area.make("editor")
            if self.editor.take(message.name):
                self.editor.go_to(message.line)
                await self.action_pane("editor")
        elif self.kind.has_suspects:
            self.controller.suspect(message.name)
        else:
            self.app.notify("There are no suspects here: nothing is corrupted.")

    @on(Tree.NodeHighlighted, "#known")
    def show_price(self) -> None:
        """Show the price of opening the row at the cursor."""
        if self._pane == "files" and (place := self.query_one(FilesPane).tree_view.place) is not None:
            self.console.show_message(self._asking.price_at(place.name))

    # Leaving the attempt

    def action_pause(self) -> None:
        """Pause, after asking for a reason."""
        self.when_free(self._interruptions.pause)

    def action_end(self) -> None:
        """Give up, or skip the task if no call was made, after asking for a reason."""
        self.when_free(self._interruptions.end)

    def action_cancel_run(self) -> None:
        """Stop the code that the call under way runs, after a warning."""
        self._asking.cancel()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what is possible: panes that exist, answers to a question, cancelling running code."""
        if action == "cancel_run":
            return self.is_mounted and self.controller.cancellable
        if action == "idle":
            return bool(self._attempt.state.doubt)
        if action in ("pane", "submit", "search") and self._brief_first:
            return False
        if action == "insert_code":
            return self._terms.assistant is not None
        return action != "pane" or not parameters or parameters[0] in self.kind.panes

    def action_leave(self) -> None:
        """Leave the attempt, which can be resumed."""
        if self.controller.playing:
            self._leave()
        else:
            self.when_free(self._leave)

    @on(LeaveRequested)
    def _leave(self) -> None:
        self._close("left")

    @property
    def busy(self) -> bool:
        """Whether a call is under way or a recorded attempt is playing."""
        return self.controller.busy

    def when_free(self, do: Callable[[], None]) -> None:
        """Call `do` now, or after a call that will return soon; while code runs, show a notice instead."""
        if not self.controller.when_free(do):
            self.app.notify(_BUSY, severity="warning")

    def input_happened(self, at: float) -> None:
        """Record that a key or the mouse was used."""
        self._interruptions.input_happened(at)

    def action_idle(self, answer: str) -> None:
        """Answer the question about a period without input."""
        self._interruptions.answer_idle(away=answer == "away")

    @on(IdleAnswer.Clicked)
    def idle_clicked(self, message: IdleAnswer.Clicked) -> None:
        """Give the clicked answer to the question about a period without input."""
        self.action_idle(message.answer)

    def stop(self) -> None:
        """Write everything pending. Nothing is recorded after that."""
        if not self._stopped:
            self._stopped = True
            if self.editor.is_mounted:
                self.editor.editor.flush()
                if self.editor.changed:
                    self.controller.edited(self.editor.buffer, self.editor.code)
            self._places.keep(self.code, self.editor)
            if self.notes_pane.is_mounted:  # the message about the last edit may still be in the queue
                self.controller.noted(self.notes.text)
            self.controller.close()
