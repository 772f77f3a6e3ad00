"""The pane for editing a function: the editor, a diff against the initial code, and actions on both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import ContentSwitcher

from gistpoint.core.errors import UserError
from gistpoint.tui import signs
from gistpoint.tui.external_editor import EditorNotStartedError
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import PickDialog, show_error
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.function_editor import CodeState, FunctionEditor
from gistpoint.tui.widgets.line_view import AffordanceTaken
from gistpoint.tui.widgets.plain import plain_line


class EditingPane(Vertical):
    """An editor that shows one buffer at a time.

    A buffer has the name of the function that it replaces, or another name, as for a gist. Subclasses provide
    its initial code.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.EDITOR)]
    EMPTY = ""
    """The placeholder of the editor while there is no buffer."""

    editor = query_one("#function-editor", FunctionEditor)
    switcher = query_one("#editor-views", ContentSwitcher)
    diff = query_one("#editor-diff", DiffView)

    keep: Callable[[str, str], None] | None = None
    """Saves the text of a buffer by its name. Called from a thread while an external editor is open."""
    on_return: Callable[[], None] | None = None
    """Called after an external editor is closed; until then, the app gets no keys."""

    def __init__(self, *, id: str = "editor") -> None:
        super().__init__(id=id)

    def compose(self) -> ComposeResult:
        """Lay out the editor and the diff; only one of them is visible."""
        with ContentSwitcher(initial="function-editor", id="editor-views"):
            yield FunctionEditor(id="function-editor")
            yield DiffView(id="editor-diff")

    def show_writing(self) -> None:
        """Show the editor in place of the diff."""
        self.switcher.current = "function-editor"

    # Methods that subclasses override

    def start_of(self, name: str) -> str:
        """Return the initial code of a buffer."""
        raise NotImplementedError

    def kept(self, name: str) -> str | None:
        """Return the unfinished code of a buffer; None if there is none."""
        raise NotImplementedError

    def buffer_names(self) -> Sequence[str]:
        """Return the names of all buffers."""
        raise NotImplementedError

    def first_line_of(self, name: str) -> int:
        """Return the line, counted from 1, on which a buffer's code starts in its file."""
        return 1

    def words_of(self, name: str) -> str:
        """Return a buffer's name as displayed."""
        return name

    def may_use_external_editor(self) -> bool:
        """Return whether the external editor is allowed."""
        return True

    @property
    def buffer(self) -> str:
        """The name of the shown buffer, such as `path::qualname`; empty if there is none."""
        return self.editor.buffer

    @property
    def code(self) -> str:
        """The current code."""
        return self.editor.code

    def open(self, name: str) -> None:
        """Edit a buffer, starting from its unfinished code or, if there is none, from its initial code."""
        if name != self.buffer:
            self.editor.flush()
            kept = self.kept(name)
            self._load(name, self.start_of(name) if kept is None else kept)
        self.editor.read_only = False
        self.show_writing()
        self.draw_frame()

    def go_to(self, line: int) -> None:
        """Move the cursor to a line of the file, if the text is unchanged and contains that line."""
        row = line - self.editor.line_number_start
        if self.code == self.start_of(self.buffer) and 0 <= row < self.editor.document.line_count:
            text = self.editor.document.get_line(row)
            self.editor.move_cursor((row, len(text) - len(text.lstrip())))

    def show_code(self, name: str, code: str) -> None:
        """Replace the text in the editor with code that was written elsewhere, as the buffer `name`."""
        self._load(name, code)
        self.show_writing()
        self.draw_frame()

    def _load(self, name: str, code: str) -> None:
        self.editor.placeholder = ""
        self.editor.load_buffer(name, code, start=self.start_of(name), first_line=self.first_line_of(name))
        self.refresh_bindings()

    @on(FunctionEditor.Checked)
    def checked(self, message: FunctionEditor.Checked) -> None:
        """Draw the frame with the new state of the code."""
        message.stop()
        self.draw_frame()

    def draw_frame(self) -> None:
        """Show in the frame the name of the buffer with the state of its code, or how to leave the diff."""
        if not self.buffer:
            self.editor.placeholder = self.EMPTY
            self.frame("Editor")
        elif self.switcher.current == "editor-diff":
            self.frame(_function(self.words_of(self.buffer)), "diff against the original · Alt+D goes back")
        else:
            self.frame(_function(self.words_of(self.buffer)), self.frame_note())

    def frame(self, title: str, note: str | Content = "") -> None:
        """Show a title and a note in the pane's frame. Panes inside another frame override this."""
        framed(self, title, note)

    def frame_note(self) -> Content:
        """Return the state of the code: the numbers of added and removed lines, and whether it parses."""
        return state_words(self.editor.state, self.editor.line_number_start)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the external editor and the diff only while something is being edited.

        The external editor is offered only if it is allowed and there is a terminal.
        """
        if action in ("external_editor", "diff") and self.is_mounted and not self.buffer:
            return False
        return action != "external_editor" or (self.may_use_external_editor() and not self.app.is_web)

    def action_external_editor(self) -> None:
        """Open the code in `$EDITOR`; the clock counts the time as editing.

        The editor also counts as used if it started but failed, because its saves are kept.
        """
        if not self.buffer or not self.may_use_external_editor():
            self.app.bell()
            return
        try:
            self.editor.edit_in_external_editor(self._saved_outside)
            started = True
        except UserError as error:
            started = not isinstance(error, EditorNotStartedError)
            show_error(self.app, error)
        if self.on_return is not None:
            self.on_return()
        if started:
            self.post_message(AffordanceTaken("external_editor"))

    def _saved_outside(self, text: str) -> None:
        """Save text that the external editor has written. Called from a thread."""
        if self.keep is not None:
            self.keep(self.buffer, text)

    def action_select_all(self) -> None:
        """Select the whole text."""
        self.editor.select_all()

    def action_diff(self) -> None:
        """Show the diff against the initial code, or the editor again."""
        if not self.buffer:
            self.app.bell()
        elif self.switcher.current == "editor-diff":
            self.show_writing()
            self.editor.focus()
        else:
            first_line = self.first_line_of(self.buffer)
            self.diff.load(self.start_of(self.buffer), self.code, first_line=first_line)
            self.switcher.current = "editor-diff"
            self.diff.focus()
            self.post_message(AffordanceTaken("diff"))
        self.draw_frame()

    def action_buffers(self) -> None:
        """Let the user choose a buffer to open; with fewer than two, show a notice instead."""
        names = self.buffer_names()
        if len(names) < 2:
            self.app.notify("You have not begun any other function.")
            return

        def answered(name: str | None) -> None:
            if name is not None:
                self.open(name)
                self.editor.focus()

        self.app.push_screen(
            PickDialog("Functions begun", [(name, self.words_of(name)) for name in names]), answered
        )


def _function(name: str) -> str:
    """Return the qualified name in `path::qualname`, or another name unchanged."""
    return name.partition("::")[2] or name


def figure_words(added: int, removed: int) -> str:
    """Return the numbers of added and removed lines; empty if there are none."""
    return f"+{added} −{removed}" if added or removed else ""


def state_words(state: CodeState, first_line: int = 1) -> Content:
    """Return the state of the code for the frame; empty before its first check.

    The text starts at line `first_line` of its file.
    """
    if not state.checked:
        return Content()
    changed = f"{figure_words(state.added, state.removed)}  ".lstrip()
    if state.fault is None:
        return Content.assemble(plain_line(changed), (f"{signs.GOOD} parses", "$text-success"))
    fault = plain_line(f"{signs.BAD} {state.fault.after(first_line - 1)}").stylize("$text-error")
    return Content.assemble(plain_line(changed), fault)
