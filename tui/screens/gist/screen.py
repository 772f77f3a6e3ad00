"""The screen for writing a gist: the solve screen with an editor for the gist, a trace pane and scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.widgets import ContentSwitcher, Tree

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.harness import Price
from gistpoint.core.attempts.revealed import traced_functions
from gistpoint.core.attempts.state import AttemptCall, AttemptState, Submission
from gistpoint.core.code.parsing import Fault, fault_in
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.kinds.gist.reference import undefined_names
from gistpoint.core.kinds.gist.score import read_evidence
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.kinds.gist.tools import GIST_BUFFER, SCORE_GIST, SUBMIT_GIST, TRACE
from gistpoint.core.kinds.registry import declared
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import Tool
from gistpoint.core.trees import SourceTree
from gistpoint.tui import signs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.known import shown_function
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.screens.editing_pane import state_words
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.kind import CALLS, CallQuestion, EditorPane, SolvingKind
from gistpoint.tui.screens.solve.panes import (
    PANES,
    CallRequested,
    PanePlace,
    SourceRequested,
    StatePane,
    pane_frame,
)
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.view_models import LAST, price_words, shows_evidence
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.gist_view import (
    LEGEND,
    GistGutter,
    Marks,
    MissingLine,
    carried_over,
    does_not_parse,
    figures,
    marks_of,
    missing_lines,
    words_of,
)
from gistpoint.tui.widgets.line_view import AffordanceTaken
from gistpoint.tui.widgets.plain import Plain, plain_cell, plain_line


class _TraceTree(Tree[str]):
    """The files and functions of a trace. The data of a leaf is `path::qualname`."""

    enter_words = "Trace"
    """What Enter does: it requests the trace, and later reads the function at the cursor."""


class TracePane(StatePane):
    """A pane with the latest trace: the files in the order of first touch, with their functions below.

    It is empty until a trace has been requested.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TRACE)]

    def __init__(self) -> None:
        super().__init__(id="trace")
        self._call = ""

    @property
    def tree_view(self) -> _TraceTree:
        """The tree of the trace."""
        return self.query_one(_TraceTree)

    def compose(self) -> ComposeResult:
        """Lay out the tree."""
        tree = _TraceTree(plain_cell("trace"), "", id="trace-tree")
        tree.show_root = False
        tree.auto_expand = True
        yield tree

    def on_mount(self) -> None:
        """Draw the frame, with a note on how to get a trace."""
        pane_frame(self, "trace", note="not traced yet: Enter asks for the trace of the command")

    def update_from(self, state: AttemptState) -> None:
        """Show the latest trace. ● marks the functions that were already read."""
        calls = [
            call
            for call in state.calls
            if call.tool == "trace" and call.text is not None and not call.refused
        ]
        if not calls:
            return
        if calls[-1].call_id != self._call:
            self._call = calls[-1].call_id
            self._fill(calls[-1])
        for node in self.tree_view.root.children:
            for leaf in node.children:
                read = leaf.data is not None and shown_function(state, leaf.data) is not None
                label = str(leaf.label)
                leaf.set_label(plain_cell(f"{signs.FULL if read else signs.EMPTY}{label[1:]}"))

    def _fill(self, call: AttemptCall) -> None:
        tree = self.tree_view
        tree.clear()
        nodes = {}
        count = 0
        for path, line, qualname in traced_functions(call.text or "", call.revealed):
            if path not in nodes:
                nodes[path] = tree.root.add(plain_cell(path), "", expand=True)
            nodes[path].add_leaf(plain_cell(f"{signs.EMPTY} {qualname}  :{line}"), f"{path}::{qualname}")
            count += 1
        words = f"Trace {count} functions called after the imports, in the order of first touch"
        pane_frame(self, "trace", words, f"{signs.FULL} was read · Enter reads one")
        tree.enter_words = "Read"
        self.screen.refresh_bindings()

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        """Read the function at the cursor."""
        event.stop()
        if event.node.data:
            self.post_message(SourceRequested(event.node.data))

    def key_enter(self) -> None:
        """Request the trace if there is none yet."""
        if not self._call:
            self.post_message(CallRequested("trace", {}))


