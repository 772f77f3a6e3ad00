"""The files and functions that results have shown, and what can be asked about the one at the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one

from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.solve.code_pane import CodePane
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree
from gistpoint.tui.widgets.plain import Plain


class FilesPane(Vertical):
    """The tree of what is known."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.FILES)]

    tree_view = query_one("#known", KnowledgeTree)

    def __init__(self, use: str = "tool use") -> None:
        """`use` is what a call costs, in words."""
        super().__init__(id="files")
        self._use = use

    def compose(self) -> ComposeResult:
        """Lay out title and tree."""
        yield Plain(f"● shown  ○ not yet: 1 {self._use}", classes="pane-title")
        yield KnowledgeTree(id="known")

    def action_list_functions(self) -> None:
        """Ask for the functions of the file at the cursor."""
        place = self.tree_view.place
        if place is None or place.kind == "dir":
            self.app.notify("The cursor is not on a file.")
            return
        self.post_message(CodePane.CallAsked("list_file_functions", {"file_path": place.name.partition("::")[0]}))

    def action_suspect(self) -> None:
        """Mark the function at the cursor."""
        self._ask("suspect")

    def action_edit(self) -> None:
        """Open the function at the cursor in the editor."""
        self._ask("edit")

    def _ask(self, what: str) -> None:
        place = self.tree_view.place
        if place is None or place.kind != "function":
            self.app.notify("The cursor is not on a function.")
            return
        self.post_message(CodePane.FunctionAsked(place.name, what))
