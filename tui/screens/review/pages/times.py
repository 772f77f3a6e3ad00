"""The page with the times of a run: a waterfall of its steps, and sums by tool and by kind of work."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import on
from textual.binding import Binding, BindingType
from textual.strip import Strip

from gistpoint.core.text import visible_line
from gistpoint.sessions.records.model import Actor
from gistpoint.sessions.runs.times import RunTimes, StepTime, Timekeeper
from gistpoint.tui import signs
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.ruler import Ruler
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.time_drawing import (
    LEGEND,
    MUTED,
    PHASE_HEADINGS,
    TOOL_HEADINGS,
    Pieces,
    bar,
    missing_words,
    phase_cells,
    seconds,
    tool_cells,
    total_words,
)
from gistpoint.tui.widgets.record_list import Piece, RecordList, fitted_cells

if TYPE_CHECKING:
    from gistpoint.sessions.records.model import Run
    from gistpoint.sessions.runs.document import RunDocument

_SLICE = 48
"""The number of steps read between two chances for more urgent jobs."""
_SHOW_S = 0.3
"""Seconds between two drawings while the steps are being read."""
_MOST_LONGEST = 10_000
"""The maximum number of steps that are listed by their time."""
_TOOL, _SECONDS, _APART = 16, 7, 16
"""The widths of a tool's name, of a time, and of the times of neither the model nor tools, in cells."""
_LEAST_APART_S = 0.1
"""The minimum time, in seconds, neither the model's nor a tool's, that is written next to a step."""
_WIDEST = 30
"""The maximum width of a column of sums, in cells."""
IN_ORDER, LONGEST, BY_TOOL, BY_WORK = "steps in order", "longest steps first", "by tool", "by kind of work"
VIEWS = (IN_ORDER, LONGEST, BY_TOOL, BY_WORK)