class GistSolving(SolvingKind):
    """The part of the solve screen for gists. A gist is one file, which is handed in once.

    Changed text is saved before each call, which costs one step. The gist is scored before the hand-in only
    if the attempt allows that.
    """

    in_place: Mapping[str, str] = {"list_directory": "files", TRACE.name: "trace", SCORE_GIST.name: ""}
    has_suspects = False

    def __init__(self, controller: AttemptController) -> None:
        super().__init__(controller)
        if TRACE in self._attempt.tools:
            self.own_panes = (TracePane(),)
            self.panes = {**PANES, "trace": PanePlace("#trace-tree", Pane.RESULT)}

    def editor_of(self, attempt: Attempt) -> GistPane:
        """Return a new pane for the gist."""
        pane = self._pane = GistPane(attempt.task, attempt.state)
        return pane

    def save_then(self, then: Callable[[], None]) -> None:
        """Stop a score under way and save the text, then call `then`."""

        def keep() -> None:
            if self._editor.is_mounted:
                self._editor.editor.flush()
                self._controller.edited(GIST_BUFFER, self._editor.code)
            self._controller.after_writing(then)

        if self._controller.yielding:
            self._pane.requested = ""
        self._controller.make_way(keep)

    def warning(self, tool: Tool, price: Price) -> str:
        """Return a warning if the attempt would end with the call; otherwise, an empty string."""
        if tool is SUBMIT_GIST:
            return "There is one hand-in: the attempt ends with it."
        if price.last_tool_use:
            return (
                "This is the last step: after it, the gist is handed in as last saved, and the attempt ends."
            )
        return ""

    def submission(self) -> CallQuestion | None:
        """Return the question before the hand-in, with its price and the size of the gist."""
        lines = len(physical_lines(self._editor.code))
        what = f"The gist has {lines} {'line' if lines == 1 else 'lines'}." if lines else "The gist is EMPTY."
        price = price_words(self._attempt.price(SUBMIT_GIST), self._attempt.state).removesuffix(LAST)
        text = (
            f"{what} Handing it in {price}.\n\nThere is one hand-in: it is scored, and the attempt ends"
            " with it."
        )
        return CallQuestion("Hand in the gist?", text, SUBMIT_GIST, {})

    def is_unobtrusive(self, tool: Tool) -> bool:
        """Return whether a call is an unlimited score, which must not disturb typing."""
        return tool is SCORE_GIST and self._pane.scores_freely


QUIET_SECONDS = 2.0
"""Seconds without a key after which the gist is scored automatically, if scores are unlimited."""


