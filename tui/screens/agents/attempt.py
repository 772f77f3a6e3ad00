"""An attempt of a model, looked on: the panes of the solve screen, read-only, drawn as the journal grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from gistpoint.core.attempts.events import ModelTurn, Pane
from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.attempts.state import AttemptState, attempt_result
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.agentruns.following import JournalFollower
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.known import shown_file, shown_function, shown_sources
from gistpoint.tui.screens.dialogs.ask import TextDialog
from gistpoint.tui.screens.solve.panes import (
    PANES,
    CallAsked,
    FunctionAsked,
    PaneArea,
    PanePlace,
    SourceAsked,
    StatePane,
    pane_around,
)
from gistpoint.tui.screens.solve.reading import CodePane, FilesPane
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.view_models import end_words
from gistpoint.tui.widgets.budget_bar import BudgetBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.name_tabs import NameTab, NameTabs
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView

POLL_S = 0.5
_TAKE = "Take over?"
_TAKE_MEANS = "You go on with what is left of the budgets. The attempt is then in no figure, the model's or a person's."
WATCHED: Mapping[str, PanePlace] = {
    **{name: PANES[name] for name in ("brief", "files", "code")},
    "model": PanePlace("#model-words", Pane.MODEL, "editor"),
    "results": PANES["results"],
}


class ModelPane(StatePane):
    """What the model says, turn by turn, where a person's editor is."""

    words = query_one("#model-words", TextView)

    def __init__(self) -> None:
        super().__init__(id="editor")
        self._shown = 0

    def compose(self) -> ComposeResult:
        """Lay out title and text."""
        yield Plain("The model", classes="pane-title")
        yield TextView(id="model-words")

    def on_mount(self) -> None:
        """Fold long lines."""
        self.words.wrap = True

    def update_from(self, state: AttemptState) -> None:
        """Add the turns that are new."""
        new = state.turns[self._shown :]
        self._shown = len(state.turns)
        self.words.append("".join(map(turn_words, new)))


def turn_words(turn: ModelTurn) -> str:
    """Return a turn as text: what it cost, the reasoning, what was said, and the calls by name."""
    usage = turn.usage
    about = "about " if usage.estimated else ""
    head = f"── turn {turn.turn}, {about}{usage.prompt:,} tokens sent, {usage.completion:,} received"
    head += f", {turn.latency_ms / 1000:.1f} s" + (f", asked {len(turn.retried) + 1} times" if turn.retried else "")
    calls = ", ".join(call.name for call in turn.tool_calls)
    parts = [head, turn.reasoning or "", turn.content, turn.refusal or "", f"→ {calls}" if calls else "→ no call"]
    return "\n".join(part for part in parts if part) + "\n\n"


class TakeAsked(Message):
    """Asks to take the attempt over from the model."""

    def __init__(self, by: str) -> None:
        super().__init__()
        self.by = by


class GiveAsked(Message):
    """Asks to give the attempt back to the model."""

    def __init__(self, note: str) -> None:
        super().__init__()
        self.note = note


