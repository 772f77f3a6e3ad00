"""The strip along a run's steps: marks, durations, tokens, costs and remaining budgets."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gistpoint.tui import signs
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.line_canvas import laid_over

if TYPE_CHECKING:
    from gistpoint.tui.screens.review.survey import Survey

BLOCKS = f" {signs.EIGHTHS_UP}"
GUTTER = 9
_WIDEST = 4
"""The maximum number of cells that a step takes."""
_DENSE_STEPS = 4
"""The number of steps per cell above which a cell shows the share of errors instead of a mark."""
_RARE_CELLS = 4
"""One in this many cells may show a rare mark."""


class Ruler(Widget):
    """A strip with a row of marks and rows of values along the steps of a run.

    A click goes to the step under the mouse, and dragging goes through the steps.
    """

    DEFAULT_CSS = """
    Ruler { height: auto; width: 1fr; color: $foreground; }
    """

    class StepRequested(Message):
        """A request for the step on which the strip was clicked, or to which the mouse was dragged."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.steps = 0
        self.cursor = 0
        self.weights: Sequence[int] = ()
        """The rank of each step's most important mark, 0 for none."""
        self._survey: Survey | None = None
        self.glyphs: Sequence[tuple[str, str]] = ()
        """The glyph and the style of each mark, by its rank, counted from 1."""
        self.series: Sequence[tuple[str, Sequence[float], str]] = ()
        """The rows below the marks: name, a value per step, and style."""
        self.hits: Sequence[int] = ()
        """The step of each search hit."""
        self.columns = 1
        """The number of cells over which the steps can be spread."""
        self._rows: dict[int, list[tuple[str, str]]] = {}
        self._styles: dict[str, RichStyle] = {}

    def notify_style_update(self) -> None:
        """Drop the cached styles, since the colours have changed."""
        super().notify_style_update()
        self._styles.clear()

    def clear(self) -> None:
        """Clear the strip before another run is shown."""
        self.steps = self.cursor = 0
        self.weights, self.series, self.hits, self._survey = (), (), (), None
        self._redraw()

    def show_run(self, steps: int, survey: Survey | None, *, wide: bool, hides: bool) -> None:
        """Show the known part of a run; unless `wide`, only the first row of values.

        `hides` leaves out the cost, and all facts of a survey made before this was hidden.
        """
        self.steps = steps
        if survey is None and hides and self._survey is not None and not self._survey.hides:
            self._forget_survey()
        elif survey is not None:
            from gistpoint.tui.screens.review.survey import LOOKS, legend

            series = [*self._hit_row(), *survey.series(hides=hides)]
            rows = len(self.series)
            self.series, self.weights, self.glyphs = series if wide else series[:1], survey.weights, LOOKS
            if len(self.series) != rows:
                self.refresh(layout=True)
            self._survey = survey
            rare = survey.rare(self.columns // _RARE_CELLS) if self._has_many else None
            explained = [
                Content.assemble((glyph, style), f" {words}") for glyph, style, words in legend(survey, rare)
            ]
            framed(self, "Course", Content("  ").join(explained))
        self._redraw()

    def _forget_survey(self) -> None:
        """Remove the marks and the values, which show what is hidden now."""
        self.weights, self.series, self._survey = (), (), None
        framed(self, "Course")
        self.refresh(layout=True)

    def _hit_row(self) -> list[tuple[str, Sequence[float], str]]:
        counts = array("f", bytes(4 * self.steps))
        for step in self.hits:
            if step < self.steps:
                counts[step] += 1
        return [("hits", counts, "$text-warning")] if self.hits else []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height: a line for the marks, and one for each row of values."""
        return 1 + len(self.series)

    def move(self, cursor: int) -> None:
        """Move the cursor, and redraw the strip only if the cursor's column changes."""
        old, self.cursor = self.column_of(self.cursor), cursor
        if self.column_of(cursor) != old:
            self.refresh()

    def _redraw(self) -> None:
        self._rows.clear()
        self.refresh()

    def on_resize(self) -> None:
        """Spread the steps over the new width."""
        self._rows.clear()
        self.columns = max(1, self.size.width - GUTTER)

    @property
    def _used(self) -> int:
        """The number of cells that the steps take, at most a few for each step."""
        return min(self.columns, _WIDEST * self.steps)

    def column_of(self, step: int) -> int:
        """Return the first cell of a step, counted from 0."""
        if self.steps <= self.columns:
            return -(-step * self._used // max(1, self.steps))
        return step * self.columns // self.steps

    def step_of(self, column: int) -> int:
        """Return the first step of a cell."""
        if self.steps <= self.columns:
            return min(max(0, self.steps - 1), column * self.steps // max(1, self._used))
        return -(-column * self.steps // self.columns)

    def style(self, text: str) -> RichStyle:
        """Return a style laid over the widget's own."""
        found = self._styles.get(text)
        if found is None:
            found = self._styles[text] = laid_over(self.visual_style, text)
        return found

    def render_line(self, y: int) -> Strip:
        """Draw the marks, or a row of values."""
        width = self.size.width
        if y > len(self.series):
            return Strip.blank(width, self.style(""))
        if y not in self._rows:
            self._rows[y] = self._mark_cells() if y == 0 else self._bars(*self.series[y - 1][1:])
        name = "marks" if y == 0 else self.series[y - 1][0]
        here = self.column_of(self.cursor)
        gutter = Segment(f"{name[: GUTTER - 2]:>{GUTTER - 2}} ", self.style("$foreground 60%"))
        segments = [gutter, Segment(signs.EDGE, self.style(""))]
        for column, (glyph, style) in enumerate(self._rows[y]):
            if column == here:
                # Only marks are reversed: a reversed bar looks like one of a different height.
                marked = y == 0 and glyph not in f"{BLOCKS}·"
                glyph = glyph if marked or y else signs.UNFOLDED
                style += " reverse" if marked else " on $block-cursor-background"
            segments.append(Segment(glyph, self.style(style.strip())))
        return Strip(segments).simplify().crop_extend(0, width, self.style(""))

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield for each cell the first step in it and the first step after it."""
        if self.steps <= self.columns:
            for column in range(self._used):
                yield self.step_of(column), self.step_of(column) + 1
        else:
            starts = [self.step_of(column) for column in range(self.columns + 1)]
            for first, after in pairwise(starts):
                yield first, max(first + 1, after)

    @property
    def _has_many(self) -> bool:
        """Whether a cell covers so many steps that the most important mark would hide differences."""
        return self.steps > _DENSE_STEPS * self.columns

    def _dense_cells(self, survey: Survey) -> list[tuple[str, str]]:
        from gistpoint.sessions.runs.facts import StepMark
        from gistpoint.tui.screens.review.survey import GLYPHS

        rare = survey.rare(self.columns // _RARE_CELLS)
        cells: list[tuple[str, str]] = []
        for first, after in self._spans():
            mark = survey.marks_among(first, after, rare)
            share = sum(survey.errors[first:after]) / (after - first)
            height = (
                (BLOCKS[math.ceil(share * 8)], GLYPHS[StepMark.ERROR][1])
                if share
                else ("·", "$foreground 60%")
            )
            cells.append(GLYPHS[mark] if mark is not None else height)
        return cells

    def _mark_cells(self) -> list[tuple[str, str]]:
        if self._has_many and self._survey is not None:
            return self._dense_cells(self._survey)
        cells: list[tuple[str, str]] = []
        for column, (first, last) in enumerate(self._spans()):
            weight = max(self.weights[first:last], default=0)
            starts = self.steps > self.columns or column == self.column_of(first)
            cells.append(self.glyphs[weight - 1] if weight and starts else ("·", "$foreground 60%"))
        return cells

    def _bars(self, values: Sequence[float], style: str) -> list[tuple[str, str]]:
        spans = ((values[first:after], after - first) for first, after in self._spans())
        if self._has_many:
            cells = [sum(found) / count for found, count in spans]
        else:
            cells = [max(found, default=0.0) for found, _ in spans]
        top = max(cells, default=0.0)
        if not top > 0:
            return []
        return [(BLOCKS[min(8, math.ceil(value * 8 / top))] if value > 0 else " ", style) for value in cells]

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go to the step under the mouse, and start dragging."""
        if self._ask(event):
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go to the step to which the mouse was dragged."""
        if self.app.mouse_captured is self:
            self._ask(event)

    def on_mouse_up(self) -> None:
        """Stop dragging."""
        self.release_mouse()

    def _ask(self, event: events.MouseEvent) -> bool:
        """Ask for the step under the mouse. Return whether the mouse is on the strip or dragged off it."""
        column = event.x - self.gutter.left - GUTTER
        if not self.steps or (column < -1 and self.app.mouse_captured is not self):
            return False
        step = min(self.steps - 1, self.step_of(max(0, column)))
        if step != self.cursor:
            self.post_message(self.StepRequested(step))
        return True