class GistPane(EditorPane):
    """The pane with the text of the gist. Its gutter and figures are empty unless evidence may be shown."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.GIST)]

    class ScoreRequested(Message):
        """A request to the screen to score the text, because typing has paused and scoring is free."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    evidence_gutter = query_one(GistGutter)
    figures = query_one("#gist-figures", Plain)
    original = query_one("#gist-original", CodeView)

    live = True
    """Whether the text is scored automatically."""
    requested = ""
    """The text for which a score was last requested."""
    _typed_at = 0.0
    _checked = ""
    """The text that the editor last checked."""

    def compose(self) -> ComposeResult:
        """Lay out the figures, the gutter with the editor, and the views that can replace them."""
        yield Plain("", id="gist-figures", classes="pane-title")
        editor = FunctionEditor(id="function-editor")
        editor.check = self._check
        with ContentSwitcher(initial="gist-writing", id="editor-views"):
            with Horizontal(id="gist-writing"):
                yield GistGutter(editor)
                yield editor
            yield DiffView(id="editor-diff")
            yield CodeView(id="gist-original")

    def __init__(self, task: Task, state: AttemptState) -> None:
        super().__init__(task, state)
        self._scored = self._figures = ""
        self._undefined: tuple[str, tuple[tuple[int, str], ...]] = ("", ())
        self._marks: Marks = {}
        self._taken = len(state.calls)

    def on_mount(self) -> None:
        """Check periodically whether typing has paused."""
        self.set_interval(0.5, self._request_score)

    def open_first(self) -> None:
        """Open the gist with the text last seen in the attempt."""
        self._load(GIST_BUFFER, gist_of(self._state).now)
        self.evidence_gutter.marks = {}
        self._take_evidence()
        self.draw_frame()

    def update_from(self, state: AttemptState) -> None:
        """Show a new state: the text if a tool has written it, and new evidence."""
        scored = _last_score(state) is not _last_score(self._state)
        super().update_from(state)
        answered = [call for call in state.calls[self._taken :] if call.text is not None]
        self._taken += len(answered)
        # A call that saves typed text got it from this editor, where more may have been typed since.
        written = any(_writes(call.tool) and not call.typed for call in answered)
        if written and gist_of(state).now != self.code:
            self._load(GIST_BUFFER, gist_of(state).now)
        if scored:
            self._take_evidence()
        self.draw_frame()

    # Overrides of EditorPane

    @property
    def changed(self) -> bool:
        """Whether the text differs from the one in the state."""
        return self.code != gist_of(self._state).now

    def start_of(self, name: str) -> str:
        """Return the gist as the last step saved it, against which the diff compares."""
        return gist_of(self._state).text

    def take(self, name: str) -> bool:
        """Append a function to the gist if its source was shown. Return False, so that the focus stays."""
        shown = shown_function(self._state, name)
        if shown is None:
            self.app.notify("Its source has not been shown yet: read it first.", severity="warning")
            return False
        code = self.code.rstrip("\n")
        text = f"{code}\n\n\n{shown.text.rstrip()}\n" if code else f"{shown.text.rstrip()}\n"
        self.editor.replace(text, self.editor.document.start, self.editor.document.end)
        self.post_message(AffordanceTaken("copy_function"))
        self.app.notify(f"{name} is now at the end of the gist.")
        return False

    def show_submitted(self, submission: Submission) -> None:
        """Show the gist that a recorded attempt handed in."""
        self.show_code(GIST_BUFFER, submission.gist)

    def show_writing(self) -> None:
        """Show the editor."""
        self.switcher.current = "gist-writing"

    def draw_frame(self) -> None:
        """Show in the frame whether the text is saved and parses, unless the diff or an original is shown."""
        if self.switcher.current == "editor-diff":
            self.frame("gist", "diff against what the last step saved · Alt+D goes back")
        elif self.switcher.current != "gist-original":
            self.frame("gist", self.frame_note())

    def frame_note(self) -> Content:
        """Return the size of the text, whether it is saved, and whether it parses."""
        lines = self.editor.document.line_count - (not self.editor.document.get_line(-1))
        kept = "saved" if self.code == gist_of(self._state).text else "kept; the next call saves it (1 step)"
        size = f"{lines} {'line' if lines == 1 else 'lines'}, {kept}  "
        return Content.assemble(plain_line(size), state_words(replace(self.editor.state, added=0, removed=0)))

    # Scores

    @property
    def scores_freely(self) -> bool:
        """Whether scores are unlimited, as in practice, the demo and validation."""
        return self._state.budgets.scores is None

    def _request_score(self) -> None:
        quiet = time.monotonic() - self._typed_at
        if not self.scores_freely or not self.live or quiet < QUIET_SECONDS or self._checked != self.code:
            return
        text = self._checked
        if self.editor.state.fault is None and text.strip() and text != self.requested:
            self.post_message(self.ScoreRequested(text))

    def _check(self, text: str) -> Fault | None:
        """Return the fault of code; after a score, note the names it doesn't define. Called in a thread."""
        fault = fault_in(text)
        if fault is None and self._scored:
            self._undefined = text, undefined_names(text)
        return fault

    @on(FunctionEditor.Checked)
    def gist_checked(self, message: FunctionEditor.Checked) -> None:
        """Draw the evidence for the checked text."""
        self._checked = message.text
        self.draw_evidence()

    # Evidence

    @property
    def may_show(self) -> bool:
        """Whether scores and evidence may be shown now."""
        return shows_evidence(self._state)

    def _take_evidence(self) -> None:
        found = _last_score(self._state)
        self.figures.display = self.may_show
        if not self.may_show:
            return
        if found is not None:
            self._scored, score = found
            self._marks = marks_of(read_evidence(score.get("lines", ())))
            self._figures = figures(score)
        self.draw_evidence()

    def draw_evidence(self) -> None:
        """Draw the marks next to unchanged lines, and the figures above the editor."""
        if not self.may_show:
            return
        if self._scored:
            self.evidence_gutter.marks = carried_over(self._marks, self._scored, self.code)
        self.figures.update(self._figures_now())
        self.figures.set_class(bool(self._scored) and self.code != self._scored, "-stale")

    def _figures_now(self) -> str:
        fault = self.editor.state.fault
        if fault is not None:
            return does_not_parse(fault)
        if not self.code.strip():
            return "nothing has been written yet"
        if not self._scored.strip():
            by_itself = self.scores_freely and self.live
            return (
                "not scored yet: stop typing for a moment, or press Alt+S"
                if by_itself
                else "not scored yet: press Alt+S"
            )
        found = self.missing_lines() if self._checked == self.code else []
        stale = "" if self.code == self._scored else "  (of an earlier text)"
        what = f"  {len(found)} to fix: Alt+N" if found else ""
        return f"{self._figures}{stale}{what}"

    def fault(self) -> Fault | None:
        """Return why the current text is not a Python module; None if it is one."""
        return self.editor.state.fault if self._checked == self.code else fault_in(self.code)

    def missing_lines(self) -> list[MissingLine]:
        """Return the lines that lower the scores; empty if they may not be shown or if nothing was scored."""
        if not self.may_show or not self._scored:
            return []
        if self._undefined[0] != self.code:
            self._undefined = self.code, undefined_names(self.code)
        return missing_lines(self.evidence_gutter.marks.values(), self._undefined[1])

    @on(FunctionEditor.Edited)
    def text_edited(self) -> None:
        """Draw the evidence for the new text, and start waiting for a pause in typing."""
        self._typed_at = time.monotonic()
        self.draw_evidence()
        self.draw_frame()

    def action_flaw(self) -> None:
        """Go to the next line that lowers a score, and show why."""
        found = self.missing_lines()
        if not found:
            self.app.notify("There are no known ways to raise the scores." if self.may_show else _AFTER)
            return
        here = self.editor.cursor_location[0] + 1
        at = next((flaw for flaw in found if flaw.line > here), found[0])
        self.show_writing()
        self.editor.move_cursor((min(at.line, self.editor.document.line_count) - 1, 0), center=True)
        same = [flaw.words for flaw in found if flaw.line == at.line]
        self.app.notify(f"line {at.line}: {', '.join(same)}")

    def action_flaws(self) -> None:
        """Let the user choose one of the lines that lower a score, and go there."""
        found = self.missing_lines()
        if not found:
            self.action_flaw()
            return

        def answered(line: str | None) -> None:
            if line is not None:
                self.show_writing()
                self.editor.move_cursor((int(line.partition(" ")[0]) - 1, 0), center=True)
                self.editor.focus()

        choices = [(f"{flaw.line} {n}", f"{flaw.line:>5}  {flaw.words}") for n, flaw in enumerate(found)]
        self.app.push_screen(PickDialog(f"What would raise the scores   {LEGEND}", choices), answered)

    def action_original(self) -> None:
        """Show the original of the line at the cursor, or the gist again."""
        if self.switcher.current == "gist-original":
            self.show_writing()
            self.editor.focus()
            self.draw_frame()
            return
        if not self.may_show:
            self.app.notify(_AFTER)
            return
        evidence = self.evidence_gutter.marks.get(self.editor.cursor_location[0] + 1)
        place = evidence.original if evidence is not None else None
        if place is None:
            self.app.notify(words_of(evidence))
            return
        tree = SourceTree.open(self._attempted.tree_path)
        text = tree.read(place.path).decode("utf-8", "replace") if tree.is_file(place.path) else ""
        self.switcher.current = "gist-original"
        self.original.load(text, title=place.path)
        self.original.go_to(place.line)
        self.original.focus()
        self.frame(f"{place.path}:{place.line}", f"{words_of(evidence)} · Alt+O goes back")
        self.post_message(AffordanceTaken("original_line"))


