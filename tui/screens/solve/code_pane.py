"""Code that a result has shown, to read; what leads on from it is asked for with its price."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.attempts.state import AttemptState
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.known import definitions_named, enclosing, functions_in, shown_file, shown_function
from gistpoint.tui.screens.dialogs.ask import PickDialog, TextDialog
from gistpoint.tui.view_models import Shown, stale
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.plain import Plain

EMPTY = "Nothing was read yet. Choose a file on the left (F3), or type read_file in the console (F5)."


class CodePane(Vertical):
    """One shown file or function at a time; the place in each is kept."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.CODE)]

    view = query_one("#code-view", CodeView)
    title = query_one("#code-title", Plain)

    class CallAsked(Message):
        """Something is to be read or listed that was not shown yet, or is to be again."""

        def __init__(self, tool: str, arguments: dict[str, str]) -> None:
            super().__init__()
            self.tool = tool
            self.arguments = arguments

    class FunctionAsked(Message):
        """Something is to be done with a function: `edit` or `suspect`."""

        def __init__(self, name: str, what: str) -> None:
            super().__init__()
            self.name = name
            self.what = what

    class Comfort(Message):
        """Something that costs no budget was used."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind

    def __init__(self) -> None:
        super().__init__(id="code")
        self._state = AttemptState()
        self._shown: Shown | None = None
        self._places: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        """Lay out title and view."""
        yield Plain(EMPTY, id="code-title", classes="pane-title")
        yield CodeView(id="code-view")

    @property
    def shown(self) -> Shown | None:
        """What is in sight."""
        return self._shown

    def update_from(self, state: AttemptState) -> None:
        """Take up a new state: marks and the note that a text is no longer current."""
        marks_changed = state.suspects != self._state.suspects
        self._state = state
        if self._shown is not None:
            self._draw_title()
            if marks_changed:
                self._draw_marks()

    def show(self, shown: Shown, *, line: int | None = None) -> None:
        """Show a text, at a line or where it was left."""
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
        """Return the innermost function around the cursor as `path::qualname`; empty where there is none."""
        if self._shown is None:
            return ""
        functions = functions_in(self._state, self._shown)
        return enclosing(functions, self.view.cursor_line) or self._shown.function

    def _draw_title(self) -> None:
        if self._shown is None:
            return
        last = self._shown.first_line + self.view.line_count - 1
        old = stale(self._state, self._shown)
        note = f"⟲ {old}, R reads it again  " if old else ""
        self.title.update(f"{note}{self._shown.name}  lines {self._shown.first_line}-{last}".replace("\n", " "))
        self.title.set_class(bool(old), "-stale")

    def _draw_marks(self) -> None:
        if self._shown is None:
            return
        suspects = {suspect.name for suspect in self._state.suspects}
        starts = {start for name, start, _ in functions_in(self._state, self._shown) if name in suspects}
        self.view.marks = dict.fromkeys(starts, "⚑")

    # Keys

    def action_go_to_line(self) -> None:
        """Ask for a line and go there."""

        def answered(value: str | None) -> None:
            if value and value.strip().isdigit():
                self.view.go_to(int(value))
                self.post_message(self.Comfort("jump"))

        self.app.push_screen(TextDialog("Go to line", placeholder="number"), answered)

    def action_definition(self) -> None:
        """Go to what the name at the cursor means, as far as results have shown it."""
        word = self.view.word_at_cursor()
        if not word or self._shown is None:
            self.app.notify("There is no name at the cursor.")
            return
        found = definitions_named(self._state, word, self._shown.path)
        if not found:
            self.app.notify(f"No result has shown where {word} is defined. search_code or list_file_functions may.")
        elif len(found) == 1:
            self.go_to_function(found[0])
        else:
            self._pick(f"{word} may be", found)

    def action_outline(self) -> None:
        """Choose among all functions that were shown, those of this file first."""
        path = self._shown.path if self._shown is not None else ""
        names = sorted(self._state.knowledge.functions, key=lambda n: (not n.startswith(f"{path}::"), n))
        if not names:
            self.app.notify("No function was shown yet.")
            return
        self._pick("Functions shown so far", names)

    def _pick(self, title: str, names: list[str]) -> None:
        choices = [
            (name, f"{'●' if shown_function(self._state, name) else '○ costs 1 tool use:'} {name}") for name in names
        ]

        def answered(name: str | None) -> None:
            if name is not None:
                self.go_to_function(name)

        self.app.push_screen(PickDialog(title, choices), answered)

    def go_to_function(self, name: str) -> None:
        """Show a function where its source was shown, free of charge; else ask to read it."""
        path, _, qualname = name.partition("::")
        known = shown_function(self._state, name)
        if known is None:
            self.post_message(self.CallAsked("read_function", {"function_name": qualname, "file_path": path}))
            return
        whole = shown_file(self._state, path)
        if whole is not None and whole.call_id == known.call_id:
            self.show(whole, line=known.first_line)
        else:
            self.show(known)
        self.post_message(self.Comfort("reopen"))
        self.view.focus()

    def action_list_functions(self) -> None:
        """Ask for the functions of the file in sight."""
        if self._shown is not None:
            self.post_message(self.CallAsked("list_file_functions", {"file_path": self._shown.path}))

    def action_read_again(self) -> None:
        """Ask again for what is in sight, as it is now."""
        if self._shown is None:
            return
        if self._shown.function:
            path, _, qualname = self._shown.function.partition("::")
            self.post_message(self.CallAsked("read_function", {"function_name": qualname, "file_path": path}))
        else:
            self.post_message(self.CallAsked("read_file", {"file_path": self._shown.path}))

    def action_suspect(self) -> None:
        """Mark the function at the cursor."""
        self._ask("suspect")

    def action_edit(self) -> None:
        """Open the function at the cursor in the editor."""
        self._ask("edit")

    def _ask(self, what: str) -> None:
        name = self.function_at_cursor()
        if name:
            self.post_message(self.FunctionAsked(name, what))
        else:
            self.app.notify("There is no function at the cursor.")
