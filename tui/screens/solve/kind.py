"""The part of the solve screen that depends on the kind of task: editor, submission, and questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import indent

from textual import events
from textual._time import get_time  # the clock of the events' own timestamps
from textual.content import Content
from textual.widgets.text_area import Selection

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.harness import Price
from gistpoint.core.attempts.parts import NOTHING_REPLACED
from gistpoint.core.attempts.state import AttemptState, Submission
from gistpoint.core.code.snippet import fault_of
from gistpoint.core.diffs import compute
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import ArgumentKind, RefusalError, Tool
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import key_named
from gistpoint.tui.known import shown_function
from gistpoint.tui.places import NamedPlace, call_for
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog
from gistpoint.tui.screens.editing_pane import EditingPane, figure_words
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.interruptions import How
from gistpoint.tui.screens.solve.panes import PANES, PanePlace, StatePane, pane_key
from gistpoint.tui.screens.solve.reading import CodePane
from gistpoint.tui.view_models import allowed, price_words
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.frames import framed

_LEVEL = "    "
"""The indent assumed for each level of nesting until a result has shown the function."""

_OPENS = "Enter again opens it ({price}): {what}"
CALLS = "Press it again to call {what} ({price})"
"""The console's text before a call whose price the solver has not been shown yet (decision 126)."""