class AttemptWatchScreen(Screen[None]):
    """The attempt; only taking it over and giving it back change it."""

    CSS_PATH = "../solve/solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.WATCH), *bindings_of(KeyScope.WATCH_ATTEMPT)]
    HELP_PAGE = "watch"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.WATCH, KeyScope.WATCH_ATTEMPT, KeyScope.RESULTS)

    bar = query_one(BudgetBar)
    tabs = query_one(NameTabs)
    area = query_one(PaneArea)
    code = query_one(CodePane)
    results = query_one(ResultsPane)
    said = query_one("#agent-said", Plain)

    def __init__(self, follower: JournalFollower, clock: TimeSource) -> None:
        super().__init__()
        self._follower, self._clock = follower, clock
        self._jobs = Jobs(self, "watch-attempt")
        self._live = False
        self._briefed = False
        self._answered = 0

    def compose(self) -> ComposeResult:
        """Lay out budgets, panes and keys."""
        yield BudgetBar()
        keys = {name: key_named(f"watch.{name}") for name in WATCHED}
        yield NameTabs({name: f"{shown_key(key.keys)} {key.description}" for name, key in keys.items()})
        brief = Vertical(TextView(id="brief-view"), id="brief")
        results = ResultsPane(self._start_of, lambda call_id: None)
        yield PaneArea(WATCHED, FilesPane(), (brief, CodePane(), results), ModelPane())
        yield Plain("", id="agent-said")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read at once, and then again and again."""
        self.query_one("#brief-view", TextView).wrap = True
        self.action_pane("results")
        self._poll()
        self.set_interval(POLL_S, self._poll)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _start_of(self, name: str) -> str:
        shown = shown_function(self._follower.state, name)
        return f"{shown.text.rstrip()}\n" if shown is not None else ""

    def _poll(self) -> None:
        if not self._jobs.busy:
            self._jobs.do(lambda job: (self._follower.poll(), self._follower.live), self._show)

    def _show(self, found: tuple[bool, bool]) -> None:
        grown, self._live = found
        state = self._follower.state
        if grown:
            self._draw(state)
        clock = state.clock
        if self._live and not state.ended:
            clock = clock.at(self._clock.mono_ms(), self._clock.utc_ms())
        self.bar.update_from(state, clock, backend=state.header.backend)
        self.said.update(self._words(state))

    def _draw(self, state: AttemptState) -> None:
        if not self._briefed and state.started:
            self._briefed = True
            self.query_one("#brief-view", TextView).load(state.header.brief, language="markdown")
        for pane in self.query(StatePane):
            pane.update_from(state)
        answered = [call for call in state.calls if call.text is not None]
        if len(answered) > self._answered:
            self._show_last(state, at_end=self.results.calls.highlighted in (None, self._answered - 1))
            self._answered = len(answered)

    def _show_last(self, state: AttemptState, *, at_end: bool) -> None:
        """Show the newest answer, unless an earlier one is being read."""
        answered = [call for call in state.calls if call.text is not None]
        if at_end:
            self.results.show_call(answered[-1].call_id)
        source = next((shown for call in reversed(answered) if (shown := shown_sources(call)) is not None), None)
        if source is not None:
            self.code.show(source)

    def _words(self, state: AttemptState) -> str:
        if self._follower.problem:
            return f"! {self._follower.problem}"
        if state.ending is not None:
            return end_words(state.ending, attempt_result(state))
        if state.driver == PERSON and state.header.actor == MODEL:
            return "A person has it. t goes on with it, b gives it back to the model."
        if not self._live:
            return "No process has it open: the attempt is unfinished."
        return f"Read-only: {state.header.model or state.header.actor} is at work."

    # Keys

    def action_pane(self, pane: str) -> None:
        """Show a pane and focus it."""
        self.area.show(pane)
        self.tabs.mark(pane)
        widget = self.query_one(WATCHED[pane].focus, Widget)
        if widget.focusable:
            self.set_focus(widget)
        else:
            self.call_after_refresh(widget.focus)

    @on(NameTab.Clicked)
    def tab_clicked(self, message: NameTab.Clicked) -> None:
        """Go to the clicked pane."""
        self.action_pane(message.target)

    def on_descendant_focus(self) -> None:
        """Mark the pane that has the focus."""
        pane = pane_around(self.focused, WATCHED) if self.focused is not None else ""
        if pane:
            self.tabs.mark(pane)

    @on(SourceAsked)
    def show_source(self, message: SourceAsked) -> None:
        """Show a source that a result has shown."""
        state = self._follower.state
        shown = shown_function(state, message.name) if "::" in message.name else shown_file(state, message.name)
        if shown is None:
            self._refuse()
        else:
            self.code.show(shown)
            self.action_pane("code")

    @on(CallAsked)
    @on(FunctionAsked)
    def _refuse(self) -> None:
        self.app.notify("The model works on this attempt: it can only be read here.")

    def action_take(self) -> None:
        """Ask for a pseudonym, and then for the attempt."""
        state = self._follower.state
        if state.ended or not state.started:
            self.app.notify("There is nothing to take over: the attempt has ended.")
        elif state.driver == PERSON:
            self.post_message(TakeAsked(""))
        else:
            self.app.push_screen(TextDialog(_TAKE, label=_TAKE_MEANS, placeholder="a pseudonym"), self._take)

    def _take(self, by: str | None) -> None:
        if by is not None:
            self.post_message(TakeAsked(by.strip()))

    def action_give(self) -> None:
        """Ask for a note, and give the attempt back."""
        state = self._follower.state
        if state.ended or state.driver != PERSON or state.header.actor != MODEL:
            self.app.notify("No person has this attempt.")
            return
        self.app.push_screen(TextDialog("Give it back to the model", placeholder="a note to the model"), self._give)

    def _give(self, note: str | None) -> None:
        if note is not None:
            self.post_message(GiveAsked(note.strip()))

    def action_leave(self) -> None:
        """Go back to the run, or close the program."""
        self.dismiss(None)
