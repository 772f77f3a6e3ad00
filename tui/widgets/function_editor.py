"""The editor for a function, and the way to the editor of the user's own choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style as RichStyle
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.style import Style
from textual.widgets.text_area import Selection, TextAreaTheme

from gistpoint.tui.external_editor import edited_externally
from gistpoint.tui.widgets.plain import plain_line
from gistpoint.tui.widgets.sealed_text import Seal
from gistpoint.tui.widgets.syntax import ANSI_STYLES, STYLES
from gistpoint.tui.widgets.writing_area import WritingArea

_KIND_OF_CAPTURE = {
    "attribute": "decorator",
    "boolean": "constant",
    "comment": "comment",
    "conditional": "keyword",
    "constant.builtin": "constant",
    "exception": "keyword",
    "float": "number",
    "function": "function",
    "function.builtin": "builtin",
    "include": "keyword",
    "keyword": "keyword",
    "keyword.function": "keyword",
    "keyword.operator": "keyword",
    "keyword.return": "keyword",
    "method": "function",
    "number": "number",
    "repeat": "keyword",
    "string": "string",
    "string.escape": "constant",
    "type.builtin": "builtin",
    "type.class": "class",
    "variable.builtin": "builtin",
}
"""Kinds of `syntax` by the captures of tree-sitter's query for Python."""


class FunctionEditor(WritingArea):
    """Python code to write, by the name of the buffer that it is kept in."""

    DEFAULT_CSS = """
    FunctionEditor { border: none; padding: 0; background: $background; }
    FunctionEditor:focus { border: none; }
    FunctionEditor { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    HELP = (
        "Tab indents by four spaces, or all selected lines; ctrl+z undoes, ctrl+y redoes, "
        "escape and then tab leaves the editor."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+tab", "outdent", "Outdent", show=False, id="editor.outdent"),
        Binding("escape", "leave", "Leave the editor", show=False, id="editor.leave"),
    ]

    class Edited(WritingArea.Edited):
        """A buffer's text as it stands now."""

        def __init__(self, editor: FunctionEditor, buffer: str, text: str) -> None:
            super().__init__(editor, text)
            self.buffer = buffer

    def __init__(
        self,
        text: str = "",
        *,
        buffer: str = "",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        self._seal = Seal(text)
        super().__init__(
            self._seal.close(text),
            language="python",
            soft_wrap=False,
            tab_behavior="indent",
            show_line_numbers=True,
            name=name,
            id=id,
            classes=classes,
        )
        self.indent_width = 4
        self.indent_type = "spaces"
        self._buffer = buffer
        self._told = text

    def on_mount(self) -> None:
        """Colour the code as the code view does, in every theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._recolour())
        self._recolour()

    def _recolour(self) -> None:
        kinds = ANSI_STYLES if self.app.native_ansi_color else STYLES
        name = f"gistpoint {self.app.theme}"
        styles = {kind: (self.visual_style + Style.parse(style)).rich_style for kind, style in kinds.items()}
        bare = {kind: RichStyle(color=s.color, bold=s.bold, italic=s.italic) for kind, s in styles.items()}
        self.register_theme(TextAreaTheme(name, syntax_styles={c: bare[k] for c, k in _KIND_OF_CAPTURE.items()}))
        self.theme = name

    # The text is kept sealed in the document; what is read from and given to the editor is open.

    @property
    def code(self) -> str:
        """The text as it is to be saved."""
        return self._seal.open(self.text)

    @property
    def selected_text(self) -> str:
        """The selected text as it is to be copied."""
        return self._seal.open(super().selected_text)

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn: control characters as glyphs."""
        return Text(self._seal.shown(self.document.get_line(line_index)), end="", no_wrap=True)

    @property
    def buffer(self) -> str:
        """The name of what is edited, `path::qualname`."""
        return self._buffer

    def load_buffer(self, name: str, text: str) -> None:
        """Tell what is unsaved, then edit another text; its undo history begins anew."""
        self.flush()
        self._buffer, self._told = name, text
        self._seal = Seal(text)
        self.load_text(self._seal.close(text))
        self.history.clear()
        self.border_title = plain_line(name)

    def tell(self, text: str) -> None:
        """Post the text with its buffer."""
        self.post_message(self.Edited(self, self._buffer, text))

    def action_leave(self) -> None:
        """Give the focus back, so that tab moves on."""
        self.screen.focus_next()

    def on_key(self, event: events.Key) -> None:
        """Indent the selected lines at tab; the base class would put blanks in their place."""
        if event.key == "tab" and not self.selection.is_empty:
            event.stop()
            event.prevent_default()
            rows = self._selected_rows()
            lines = [self.document.get_line(row) for row in rows]
            self.replace("\n".join(line and f"    {line}" for line in lines), (rows[0], 0), (rows[-1], len(lines[-1])))
            self.selection = Selection((rows[0], 0), (rows[-1], len(self.document.get_line(rows[-1]))))

    def _selected_rows(self) -> range:
        """Return the lines that are selected; not the last one if nothing of it is."""
        start, end = sorted((self.selection.start, self.selection.end))
        return range(start[0], end[0] + (end[1] > 0 or start[0] == end[0]))

    def action_outdent(self) -> None:
        """Take up to four blanks from the start of each selected line."""
        for row in self._selected_rows():
            line = self.document.get_line(row)
            blanks = min(4, len(line) - len(line.lstrip(" ")))
            if blanks:
                self.delete((row, 0), (row, blanks))

    def edit_in_external_editor(self, on_saved: Callable[[str], None] | None = None) -> bool:
        """Suspend the app, hand the text to the user's editor, and take over what it saved; False if unchanged.

        `on_saved` is told each save while the editor is open, on a thread. Undo brings the text back as it was. Raises
        `external_editor.ExternalEditorError`; the text is then untouched.
        """
        self.flush()
        before = self.code
        after = edited_externally(self.app, before, suffix=".py", on_saved=on_saved)
        if after == before:
            return False
        if Seal(after).needed and not self._seal.needed:
            self._seal = Seal(before + after)
        self.replace(self._seal.close(after), self.document.start, self.document.end)
        self.flush()
        return True
