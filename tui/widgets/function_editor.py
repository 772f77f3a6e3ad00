"""The editor for a function, which protects odd characters, with a link to the user's own editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import ClassVar

from rich.style import Style as RichStyle
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.style import Style
from textual.widgets.text_area import Selection, TextAreaTheme

from gistpoint.core.text import visible
from gistpoint.tui.external_editor import edited_externally
from gistpoint.tui.widgets.plain import plain_line
from gistpoint.tui.widgets.syntax import ANSI_STYLES, STYLES
from gistpoint.tui.widgets.writing_area import WritingArea

_CANDIDATES = (
    *range(0x300),
    0x61C,
    0x180E,
    *range(0x2000, 0x2070),
    *range(0xD800, 0xE000),
    0xFEFF,
    *range(0xFFF0, 0x10000),
    *range(0xE0000, 0xE0080),
)
_SPAN = 0x1000
_AREAS = (*range(0xF0000, 0xFF000, _SPAN), *range(0x100000, 0x10F000, _SPAN))


@cache
def _dangerous() -> str:
    return "".join(chr(code) for code in _CANDIDATES if chr(code) == "\r" or visible(chr(code)) != chr(code))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"[{re.escape(_dangerous())}]")


class TextSeal:
    """Protects characters that an editor would interpret or lose, by characters of a private-use area in their place.

    An editor that splits lines at form feeds, or encodes lone surrogates, would change a text by loading it.
    `close` and `open` are inverse for texts without characters of that area.
    """

    def __init__(self, text: str = "") -> None:
        """Choose an area that `text` has no character of; carriage returns are kept if they end every line."""
        regular = "\r" not in text or text.count("\r") == text.count("\r\n") == text.count("\n")
        self._kept = "\r" if regular else ""
        self.needed = bool(_pattern().search(text.replace("\r", "") if regular else text))
        used = {ord(character) & ~(_SPAN - 1) for character in set(text) if ord(character) >= _AREAS[0]}
        self._area = next((area for area in _AREAS if area not in used), _AREAS[-1])
        self._close = {
            ord(c): self._area + place for place, c in enumerate(_dangerous()) if not (c == "\r" and self._kept)
        }
        self._open = {sealed: raw for raw, sealed in self._close.items()}
        self._show = {sealed: visible(chr(raw)) for raw, sealed in self._close.items()}

    def close(self, text: str) -> str:
        """Return `text` with every dangerous character replaced, character for character."""
        return text.translate(self._close) if self.needed else text

    def open(self, text: str) -> str:
        """Return the original of a sealed text."""
        return text.translate(self._open) if self.needed else text

    def shown(self, text: str) -> str:
        """Return a sealed text for display, character for character."""
        return visible(text.translate(self._show) if self.needed else text)


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
    """Python code to edit, in a named buffer."""

    DEFAULT_CSS = """
    FunctionEditor { border: none; padding: 0; background: $background; }
    FunctionEditor:focus { border: none; }
    FunctionEditor { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    HELP = (
        "Tab indents by four spaces, or all selected lines; Ctrl+Z undoes, Ctrl+Y redoes, "
        "Esc and then Tab leaves the editor."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+tab", "outdent", "Outdent", show=False, id="editor.outdent"),
        Binding("escape", "leave", "Leave the editor", show=False, id="editor.leave"),
    ]

    class Edited(WritingArea.Edited):
        """A buffer's current text."""

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
        self._seal = TextSeal(text)
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
        """Colour the code like the code view, in every theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._recolour())
        self._recolour()

    def _recolour(self) -> None:
        kinds = ANSI_STYLES if self.app.native_ansi_color else STYLES
        name = f"gistpoint {self.app.theme}"
        styles = {kind: (self.visual_style + Style.parse(style)).rich_style for kind, style in kinds.items()}
        bare = {kind: RichStyle(color=s.color, bold=s.bold, italic=s.italic) for kind, s in styles.items()}
        self.register_theme(TextAreaTheme(name, syntax_styles={c: bare[k] for c, k in _KIND_OF_CAPTURE.items()}))
        self.theme = name

    # The document holds the sealed text; text read from or given to the editor is unsealed.

    @property
    def code(self) -> str:
        """The text to be saved, unsealed."""
        return self._seal.open(self.text)

    @property
    def selected_text(self) -> str:
        """The selected text to be copied, unsealed."""
        return self._seal.open(super().selected_text)

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn: control characters as glyphs."""
        return Text(self._seal.shown(self.document.get_line(line_index)), end="", no_wrap=True)

    @property
    def buffer(self) -> str:
        """The name of the edited function, `path::qualname`."""
        return self._buffer

    def load_buffer(self, name: str, text: str) -> None:
        """Post the unsaved text, then edit another text with an empty undo history."""
        self.flush()
        self._buffer, self._told = name, text
        self._seal = TextSeal(text)
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
        """Indent the selected lines at tab; the base class would replace them with blanks."""
        if event.key == "tab" and not self.selection.is_empty:
            event.stop()
            event.prevent_default()
            rows = self._selected_rows()
            lines = [self.document.get_line(row) for row in rows]
            self.replace("\n".join(line and f"    {line}" for line in lines), (rows[0], 0), (rows[-1], len(lines[-1])))
            self.selection = Selection((rows[0], 0), (rows[-1], len(self.document.get_line(rows[-1]))))

    def _selected_rows(self) -> range:
        """Return the selected lines; the last one only if some of it is selected."""
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
        """Suspend the app, open the text in the user's editor, and take over what it saved; False if unchanged.

        `on_saved` gets the text of each save while the editor is open, on a thread. Undo restores the text. Raises
        `external_editor.ExternalEditorError`; the text is then untouched.
        """
        self.flush()
        before = self.code
        after = edited_externally(self.app, before, suffix=".py", on_saved=on_saved)
        if after == before:
            return False
        if TextSeal(after).needed and not self._seal.needed:
            self._seal = TextSeal(before + after)
        self.replace(self._seal.close(after), self.document.start, self.document.end)
        self.flush()
        return True
