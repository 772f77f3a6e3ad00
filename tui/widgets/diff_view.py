"""A view of the differences between two strings: unified, or side by side if there is room."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import ClassVar, Literal

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.worker import get_current_worker

from gistpoint.core.diffs import (
    CONTEXT,
    DiffLine,
    DiffLineKind,
    FileDiff,
    Hunk,
    changes_within,
    compute,
    numbered_from,
    side_by_side,
)
from gistpoint.tui import signs
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.line_view import LineView, Span
from gistpoint.tui.widgets.syntax import LineTokens, tokens_by_line
from gistpoint.tui.widgets.text_lines import LONGEST_ROW, TextLines

Side = Literal["old", "new", "both"]

_GAP = signs.FOLDED
_GUTTER = 10
"""The cells of one side that contain no text: number, sign and scroll bar."""
SIGNS = {DiffLineKind.ADDED: "+", DiffLineKind.REMOVED: "-", DiffLineKind.CONTEXT: " "}
_BACKGROUNDS = {DiffLineKind.ADDED: "on $success 16%", DiffLineKind.REMOVED: "on $error 16%"}
_ANSI = {DiffLineKind.ADDED: "ansi_green", DiffLineKind.REMOVED: "ansi_red"}
_CHANGED = {DiffLineKind.ADDED: "bold on $success 38%", DiffLineKind.REMOVED: "bold on $error 38%"}
_ANSI_CHANGED = "bold underline"


@dataclass(frozen=True, slots=True)
class PaneLine:
    """A line of a pane: a line of the diff, a heading, or a gap where only the other side has a line."""

    text: str
    line: DiffLine | None = None
    other: str | None = None
    """The line on the other side that replaces this one or is replaced by it; None if there is none."""
    heading: bool = False


@dataclass(slots=True)
class SideTokens:
    """The tokens of the old and the new text, by line. A thread adds them."""

    old: list[LineTokens] = field(default_factory=list)
    new: list[LineTokens] = field(default_factory=list)

    def of(self, line: DiffLine) -> LineTokens | None:
        """Return the tokens of a line of the diff; None if they are not known yet."""
        tokens, number = (self.old, line.old) if line.new is None else (self.new, line.new)
        return tokens[number - 1] if number is not None and number <= len(tokens) else None


def unified_lines(files: Sequence[FileDiff], *, headers: bool = True) -> list[PaneLine]:
    """Return the lines of a unified view. `headers` adds hunk headers, which a whole text does not need."""
    found: list[PaneLine] = []
    for diff in files:
        found.append(PaneLine(_title(diff), heading=True))
        for hunk in diff.hunks:
            if headers:
                found.append(PaneLine(hunk.header, heading=True))
            partners = _partners(hunk)
            found += [
                PaneLine(_text(line), line, partners.get(index)) for index, line in enumerate(hunk.lines)
            ]
    return found


def split_lines(files: Sequence[FileDiff], *, headers: bool = True) -> tuple[list[PaneLine], list[PaneLine]]:
    """Return the lines of both sides of a side-by-side view: the same number for each side.

    Without `headers`, the headers of hunks are left out.
    """
    left: list[PaneLine] = []
    right: list[PaneLine] = []
    for diff in files:
        left.append(PaneLine(_title(diff), heading=True))
        right.append(PaneLine("", heading=True))
        for hunk in diff.hunks:
            if headers:
                left.append(PaneLine(hunk.header, heading=True))
                right.append(PaneLine("", heading=True))
            for old, new in side_by_side(hunk):
                paired = old is not None and new is not None and old is not new
                left.append(PaneLine(_text(old), old, new.text if paired and new else None))
                right.append(PaneLine(_text(new), new, old.text if paired and old else None))
    return left, right


def _brief(lines: list[PaneLine]) -> list[PaneLine]:
    """Return the lines of one file's diff without headings, and with a separator between hunks."""
    return [PaneLine(_GAP, heading=True) if line.heading else line for line in lines[2:]]


def _title(diff: FileDiff) -> str:
    is_renamed = diff.old_path and diff.new_path and diff.old_path != diff.new_path
    former = f"{diff.old_path} {signs.LEADS} " if is_renamed else ""
    state = ""
    if diff.old_path is None:
        state = " (new)"
    elif diff.new_path is None:
        state = " (deleted)"
    if diff.binary:
        size = "binary"
    else:
        size = f"+{diff.added} -{diff.removed}" if diff.added or diff.removed else "no differences"
    return f"{former}{diff.path}{state}  {size}".strip()


