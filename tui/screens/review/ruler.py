"""The strip along the top: what happened when, how long it took, what it cost, what was left of the budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

BLOCKS = " ▁▂▃▄▅▆▇█"
GUTTER = 9


class Ruler(Widget):
    """Draws rows of values along the steps; a click goes to the step under the mouse."""

    DEFAULT_CSS = """
    Ruler { height: 4; width: 1fr; background: $surface; color: $foreground; }
    """

    class StepAsked(Message):
        """A place of the strip was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.steps = 0
        self.cursor = 0
        self.marks: Mapping[int, tuple[str, str]] = {}
        """Glyph and style by step; of several in one cell the first that is there is drawn."""
        self.series: Sequence[tuple[str, Sequence[float], str]] = ()
        """Name, a value per step, and style of each row below the marks."""
        self._styles: dict[str, RichStyle] = {}
        self._drawn: tuple[object, ...] = ()

    def notify_style_update(self) -> None:
        """Forget what was drawn in other colours."""
        super().notify_style_update()
        self._styles.clear()

    def move(self, cursor: int) -> None:
        """Show another place, redrawn only where its column is another one."""
        old, self.cursor = self.column_of(self.cursor), cursor
        if self.column_of(cursor) != old:
            self.refresh()

    @property
    def columns(self) -> int:
        """Cells that the steps are spread over."""
        return max(1, self.size.width - GUTTER)

    def column_of(self, step: int) -> int:
        """Return the cell (from 0) of a step."""
        if self.steps <= self.columns:
            return step * self._stretch()
        return step * self.columns // self.steps

    def _stretch(self) -> int:
        return max(1, min(4, self.columns // max(1, self.steps)))

    def step_of(self, column: int) -> int:
        """Return the first step that a cell stands for."""
        if self.steps <= self.columns:
            return min(max(0, self.steps - 1), column // self._stretch())
        return -(-column * self.steps // self.columns)

    def style(self, text: str) -> RichStyle:
        """Return a style over the widget's own."""
        found = self._styles.get(text)
        if found is None:
            base = self.visual_style
            found = self._styles[text] = (base + Style.parse(text) if text else base).rich_style
        return found

    def render_line(self, y: int) -> Strip:
        """Draw a row: the marks, then the values."""
        width = self.size.width
        if y == 0:
            cells = self._mark_cells()
            name = "marks"
        elif y - 1 < len(self.series):
            name, values, style = self.series[y - 1]
            cells = [(glyph, style) for glyph in self._bars(values)]
        else:
            return Strip.blank(width, self.style(""))
        here = self.column_of(self.cursor)
        segments = [
            Segment(f"{name[: GUTTER - 2]:>{GUTTER - 2}} ", self.style("$foreground 60%")),
            Segment("▏", self.style("")),
        ]
        for column, (glyph, style) in enumerate(cells):
            ground = " on $block-cursor-background" if column == here else ""
            segments.append(Segment(glyph, self.style((style + ground).strip())))
        return Strip(segments).simplify().crop_extend(0, width, self.style(""))

    def _mark_cells(self) -> list[tuple[str, str]]:
        cells = [
            ("·" if self.column_of(0) <= column <= self.column_of(max(0, self.steps - 1)) else " ", "$foreground 30%")
            for column in range(self.columns)
        ]
        taken: set[int] = set()
        for step, mark in self.marks.items():
            column = self.column_of(step)
            if column < len(cells) and column not in taken:
                taken.add(column)
                cells[column] = mark
        here = self.column_of(self.cursor)
        if here < len(cells) and here not in taken:
            cells[here] = ("▾", "bold $text-primary")
        return cells

    def _bars(self, values: Sequence[float]) -> str:
        top = max(values, default=0.0)
        if not top > 0:
            return " " * self.columns
        cells = [0.0] * self.columns
        for step, value in enumerate(values):
            column = self.column_of(step)
            if column < len(cells):
                cells[column] = max(cells[column], value)
        if self.steps and self.steps <= self.columns:
            stretch = self._stretch()
            cells = [cells[column - column % stretch] for column in range(len(cells))]
        return "".join(BLOCKS[min(8, -(-int(value * 8 * 1000 / top) // 1000))] for value in cells)

    def on_click(self, event: events.Click) -> None:
        """Go to the step under the mouse."""
        if event.x >= GUTTER - 1 and self.steps:
            self.post_message(self.StepAsked(min(self.steps - 1, self.step_of(event.x - GUTTER + 1))))
