"""A choice of one or several options, drawn with marks. All text is literal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from gistpoint.core.text import visible_line
from gistpoint.tui import signs

Row: TypeAlias = list[tuple[str, int | None]]
"""The pieces of a row, each with the index of its option; None for other text."""
_GAP = "   "
_INDENT = "    "


class Options(Widget, can_focus=True):
    """Options to choose from, which are a single tab stop. Arrows move; Space, Enter and digits choose."""

    DEFAULT_CSS = """
    Options { height: auto; width: 1fr; padding: 0 0 0 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,left", "move(-1)", "Previous", show=False, id="form.before"),
        Binding("down,right", "move(1)", "After", show=False, id="form.after"),
        Binding("space,enter", "choose", "Choose", show=False, id="form.choose"),
    ]
    chosen: reactive[frozenset[int]] = reactive(frozenset, layout=True, init=False)
    cursor: reactive[int] = reactive(0, init=False)

    class Changed(Message):
        """A message that the chosen options have changed."""

    def __init__(
        self,
        labels: Sequence[str],
        *,
        several: bool = False,
        alone: Iterable[int] = (),
        scale: int = 0,
        ends: Sequence[str] = (),
        id: str | None = None,
    ) -> None:
        """If `several` options can be chosen, those in `alone` exclude all others.

        The first `scale` options are the points of a scale, drawn as digits between the labels in `ends`.
        """
        super().__init__(id=id)
        self._labels = [visible_line(label) for label in labels]
        self._several, self._alone = several, frozenset(alone)
        self._scale, self._ends = scale, [visible_line(end) for end in ends]

    # Drawing

    def _mark(self, number: int) -> str:
        if number < self._scale:
            label = self._labels[number]
            return f"({label})" if number in self.chosen else f" {label} "
        if self._several:
            return f"[{'x' if number in self.chosen else ' '}] {self._labels[number]}"
        return f"({signs.FULL if number in self.chosen else ' '}) {self._labels[number]}"

    def rows(self, width: int) -> list[Row]:
        """Return rows for `width` cells: options side by side if they fit, otherwise one below another."""
        rows = self._scale_rows(width) if self._scale else []
        rest = list(range(self._scale, len(self._labels)))
        row: Row = []
        for number in rest:
            row += [(_GAP, None), (self._mark(number), number)] if row else [(self._mark(number), number)]
        if _width(row) <= width:
            together = [*rows[0], (_GAP, None), *row] if len(rows) == 1 and row else []
            if together and _width(together) <= width:
                return [together]
            return [*rows, row] if row else rows
        for number in rest:
            for line in folded(self._mark(number), width):
                rows.append([(line, number)])
        return rows

    def _scale_rows(self, width: int) -> list[Row]:
        points: Row = [(self._mark(number), number) for number in range(self._scale)]
        if len(self._ends) != 2:
            return [points]
        low, high = self._ends
        whole: Row = [(f"{low} ", None), *points, (f" {high}", None)]
        if _width(whole) <= width:
            return [whole]
        first, last = self._labels[0], self._labels[self._scale - 1]
        words = [*folded(f"{first} = {low}", width), *folded(f"{last} = {high}", width)]
        rows: list[Row] = [[(line, None)] for line in words]
        return [*rows, points]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows that the options take."""
        return len(self.rows(max(1, width)))

    def render(self) -> Content:
        """Return the options, with the one at the cursor in reverse video while the widget has the focus."""
        lines = []
        for row in self.rows(max(1, self.content_size.width)):
            lines.append(Content("").join([self._styled(text, number) for text, number in row]))
        return Content("\n").join(lines)

    def _styled(self, text: str, number: int | None) -> Content:
        if number is None:
            return Content(text)
        if self.has_focus and number == self.cursor:
            return Content.styled(text, "reverse")
        return Content.styled(text, "bold") if number in self.chosen else Content(text)

    def watch_cursor(self) -> None:
        """Scroll the option at the cursor into view, if the options are in a scrolling container."""
        around = self.parent
        if isinstance(around, ScrollableContainer):
            at = [
                y
                for y, row in enumerate(self.rows(max(1, self.content_size.width)))
                if any(number == self.cursor for _, number in row)
            ]
            if at:
                here = Region(0, at[0], 1, len(at)).translate(self.virtual_region.offset)
                around.scroll_to_region(here, animate=False)

    def watch_has_focus(self, has_focus: bool) -> None:
        """Draw or remove the cursor."""
        super().watch_has_focus(has_focus)
        self.refresh()

    # Choosing

    def pick(self, number: int) -> None:
        """Choose an option; if several can be chosen, tick or untick it. An unknown number is ignored."""
        if not 0 <= number < len(self._labels):
            return
        self.cursor = number
        now = frozenset({number})
        if self._several and number in self.chosen:
            now = self.chosen - now
        elif self._several and number not in self._alone:
            now = (self.chosen - self._alone) | now
        if now != self.chosen:
            self.chosen = now
            self.post_message(self.Changed())

    @property
    def chosen_words(self) -> str:
        """The labels of the chosen options, one per line."""
        return "\n".join(self._labels[number] for number in sorted(self.chosen))

    def choose(self, words: str) -> None:
        """Choose exactly the options with these labels, given one per line; unknown ones are ignored."""
        wanted = words.split("\n")
        now = frozenset(number for number, label in enumerate(self._labels) if label in wanted)
        if now != self.chosen:
            self.chosen = now
            self.cursor = min(now, default=self.cursor)
            self.post_message(self.Changed())

    def action_move(self, by: int) -> None:
        """Move to another option. In a single choice that is already made, also choose it."""
        to = min(max(0, self.cursor + by), len(self._labels) - 1)
        if self._several or not self.chosen:
            self.cursor = to
        else:
            self.pick(to)

    def action_choose(self) -> None:
        """Choose the option at the cursor."""
        self.pick(self.cursor)

    def on_key(self, event: events.Key) -> None:
        """Choose an option by its digit; 0 is the tenth option, or a point of a scale that contains it."""
        character = event.character or ""
        if not (character.isascii() and character.isdecimal()):
            return
        event.stop()
        if self._scale and character in self._labels[: self._scale]:
            self.pick(self._labels.index(character))
        else:
            self.pick((int(character) or 10) - 1)

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked option."""
        at = event.get_content_offset(self)
        rows = self.rows(max(1, self.content_size.width))
        if at is None or at.y >= len(rows):
            return
        column = 0
        for text, number in rows[at.y]:
            column += cell_len(text)
            if at.x < column:
                if number is not None:
                    self.pick(number)
                return


def _width(row: Row) -> int:
    return sum(cell_len(text) for text, _ in row)


def folded(text: str, width: int) -> list[str]:
    """Return text wrapped to lines of at most `width` cells, with an indent before all but the first."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width or not line.strip():
            line = longer
        else:
            lines.append(line)
            line = _INDENT + word
    lines.append(line)
    return [part for line in lines for part in _cut(line, max(width, 2 * len(_INDENT)))]


def _cut(line: str, width: int) -> list[str]:
    """Return a line in parts of at most `width` cells, because a single word may be longer."""
    parts = []
    while cell_len(line) > width:
        cut = len(line)
        while cell_len(line[:cut]) > width:
            cut -= 1
        parts.append(line[:cut])
        line = _INDENT + line[cut:]
    return [*parts, line]
