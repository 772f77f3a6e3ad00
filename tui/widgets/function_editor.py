"""The code editor, which indents lines, marks a line that Python can't parse, and undoes every edit."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.document._document import EditResult, Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._history import EditHistory
from textual.geometry import Offset, Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.widgets.text_area import Selection, TextAreaTheme

from gistpoint.core.code.parsing import Fault
from gistpoint.core.code.snippet import fault_of
from gistpoint.core.diffs import compute
from gistpoint.tui.external_editor import edited_externally
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.widgets.code_document import CodeDocument, UnfoldedLines
from gistpoint.tui.widgets.code_rows import CodeRow, NumberedRow, RowStyles, draw, numbered
from gistpoint.tui.widgets.python_typing import (
    backspace_length,
    commented,
    indented,
    level_of,
    new_line,
    outdented,
)
from gistpoint.tui.widgets.syntax import ANSI_STYLES, STYLES
from gistpoint.tui.widgets.text_seal import TextSeal, needs_seal
from gistpoint.tui.widgets.writing_area import WritingArea

_Rows = list[NumberedRow | None]
"""The visible rows from the top; None after the end of the text."""
_Sight = tuple[object, _Rows]
"""How rows are drawn (offsets, size and styles), and the visible rows."""

PAUSE_SECONDS = 0.3
"""Seconds between posting a typed text and checking it."""
_REST = 10
"""The pause after a slow check, as a multiple of the check's duration."""
_UNDONE = 2_000
"""The number of steps that can be undone in a buffer."""


@dataclass(frozen=True, slots=True)
class CodeState:
    """Why Python can't parse code, and how many lines were added to and removed from `start` to get it.

    Before the first check, `checked` is False and nothing is known about the code.
    """

    fault: Fault | None = None
    added: int = 0
    removed: int = 0
    checked: bool = True


_UNCHECKED = CodeState(checked=False)


@dataclass(frozen=True, slots=True)
class _Left:
    """The content and the state of a buffer that is not displayed."""

    text: str
    seal: TextSeal
    history: EditHistory
    selection: Selection
    scroll: Offset


def _fresh_history() -> EditHistory:
    return EditHistory(max_checkpoints=_UNDONE, checkpoint_timer=2.0, checkpoint_max_characters=100)


