"""The trace that a call has shown, as a tree to walk: files in the order of first touch, their functions below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Tree

from gistpoint.core.attempts.state import AttemptState
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.known import shown_function
from gistpoint.tui.widgets.plain import Plain, plain_cell

_FUNCTION = re.compile(r"  (?P<path>.+?):(?P<line>\d+)  (?P<qualname>\S.*)")


def traced(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield path, line and qualified name of each function that an answer of `trace` lists, in its order."""
    for line in text.split("\n"):
        match = _FUNCTION.fullmatch(line)
        if match is not None:
            yield match["path"], int(match["line"]), match["qualname"]


class TracePane(Vertical):
    """Empty until `trace` was called: what was not shown is not here."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.TRACE)]

    title = query_one("#trace-title", Plain)

    class FunctionWanted(Message):
        """A function of the trace is to be read: from what was shown, else by a call."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class TraceWanted(Message):
        """The trace of the task's command is wanted."""

    def __init__(self) -> None:
        super().__init__(id="trace")
        self._call = ""

    @property
    def tree_view(self) -> Tree[str]:
        """The tree: a node's data is the function that it stands for."""
        return self.query_one("#trace-tree", Tree)

    def compose(self) -> ComposeResult:
        """Lay out title and tree."""
        yield Plain("Not traced yet: Enter asks for the trace of the command", id="trace-title", classes="pane-title")
        tree: Tree[str] = Tree(plain_cell("trace"), "", id="trace-tree")
        tree.show_root = False
        tree.auto_expand = True
        yield tree

    def update_from(self, state: AttemptState) -> None:
        """Show the trace that was answered last; ● marks what was read."""
        calls = [c for c in state.calls if c.tool == "trace" and c.text is not None and not c.refused]
        if not calls:
            return
        if calls[-1].call_id != self._call:
            self._call = calls[-1].call_id
            self._fill(calls[-1].text or "")
        for node in self.tree_view.root.children:
            for leaf in node.children:
                read = leaf.data is not None and shown_function(state, leaf.data) is not None
                label = str(leaf.label)
                leaf.set_label(plain_cell(f"{'●' if read else '○'}{label[1:]}"))

    def _fill(self, text: str) -> None:
        tree = self.tree_view
        tree.clear()
        nodes = {}
        count = 0
        for path, line, qualname in traced(text):
            if path not in nodes:
                nodes[path] = tree.root.add(plain_cell(path), "", expand=True)
            nodes[path].add_leaf(plain_cell(f"○ {qualname}  :{line}"), f"{path}::{qualname}")
            count += 1
        self.title.update(f"{count} functions in the order of first touch   Enter reads one   ● was read")

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        """Read the function at the cursor."""
        event.stop()
        if event.node.data:
            self.post_message(self.FunctionWanted(event.node.data))

    def key_enter(self) -> None:
        """Ask for the trace where there is none yet."""
        if not self._call:
            self.post_message(self.TraceWanted())