_AFTER = "Scores and evidence are shown after the hand-in."


def _last_score(state: AttemptState) -> tuple[str, Mapping[str, Any]] | None:
    """Return the last scored text and its score; None if no text was scored."""
    if state.submissions and state.submissions[-1].metrics:
        last = state.submissions[-1]
        return last.gist, last.metrics
    trials = gist_of(state).trials
    return (trials[-1].text, trials[-1].score) if trials else None


def _writes(name: str) -> bool:
    """Return whether calls to a tool change the gist's text."""
    tool = declared(name)
    return tool is not None and tool.writes_gist


class GistScreen(SolveScreen):
    """The screen of an attempt at a gist. It is dismissed with the same results as `SolveScreen`."""

    CSS_PATH = "../solve/solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.GIST_SOLVE)]
    HELP_PAGE = "gist"
    SCOPES = (*SolveScreen.SCOPES, KeyScope.GIST_SOLVE, KeyScope.GIST, KeyScope.TRACE)
    KIND: ClassVar[type[SolvingKind]] = GistSolving

    pane = query_one(GistPane)

    @on(GistPane.ScoreRequested)
    def score_requested(self, message: GistPane.ScoreRequested) -> None:
        """Score the text after a pause in typing, unless a call is under way."""
        if not self.busy:
            self._score(message.text)

    def _score(self, text: str) -> None:
        self.pane.requested = text
        if not self.busy and SCORE_GIST in self._attempt.offered():
            self.controller.call(SCORE_GIST, {"content": text}, yields=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer scores if the attempt has them, and automatic scores only if scores are unlimited."""
        if action in ("score", "live"):
            free = self._attempt.state.budgets.scores is None
            return SCORE_GIST in self._attempt.tools and (action == "score" or free)
        return super().check_action(action, parameters)

    async def action_score(self) -> None:
        """Score the current gist.

        If scores are unlimited, it must parse; otherwise, the first request only shows the price.
        """
        await self.area.make("editor")
        self.pane.editor.flush()
        fault = self.pane.fault() if self.pane.scores_freely else None
        if fault is not None:
            self.app.notify(f"The gist {does_not_parse(fault)}.", severity="warning")
            return
        text = self.pane.code
        free = self.pane.scores_freely
        if free or self._asking.is_confirmed(SCORE_GIST.name, {"content": text}, CALLS, SCORE_GIST.name):
            self._score(text)

    async def action_live(self) -> None:
        """Switch automatic scores on or off."""
        await self.area.make("editor")
        self.pane.live = not self.pane.live
        self.app.notify(
            "The gist is scored whenever you pause." if self.pane.live else "Alt+S scores the gist."
        )
