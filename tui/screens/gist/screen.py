"""Write a gist: the solve screen with the gist in place of a function, the trace, and scores if they may be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.widgets import Tree

from gistpoint.core.attempts.bench import Price
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.knowledge import traced_functions
from gistpoint.core.attempts.state import AttemptCall, AttemptState
from gistpoint.core.kinds.gist.tools import GIST_BUFFER, SCORE_GIST, SUBMIT_GIST, TRACE
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.known import shown_function
from gistpoint.tui.screens.gist.gist_pane import GistPane
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.kind import CallQuestion, SolvingKind
from gistpoint.tui.screens.solve.panes import PANES, CallAsked, PanePlace, SourceAsked, StatePane, pane_frame
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.view_models import LAST, price_words
from gistpoint.tui.widgets.gist_view import does_not_parse
from gistpoint.tui.widgets.plain import plain_cell


class TracePane(StatePane):
    """The trace that a call has shown: files in the order of first touch, their functions below; at first empty."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TRACE)]

    def __init__(self) -> None:
        super().__init__(id="trace")
        self._call = ""

    @property
    def tree_view(self) -> Tree[str]:
        """The tree: a node's data is its function."""
        return self.query_one("#trace-tree", Tree)

    def compose(self) -> ComposeResult:
        """Lay out the tree."""
        tree: Tree[str] = Tree(plain_cell("trace"), "", id="trace-tree")
        tree.show_root = False
        tree.auto_expand = True
        yield tree

    def on_mount(self) -> None:
        """Say how to get a trace."""
        pane_frame(self, "trace", note="not traced yet: Enter asks for the trace of the command")

    def update_from(self, state: AttemptState) -> None:
        """Show the latest trace; ● marks functions that were read."""
        calls = [c for c in state.calls if c.tool == "trace" and c.text is not None and not c.refused]
        if not calls:
            return
        if calls[-1].call_id != self._call:
            self._call = calls[-1].call_id
            self._fill(calls[-1])
        for node in self.tree_view.root.children:
            for leaf in node.children:
                read = leaf.data is not None and shown_function(state, leaf.data) is not None
                label = str(leaf.label)
                leaf.set_label(plain_cell(f"{'●' if read else '○'}{label[1:]}"))

    def _fill(self, call: AttemptCall) -> None:
        tree = self.tree_view
        tree.clear()
        nodes = {}
        count = 0
        for path, line, qualname in traced_functions(call.text or "", call.revealed):
            if path not in nodes:
                nodes[path] = tree.root.add(plain_cell(path), "", expand=True)
            nodes[path].add_leaf(plain_cell(f"○ {qualname}  :{line}"), f"{path}::{qualname}")
            count += 1
        words = f"Trace  {count} functions in the order of first touch"
        pane_frame(self, "trace", words, "● was read · Enter reads one")

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        """Read the function at the cursor."""
        event.stop()
        if event.node.data:
            self.post_message(SourceAsked(event.node.data))

    def key_enter(self) -> None:
        """Ask for the trace if there is none yet."""
        if not self._call:
            self.post_message(CallAsked("trace", {}))


class GistSolving(SolvingKind):
    """A gist: one text, saved by a step before each call, scored if that may be shown, and handed in once."""

    in_place: Mapping[str, str] = {"list_directory": "files", TRACE.name: "trace", SCORE_GIST.name: ""}
    has_suspects = False

    def __init__(self, controller: AttemptController) -> None:
        super().__init__(controller)
        if TRACE in self._attempt.tools:
            self.own_panes = (TracePane(),)
            self.panes = {**PANES, "trace": PanePlace("#trace-tree", Pane.RESULT)}

    def editor_of(self, attempt: Attempt) -> GistPane:
        """Make the pane of the gist."""
        pane = self._pane = GistPane(attempt.task, attempt.state)
        return pane

    def ready(self, then: Callable[[], None]) -> None:
        """Stop a score under way, and save what was typed before the next call."""

        def keep() -> None:
            if self._editor.is_mounted:
                self._editor.editor.flush()
                self._controller.edited(GIST_BUFFER, self._editor.code)
            self._controller.after_writing(then)

        if self._controller.yielding:
            self._pane.asked = ""
        self._controller.make_way(keep)

    def warning(self, tool: Tool, price: Price) -> str:
        """Return sentences on what a call would use up for good."""
        if tool is SUBMIT_GIST:
            return "There is one hand-in: the attempt ends with it."
        if price.last_tool_use:
            return "This is the last step: the gist is handed in after it as it was last saved, and the attempt ends."
        return ""

    def submission(self) -> CallQuestion | None:
        """Return the hand-in, with its price and the size of what is handed in."""
        lines = len(self._editor.code.splitlines())
        what = f"The gist has {lines} {'line' if lines == 1 else 'lines'}." if lines else "The gist is EMPTY."
        price = price_words(self._attempt.price(SUBMIT_GIST), self._attempt.state).removesuffix(LAST)
        text = f"{what} Handing it in {price}.\n\nThere is one hand-in: it is scored, and the attempt ends with it."
        return CallQuestion("Hand in the gist?", text, SUBMIT_GIST, {})

    def unobtrusive(self, tool: Tool) -> bool:
        """Whether the call is a score without a limit: a line for each would move the text during typing."""
        return tool is SCORE_GIST and self._pane.scores_freely


class GistScreen(SolveScreen):
    """An attempt at a gist; dismissed as `SolveScreen` is."""

    CSS_PATH = "../solve/solve.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.GIST_SOLVE)]
    HELP_PAGE = "gist"
    SCOPES = (*SolveScreen.SCOPES, KeyScope.GIST_SOLVE, KeyScope.GIST, KeyScope.TRACE)
    KIND: ClassVar[type[SolvingKind]] = GistSolving

    pane = query_one(GistPane)

    @on(GistPane.ScoreWanted)
    def score_wanted(self, message: GistPane.ScoreWanted) -> None:
        """Score the text after a pause in typing, unless something else is under way."""
        if not self.busy:
            self._score(message.text)

    def _score(self, text: str) -> None:
        self.pane.asked = text
        if not self.busy and SCORE_GIST in self._attempt.offered():
            self.controller.call(SCORE_GIST, {"content": text}, yields=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer scores where there are any before the hand-in, and automatic ones where they have no limit."""
        if action in ("score", "live"):
            free = self._attempt.state.budgets.scores is None
            return SCORE_GIST in self._attempt.tools and (action == "score" or free)
        return super().check_action(action, parameters)

    async def action_score(self) -> None:
        """Score the gist as it is now."""
        await self.area.make("editor")
        self.pane.editor.flush()
        fault = self.pane.fault() if self.pane.scores_freely else None
        if fault is not None:
            self.app.notify(f"The gist {does_not_parse(fault)}.", severity="warning")
            return
        self._score(self.pane.code)

    async def action_live(self) -> None:
        """Switch automatic scores on or off."""
        await self.area.make("editor")
        self.pane.live = not self.pane.live
        self.app.notify("The gist is scored whenever you pause." if self.pane.live else "Alt+S scores the gist.")
