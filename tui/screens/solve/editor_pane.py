"""The editor for a function, with where its code started."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.widgets import ContentSwitcher

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Task
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.known import shown_function
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.screens.dialogs.confirm import show_error
from gistpoint.tui.view_models import allowed, stub, target_name
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.plain import Plain

EMPTY = "Nothing to edit yet: read a function, put the cursor into it (F4) and press e."


class EditorPane(Vertical):
    """One buffer at a time, named by the function that it will replace."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.EDITOR)]

    editor = query_one("#function-editor", FunctionEditor)
    title = query_one("#editor-title", Plain)
    switcher = query_one("#editor-views", ContentSwitcher)
    diff = query_one("#editor-diff", DiffView)

    keep: Callable[[str, str], None] | None = None
    """Keeps the text of a buffer; called from a thread while the screen stands still."""

    class Comfort(Message):
        """Something that costs no budget was used."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind

    def __init__(self, task: Task, state: AttemptState) -> None:
        super().__init__(id="editor")
        self._repair, self._state = task, state

    def show_writing(self) -> None:
        """Show the text that is written, whatever else was shown in its place."""
        self.switcher.current = "function-editor"

    def compose(self) -> ComposeResult:
        """Lay out title, editor and diff."""
        yield Plain(EMPTY, id="editor-title", classes="pane-title")
        with ContentSwitcher(initial="function-editor", id="editor-views"):
            yield FunctionEditor(id="function-editor")
            yield DiffView(id="editor-diff")

    def on_mount(self) -> None:
        """Open what was half-written when the attempt was left, else the stub that the brief gives."""
        target = target_name(self._repair)
        buffers = self._state.buffers
        if target:
            self.open(target)
        elif buffers:
            self.open(list(buffers)[-1])
        else:
            self.editor.read_only = True

    def update_from(self, state: AttemptState) -> None:
        """Take up a new state."""
        self._state = state

    @property
    def buffer(self) -> str:
        """The function that is edited as `path::qualname`; empty where there is none."""
        return self.editor.buffer

    @property
    def code(self) -> str:
        """The code as it stands."""
        return self.editor.text

    @property
    def changed(self) -> bool:
        """Whether the code is other than what it starts with, or was before."""
        return bool(self.buffer) and (self.buffer in self._state.buffers or self.code != self.start_of(self.buffer))

    def start_of(self, name: str) -> str:
        """Return the code that a buffer starts with: the stub, or the function as it was shown."""
        if name == target_name(self._repair):
            return stub(self._repair)
        shown = shown_function(self._state, name)
        return f"{shown.text.rstrip()}\n" if shown is not None else ""

    def open(self, name: str) -> None:
        """Edit a function: its half-written code where there is some, else what it starts with."""
        if name != self.buffer:
            self.editor.flush()
            kept = self._state.buffers.get(name)
            self.editor.load_buffer(name, self.start_of(name) if kept is None else kept)
        self.editor.read_only = False
        self.show_writing()
        self._draw_title()

    def show_code(self, name: str, code: str) -> None:
        """Show code for a function that was written elsewhere."""
        self.editor.load_buffer(name, code)
        self.show_writing()
        self._draw_title()

    def _draw_title(self) -> None:
        start = "diff against the start" if self.switcher.current == "editor-diff" else "F9 runs the tests on it"
        self.title.update(f"{self.buffer}  {start}" if self.buffer else EMPTY)

    def action_external_editor(self) -> None:
        """Hand over to `$EDITOR`; the clock goes on as editing."""
        if not self.buffer or not allowed(self._state, "external_editor"):
            self.app.bell()
            return
        try:
            self.editor.edit_in_external_editor(self._saved_outside)
        except UserError as error:
            show_error(self.app, error)
        self.post_message(self.Comfort("external_editor"))

    def _saved_outside(self, text: str) -> None:
        """Keep what the other editor has saved while it is open; on a thread."""
        if self.keep is not None:
            self.keep(self.buffer, text)

    def action_select_all(self) -> None:
        """Select the whole text."""
        self.editor.select_all()

    def action_top(self) -> None:
        """Put the cursor at the start of the text."""
        self.editor.move_cursor((0, 0))

    def action_bottom(self) -> None:
        """Put the cursor at the end of the text."""
        self.editor.move_cursor(self.editor.document.end)

    def action_diff(self) -> None:
        """Show the difference from the start, or the code again."""
        if not self.buffer:
            self.app.bell()
        elif self.switcher.current == "editor-diff":
            self.show_writing()
            self.editor.focus()
        else:
            self.diff.load(self.start_of(self.buffer), self.code)
            self.switcher.current = "editor-diff"
            self.diff.focus()
            self.post_message(self.Comfort("diff"))
        self._draw_title()

    def action_buffers(self) -> None:
        """Choose another function that was begun."""
        names = list(dict.fromkeys([self.buffer, *self._state.buffers])) if self.buffer else []
        if len(names) < 2:
            self.app.notify("No other function was begun.")
            return

        def answered(name: str | None) -> None:
            if name is not None:
                self.open(name)
                self.editor.focus()

        self.app.push_screen(PickDialog("Functions begun", [(name, name) for name in names]), answered)