class FunctionEditor(WritingArea):
    """Editable Python code in named buffers, each with its own cursor and undo history.

    Lines are not wrapped; a mark at the end of a row shows that its line continues. Brackets and quotes are
    not closed automatically: a solver types them, as a model writes them.
    """

    DEFAULT_CSS = """
    FunctionEditor { border: none; padding: 0; background: $background; }
    FunctionEditor:focus { border: none; }
    FunctionEditor { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    FunctionEditor > .function-editor--fault { color: $text-error; text-style: bold; }
    FunctionEditor > .function-editor--more { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"function-editor--fault", "function-editor--more"}
    HELP = (
        "Enter keeps the indent, and adds a level after a colon; Backspace removes one. Tab and Shift+Tab"
        " move the selected lines, Ctrl+/ comments them out. Ctrl+Z undoes, Ctrl+Y redoes, separately for"
        " each function. Esc and then Tab leaves the editor."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+tab", "outdent", "Outdent", show=False, id="editor.outdent"),
        Binding("ctrl+underscore,ctrl+slash", "comment", "Comment", show=False, id="editor.comment"),
        Binding("ctrl+home", "top", "Top", show=False, id="editor.top"),
        Binding("ctrl+end", "bottom", "Bottom", show=False, id="editor.bottom"),
        Binding("escape", "leave", "Leave the editor", show=False, id="editor.leave"),
    ]

    class Edited(WritingArea.Edited):
        """A message that a buffer was edited; `text` is its new text."""

        def __init__(self, editor: FunctionEditor, buffer: str, text: str) -> None:
            super().__init__(editor, text)
            self.buffer = buffer

    class Checked(Message):
        """A message that the displayed text was checked."""

        def __init__(self, editor: FunctionEditor, text: str) -> None:
            super().__init__()
            self.editor = editor
            self.text = text

        @property
        def control(self) -> FunctionEditor:
            """The editor, for Textual's message selectors."""
            return self.editor

    check: Callable[[str], Fault | None] = staticmethod(fault_of)
    """Returns why Python can't parse code; None if Python can. Called in a thread."""
    start: str | None = None
    """The text that the displayed one is compared with; None for no comparison."""

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
        self._state = _UNCHECKED
        self._strips: LRUCache[CodeRow, Strip] = LRUCache(512)
        self._drawn_as = (0, 0, 0)
        self._shown: _Sight | None = None
        self._looks: RowStyles | None = None
        self._brackets: tuple[Location, ...] = ()
        super().__init__(
            self._seal.close(text),
            soft_wrap=False,
            tab_behavior="indent",
            show_line_numbers=True,
            max_checkpoints=_UNDONE,
            name=name,
            id=id,
            classes=classes,
        )
        self._buffer = buffer
        self._posted = text
        self._left: dict[str, _Left] = {}
        self._jobs = Jobs(self, "code")
        self._seconds = 0.0

    def on_mount(self) -> None:
        """Use the colours of the code view, in every theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._recolour())
        self._recolour()

    def on_unmount(self) -> None:
        """End the thread."""
        self._jobs.stop()

    # The document holds the sealed text. Text is unsealed when it leaves the editor.

    @property
    def code(self) -> str:
        """The text of the buffer, unsealed."""
        return self._seal.open(self.text)

    @property
    def selected_text(self) -> str:
        """The selected text, unsealed."""
        return self._seal.open(super().selected_text)

    def action_cut(self) -> None:
        """Cut the selection, or else the line, to the clipboard, unsealed."""
        super().action_cut()
        if self._seal.needed:
            self.app.copy_to_clipboard(self._seal.open(self.app.clipboard))

    def _sealed(self, text: str) -> str:
        text = re.sub(r"\r\n?", "\n", text)
        if needs_seal(text) and not self._seal.needed:
            self._seal = TextSeal(self.code + text)
        return self._seal.close(text)

    # Buffers

    @property
    def buffer(self) -> str:
        """The name of the buffer, such as `path::qualname`; empty if there is none."""
        return self._buffer

    @property
    def state(self) -> CodeState:
        """The result of the last check."""
        return self._state

    def load_buffer(self, name: str, text: str, *, start: str | None = None, first_line: int = 1) -> None:
        """Post the unsaved text, then display a buffer. A buffer edited earlier gets its undo history back.

        If its text has changed in the meantime, that becomes a step which can be undone. `start` is the text
        to compare with, `first_line` the number of the first line.
        """
        self.flush()
        if name != self._buffer or not name:
            if self._buffer:
                self._left[self._buffer] = self._leave()
            self._begin(self._left.pop(name, None), text)
        self._buffer = name
        self._become(text)
        self._posted, self.start, self._state = text, start, _UNCHECKED
        self.line_number_start = first_line
        self._check_after(0)

    def _begin(self, kept: _Left | None, text: str) -> None:
        self.history = _fresh_history()  # loading text clears the current history
        self._seal = TextSeal(text) if kept is None else kept.seal
        self.load_text(self._seal.close(text) if kept is None else kept.text)
        if kept is not None:
            self.history, self.selection = kept.history, kept.selection
            self.scroll_to(*kept.scroll, animate=False)

    def _leave(self) -> _Left:
        return _Left(self.text, self._seal, self.history, self.selection, self.scroll_offset)

    def _become(self, text: str) -> None:
        """Replace the text in a single step that can be undone, with the cursor in the same line."""
        if text == self.code:
            return
        if TextSeal(text).needed and not self._seal.needed:
            self._seal = TextSeal(self.code + text)
        row, column = self.cursor_location
        self.replace(self._seal.close(text), self.document.start, self.document.end)
        self.move_cursor((min(row, self.document.line_count - 1), column))

    def post_text(self, text: str) -> None:
        """Post the text of the buffer, and check it after a pause in typing."""
        self.post_message(self.Edited(self, self._buffer, text))
        self._check_after(PAUSE_SECONDS)

    def action_leave(self) -> None:
        """Focus the next widget, in which Tab moves the focus again."""
        self.screen.focus_next()

    def edit_in_external_editor(self, on_saved: Callable[[str], None] | None = None) -> bool:
        """Suspend the app, open the text in the user's editor, and load what that editor has saved.

        Return whether the text was changed, which can be undone. `on_saved` is as in `edited_externally`.
        Raises `external_editor.ExternalEditorError` if that fails; the text is then unchanged.
        """
        self.flush()
        before = self.code
        after = edited_externally(self.app, before, suffix=".py", on_saved=on_saved)
        self._become(after)
        self.flush()
        return after != before

    # Checking

    def _check_after(self, seconds: float) -> None:
        text, start, check, begun = self._posted, self.start, self.check, 0.0

        def check_text(_job: object) -> CodeState:
            nonlocal begun
            begun = time.monotonic()
            changed = compute(text if start is None else start, text, context=0)
            return CodeState(check(text), changed.added, changed.removed)

        def take(state: CodeState) -> None:
            self._seconds = time.monotonic() - begun
            self._state = state
            self.refresh()
            self.post_message(self.Checked(self, text))

        self._jobs.do(
            check_text, take, key="check", delay=max(seconds, _REST * self._seconds if seconds else 0)
        )

    # Typing

    async def on_key(self, event: events.Key) -> None:
        """Handle Enter and Tab: start an indented line, or indent at the cursor or the selected lines."""
        if event.key not in ("enter", "tab") or self.read_only:
            return
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self._new_line()
        elif self.selection.is_empty:
            level, column = level_of(self.document.lines), self.cursor_location[1]
            blanks = level if level == "\t" else " " * (len(level) - column % len(level))
            self._replace_via_keyboard(blanks, *self.selection)
        else:
            self._change_lines(lambda lines: indented(lines, level_of(self.document.lines)))

    def _new_line(self) -> None:
        (top, left), (bottom, right) = sorted(self.selection)
        lines = self.document.lines
        if not self.selection.is_empty:
            lines = [*lines[:top], lines[top][:left] + lines[bottom][right:], *lines[bottom + 1 :]]
        new = new_line(lines, top, left)
        self._replace_via_keyboard(new.text, (top, left - new.before), (bottom, right + new.after))
        if new.back:
            row = self.cursor_location[0] - 1
            self.move_cursor((row, len(self.document.get_line(row))))

    def action_delete_left(self) -> None:
        """Delete the selection; if there is none, a level of the indent before the cursor, or a character."""
        row, column = self.cursor_location
        head = self.document.get_line(row)[:column]
        blanks = backspace_length(head, level_of(self.document.lines)) if head and not head.strip() else 1
        if self.selection.is_empty and blanks > 1:
            self._delete_via_keyboard((row, column - blanks), (row, column))
        else:
            super().action_delete_left()

    def action_outdent(self) -> None:
        """Remove a level of indentation from the selected lines."""
        self._change_lines(lambda lines: outdented(lines, level_of(self.document.lines)))

    def action_undo(self) -> None:
        """Undo the last step, or report that there is none. Steps of earlier sessions can't be undone."""
        if self.history.undo_stack:
            super().action_undo()
        else:
            self.app.notify("There is nothing to undo.")

    def action_redo(self) -> None:
        """Redo the last step that was undone, or report that there is none."""
        if self.history.redo_stack:
            super().action_redo()
        else:
            self.app.notify("There is nothing to redo.")

    def action_top(self) -> None:
        """Move the cursor to the start of the text."""
        self.move_cursor((0, 0))

    def action_bottom(self) -> None:
        """Move the cursor to the end of the text."""
        self.move_cursor(self.document.end)

    def action_comment(self) -> None:
        """Comment out the selected lines, or uncomment them."""
        self._change_lines(commented)

    def _change_lines(self, change: Callable[[Sequence[str]], list[str]]) -> None:
        """Change the selected lines in one step; a last line of which nothing is selected is left out."""
        if self.read_only:
            return
        (start, end), alone = self.selection, self.selection.is_empty
        top, bottom = sorted((start, end))
        rows = range(top[0], bottom[0] + (alone or bottom[1] > 0))
        lines = [self.document.get_line(row) for row in rows]
        changed = change(lines)
        if changed == lines:
            return
        self.replace("\n".join(changed), (rows[0], 0), (rows[-1], len(lines[-1])))
        if alone:
            column = start[1] + len(changed[0]) - len(lines[0])
            self.selection = Selection.cursor((rows[0], max(0, column)))
        else:
            whole = Selection((rows[0], 0), (rows[-1], len(changed[-1])))
            self.selection = whole if start < end else Selection(whole.end, whole.start)

    # Overrides of Textual's methods, some of them private: only visible rows are drawn.

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        """Insert typed or pasted text, sealed."""
        return super()._replace_via_keyboard(self._sealed(insert), start, end)

    def _set_document(self, text: str, language: str | None) -> None:
        """Use a `CodeDocument`: Textual's document highlights all lines after each key."""
        self.document = self._python = CodeDocument(text)
        self.wrapped_document = UnfoldedLines(self.document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self.move_cursor((0, 0))
        self._rewrap_and_refresh_virtual_size()

    def _build_highlight_map(self) -> None:
        """Do nothing: lines are highlighted when they are drawn."""

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        """Return the position of the bracket matching one at or before `search_from`; None if none does."""
        row, column = search_from
        for place in ((row, column), (row, column - 1)):
            partner = self._python.partner(place) if place[1] >= 0 else None
            if partner is not None:
                self._brackets = (place, partner)
                return partner
        self._brackets = ()
        return None

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, and back to the start of the lines if the cursor is visible from there."""
        scrolled = super().scroll_cursor_visible(center, animate)
        self._scroll_back()
        return scrolled

    def _scroll_back(self) -> None:
        room = self.scrollable_content_region.width - self.gutter_width
        if self.scroll_x and self._cursor_offset[0] < room - 3:
            self.scroll_to(x=0, animate=False, force=True)

    def on_resize(self) -> None:
        """Scroll back to the start of the lines, since a newly opened editor has had no width until now."""
        self.call_after_refresh(self._scroll_back)

    # Drawing

    def _recolour(self) -> None:
        kinds = ANSI_STYLES if self.app.native_ansi_color else STYLES
        name = f"gistpoint {self.app.theme}"
        styles = {kind: (self.visual_style + Style.parse(style)).rich_style for kind, style in kinds.items()}
        bare = {
            kind: RichStyle(color=style.color, bold=style.bold, italic=style.italic)
            for kind, style in styles.items()
        }
        self.register_theme(TextAreaTheme(name, syntax_styles=bare))
        self.theme = name

    def notify_style_update(self) -> None:
        """Drop the cached rows, since the colours have changed."""
        super().notify_style_update()
        self._looks = None
        self._strips.clear()

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> FunctionEditor:
        """Draw again, but only the rows that have changed."""
        if repaint and self.is_mounted:
            now, before = self._sight(), self._shown
            self._shown = now
            only_rows = not (layout or recompose)
            if only_rows and now is not None and before is not None and now[0] == before[0]:
                regions = self._to_draw(regions, now, before[1])
                repaint = bool(regions)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _to_draw(self, regions: tuple[Region, ...], now: _Sight, before: _Rows) -> tuple[Region, ...]:
        """Return the regions to draw: the given ones, or if there are none, the rows that have changed."""
        how, rows = now
        if not regions:
            width = self.size.width
            changed = (y for y, row in enumerate(rows) if row != before[y])
            return tuple(Region(0, y, width, 1) for y in changed)
        drawn = {y for region in regions for y in range(region.y, region.bottom)}
        # Rows outside the regions stay on the screen as they were drawn before.
        self._shown = how, [row if y in drawn else before[y] for y, row in enumerate(rows)]
        return regions

    def _sight(self) -> _Sight | None:
        """Return how rows are drawn now, and the visible rows; None if rows can't be compared yet."""
        if self._looks is None or self.placeholder or not self.size:
            return None
        top, height = self.scroll_offset.y, self.size.height
        lines = self.document.line_count
        rows = [self._row(line) if line < lines else None for line in range(top, top + height)]
        return (self._place_now(), self.size, self._looks), rows

    def _place_now(self) -> tuple[int, int, int]:
        """Return the horizontal scroll offset, the width of a row, and the width of the gutter, in cells."""
        return self.scroll_offset.x, self.scrollable_content_region.width, self.gutter_width

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the visible rows, dropping cached rows if the offset or a width has changed."""
        if self._place_now() != self._drawn_as:
            self._drawn_as = self._place_now()
            self._strips.clear()
        # Not `TextArea.render_lines`, which looks up all styles again.
        return ScrollView.render_lines(self, crop)

    def render_line(self, y: int) -> Strip:
        """Draw a row. Equal rows are drawn once."""
        line, looks = self.scroll_offset.y + y, self._styles_now()
        is_empty = self.document.line_count == 1 and not self.document.get_line(0)
        if self.placeholder and is_empty:
            return super().render_line(y)
        if line >= self.document.line_count:
            return Strip.blank(self.size.width, looks.base)
        shown, (left, width, gutter) = self._row(line), self._drawn_as
        strip = self._strips.get(shown.row)
        if strip is None:
            strip = self._strips[shown.row] = draw(shown.row, looks, left, width - gutter, self.app.console)
        return numbered(shown, strip, looks, gutter)

    def _row(self, line: int) -> NumberedRow:
        text, selection, fault = (
            self._seal.shown(self.document.get_line(line)),
            self.selection,
            self._state.fault,
        )
        alone, here = selection.is_empty, selection.end[0] == line
        selected = None
        if not alone and selection.contains_line(line):
            (first, start), (last, end) = sorted(selection)
            selected = (start if line == first else 0, end if line == last else len(text) + 1)
        row = CodeRow(
            text,
            self._python.spans(line),
            at_cursor=here and self.highlight_cursor_line,
            selected=selected,
            brackets=tuple(at for row, at in self._brackets if row == line and alone),
            cursor=selection.end[1] if here and self._draw_cursor else None,
        )
        return NumberedRow(row, line + self.line_number_start, fault is not None and fault.line == line + 1)

    def _styles_now(self) -> RowStyles:
        if self._looks is None:
            theme, part, none = self._theme, self.get_component_rich_style, RichStyle()
            theme.apply_css(self)
            self._looks = RowStyles(
                base=theme.base_style or none,
                line=(theme.base_style or none) + (theme.cursor_line_style or none),
                gutter=theme.gutter_style or none,
                line_gutter=theme.cursor_line_gutter_style or none,
                fault=part("function-editor--fault"),
                more=part("function-editor--more"),
                selected=theme.selection_style or none,
                bracket=theme.bracket_matching_style or none,
                cursor=theme.cursor_style or none,
                syntax=theme.syntax_styles,
            )
        return self._looks