class EditorPane(EditingPane):
    """The editor of an attempt, which continues with the unfinished code of an earlier session."""

    EMPTY = "Nothing to edit yet: read a function, move the cursor into it (F4) and press e or F6."

    def __init__(self, task: Task, state: AttemptState) -> None:
        super().__init__()
        self.frame(key_named("pane.editor").description)
        self._attempted, self._state = task, state
        self._start = kind_of(task).start(task)
        self._begins = self._first_text()

    def on_mount(self) -> None:
        """Open the first text."""
        self.open_first()

    def open_first(self) -> None:
        """Open the text with which the attempt begins, or the one that was edited last.

        If there is neither, the editor is read-only.
        """
        buffers = self._state.buffers
        if self._start is not None:
            self.open(self._start.name)
            self.select_placeholder()
        elif buffers:
            self.open(list(buffers)[-1])
        else:
            self.editor.read_only = True
            self.draw_frame()

    def update_from(self, state: AttemptState) -> None:
        """Show a new state, and correct indent and line numbers after a call has shown the function."""
        learned = state.knowledge is not self._state.knowledge
        self._state = state
        if not learned or not self.buffer:
            return
        name, begins = self.buffer, self._first_text()
        if begins != self._begins and self.code == self._begins and name not in state.buffers:
            self._begins = begins
            self._load(name, begins)
            self.select_placeholder()
        self.editor.line_number_start = self.first_line_of(name)

    def frame(self, title: str, note: str | Content = "") -> None:
        """Show a title after the pane's key, and a note."""
        framed(self, f"{pane_key('editor')} {title}", note)

    def select_placeholder(self) -> bool:
        """Select the placeholder of a removed body, so that typing replaces it.

        Return whether it was selected, which it is not if the solver has written anything.
        """
        holds_one = self._start is not None and self._start.placeholder
        if not holds_one or not self._begins or self.code != self._begins:
            return False
        lines = self._begins.rstrip().split("\n")
        row, text = len(lines) - 1, lines[-1]
        self.editor.selection = Selection((row, len(text) - len(text.lstrip())), (row, len(text)))
        return True

    def go_to(self, line: int) -> None:
        """Move the cursor to a line of the file, or select the placeholder of a removed body."""
        if not self.select_placeholder():
            super().go_to(line)

    def take(self, name: str) -> bool:
        """Edit a function if it was shown and may be changed. Return whether it was opened."""
        if self._start is not None and name != self._start.name:
            self.app.notify(
                f"Only {self._start.name} may be changed in this task: {pane_key('editor')} opens it.",
                severity="warning",
            )
            return False
        if self._start is None and not self.start_of(name):
            self.app.notify("Its source has not been shown yet: read it first.", severity="warning")
            return False
        self.open(name)
        return True

    def open_function_in(self, code: CodePane) -> None:
        """Edit the function at the cursor of the code, if nothing is being edited yet."""
        name = code.function_at_cursor()
        if not self.buffer and name and self.start_of(name):
            self.open(name)
            self.go_to(code.view.cursor_line)

    def show_submitted(self, submission: Submission) -> None:
        """Show the code that a recorded attempt submitted."""
        if submission.replacement is not NOTHING_REPLACED:
            self.show_code(submission.replacement.name, submission.replacement.code)

    @property
    def changed(self) -> bool:
        """Whether the code was ever changed."""
        return bool(self.buffer) and (
            self.buffer in self._state.buffers or self.code != self.start_of(self.buffer)
        )

    def start_of(self, name: str) -> str:
        """Return the initial code of a buffer: the kind's text or the function as shown; empty if unknown."""
        if self._start is not None and name == self._start.name:
            return self._begins
        shown = shown_function(self._state, name)
        return f"{shown.text.rstrip()}\n" if shown is not None else ""

    def _first_text(self) -> str:
        """Return the kind's initial text with the function's indent; empty if the kind has none.

        If the function was not shown, the indent follows from its nesting.
        """
        if self._start is None:
            return ""
        shown, qualname = shown_function(self._state, self._start.name), self._start.name.partition("::")[2]
        margin = _LEVEL * qualname.replace(".<locals>", "").count(".")
        if shown is not None:
            margin = shown.text[: len(shown.text) - len(shown.text.lstrip(" \t"))]
        return indent(self._start.text, margin)

    def first_line_of(self, name: str) -> int:
        """Return the line of a function's start in its file; 1 if it was neither shown nor listed."""
        shown, listed = shown_function(self._state, name), self._state.knowledge.functions.get(name)
        return shown.first_line if shown is not None else listed.start if listed is not None else 1

    def kept(self, name: str) -> str | None:
        """Return the unfinished code of a function; None if there is none."""
        return self._state.buffers.get(name)

    def buffer_names(self) -> Sequence[str]:
        """Return the current function and those with unfinished code; empty if there is no current one."""
        return list(dict.fromkeys([self.buffer, *self._state.buffers])) if self.buffer else []

    def may_use_external_editor(self) -> bool:
        """Return whether the study allows the external editor."""
        return allowed(self._state, "external_editor")


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A question before a call, which is made only if the solver confirms."""

    title: str
    text: str
    tool: Tool
    arguments: Mapping[str, str]
    careful: bool = True
    """Whether refusal is the default answer."""
    change: tuple[str, str] | None = None
    """The text before and after the call; None if the call changes no text."""
    first_line: int = 1
    """The line of the file at which both versions start."""


class SolvingKind:
    """The part of the solve screen that depends on the kind of task (decision 56).

    This base class is for kinds whose text is submitted in one call.
    """

    panes: Mapping[str, PanePlace] = PANES
    """All panes, by name."""
    own_panes: Sequence[StatePane] = ()
    """The panes that only this kind has."""
    in_place: Mapping[str, str] = {"list_directory": "files"}
    """The panes that already show the answers of certain tools and therefore keep the focus, by tool.

    An empty name means any pane: the tool's answers never open another one.
    """
    has_suspects = True
    """Whether functions can be marked as suspects."""

    def __init__(self, controller: AttemptController) -> None:
        self._controller, self._attempt = controller, controller.attempt
        self._editor = self.editor_of(controller.attempt)

    def editor_of(self, attempt: Attempt) -> EditorPane:
        """Return a new pane for the solver's text."""
        return EditorPane(attempt.task, attempt.state)

    def add(self, name: str, place: PanePlace, pane: StatePane) -> None:
        """Add a pane that a study provides."""
        self.own_panes = (*self.own_panes, pane)
        self.panes = {**self.panes, name: place}

    @property
    def editor(self) -> EditorPane:
        """The pane with the solver's text."""
        return self._editor

    def save_then(self, then: Callable[[], None]) -> None:
        """Save the typed text, then call `then`."""
        if self.editor.is_mounted:
            self.editor.editor.flush()
        then()

    def warning(self, tool: Tool, price: Price) -> str:
        """Return a warning if the call would use up a budget, or leave only a submission; otherwise empty."""
        if price.last_submission:
            return "This is the last submission: the attempt ends with it."
        if price.last_tool_use:
            return "This is the last tool use: the attempt ends with it."
        return "One tool use will be left, which can only be a submission." if price.then_submit else ""

    def submission(self) -> CallQuestion | None:
        """Return the question before a submission; None, after a notice, if nothing can be submitted."""
        tool = next((tool for tool in self._attempt.tools if tool.submits), None)
        if tool is None or not self.editor.buffer:
            nothing = "The editor has no function yet: read one and press e on it."
            self._refuse("Nothing can be submitted in this attempt." if tool is None else nothing)
            return None
        path, _, qualname = self.editor.buffer.partition("::")
        given = {
            ArgumentKind.CODE: self.editor.code,
            ArgumentKind.FUNCTION: qualname,
            ArgumentKind.FILE: path,
        }
        missing = [
            argument.name
            for argument in tool.arguments
            if argument.kind not in given and argument.default is None
        ]
        if missing:
            self._refuse(f"{tool.name} needs {' and '.join(missing)} as well: type the call in the console.")
            return None
        arguments = {
            argument.name: given[argument.kind] for argument in tool.arguments if argument.kind in given
        }
        return self._question(tool, arguments)

    def _question(self, tool: Tool, arguments: Mapping[str, str]) -> CallQuestion:
        """Return the question before a submission, with the change, its price, and the fault in the code."""
        edits = tool.step == "edit"
        price = self._attempt.price(tool)
        first_line = self.editor.first_line_of(self.editor.buffer)
        before, after = self.editor.start_of(self.editor.buffer), self.editor.code
        changed = compute(before, after, context=0)
        fault, refused = fault_of(after), ""
        if fault:
            where = fault.after(first_line - 1)
            refused = f"{signs.BAD} Python can't read it ({where}): it will be refused, and no test will run."
            if not self._attempt.task.rules.refused_costs_attempt:
                price = replace(price, submissions=0, last_submission=False)
        elif not changed.hunks:
            refused = "You have not changed anything: the tests will run on the code as it was given."
        last = self.warning(tool, price)
        figures = f"  {figure_words(changed.added, changed.removed)}".rstrip()
        stays = edits and bool(changed.hunks) and not fault
        ending = "\nThe changes stay for the rest of the attempt." if stays else ""
        text = f"{self.editor.buffer}{figures}\n{price_words(price, self._attempt.state)}.{ending}"
        title = "Submit and run the tests?"
        change = (before, after) if changed.hunks else None
        words = "\n".join(part for part in (refused, last, text) if part)
        return CallQuestion(
            title, words, tool, arguments, careful=bool(refused or last), change=change, first_line=first_line
        )

    def _refuse(self, notice: str) -> None:
        self.editor.app.notify(notice, severity="warning")

    def is_unobtrusive(self, tool: Tool) -> bool:
        """Return whether calls to a tool run in the background, with no progress line and no questions."""
        return False


