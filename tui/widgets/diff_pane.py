"""One column of a diff: the whole of it unified, or one side of it beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.message import Message

from gistpoint.core.diffs import DiffLine, FileDiff, Hunk, LineKind, changes_within, side_by_side
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.row_view import Span
from gistpoint.tui.widgets.syntax import LineTokens

Side = Literal["old", "new", "both"]

SIGNS = {LineKind.ADDED: "+", LineKind.REMOVED: "-", LineKind.CONTEXT: " "}
_BACKGROUNDS = {LineKind.ADDED: "on $success 16%", LineKind.REMOVED: "on $error 16%"}
_ANSI = {LineKind.ADDED: "ansi_green", LineKind.REMOVED: "ansi_red"}
_CHANGED = {LineKind.ADDED: "bold on $success 38%", LineKind.REMOVED: "bold on $error 38%"}
_ANSI_CHANGED = "bold underline"


@dataclass(frozen=True, slots=True)
class PaneLine:
    """A line of a pane: of the diff, a heading, or a gap beside a longer other side."""

    text: str
    line: DiffLine | None = None
    other: str | None = None
    """The line on the other side that this one replaced or was replaced by."""
    heading: bool = False


@dataclass(slots=True)
class SideTokens:
    """Syntax of the old and the new text by line; filled by a thread."""

    old: list[LineTokens] = field(default_factory=list)
    new: list[LineTokens] = field(default_factory=list)

    def of(self, line: DiffLine) -> LineTokens | None:
        """Return the tokens of a line of a diff if they were found yet."""
        tokens, number = (self.old, line.old) if line.new is None else (self.new, line.new)
        return tokens[number - 1] if number is not None and number <= len(tokens) else None


def unified_lines(files: Sequence[FileDiff], *, headers: bool = True) -> list[PaneLine]:
    """Return the lines of a unified view; without `headers` where every hunk is a whole text."""
    found: list[PaneLine] = []
    for diff in files:
        found.append(PaneLine(_title(diff), heading=True))
        for hunk in diff.hunks:
            if headers:
                found.append(PaneLine(hunk.header, heading=True))
            partners = _partners(hunk)
            found += [PaneLine(_text(line), line, partners.get(index)) for index, line in enumerate(hunk.lines)]
    return found


def split_lines(files: Sequence[FileDiff], *, headers: bool = True) -> tuple[list[PaneLine], list[PaneLine]]:
    """Return the lines of both sides of a view side by side, as many on the one as on the other."""
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


def _title(diff: FileDiff) -> str:
    renamed = f"{diff.old_path} → " if diff.old_path and diff.new_path and diff.old_path != diff.new_path else ""
    made = " (new)" if diff.old_path is None else " (deleted)" if diff.new_path is None else ""
    what = (
        "binary"
        if diff.binary
        else f"+{diff.added} -{diff.removed}"
        if diff.added or diff.removed
        else "no differences"
    )
    return f"{renamed}{diff.path}{made}  {what}".strip()


def _text(line: DiffLine | None) -> str:
    if line is None:
        return ""
    return line.text if line.newline else f"{line.text}  (no newline at the end)"


def _partners(hunk: Hunk) -> dict[int, str]:
    """Return for each line of a hunk (by index) the text that it replaced, or was replaced by."""
    index_of = {id(line): index for index, line in enumerate(hunk.lines)}
    found: dict[int, str] = {}
    for old, new in side_by_side(hunk):
        if old is not None and new is not None and old is not new:
            found[index_of[id(old)]], found[index_of[id(new)]] = new.text, old.text
    return found


class DiffPane(CodeView):
    """Lines of a diff with their numbers and signs."""

    DEFAULT_CSS = """
    DiffPane { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "hunk(1)", "Next change", show=False, id="diff.next_hunk"),
        Binding("p", "hunk(-1)", "Previous change", show=False, id="diff.previous_hunk"),
        Binding("N", "next_match", "Next match", show=False, id="diff.next_match"),
    ]

    class CursorMoved(CodeView.CursorMoved):
        """The cursor stands on another line."""

    class Comfort(CodeView.Comfort):
        """Something that costs no budget was used, see `RowView.Comfort`."""

    class Scrolled(Message):
        """Another part is in sight."""

        def __init__(self, pane: DiffPane) -> None:
            super().__init__()
            self.pane = pane

    class WrapWanted(Message):
        """Lines are to be folded or not, which concerns both sides."""

    def __init__(self, side: Side, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.side: Side = side
        """Whose numbers stand in the gutter."""
        self._pane_lines: list[PaneLine] = []
        self._sides = SideTokens()
        self._digits = 3
        self._inside: dict[int, list[tuple[int, int]]] = {}

    def show_lines(self, lines: list[PaneLine], sides: SideTokens) -> None:
        """Show other lines, coloured by tokens that may follow later."""
        self._pane_lines, self._sides, self._inside = lines, sides, {}
        numbers = [n for pane_line in lines if (line := pane_line.line) for n in (line.old, line.new) if n]
        self._digits = max(3, len(str(max(numbers, default=0))))
        self._forget_search()
        self.show_text("\n".join(line.text for line in lines))

    @property
    def starts_of_changes(self) -> list[int]:
        """The indices of the lines at which a run of changed lines begins."""
        changed = [self._is_change(index) for index in range(len(self._pane_lines))]
        return [i for i, now in enumerate(changed) if now and not (i and changed[i - 1])]

    def _is_change(self, index: int) -> bool:
        pane_line = self._pane_lines[index]
        line = pane_line.line
        return not pane_line.heading and (line is None or line.kind is not LineKind.CONTEXT)

    def action_hunk(self, by: int) -> None:
        """Go to the next or previous run of changed lines."""
        here = self.cursor_index
        starts = self.starts_of_changes
        if by > 0:
            target = next((start for start in starts if start > here), None)
        else:
            target = next((start for start in reversed(starts) if start < here), None)
        if target is not None:
            self.go_to(target + self.first_line)
            self.comfort("jump")

    def action_toggle_wrap(self) -> None:
        """Ask for the other way: it concerns both sides."""
        self.post_message(self.WrapWanted())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell, so that the other side follows."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled(self))

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Tell, so that the other side follows."""
        super().watch_scroll_x(old_value, new_value)
        self.post_message(self.Scrolled(self))

    # Drawing

    def gutter_width(self) -> int:
        """The cursor, one number or two, and the sign."""
        return 1 + (self._digits + 1) * (2 if self.side == "both" else 1) + 2

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Cursor, numbers and sign."""
        shown = self._pane_lines[line] if line < len(self._pane_lines) else PaneLine("")
        said = None if continued else shown.line
        numbers = [said.old if said else None, said.new if said else None]
        numbers = numbers[{"both": slice(2), "old": slice(1), "new": slice(1, 2)}[self.side]]
        text = "".join(f"{'' if n is None else n:>{self._digits}} " for n in numbers)
        kind = shown.line.kind if shown.line else LineKind.CONTEXT
        sign = "↪" if continued else SIGNS[kind]
        cursor = "▸" if line == self.cursor_index and not continued else " "
        background = self.line_style(line)
        return [(cursor, "bold $text-primary"), (text, "$foreground 60%"), (f"{sign} ", f"bold {background}".strip())]

    def line_style(self, line: int) -> str:
        """Return the colour of what happened to a line."""
        if line >= len(self._pane_lines):
            return ""
        shown = self._pane_lines[line]
        if shown.heading:
            return "bold $text-primary"
        if shown.line is None:
            return "on $foreground 5%" if not self.app.native_ansi_color else ""
        return (_ANSI if self.app.native_ansi_color else _BACKGROUNDS).get(shown.line.kind, "")

    def line_tokens(self, line: int) -> LineTokens | None:
        """Return the tokens of the line of the old or new text."""
        shown = self._pane_lines[line].line if line < len(self._pane_lines) else None
        ansi_change = self.app.native_ansi_color and shown is not None and shown.kind is not LineKind.CONTEXT
        return self._sides.of(shown) if shown is not None and not ansi_change else None

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Syntax, then the words that changed, then matches."""
        shown = self._pane_lines[line] if line < len(self._pane_lines) else PaneLine("")
        if shown.line is None or shown.other is None:
            return super().spans(line, start, end)
        if line not in self._inside:
            self._inside[line] = changes_within(shown.line.text, shown.other)[0]
        style = self.overlay(_ANSI_CHANGED if self.app.native_ansi_color else _CHANGED[shown.line.kind])
        changed = [(max(a, start), min(b, end), style) for a, b in self._inside[line] if b > start and a < end]
        return changed + super().spans(line, start, end)