def _text(line: DiffLine | None) -> str:
    if line is None:
        return ""
    return line.text if line.newline else f"{line.text}  (no newline at the end)"


def _partners(hunk: Hunk) -> dict[int, str]:
    """Return, by the index of each line in a hunk, the text that replaces it or is replaced by it."""
    index_of = {id(line): index for index, line in enumerate(hunk.lines)}
    found: dict[int, str] = {}
    for old, new in side_by_side(hunk):
        if old is not None and new is not None and old is not new:
            found[index_of[id(old)]], found[index_of[id(new)]] = new.text, old.text
    return found


class DiffPane(CodeView):
    """The lines of a diff, with their numbers and signs."""

    DEFAULT_CSS = """
    DiffPane { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "hunk(1)", "Next change", show=False, id="diff.next_hunk"),
        Binding("N", "hunk(-1)", "Previous change", show=False, id="diff.previous_hunk"),
    ]

    class Scrolled(Message):
        """A message that the pane was scrolled."""

        def __init__(self, pane: DiffPane) -> None:
            super().__init__()
            self.pane = pane

    class WrapRequested(Message):
        """A request to switch between wrapping and scrolling on both sides."""

    def __init__(self, side: Side, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.side: Side = side
        """The side whose line numbers are in the gutter, or both."""
        self._pane_lines: list[PaneLine] = []
        self._sides = SideTokens()
        self._digits = 3
        self._inside: dict[int, list[tuple[int, int]]] = {}

    def show_lines(self, lines: list[PaneLine], sides: SideTokens) -> None:
        """Show other lines. Their tokens in `sides` may be added later."""
        self._pane_lines, self._sides, self._inside = lines, sides, {}
        numbers = [n for pane_line in lines if (line := pane_line.line) for n in (line.old, line.new) if n]
        self._digits = max(3, len(str(max(numbers, default=0))))
        self._forget_search()
        self.show_text("\n".join(line.text for line in lines))

    @property
    def starts_of_changes(self) -> list[int]:
        """The indexes of the lines at which changes begin."""
        changed = [self._is_change(index) for index in range(len(self._pane_lines))]
        begins = [now and not before for before, now in pairwise([False, *changed])]
        return [index for index, is_start in enumerate(begins) if is_start]

    def _is_change(self, index: int) -> bool:
        pane_line = self._pane_lines[index]
        line = pane_line.line
        return not pane_line.heading and (line is None or line.kind is not DiffLineKind.CONTEXT)

    def action_hunk(self, by: int) -> None:
        """Move to the next or previous match during a search, otherwise to the next or previous change.

        If there is no change, the key is left to the screen.
        """
        pattern, _ = self._pattern
        if pattern:
            self._step_match(by)
            return
        here = self.cursor_index
        starts = self.starts_of_changes
        if not starts:
            raise SkipAction
        if by > 0:
            target = next((start for start in starts if start > here), None)
        else:
            target = next((start for start in reversed(starts) if start < here), None)
        if target is not None:
            self.go_to(target + self.first_line)
            self.use_affordance("jump")

    def action_toggle_wrap(self) -> None:
        """Ask to switch between wrapping and scrolling on both sides."""
        self.post_message(self.WrapRequested())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Report that the pane was scrolled, so that the other side follows."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled(self))

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Report that the pane was scrolled, so that the other side follows."""
        super().watch_scroll_x(old_value, new_value)
        self.post_message(self.Scrolled(self))

    # Drawing

    def gutter_width(self) -> int:
        """Return the width of the gutter: the cursor, one or two numbers, and the sign."""
        return 1 + (self._digits + 1) * (2 if self.side == "both" else 1) + 2

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Return the cursor, numbers and sign of a line."""
        shown = self._pane_lines[line] if line < len(self._pane_lines) else PaneLine("")
        numbered = None if continued else shown.line
        numbers = [numbered.old if numbered else None, numbered.new if numbered else None]
        numbers = numbers[{"both": slice(2), "old": slice(1), "new": slice(1, 2)}[self.side]]
        text = "".join(f"{'' if n is None else n:>{self._digits}} " for n in numbers)
        kind = shown.line.kind if shown.line else DiffLineKind.CONTEXT
        sign = signs.WRAPPED if continued else SIGNS[kind]
        cursor = signs.HERE if line == self.cursor_index and not continued else " "
        background = self.line_style(line)
        return [
            (cursor, "bold $text-primary"),
            (text, "$foreground 60%"),
            (f"{sign} ", f"bold {background}".strip()),
        ]

    def line_style(self, line: int) -> str:
        """Return the style of a heading, or the background for a line's kind of change; empty for none."""
        if line >= len(self._pane_lines):
            return ""
        shown = self._pane_lines[line]
        if shown.heading:
            return "bold $text-primary"
        if shown.line is None:
            return "on $foreground 5%" if not self.app.native_ansi_color else ""
        return (_ANSI if self.app.native_ansi_color else _BACKGROUNDS).get(shown.line.kind, "")

    def line_tokens(self, line: int) -> LineTokens | None:
        """Return the tokens of a line, from the old or the new text.

        None if they are not known yet, for headings and gaps, and for changed lines in ANSI colours.
        """
        shown = self._pane_lines[line].line if line < len(self._pane_lines) else None
        ansi_change = (
            self.app.native_ansi_color and shown is not None and shown.kind is not DiffLineKind.CONTEXT
        )
        return self._sides.of(shown) if shown is not None and not ansi_change else None

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the changed words of a line, followed by its syntax colours and matches."""
        shown = self._pane_lines[line] if line < len(self._pane_lines) else PaneLine("")
        if shown.line is None or shown.other is None:
            return super().spans(line, start, end)
        if line not in self._inside:
            self._inside[line] = changes_within(shown.line.text, shown.other)[0]
        style = self.overlay(_ANSI_CHANGED if self.app.native_ansi_color else _CHANGED[shown.line.kind])
        changed = [
            (max(a, start), min(b, end), style) for a, b in self._inside[line] if b > start and a < end
        ]
        return changed + super().spans(line, start, end)


SIDE_BY_SIDE_WIDTH = 120
"""The minimum width, in cells, at which both sides are shown."""

_AT_ONCE = 200_000
"""The total length of both strings, in characters, up to which they are not compared in a thread."""


class DiffView(Horizontal):
    """A diff with numbers and signs; `n` and `N` go from change to change."""

    DEFAULT_CSS = """
    DiffView { height: 1fr; width: 1fr; }
    DiffView .-right { display: none; border-left: vkey $border-blurred; }
    DiffView.-split .-right { display: block; }
    DiffView.-split .-left { scrollbar-size-vertical: 0; }
    """
    HELP = (
        "n and N go to the next and previous change, or match of a search; w wraps lines; arrows and page"
        " keys move."
    )

    class _Computed(Message):
        def __init__(self, files: tuple[FileDiff, ...], before: str, after: str) -> None:
            super().__init__()
            self.files = files
            self.texts = (before, after)

    class _Coloured(Message):
        def __init__(self, sides: SideTokens) -> None:
            super().__init__()
            self.sides = sides

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._files: tuple[FileDiff, ...] = ()
        self._sides = SideTokens()
        self._wrap: bool | None = None
        """Whether long lines are wrapped.

        None until the user chooses: lines are then wrapped unless all of them fit side by side.
        """
        self._whole = self._brief = False
        self._first_line = 1
        self._left = DiffPane("both", classes="-left")
        self._right = DiffPane("new", classes="-right")

    def compose(self) -> ComposeResult:
        """Lay out both sides. The second is hidden unless there is room."""
        yield self._left
        yield self._right

    @property
    def files(self) -> tuple[FileDiff, ...]:
        """The files of the displayed diff."""
        return self._files

    @property
    def split(self) -> bool:
        """Whether both sides are shown."""
        return self.has_class("-split")

    @property
    def _unchanged(self) -> int | None:
        return None if self._whole else 1 if self._brief else CONTEXT

    @property
    def pane(self) -> DiffPane:
        """The pane to which searches and movements apply: the one with the focus, otherwise the first."""
        return self._right if self.split and self._right.has_focus else self._left

    def load(
        self,
        before: str,
        after: str,
        *,
        name: str = "",
        language: str | None = "python",
        whole: bool = False,
        first_line: int = 1,
        brief: bool = False,
    ) -> None:
        """Show how `after` differs from `before`. Long strings are compared in a thread, and not coloured.

        With `whole`, all unchanged lines are shown as well. `first_line` is the line of the file at which
        both texts start. A `brief` diff has no headings, and one unchanged line around each change.
        """
        self.workers.cancel_group(self, "diff")
        self._whole, self._first_line, self._brief = whole, first_line, brief
        if len(before) + len(after) <= _AT_ONCE:
            diff = compute(before, after, old_path=name, new_path=name, context=self._unchanged)
            self._show_texts((diff,), before, after, language)
        else:
            self.run_worker(
                lambda: self._compute(before, after, name), thread=True, group="diff", exit_on_error=False
            )

    def load_diff(self, files: Sequence[FileDiff]) -> None:
        """Show a diff that was parsed or computed elsewhere."""
        self.workers.cancel_group(self, "diff")
        self._sides = SideTokens()
        self._files, self._whole, self._brief = tuple(files), False, False
        self._lay_out()

    def search(self, pattern: str, *, regex: bool = False) -> int:
        """Search the current pane, and return the number of matches; see `CodeView.search`."""
        return self.pane.search(pattern, regex=regex)

    def focus(self, scroll_visible: bool = True) -> DiffView:
        """Focus the first pane, and return the view."""
        self._left.focus(scroll_visible)
        return self

    def _compute(self, before: str, after: str, name: str) -> None:
        worker = get_current_worker()
        diff = compute(before, after, old_path=name, new_path=name, context=self._unchanged)
        if not worker.is_cancelled:
            self.post_message(self._Computed((diff,), before, after))

    def on_diff_view__computed(self, message: _Computed) -> None:
        """Show the diff that a thread has computed."""
        message.stop()
        self._show_texts(message.files, *message.texts, None)

    def _show_texts(self, files: tuple[FileDiff, ...], before: str, after: str, language: str | None) -> None:
        above = [array("i")] * (self._first_line - 1)
        self._sides = sides = SideTokens([*above], [*above])
        self._files = tuple(numbered_from(diff, self._first_line) for diff in files)
        self._lay_out()
        if language is not None and self.is_attached and files[0].hunks:
            self.run_worker(
                lambda: self._colour(sides, before, after, language),
                thread=True,
                group="diff",
                exit_on_error=False,
            )

    def _colour(self, sides: SideTokens, before: str, after: str, language: str) -> None:
        worker = get_current_worker()
        for tokens, text in ((sides.old, before), (sides.new, after)):
            for chunk in tokens_by_line(TextLines(text), language, lambda: worker.is_cancelled):
                tokens.extend(chunk)
        if not worker.is_cancelled:
            self.post_message(self._Coloured(sides))

    def on_diff_view__coloured(self, message: _Coloured) -> None:
        """Draw the lines again, with their colours."""
        message.stop()
        if message.sides is self._sides:
            self._left.redraw()
            self._right.redraw()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        """Lay the diff out again if the number of visible sides changes."""
        if self._splits(event.size.width) != self.split:
            self._lay_out()

    def _splits(self, width: int) -> bool:
        # Rows align only if no line is wrapped.
        if width < SIDE_BY_SIDE_WIDTH or self._wrap:
            return False
        room = LONGEST_ROW if self._wrap is False else width // 2 - _GUTTER
        hunks = chain.from_iterable(file.hunks for file in self._files)
        return all(len(line.text) <= room for hunk in hunks for line in hunk.lines)

    def _lay_out(self) -> None:
        split = self._splits(self.size.width)
        self.set_class(split, "-split")
        self._left.side = "old" if split else "both"
        self._left.wrap = not split and self._wrap is not False
        if split:
            left, right = split_lines(self._files, headers=not self._whole)
            if self._brief:
                left, right = _brief(left), _brief(right)
            self._left.show_lines(left, self._sides)
            self._right.show_lines(right, self._sides)
            # Both sides get the same width: with a scroll bar below only one side, the other could scroll
            # further.
            widest = max(self._left.virtual_size.width, self._right.virtual_size.width)
            for pane in (self._left, self._right):
                pane.virtual_size = pane.virtual_size.with_width(widest)
        else:
            lines = unified_lines(self._files, headers=not self._whole)
            self._left.show_lines(_brief(lines) if self._brief else lines, self._sides)
            if self._right.has_focus:
                self._left.focus()

    @on(DiffPane.Scrolled)
    def _follow_scroll(self, message: DiffPane.Scrolled) -> None:
        message.stop()
        if self.split:
            other = self._right if message.pane is self._left else self._left
            x, y = message.pane.scroll_offset
            if other.scroll_offset != (x, y):
                other.place(x, y)

    @on(LineView.CursorMoved)
    def _follow_cursor(self, message: LineView.CursorMoved) -> None:
        if self.split and message.view.has_focus:
            other = self._right if message.view is self._left else self._left
            other.cursor_line = message.line

    @on(DiffPane.WrapRequested)
    def _toggle_wrap(self, message: DiffPane.WrapRequested) -> None:
        message.stop()
        self._wrap = not (self._left.wrap if self._wrap is None else self._wrap)
        self._lay_out()
