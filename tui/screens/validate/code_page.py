"""The page with the library's code: the corrupted or the original file, with links between functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.callgraph import CallGraph, FunctionNode
from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.generation.dossier import Dossier
from gistpoint.tui import signs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.screens.validate.task_page import AboutChanged, PageContent, TaskPage
from gistpoint.tui.widgets.code_view import CodeView

LineIn = Callable[[str], int]
"""A function that returns the line, counted from 1, to go to in the text of a file."""


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of a file, in the corrupted or in the original tree."""

    path: str
    line: int
    corrupted: bool


class CodePage(TaskPage, Vertical):
    """A page with a file, a cursor in it, and a history of the places visited."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.PLACES)]

    changes = False

    view = query_one("#code-view", CodeView)

    class GraphRequested(Message):
        """A request for the call graph. After the graph has been built, `action` is run."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__(id="code")
        self._dossier: Dossier | None = None
        self._place: TreeLine | None = None
        self._trail: list[TreeLine] = []
        self.graph: CallGraph | None = None
        """The call graph of the original; None until it has been built."""

    def compose(self) -> ComposeResult:
        """Lay out the code."""
        yield CodeView(id="code-view")

    def on_mount(self) -> None:
        """Turn on line wrapping."""
        self.view.wrap = True

    def fill(self, content: PageContent) -> None:
        """Show the first target of another task, or the function or test of a link."""
        if content.first:
            self._dossier, self.graph = content.dossier, content.session.known_graph(content.dossier.task)
            self._trail, self._place = [], None
            self.go_to_function(content.dossier.answer.targets[0].name)
            self._trail.clear()
        kind, _, name = content.link.partition(":")
        if name:
            (self.go_to_test if kind == "source" else self.go_to_function)(name)

    def go_to_function(self, name: str) -> None:
        """Go to the definition `path::qualname`, or to the start of the file if it is not there."""
        path, _, qualname = name.partition("::")
        self._go(path, lambda text: _line_of(path, text, qualname))

    def go_to_test(self, id: str) -> None:
        """Go to the function of the test with an id, which may contain parameters."""
        path, _, rest = id.partition("[")[0].partition("::")
        self._go(path, lambda text: _line_of(path, text, rest.replace("::", ".")))

    def _go(self, path: str, line_in: LineIn) -> None:
        if self._dossier is None:
            return
        corrupted = self._place.corrupted if self._place is not None else True
        try:
            text = self._dossier.text(path, corrupted=corrupted)
        except FileNotFoundError:
            self.app.notify(f"{path} is not in the tree.", severity="warning")
            return
        self._move(TreeLine(path, line_in(text), corrupted))

    def _move(self, place: TreeLine, *, back: bool = False) -> None:
        before = self._place
        if self._dossier is None:
            return
        if before is not None and not back:
            self._trail.append(TreeLine(before.path, self.view.cursor_line, before.corrupted))
        if before is None or (before.path, before.corrupted) != (place.path, place.corrupted):
            self.view.load(self._dossier.text(place.path, corrupted=place.corrupted))
        self._place = place
        self._mark(place)
        self.view.go_to(place.line)
        side, other = ("corrupted", "original") if place.corrupted else ("original", "corrupted")
        self.about = f"{place.path}: {side} · = {other}"
        self.post_message(AboutChanged())

    def _mark(self, place: TreeLine) -> None:
        assert self._dossier is not None
        marks: dict[int, str] = {}
        for target in self._dossier.answer.targets:
            if target.path == place.path:
                first = self._dossier.start_line(target, corrupted=place.corrupted)
                text = target.corrupted if place.corrupted else target.original
                marks.update(
                    dict.fromkeys(range(first, first + len(physical_lines(text.rstrip()))), signs.THICK_BAR)
                )
        self.view.marks = marks

    # Keys

    def action_side(self) -> None:
        """Show the same line in the other tree."""
        place = self._place
        if place is not None:
            self._move(TreeLine(place.path, self.view.cursor_line, not place.corrupted))

    def action_back_to(self) -> None:
        """Go back to the previous place."""
        if self._trail:
            self._move(self._trail.pop(), back=True)
        else:
            self.app.bell()

    def action_outline(self) -> None:
        """Let the user choose a function of the file; show a warning if the file can't be parsed."""
        place, dossier = self._place, self._dossier
        if place is None or dossier is None:
            return
        try:
            index = index_source(place.path, dossier.text(place.path, corrupted=place.corrupted).encode())
        except CodeError as error:
            self.app.notify(str(error), severity="warning")
            return
        self._pick(
            "Functions of the file", [f"{place.path}::{found.ref.qualname}" for found in index.definitions]
        )

    def action_callers(self) -> None:
        """Go to the function that calls the one at the cursor; if there are several, choose one."""
        self._along("callers")

    def action_callees(self) -> None:
        """Go to the function that the one at the cursor calls; if there are several, choose one."""
        self._along("callees")

    def action_definition(self) -> None:
        """Go to the function named by the word at the cursor; if several have that name, choose one."""
        word = self.view.word_at_cursor().rpartition(".")[2]
        if self.graph is None:
            self.post_message(self.GraphRequested("definition"))
        elif word:
            found = [n.id for n in self.graph.functions() if _last(n.qualname) == word]
            self._pick(f"Definitions of {word}", found)

    def _along(self, way: str) -> None:
        graph, place = self.graph, self._place
        if graph is None:
            self.post_message(self.GraphRequested(way))
            return
        here = self._function_at(graph, place)
        if here is None:
            self.app.notify("The cursor is not in a function.", severity="warning")
            return
        edges = (graph.callers if way == "callers" else graph.callees).get(here.id, ())
        names = [edge.caller if way == "callers" else edge.callee for edge in edges]
        self._pick(f"{way.capitalize()} of {here.qualname}", names)

    def _function_at(self, graph: CallGraph, place: TreeLine | None) -> FunctionNode | None:
        """Return the innermost function at the cursor, by its name in the original; None if there is none."""
        if place is None or self._dossier is None:
            return None
        line = self.view.cursor_line
        if place.corrupted:
            try:
                index = index_source(place.path, self._dossier.text(place.path, corrupted=True).encode())
            except CodeError:
                return None
            around = [
                definition
                for definition in index.definitions
                if definition.start_line <= line <= definition.end_line
            ]
            names = [
                f"{place.path}::{definition.ref.qualname}"
                for definition in sorted(
                    around, key=lambda definition: definition.end_line - definition.start_line
                )
            ]
            return next((graph.nodes[name] for name in names if name in graph.nodes), None)
        nodes = [n for n in graph.functions() if n.path == place.path and n.first_line <= line <= n.last_line]
        return min(nodes, key=lambda n: n.last_line - n.first_line, default=None)

    def _pick(self, title: str, names: Sequence[str]) -> None:
        if not names:
            self.app.notify(f"{title}: none found.")
        elif len(names) == 1:
            self.go_to_function(names[0])
        else:

            def answered(name: str | None) -> None:
                if name is not None:
                    self.go_to_function(name)

            self.app.push_screen(PickDialog(title, [(name, name) for name in names]), answered)


def _line_of(path: str, text: str, qualname: str) -> int:
    try:
        return index_source(path, text.encode()).get(qualname).start_line
    except CodeError:
        return 1


def _last(qualname: str) -> str:
    return qualname.partition("#")[0].rpartition(".")[2]