class CallAsking:
    """The part of a screen that makes calls: at once, after a question, or after the call under way."""

    def __init__(self, screen: BaseScreen[How], controller: AttemptController, kind: SolvingKind) -> None:
        self._screen, self._controller, self._kind = screen, controller, kind
        self._attempt = controller.attempt
        self._place: NamedPlace | None = None
        """The place that the last call was made to show."""
        self._offered: tuple[str, Mapping[str, str]] | None = None
        """The call that is made if it is requested again while the console shows its price."""
        self._offer = ""
        """The text with the price of the offered call."""
        self._shown_at = 0.0
        """The time at which the price was shown, in seconds on the clock of Textual's events."""
        self._key: events.Key | None = None
        """The key that is taking effect; None before the first one."""
        self._offered_at: events.Key | None = None
        """The key that led to the offer."""
        screen.when_typed(self._typed)

    def ask(self, tool: str, arguments: Mapping[str, str], *, priced: bool = True) -> None:
        """Call a tool, after a question if the call would use up a budget.

        Without `priced`, the first request only shows the price. If the tool can't be called now, show why.
        """
        if priced or self.is_confirmed(tool, arguments, CALLS, spelled(tool, arguments)):
            self._kind.save_then(partial(self.when_free, partial(self._ask, tool, arguments)))

    def _ask(self, name: str, arguments: Mapping[str, str]) -> None:
        try:
            tool = self._attempt.callable_tool(name)
        except RefusalError as refusal:
            self._screen.app.notify(str(refusal), severity="warning")
            return
        last = self._kind.warning(tool, self._attempt.price(tool))
        if last:
            text = f"{spelled(name, arguments)}\n\n{last}"
            self._confirm(CallQuestion("Spend the last of a budget?", text, tool, arguments))
        else:
            self._controller.call(tool, arguments)

    def _submit(self) -> None:
        question = self._kind.submission()
        if question is not None:
            self._confirm(question)

    def _confirm(self, question: CallQuestion) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self.when_free(partial(self._controller.call, question.tool, question.arguments))

        self.withdraw()
        yes = "Submit" if question.tool.submits else "Spend it"
        changes = []
        if question.change is not None:
            diff = DiffView(classes="dialog-changes")
            diff.can_focus_children = False  # the buttons keep the focus, and arrows scroll the diff
            diff.load(*question.change, first_line=question.first_line, brief=True)
            changes = [diff]
        dialog = ConfirmDialog(
            question.title, question.text, yes=yes, careful=question.careful, shown=changes, drawer=True
        )
        self._screen.app.push_screen(dialog, answered)

    def when_free(self, do: Callable[[], None]) -> None:
        """Call `do` once no call is under way, unless the attempt is over by then.

        While code is running, show a notice instead.
        """

        def unless_over() -> None:
            if not self._attempt.state.ended:
                do()

        if not self._controller.when_free(unless_over):
            self._screen.app.notify("A call is under way: wait for its answer.", severity="warning")

    def submit(self) -> None:
        """Submit the editor's content, after a question with the changes and the price."""
        self._kind.save_then(partial(self.when_free, self._submit))

    def ask_for(self, place: NamedPlace) -> None:
        """Show the price of reading a place; on a second request, or if no call is possible, try the call."""
        tool, arguments = call_for(place)
        if self.is_confirmed(tool, arguments, _OPENS, place.name):
            self._place = place
            self.ask(tool, arguments)

    def is_confirmed(self, tool: str, arguments: Mapping[str, str], words: str, what: str) -> bool:
        """Return whether a call was requested again while its price was shown; otherwise, show the price.

        A call that is impossible now counts as confirmed: making it shows why, at no cost. `words` is the
        template of the text with the price, and `what` describes the call.
        """
        console = self._screen.query_one(Console)
        offered = next((offer for offer in self._attempt.offered() if offer.name == tool), None)
        if offered is None:
            return True
        if self._offered == (tool, arguments) and console.shows_message(self._offer):
            key = self._key if self._key is not self._offered_at else None  # None after a click
            if key is not None and key.time <= self._shown_at:
                return False  # typed before the price could be read, such as the second `f` of `off`
            self.withdraw()
            return True
        price = price_words(self._attempt.price(offered), self._attempt.state)
        self._offered, self._offer = (tool, arguments), words.format(price=price, what=what)
        console.show_message(self._offer)
        self._shown_at, self._offered_at = get_time(), self._key
        return False

    def _typed(self, event: events.Key) -> None:
        """Withdraw an offer when a key other than the one that led to it is typed."""
        if self._key is not None and event.key != self._key.key:
            self.withdraw()
        self._key = event

    def withdraw(self) -> None:
        """Withdraw the offer of a call, because the solver has turned to something else."""
        if self._offered is not None:
            self._offered = None
            self._screen.query_one(Console).clear_message(self._offer)

    def price_at(self, name: str) -> str:
        """Return a line with the price of opening a row of the file tree.

        Empty if no tool other than a submission can be called now.
        """
        tool = next((tool for tool in self._attempt.offered() if not tool.submits), None)
        if tool is None:
            return ""
        price = price_words(self._attempt.price(tool), self._attempt.state)
        return f"{name or 'the repository'}: reading what was not shown yet {price}"

    def take_place(self) -> NamedPlace | None:
        """Return and forget the place that the last call was meant to show; None if there is none."""
        place, self._place = self._place, None
        return place

    def cancel(self) -> None:
        """Stop the code that the call under way runs, after a warning unless the call is unobtrusive."""
        tool = self._controller.tool
        if tool is not None and self._kind.is_unobtrusive(tool):
            self._controller.cancel()
            return
        submission = tool is not None and tool.submits
        question = ConfirmDialog(
            "Cancel the test run?" if submission else "Cancel the call?",
            (
                "The submission still counts, with score 0."
                if submission
                else "The call still counts, and its answer says that it was cancelled."
            ),
            yes="Cancel the run" if submission else "Cancel the call",
            no="Let it run",
            careful=True,
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._controller.cancel()

        self._screen.app.push_screen(question, answered)
