"""The panes for reading what results have shown: the tree of files and functions, and their code."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.widgets import Tree

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.text import whole_number
from gistpoint.tui import signs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.known import (
    ShownSource,
    definitions_named,
    enclosing,
    functions_in,
    names_in,
    shown_file,
    shown_function,
    stale,
)
from gistpoint.tui.screens.dialogs.ask import PickDialog, TextDialog
from gistpoint.tui.screens.solve.panes import (
    CallRequested,
    FunctionRequested,
    RoomNeeded,
    SourceRequested,
    StatePane,
    pane_frame,
)
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree

EMPTY = "Nothing has been read yet: choose a file (F3), or search (S)"


_FEWEST_COLUMNS, _MOST_COLUMNS = 24, 40
"""The minimum and maximum width of the file list, in cells."""
_FRAME = 2
_ON = {"edit": ("function",), "suspect": ("function",), "list_functions": ("file", "function")}
"""The kinds of rows on which each action is possible."""


class FilesPane(StatePane):
    """The tree of known files and functions."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.FILES)]

    tree_view = query_one("#known", KnowledgeTree)

    def __init__(self, use: str = "tool use") -> None:
        """`use` is the unit of a call's price, such as `tool use`."""
        super().__init__(id="files")
        self._use = use
        self._state = AttemptState()
        self._kind = ""
        """The kind of the row at the cursor; empty if there is none."""
        self.width_needed = _FEWEST_COLUMNS
        pane_frame(self, "files")

    def compose(self) -> ComposeResult:
        """Lay out the tree."""
        yield KnowledgeTree(id="known")

    def on_mount(self) -> None:
        """Show the known files and functions."""
        self.update_from(self._state)

    def update_from(self, state: AttemptState) -> None:
        """Show the known files and functions of a state, with the suspects marked."""
        self._state = state
        known = state.knowledge
        self.tree_view.update_from(
            known, suspects=[suspect.name for suspect in state.suspects], use=self._use
        )
        files = sum(kind == "file" for kind in known.entries.values())
        pane_frame(
            self,
            "files",
            note=f"{len(known.files)} of {files} read" if files else f"{signs.EMPTY} not shown yet",
        )
        self._fit()

    @on(Tree.NodeExpanded)
    def _fit(self) -> None:
        """Ask for the width that the rows need. The width only grows, to avoid wrapping the code again."""
        if not self.tree_view.is_mounted:
            return
        needed = min(max(self.width_needed, self.tree_view.width_needed + _FRAME), _MOST_COLUMNS)
        if needed != self.width_needed:
            self.width_needed = needed
            self.post_message(RoomNeeded())

    @on(KnowledgeTree.ListFolder)
    def list_folder(self, message: KnowledgeTree.ListFolder) -> None:
        """Request a call that lists a folder."""
        self.post_message(CallRequested("list_directory", {"path": message.path}, priced=True))

    @on(KnowledgeTree.OpenFile)
    def open_file(self, message: KnowledgeTree.OpenFile) -> None:
        """Request a call that reads a file."""
        self.post_message(CallRequested("read_file", {"file_path": message.path}, priced=True))

    @on(KnowledgeTree.OpenFunction)
    def open_function(self, message: KnowledgeTree.OpenFunction) -> None:
        """Ask to show a function, which is free if a file that was already read contains it."""
        self.post_message(SourceRequested(message.function, priced=True))

    @on(KnowledgeTree.ShowAgain)
    def show_again(self, message: KnowledgeTree.ShowAgain) -> None:
        """Ask to show a known file or function again. A folder that was listed is ignored."""
        if message.place not in self._state.knowledge.listed:
            self.post_message(SourceRequested(message.place))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the actions that are possible on the current row."""
        return self._kind in _ON[action] if action in _ON else super().check_action(action, parameters)

    @on(KnowledgeTree.NodeHighlighted)
    def row_changed(self) -> None:
        """Update the offered keys if the kind of the row has changed."""
        place, before = self.tree_view.place, self._kind
        self._kind = place.kind if place is not None else ""
        if self._kind != before:
            self.refresh_bindings()

    def action_list_functions(self) -> None:
        """Request a call that lists the functions of the file at the cursor."""
        place = self.tree_view.place
        if place is None or place.kind == "dir":
            self.app.notify("The cursor is not on a file.")
            return
        self.post_message(CallRequested("list_file_functions", {"file_path": place.name.partition("::")[0]}))

    def action_suspect(self) -> None:
        """Mark the function at the cursor as suspect, or unmark it."""
        self._ask("suspect")

    def action_edit(self) -> None:
        """Open the function at the cursor in the editor."""
        self._ask("edit")

    def _ask(self, what: Literal["edit", "suspect"]) -> None:
        place = self.tree_view.place
        if place is None or place.kind != "function":
            self.app.notify("The cursor is not on a function.")
            return
        self.post_message(FunctionRequested(place.name, what))


class CodePane(StatePane):
    """The pane that shows one file or function at a time. The position in each of them is kept."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.CODE)]

    view = query_one("#code-view", CodeView)

    def __init__(self) -> None:
        super().__init__(id="code")
        pane_frame(self, "code", note=EMPTY)
        self._state = AttemptState()
        self._shown: ShownSource | None = None
        self._places: dict[str, int] = {}
        self._function = ""
        """The function at the cursor; empty if there is none."""

    def compose(self) -> ComposeResult:
        """Lay out the view."""
        yield CodeView(id="code-view")

    def on_mount(self) -> None:
        """Turn on line wrapping."""
        self.view.wrap = True

    @property
    def shown(self) -> ShownSource | None:
        """The displayed text; None if no text has been shown yet."""
        return self._shown

    def shows_only(self, function: str) -> bool:
        """Return whether the displayed text is just a function, given as `path::qualname`."""
        return bool(function) and self._shown is not None and self._shown.function == function

    def update_from(self, state: AttemptState) -> None:
        """Show the marks of a new state, and whether the displayed text is out of date."""
        marks_changed = state.suspects != self._state.suspects
        self._state = state
        if self._shown is not None:
            self._draw_title()
            if marks_changed:
                self._draw_marks()

    def show(self, shown: ShownSource, *, line: int | None = None) -> None:
        """Show text, with the cursor on `line`, otherwise at its last position in this text."""
        if self._shown is not None:
            self._places[self._shown.name] = self.view.cursor_line
        same = self._shown == shown
        self._shown = shown
        if not same:
            language = "python" if shown.path.endswith((".py", ".pyi")) else None
            self.view.load(shown.text, language=language, first_line=shown.first_line)
        target = line if line is not None else self._places.get(shown.name)
        if target is not None:
            self.view.go_to(target)
        self._draw_title()
        self._draw_marks()

    def function_at_cursor(self) -> str:
        """Return the innermost function around the cursor as `path::qualname`; empty if there is none."""
        if self._shown is None:
            return ""
        functions = functions_in(self._state, self._shown)
        return enclosing(functions, self.view.cursor_line) or self._shown.function

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the actions that are possible on the current line."""
        if action in ("edit", "suspect"):
            return bool(self._function)
        return super().check_action(action, parameters)

    def _draw_title(self) -> None:
        if self._shown is None:
            return
        function, self._function = self._function, self.function_at_cursor()
        if bool(function) != bool(self._function):
            self.refresh_bindings()
        last = self._shown.first_line + self.view.line_count - 1
        old = stale(self._state, self._shown)
        lines = f"lines {self._shown.first_line}-{last}" if self._shown.function else f"{last} lines"
        note = f"{signs.BACK} {old}: . reads it again" if old else f"line {self.view.cursor_line} of {last}"
        pane_frame(self, "code", f"{self._shown.name}  {lines}", note)
        self.set_class(bool(old), "-stale")

    @on(CodeView.CursorMoved)
    def cursor_moved(self) -> None:
        """Show the position of the cursor in the frame."""
        self._draw_title()

    def _draw_marks(self) -> None:
        if self._shown is None:
            return
        suspects = {suspect.name for suspect in self._state.suspects}
        starts = {start for name, start, _ in functions_in(self._state, self._shown) if name in suspects}
        self.view.marks = dict.fromkeys(starts, signs.LABEL)

    # Keys

    def action_go_to_line(self) -> None:
        """Ask for the number of a line, and move there."""

        def answered(value: str | None) -> None:
            number = whole_number((value or "").strip())
            if number is not None:
                self.view.go_to(number)
                self.view.use_affordance("jump")

        self.app.push_screen(TextDialog("Go to line", placeholder="number", replaces=True), answered)

    def action_definition(self) -> None:
        """Show the definition of the name at the cursor, or let the user choose if it has several.

        If no result has shown one, go on to the definitions of the other names in the line.
        """
        if self._shown is None:
            return
        path, word = self._shown.path, self.view.word_at_cursor()
        named = names_in(self.view.lines[self.view.cursor_index])
        found, others = definitions_named(self._state, word, path) if word else [], False
        if not found:
            each = (definitions_named(self._state, name, path) for name in named)
            found, others = list(dict.fromkeys(name for names in each for name in names)), True
        meant = word in named
        if not found:
            what = word if meant else "a name on this line"
            self.app.notify(
                f"No result has shown where {what} is defined. search_code or list_file_functions may show"
                " it."
            )
        elif len(found) == 1 and (not others or (not meant and shown_function(self._state, found[0]))):
            self.go_to(found[0])
        else:
            not_shown = f"{word} was not shown; the line names" if meant else "This line names"
            found.sort(key=lambda name: shown_function(self._state, name) is None)
            self._pick(not_shown if others else f"{word} may be", found)

    def action_outline(self) -> None:
        """Choose among all functions shown so far, with those of this file first."""
        path = self._shown.path if self._shown is not None else ""
        names = sorted(self._state.knowledge.functions, key=lambda n: (not n.startswith(f"{path}::"), n))
        if not names:
            self.app.notify("No function has been shown yet.")
            return
        self._pick("Functions shown so far", names)

    def _pick(self, title: str, names: list[str]) -> None:
        price = f"{signs.EMPTY} 1 {self._state.of_kind.unit}:"
        choices = [
            (name, f"{signs.FULL if shown_function(self._state, name) else price} {name}") for name in names
        ]

        def answered(name: str | None) -> None:
            if name is not None:
                self.go_to(name, priced=True)

        self.app.push_screen(PickDialog(title, choices), answered)

    def go_to(self, name: str, *, priced: bool = False) -> bool:
        """Show a known file or function free of charge, or ask to read it. Return whether it is shown.

        `name` is a path or `path::qualname`. `priced` means that the solver saw the price of reading it.
        """
        path, _, qualname = name.partition("::")
        whole = shown_file(self._state, path)
        known = shown_function(self._state, name) if qualname else whole
        if known is None:
            self._ask_to_read(path, qualname, priced=priced)
            return False
        if whole is not None and whole.call_id == known.call_id:
            self.show(whole, line=known.first_line if qualname else None)
        else:
            self.show(known)
        self.view.use_affordance("reopen")
        self.view.focus()
        return True

    def _ask_to_read(self, path: str, qualname: str, *, priced: bool = False) -> None:
        tool, arguments = "read_file", {"file_path": path}
        if qualname:
            tool, arguments = "read_function", {"function_name": qualname, "file_path": path}
        self.post_message(CallRequested(tool, arguments, priced=priced))

    def action_list_functions(self) -> None:
        """Request a call that lists the functions of the displayed file."""
        if self._shown is not None:
            self.post_message(CallRequested("list_file_functions", {"file_path": self._shown.path}))

    def action_read_again(self) -> None:
        """Request a call that reads the displayed text again."""
        if self._shown is not None:
            self._ask_to_read(self._shown.path, self._shown.function.partition("::")[2])

    def action_suspect(self) -> None:
        """Mark the function at the cursor as suspect, or unmark it."""
        self._ask("suspect")

    def action_edit(self) -> None:
        """Open the function at the cursor in the editor."""
        self._ask("edit")

    def _ask(self, what: Literal["edit", "suspect"]) -> None:
        name = self.function_at_cursor()
        if name:
            self.post_message(FunctionRequested(name, what, line=self.view.cursor_line))
        else:
            self.app.notify("There is no function at the cursor.")
