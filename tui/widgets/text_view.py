"""A view of tool results and test output, raw or as a terminal would show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from gistpoint.tui import signs
from gistpoint.tui.widgets.code_view import ANSI_MATCH, MATCH, CodeView
from gistpoint.tui.widgets.line_view import Span

if TYPE_CHECKING:
    from gistpoint.tui.widgets.terminal_text import TerminalLine

LEADS = signs.LEADS
"""The symbol of a line with a link."""


PartKind = Literal["match", "heading", "context"]
StyledPart = tuple[int, int, PartKind]
"""The start, the end and the kind of a part of a line."""


class TextView(CodeView):
    """A view of text in no particular language. While its end is visible, `append` keeps it visible."""

    DEFAULT_CSS = """
    TextView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "toggle_terminal", "Raw or as in a terminal", show=False, id="text.terminal"),
        Binding("enter", "open_place", "Open", id="text.place"),
    ]

    terminal: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether escape sequences and carriage returns are interpreted, which `can_interpret` must allow."""

    class PlaceRequested(Message):
        """A request to open the place that the line at the cursor names."""

        def __init__(self, place: object) -> None:
            super().__init__()
            self.place = place

    def __init__(
        self,
        *,
        can_interpret: bool = False,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.enter_moves_on = False
        """Whether Enter on a line that names no place goes on to the next one that names one."""
        self.can_interpret = can_interpret
        """Whether `t` may interpret the text. Reviewers may do so; solvers see the raw text."""
        self._raw = ""
        self._places: Mapping[int, object] = {}
        self._looks: list[TerminalLine] = []
        self._parts: Mapping[int, Sequence[StyledPart]] = {}
        self._clicked, self._opened = -1, False
        """The index of the line that was clicked last, and whether the click opened its place."""
        self.numbers = False

    def load(self, text: str, *, language: str | None = None, first_line: int = 1, title: str = "") -> None:
        """Show text, without links at first."""
        self._raw, self._places, self._parts, self._clicked = text, {}, {}, -1
        super().load(self._shown(), language=language, first_line=first_line, title=title)

    @property
    def raw(self) -> str:
        """The raw text, regardless of the form in which it is shown."""
        return self._raw

    @property
    def places(self) -> Mapping[int, object]:
        """The place that each line names, by the line's index.

        Such lines have a symbol. Enter or a second click on one asks to open the place.
        """
        return self._places

    @places.setter
    def places(self, places: Mapping[int, object]) -> None:
        had_places, self._places = bool(self._places), places
        self.marks = {line + self.first_line: LEADS for line in places}
        if had_places != bool(places):
            self._fold()  # wraps the lines again, since the symbols take a column
        self.refresh_bindings()

    @property
    def parts(self) -> Mapping[int, Sequence[StyledPart]]:
        """The styled parts of each line, such as what a search has found, by the line's index."""
        return self._parts

    @parts.setter
    def parts(self, parts: Mapping[int, Sequence[StyledPart]]) -> None:
        self._parts = parts
        self.redraw()

    def gutter_width(self) -> int:
        """Return the width of the gutter, with a space after the symbols of lines that name places."""
        return super().gutter_width() + (1 if self._places and not self.numbers else 0)

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Return the gutter of a line, with a space after its symbol if lines name places."""
        found = super().line_gutter(line, continued=continued)
        return [*found, (" ", "")] if self._places and not self.numbers else found

    def watch_cursor_line(self, old: int, new: int) -> None:
        """Move the cursor, and update the offered keys."""
        super().watch_cursor_line(old, new)
        if (old - self.first_line in self._places) != (new - self.first_line in self._places):
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer Enter only on a line that names a place, or if Enter moves on to such a line."""
        if action == "open_place":
            return self.cursor_index in self._places or (self.enter_moves_on and bool(self._places))
        return super().check_action(action, parameters)

    def action_open_place(self) -> None:
        """Ask to open the place that the line at the cursor names, or the next one if Enter moves on."""
        names_no_place = self.cursor_index not in self._places
        if self.enter_moves_on and self._places and names_no_place:
            later = [line for line in self._places if line > self.cursor_index]
            self.go_to(min(later or self._places) + self.first_line)
        place = self._places.get(self.cursor_index)
        if place is not None:
            self.post_message(self.PlaceRequested(place))

    def on_click(self, event: events.Click) -> None:
        """Open the place that a line names at the second click on it, however long after the first."""
        offset = event.get_content_offset(self)
        line = self.rows.at(self._row_under(offset))[0] if offset is not None else -1
        again = line == self._clicked == self.cursor_index
        # A double click on a line that was clicked before must open its place only once.
        is_second_half = self._opened and event.chain > 1
        if again and not is_second_half:
            self._opened = True
            self.action_open_place()
        elif not again:
            self._clicked, self._opened = line, False

    def append(self, text: str) -> None:
        """Add text at the end, and keep the end visible if it is."""
        if not text:
            return
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._raw += text
        self.show_text(self._shown(), first_line=self.first_line, keep_place=True)
        self.search_again()
        if at_end:
            self.place(self.scroll_offset.x, max(0, len(self.rows) - self.sight.height))

    def validate_terminal(self, terminal: bool) -> bool:
        """Return whether to interpret the text; always False if `can_interpret` is not set."""
        return terminal and self.can_interpret

    def watch_terminal(self) -> None:
        """Show the same text in the other form."""
        pattern, regex = self._pattern
        self.show_text(self._shown(), first_line=self.first_line, keep_place=True)
        self._forget_search()
        if pattern:
            self.search(pattern, regex=regex)

    def action_toggle_terminal(self) -> None:
        """Switch between the raw text and the interpreted one."""
        if self.can_interpret:
            self.terminal = not self.terminal
            self.use_affordance("terminal")

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the colours that the text itself sets, followed by all others."""
        found = super().spans(line, start, end)
        if line in self._parts:
            parts = [
                (max(first, start), min(last, end), self.overlay(self._style_of(part)))
                for first, last, part in self._parts[line]
                if last > start and first < end
            ]
            found = parts + found
        if self.terminal and line < len(self._looks):
            looks = [
                (max(first, start), min(last, end), self.overlay(look))
                for first, last, look in self._looks[line].looks
                if last > start and first < end
            ]
            return looks + found
        return found

    def _style_of(self, part: PartKind) -> str:
        if part == "match":
            return ANSI_MATCH if self.app.native_ansi_color else MATCH
        return "bold" if part == "heading" else "$foreground 60%"

    def _shown(self) -> str:
        if not self.terminal:
            self._looks = []
            return self._raw
        from gistpoint.tui.widgets.terminal_text import terminal_lines

        self._looks = terminal_lines(self._raw)
        return "\n".join(line.text for line in self._looks)