@dataclass(frozen=True, slots=True)
class TimesContent:
    """A run's times as far as they have been measured, and the index of the visible step."""

    times: RunTimes
    fed: int
    count: int
    index: int
    is_person: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table of sums, and the step to which it leads, counted from 0; None if it leads to none."""

    cells: Sequence[str]
    step: int | None = None


class TimesPage(RunPage[TimesContent], RecordList):
    """The times of the run. Each row is a step, a tool or a kind of work."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "view", "Longest, sums", show=False, id="times.view"),
    ]
    HEAD: ClassVar[int] = 2

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._content: TimesContent | None = None
        self._view = IN_ORDER
        self._order: Sequence[int] = ()
        """The steps of the rows; empty if the rows are sums."""
        self._table: list[_Row] = []
        self._widths: list[int] = []
        self._here: int | None = None
        """The step on the screen when the page was last filled."""
        self._made: tuple[RunDocument, Timekeeper, Run] | None = None
        """The run, what was measured, and its header. Used only in the loader's thread."""
        self._shown_at = 0.0

    # In the loader's thread

    def read(self, context: PageContext, job: Job) -> TimesContent:
        """Return the times of all steps. The first call reads them, and shows its progress."""
        document = context.document
        while not document.summed_up:
            document.advance()
            job.give_way()
        if self._made is None or self._made[0] is not document or self._made[1].fed > document.step_count:
            # `header` reads the whole run for its totals, so it is requested only once.
            self._made = document, Timekeeper(), document.header
        _, keeper, run = self._made
        while keeper.fed < document.step_count:
            keeper.feed(document.step(keeper.fed))
            if keeper.fed % _SLICE == 0:
                if time.monotonic() > self._shown_at + _SHOW_S:
                    self._shown_at = time.monotonic()
                    job.report(self._show, _measured(context, keeper, run))
                job.give_way()
        return _measured(context, keeper, run)

    # On the UI thread

    def fill(self, content: TimesContent) -> str:
        """Show the times, and return a note on their use."""
        self._show(content)
        if not content.times.is_known:
            return "The file records no times and no durations."
        return "s: longest, sums · Enter goes to the step"

    def _show(self, content: TimesContent) -> None:
        self._content = content
        moved, self._here = content.index != self._here, content.index
        self._list_rows(cursor=self._row_here() if moved and self._view == IN_ORDER else None)

    def _list_rows(self, *, cursor: int | None = None) -> None:
        """List the rows of the current view."""
        content = self._content
        if content is None:
            return
        times = content.times
        headings: tuple[str, ...] = ()
        self._order, self._table = (), []
        if self._view == BY_TOOL:
            headings = TOOL_HEADINGS
            self._table = [_Row(cells, step) for step, cells in tool_cells(times)]
        elif self._view == BY_WORK:
            headings = PHASE_HEADINGS
            self._table = [_Row(cells) for cells in phase_cells(times)]
        else:
            in_order = self._view == IN_ORDER
            self._order = times.steps.timed if in_order else times.steps.longest(_MOST_LONGEST)
        columns = zip(headings, *(row.cells for row in self._table), strict=True)
        self._widths = [min(_WIDEST, max(map(cell_len, column))) for column in columns]
        self.set_count(len(self._order) or len(self._table), cursor=cursor)

    def action_view(self) -> None:
        """Show the steps in order or by their times, the sums by tool, or those by kind of work."""
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self._list_rows(cursor=self._row_here() if self._view == IN_ORDER else 0)

    def _row_here(self) -> int:
        """Return the row of the visible step, or of the next one with a time."""
        content = self._content
        return 0 if content is None else bisect_left(content.times.steps.timed, content.index)

    @on(RecordList.Moved)
    def moved(self, message: RecordList.Moved) -> None:
        """Keep the message from the screen, which would mistake the row for a step."""
        message.stop()

    @on(RecordList.Chosen)
    def chosen(self, message: RecordList.Chosen) -> None:
        """Go to the step of the row, or to the longest call to the tool."""
        message.stop()
        step = self._step_at(message.index)
        if step is not None:
            self.post_message(Ruler.StepRequested(step))

    def _step_at(self, row: int) -> int | None:
        return self._table[row].step if self._table else self._order[row]

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw the totals above the heading and the rows."""
        if y:
            return super().render_line(y)
        content = self._content
        words = "" if content is None else self._totals(content, self.size.width)
        return self._line([(words, "bold")])

    @staticmethod
    def _totals(content: TimesContent, width: int) -> str:
        words = total_words(content.times, is_person=content.is_person, width=width)
        if content.fed < content.count:
            return f"{content.fed:,} of {content.count:,} steps read …  {words}"
        return words or "No times are recorded."

    def head(self, width: int) -> Strip:
        """Return the heading of the current view."""
        content = self._content
        if content is None:
            return Strip([])
        if self._table:
            headings = TOOL_HEADINGS if self._view == BY_TOOL else PHASE_HEADINGS
            return self._line([(f"  {self._sums(headings)}", MUTED)])
        scale = f"  {self._view}; a full bar is {seconds(content.times.longest)}. "
        missing = f" {missing_words(content.times)}"
        return self._line([*LEGEND, (scale, MUTED), (missing, MUTED)] if self._order else [(missing, MUTED)])

    def _line(self, pieces: Sequence[Piece]) -> Strip:
        segments = [Segment(visible_line(text), self.style(style)) for text, style in pieces]
        return Strip(segments).crop_extend(0, self.size.width, self.style(""))

    def row(self, index: int, width: int) -> list[Piece]:
        """Return a step with its bar, or a row of sums."""
        content = self._content
        if content is None:
            return []
        mark = (f"{signs.HERE} " if index == self.cursor else "  ", "bold $text-primary")
        if self._table:
            return [mark, (self._sums(self._table[index].cells), "")]
        step = self._order[index]
        return [mark, *self._step(content, step, content.times.steps[step])]

    def _sums(self, cells: Sequence[str]) -> str:
        pairs = enumerate(zip(cells, self._widths, strict=True))
        return "  ".join(fitted_cells(visible_line(cell), width, right=at > 0) for at, (cell, width) in pairs)

    def _step(self, content: TimesContent, step: int, found: StepTime) -> list[Piece]:
        number = f"{step + 1:>{len(f'{content.count:,}')},} "
        name = found.tool or ("reply" if found.model else "user" if found.user else "")
        figures = [seconds(found.model), seconds(found.tools)]
        words = "".join(f"{figure:>{_SECONDS}}" for figure in figures)
        others = (("user", found.user), ("unknown", found.unknown))
        apart = " ".join(f"{what} {seconds(value)}" for what, value in others if value >= _LEAST_APART_S)
        style = "bold" if step == content.index else ""
        room = self.sight.width - 2 - len(number) - _TOOL - 1 - len(words) - _APART
        return [
            (number, style or MUTED),
            (f"{fitted_cells(visible_line(name), _TOOL)} ", style),
            *_padded(bar(found, content.times.longest, room), room),
            (words, ""),
            (f"  {apart}" if apart else "", MUTED),
        ]


def _measured(context: PageContext, keeper: Timekeeper, run: Run) -> TimesContent:
    count = context.document.step_count
    times = keeper.times(run if keeper.fed == count else None)
    is_person = run.actor is Actor.PERSON and not context.hides
    return TimesContent(times, keeper.fed, count, context.index, is_person=is_person)


def _padded(pieces: Pieces, room: int) -> Pieces:
    drawn = sum(len(text) for text, _ in pieces)
    return [*pieces, (" " * max(0, room - drawn), "")]
