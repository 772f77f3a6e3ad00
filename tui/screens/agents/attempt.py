"""The screen for watching a model's attempt: read-only solve panes, redrawn as the journal grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.widget import Widget

from gistpoint.core.attempts.events import ModelTurn, Pane
from gistpoint.core.attempts.identity import PERSON, Role
from gistpoint.core.attempts.parts import Handover
from gistpoint.core.attempts.state import AttemptState, attempt_result
from gistpoint.core.errors import AttemptError
from gistpoint.core.ports import TimeSource
from gistpoint.core.text import visible_line
from gistpoint.sessions.agentruns.control import PendingRequest, ask_for, has_person, run_to_take_from
from gistpoint.sessions.agentruns.following import JournalFollower
from gistpoint.sessions.agentruns.store import AgentRunStore
from gistpoint.sessions.tasks import TaskTitles
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_key
from gistpoint.tui.known import shown_file, shown_function, shown_sources
from gistpoint.tui.places import NamedPlace, shown_at
from gistpoint.tui.screens.dialogs.ask import TextDialog, show_error
from gistpoint.tui.screens.solve.panes import (
    PANES,
    CallRequested,
    FunctionRequested,
    PaneArea,
    PanePlace,
    SourceRequested,
    StatePane,
    pane_around,
)
from gistpoint.tui.screens.solve.reading import CodePane, FilesPane
from gistpoint.tui.screens.solve.results_pane import ResultsPane
from gistpoint.tui.view_models import end_words
from gistpoint.tui.widgets.budget_bar import BudgetBar
from gistpoint.tui.widgets.frames import Framed, framed
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.markdown_text import MarkdownText
from gistpoint.tui.widgets.name_tabs import NameTabs
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView

POLL_S = 0.5
_TAKE, _GIVE = "Take this attempt over?", "Give it back to the model?"
_GIVE_WORDS = (
    "The model gets the calls made in the meantime, with their answers, and your note. "
    "Esc leaves the attempt as it is: you can continue it, or give it back later."
)
WATCHED: Mapping[str, PanePlace] = {
    **{name: PANES[name] for name in ("brief", "files", "code")},
    "model": PanePlace("#model-words", Pane.MODEL, "editor"),
    "results": PANES["results"],
}


class ModelPane(StatePane):
    """The pane with the model's turns, in place of a person's editor."""

    words = query_one("#model-words", TextView)

    def __init__(self) -> None:
        super().__init__(id="editor")
        self._shown = 0

    def compose(self) -> ComposeResult:
        """Lay out the text view."""
        yield TextView(id="model-words")

    def on_mount(self) -> None:
        """Turn on line wrapping and draw the frame."""
        self.words.wrap = True
        watch_frame(self, "model")

    def update_from(self, state: AttemptState) -> None:
        """Append the new turns and handovers of a state."""
        entries = turn_texts(state)
        self.words.append("".join(entries[self._shown :]))
        self._shown = len(entries)
        usage, count = state.spent.usage, len(state.turns)
        cost = f" · ${usage.cost_usd:.4f}" if usage.cost_usd is not None else ""
        note = f"{count} turn{'' if count == 1 else 's'} · {usage.tokens:,} tokens{cost}"
        watch_frame(self, "model", state.header.model or "", note)


def watch_frame(widget: Framed, pane: str, words: str = "", note: str = "") -> Framed:
    """Frame a pane with its key, a title (by default the key's name) and a note; return the pane."""
    key = key_named(f"watch.{pane}")
    return framed(widget, f"{shown_key(key.keys)} {words or key.description}", note)


def turn_texts(state: AttemptState) -> list[str]:
    """Return all turns and handovers as text in order, so that new ones are at the end."""
    handovers = [(handover.turns, 1, handover_words(handover)) for handover in state.handovers]
    turns = [(number, 0, turn_words(turn)) for number, turn in enumerate(state.turns, start=1)]
    return [words for _, _, words in sorted(handovers + turns, key=lambda entry: entry[:2])]


def handover_words(handover: Handover) -> str:
    """Return the text for a handover, with the note to the model if there is one."""
    if handover.to != PERSON:
        return f"{signs.HEADING} given back to the model\n" + (
            f"{handover.note}\n\n" if handover.note else "\n"
        )
    return f"{signs.HEADING} taken over by a person{f' ({handover.by})' if handover.by else ''}\n\n"


def turn_words(turn: ModelTurn) -> str:
    """Return the text for a turn: its tokens and duration, the reasoning, the reply, and the tools called."""
    usage = turn.usage
    about = "about " if usage.estimated else ""
    head = (
        f"{signs.HEADING} turn {turn.turn}, {about}{usage.prompt_tokens:,} tokens sent,"
        f" {usage.completion_tokens:,} received"
    )
    head += f", {turn.latency_ms / 1000:.1f} s" + (
        f", asked {len(turn.retried) + 1} times" if turn.retried else ""
    )
    calls = ", ".join(call.name for call in turn.tool_calls)
    if turn.unmade:
        calls += f" ({len(turn.unmade)} more in the text, not carried out)"
    parts = [
        head,
        turn.reasoning or "",
        turn.content,
        turn.refusal or "",
        f"{signs.LEADS} {calls}" if calls else f"{signs.LEADS} no call",
    ]
    return "\n".join(part for part in parts if part) + "\n\n"


class TakeOverRequested(Message):
    """A request to the app to continue an attempt that no process has open.

    `by` is the pseudonym of the person who takes it over; it may be empty.
    """

    def __init__(self, attempt_id: str, by: str = "") -> None:
        super().__init__()
        self.attempt_id, self.by = attempt_id, by


class GiveBackRequested(Message):
    """A request to the app to give an attempt back to the model, with a note to the model."""

    def __init__(self, attempt_id: str, note: str) -> None:
        super().__init__()
        self.attempt_id, self.note = attempt_id, note


def take_words(state: AttemptState) -> str:
    """Return an explanation of the consequences of taking an attempt over."""
    model, left = visible_line(state.header.model or "the model"), state.remaining
    baseline = ", and it is no longer a baseline" if state.header.role == Role.BASELINE else ""
    budgets = f"{left.tool_uses} of {state.budgets.tool_uses} {state.of_kind.unit}s"
    if not state.of_kind.hands_in_once:
        budgets += f" and {left.submissions} of {state.budgets.submissions} submissions"
    return (
        f"From then on, the attempt is mixed: it counts neither for {model} nor for you{baseline}. A"
        " call under way gets its answer first; a pending reply of the model is dropped. You continue"
        f" with the remaining budgets: {budgets}."
    )


class AttemptWatchScreen(BaseScreen[None]):
    """The screen of an attempt, read-only except for taking it over and giving it back."""

    CSS_PATH = "../solve/solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(KeyScope.WATCH),
        *bindings_of(KeyScope.WATCH_ATTEMPT),
    ]
    HELP_PAGE = "watch"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.WATCH, KeyScope.WATCH_ATTEMPT, KeyScope.RESULTS)

    bar = query_one(BudgetBar)
    tabs = query_one(NameTabs)
    area = query_one(PaneArea)
    code = query_one(CodePane)
    results = query_one(ResultsPane)
    status = query_one("#agent-status", Plain)

    def __init__(
        self,
        follower: JournalFollower,
        clock: TimeSource,
        runs: AgentRunStore,
        titled: TaskTitles,
        *,
        ask_back: bool = False,
    ) -> None:
        """Watch the attempt of `follower`.

        `titled` returns the title of its task for the user who is watching.

        `ask_back` is set if a person has just left the attempt: the screen then asks whether to give it back.
        """
        super().__init__()
        self._follower, self._clock, self._runs, self._ask_back = follower, clock, runs, ask_back
        self._titled = titled
        self._asking: PendingRequest | None = None
        """The pending request that the run release the attempt."""
        self._by = ""
        self._jobs = Jobs(self, "watch-attempt")
        self._live = False
        self._briefed = False
        self._answered = 0

    def compose(self) -> ComposeResult:
        """Lay out budgets, panes and keys."""
        yield BudgetBar()
        keys = {name: key_named(f"watch.{name}") for name in WATCHED}
        yield NameTabs({name: f"{shown_key(key.keys)} {key.description}" for name, key in keys.items()})
        brief = watch_frame(
            Vertical(MarkdownText(id="brief-view"), id="brief"), "brief", note="v shows its source"
        )
        results = ResultsPane(self._start_of, lambda call_id: None, read_only=True)
        yield PaneArea(WATCHED, FilesPane(), (brief, CodePane(), results), ModelPane())
        yield Plain("", id="agent-status")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the journal at once, and then periodically."""
        self.action_pane("results")
        self._jobs.repeat(POLL_S, lambda job: self._read(), self._show)

    def on_unmount(self) -> None:
        """Stop reading, and withdraw a pending request."""
        self._jobs.stop()
        self._withdraw()

    def _start_of(self, name: str) -> str:
        shown = shown_function(self._follower.state, name)
        return f"{shown.text.rstrip()}\n" if shown is not None else ""

    def _read(self) -> tuple[bool, bool, str]:
        grown = self._follower.poll()
        return grown, self._follower.live, self._titled(self._follower.state.header.task_id)

    def _show(self, found: tuple[bool, bool, str]) -> None:
        grown, self._live, title = found
        state = self._follower.state
        self._step_in(state)
        if grown:
            self._draw(state)
            self.refresh_bindings()
        clock = state.clock
        if self._live and not state.ended:
            clock = clock.at(self._clock.mono_ms(), self._clock.utc_ms())
        self.bar.title = title
        self.bar.update_from(state, clock, backend=state.header.backend)
        self.status.update(self._state_words(state))

    def _draw(self, state: AttemptState) -> None:
        if not self._briefed and state.started:
            self._briefed = True
            self.query_one("#brief-view", MarkdownText).show(state.header.brief)
        for pane in self.query(StatePane):
            pane.update_from(state)
        answered = [call for call in state.calls if call.text is not None]
        if len(answered) > self._answered:
            self._show_last(state, at_end=self.results.calls.highlighted in (None, self._answered - 1))
            self._answered = len(answered)

    def _show_last(self, state: AttemptState, *, at_end: bool) -> None:
        """Show the newest answer if `at_end`, and the latest source among all answers."""
        answered = [call for call in state.calls if call.text is not None]
        if at_end:
            self.call_later(self.results.show_call, answered[-1].call_id)
        source = next(
            (shown for call in reversed(answered) if (shown := shown_sources(call)) is not None), None
        )
        if source is not None:
            self.code.show(source)

    def _state_words(self, state: AttemptState) -> str:
        if self._follower.problem:
            return f"! {self._follower.problem}"
        if state.ending is not None:
            return end_words(state.ending.reason, attempt_result(state))
        take, give = (shown_key(key_named(id).keys) for id in ("watch.take", "watch.give"))
        if self._asking is not None:
            return (
                f"Requested: the model's call under way gets its answer first. {take} withdraws the request."
            )
        if has_person(state):
            whose = (
                f"A person ({by}) has taken it over"
                if (by := visible_line(state.handovers[-1].by))
                else "A person has taken it over"
            )
            return (
                f"{whose}, and is working on it."
                if self._live
                else f"{whose}. {take} continues it, {give} gives it back."
            )
        if not self._live:
            return "The attempt is unfinished, and no process has it open."
        return f"Read-only: {state.header.model or state.header.actor} is at work."

    # Keys and clicks

    def action_pane(self, pane: str) -> None:
        """Show a pane and focus it."""
        self.area.show(pane)
        self.tabs.mark(pane)
        widget = self.query_one(WATCHED[pane].focus, Widget)
        if widget.focusable:
            self.set_focus(widget)
        else:
            self.focus_later(widget)

    @on(NameTabs.Clicked)
    def tab_clicked(self, message: NameTabs.Clicked) -> None:
        """Go to the clicked pane."""
        self.action_pane(message.target)

    def on_descendant_focus(self) -> None:
        """Mark the tab of the focused pane."""
        pane = pane_around(self.focused, WATCHED) if self.focused is not None else ""
        if pane:
            self.tabs.mark(pane)

    @on(SourceRequested)
    def show_source(self, message: SourceRequested) -> None:
        """Show a source that a result has already shown."""
        state = self._follower.state
        shown = (
            shown_function(state, message.name) if "::" in message.name else shown_file(state, message.name)
        )
        if shown is None:
            self._refuse()
        else:
            self.code.show(shown)
            self.action_pane("code")

    @on(TextView.PlaceRequested)
    def show_place(self, message: TextView.PlaceRequested) -> None:
        """Show the place that a line names, if a result has already shown it."""
        found = (
            shown_at(self._follower.state, message.place) if isinstance(message.place, NamedPlace) else None
        )
        if found is None:
            self._refuse()
        else:
            self.code.show(found[0], line=found[1])
            self.action_pane("code")

    @on(CallRequested)
    @on(FunctionRequested)
    def _refuse(self) -> None:
        self.app.notify("It is read-only here until you take it over.")

    # Taking over and giving back

    @property
    def drafts_about(self) -> tuple[str, str]:
        """Nobody in particular, and the attempt's id."""
        return "", self._follower.folder.name

    def action_take(self) -> None:
        """Take the attempt over, after a question that explains the consequences.

        An attempt that a person already has is continued without a question. While a request is pending,
        withdraw it instead. If the attempt can't be taken over, show why.
        """
        state = self._follower.state
        if self._asking is not None:
            self._withdraw()
            return
        if self._follower.problem or not state.started:
            self.app.notify("The attempt can't be read.", severity="warning")
            return
        try:
            run_to_take_from(state, self._runs, live=self._live)
        except AttemptError as error:
            show_error(self.app, error)
            return
        if state.driver == PERSON:
            self.post_message(TakeOverRequested(self._follower.folder.name))
        else:
            question = TextDialog(
                "Take this attempt over?",
                label=take_words(state),
                placeholder="your pseudonym, or none",
                yes="Take over",
            )
            self.app.push_screen(question, self._take_over)

    def _take_over(self, by: str | None) -> None:
        state = self._follower.state
        if by is None or state.ended:
            return
        self._by = by.strip()
        if not self._live:
            self.post_message(TakeOverRequested(self._follower.folder.name, self._by))
            return
        try:
            self._asking = ask_for(self._follower.folder, self._by)
        except (AttemptError, OSError) as error:
            show_error(self.app, error if isinstance(error, AttemptError) else AttemptError(str(error)))

    def _step_in(self, state: AttemptState) -> None:
        """Ask the app to open a requested attempt for the person once the run has released it.

        If the attempt has ended, withdraw the request. If a person has just left it, ask once whether to give
        it back.
        """
        if self._asking is not None and state.ended:
            self._withdraw()
            self.app.notify("The attempt ended before the model handed it over.", severity="warning")
        elif self._asking is not None and not self._live:
            self._withdraw()
            self.post_message(TakeOverRequested(self._follower.folder.name, self._by))
        if self._ask_back and state.started:
            self._ask_back = False
            if has_person(state):
                self._ask_to_give(unrequested=True)

    def _withdraw(self) -> None:
        if self._asking is not None:
            self._asking.withdraw()
            self._asking = None

    def action_give(self) -> None:
        """Give the attempt back after asking for a note, unless a person is working on it."""
        if self._live:
            self.app.notify("A person is working on it: it can be given back after the person has left it.")
        else:
            self._ask_to_give()

    def _ask_to_give(self, *, unrequested: bool = False) -> None:
        dialog = TextDialog(
            _GIVE, label=_GIVE_WORDS, placeholder="a note to the model, or none", yes="Give back"
        )
        dialog.unrequested = unrequested
        self.app.push_screen(dialog, self._give_back)

    def _give_back(self, note: str | None) -> None:
        if note is not None:
            self.post_message(GiveBackRequested(self._follower.folder.name, note.strip()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer giving back only while a person has the attempt, and taking over only before the end."""
        state = self._follower.state
        if action == "give":
            return has_person(state)
        return action != "take" or not state.ended

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)
