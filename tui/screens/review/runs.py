"""The list of recorded runs: sorted, narrowed and grouped while it is still being read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.screen import Screen
from textual.widgets import Input

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.errors import UserError
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.review.run_reader import ListingFailed, RunListReader, RunsFilled, RunsListed
from gistpoint.tui.screens.review.run_rows import COLUMNS, GROUPS, RunQuery, RunRow, arranged, columns_for, parse_query
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import Piece, RecordList

_STYLES = {"solved": "$text-success", AttemptResult.TO_BE_READ: "$text-warning", "unsolved": "$text-error"}


class RunTable(RecordList):
    """A row a run, in columns."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.rows: list[RunRow | str] = []
        self.picked: list[str] = []

    @property
    def chosen(self) -> RunRow | None:
        """The run under the cursor; None on a heading."""
        row = self.rows[self.cursor] if self.cursor < len(self.rows) else None
        return row if isinstance(row, RunRow) else None

    def show(self, rows: list[RunRow | str]) -> None:
        """Show other rows; the cursor stays on its run."""
        here = self.chosen.name if self.chosen is not None else ""
        self.rows = rows
        at = next((n for n, row in enumerate(rows) if isinstance(row, RunRow) and row.name == here), None)
        first = next((n for n, row in enumerate(rows) if isinstance(row, RunRow)), 0)
        self.set_count(len(rows), cursor=first if at is None else at)

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the cells of a run, or a heading."""
        row = self.rows[index]
        if isinstance(row, str):
            return [(f"── {row}", "bold $text-primary")]
        pieces: list[Piece] = [("✓ " if row.name in self.picked else "  ", "bold $text-accent")]
        for column in columns_for(width):
            style = ""
            if column.name == "verdict":
                verdict = "" if row.hides else row.header.verdict
                style = _STYLES.get(verdict, "")
                style = "$text-error" if row.listed.problem else style
            elif column.name in ("file", "format"):
                style = "$foreground 60%"
            pieces.append((_fitted(column.shown(row), column.width, right=column.right) + " ", style))
        return pieces


def _fitted(text: str, width: int, *, right: bool) -> str:
    from rich.cells import cell_len, set_cell_size

    from gistpoint.core.text import visible_line

    text = visible_line(text)
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return (" " * (width - cell_len(text)) + text) if right else set_cell_size(text, width)


class RunsScreen(Screen[None]):
    """Runs to choose from."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.RUNS)]
    HELP_PAGE = "runs"
    SCOPES = (Scope.RUNS,)

    table = query_one(RunTable)
    words = query_one("#runs-filter", Input)
    title_line = query_one("#runs-title", Plain)
    head = query_one("#runs-head", Plain)

    def __init__(self, paths: Sequence[str], settings: ReviewSettings) -> None:
        super().__init__()
        self._paths, self._settings = tuple(paths), settings
        self._rows: dict[str, RunRow] = {}
        self._query = RunQuery()
        self._column: int | None = None
        self._reverse = False
        self._group = 0
        self._finished = False
        self._reader = RunListReader(self, self._paths, settings)

    def compose(self) -> ComposeResult:
        """Lay out title, filter, headings and rows."""
        yield Plain("Runs", id="runs-title")
        yield Input(placeholder="words, steps>20, model:name, -solved (Esc: all)", id="runs-filter", compact=True)
        yield Plain("", id="runs-head")
        yield RunTable(id="runs")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the list."""
        self.words.display = False
        self.table.focus()
        self._reader.start()

    def on_unmount(self) -> None:
        """Let go of the thread."""
        self._reader.stop()

    def on_resize(self) -> None:
        """Show the headings of the columns that there is room for."""
        self._draw_head()

    @on(RunsListed)
    def listed(self, message: RunsListed) -> None:
        """Take up more runs."""
        for row in message.rows:
            self._rows[row.name] = row
        self._finished = message.finished
        self._draw()

    @on(RunsFilled)
    def filled(self, message: RunsFilled) -> None:
        """Take up what is known now."""
        for row in message.rows:
            self._rows[row.name] = row
        self._draw()

    @on(ListingFailed)
    def failed(self, message: ListingFailed) -> None:
        """Say why there is no list."""
        if not isinstance(message.error, UserError):
            raise message.error
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self.app, message.error)

    def _draw(self) -> None:
        column = COLUMNS[self._column] if self._column is not None else None
        rows = arranged(self._rows.values(), self._query, column, reverse=self._reverse, group=GROUPS[self._group])
        self.table.show(rows)
        self._draw_title()
        self._draw_head()

    def _draw_title(self) -> None:
        shown = sum(isinstance(row, RunRow) for row in self.table.rows)
        count = f"{shown:,} of {len(self._rows):,}" if shown != len(self._rows) else f"{shown:,}"
        words = [f"Runs: {count}" + ("" if self._finished else " …"), f"reviewer {self._settings.reviewer}"]
        if GROUPS[self._group]:
            words.append(f"by {GROUPS[self._group]}")
        if self._settings.blind:
            words.append("blind")
        self.title_line.update("  ".join(words))

    def _draw_head(self) -> None:
        names: list[str] = []
        for column in columns_for(self.size.width):
            sorted_by = self._column is not None and COLUMNS[self._column] is column
            name = column.name + (("▼" if self._reverse else "▲") if sorted_by else "")
            names.append(name[: column.width].rjust(column.width) if column.right else name.ljust(column.width))
        self.head.update("  " + " ".join(names))

    # Choosing

    @on(RecordList.Chosen, "#runs")
    def chosen(self) -> None:
        """Open the run under the cursor."""
        row = self.table.chosen
        if row is None:
            return
        if row.listed.header is None:
            self.app.notify(row.listed.problem, severity="warning")
            return
        picked = self.table.picked
        names = tuple(picked) if len(picked) > 1 else self._names()
        self.app.push_screen(ReviewScreen(row.name, self._settings, runs=names), self._reviewed)

    def _names(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.table.rows if isinstance(row, RunRow) and row.listed.header is not None)

    def _reviewed(self, _answer: object = None) -> None:
        """Read again what was said about the runs."""
        self.action_reload()

    def action_pick(self) -> None:
        """Pick the run, or no longer."""
        row = self.table.chosen
        if row is not None:
            picked = self.table.picked
            if row.name in picked:
                picked.remove(row.name)
            else:
                picked.append(row.name)
            self.table.cursor += 1
            self.table.refresh()

    def action_compare(self) -> None:
        """Set the two runs that were picked side by side."""
        if len(self.table.picked) != 2:
            self.app.notify("Pick two runs with x first.")
            return
        left, right = self.table.picked
        from gistpoint.tui.screens.review.compare import CompareScreen

        self.app.push_screen(CompareScreen(left, right, self._settings))

    def action_search(self) -> None:
        """Search in all runs of the list."""
        names = self._names()
        row = self.table.chosen
        if row is None or not names:
            return
        screen = ReviewScreen(row.name, self._settings, runs=names)
        self.app.push_screen(screen, self._reviewed)
        screen.call_after_refresh(screen.search_all)

    # Arranging

    def action_sort(self) -> None:
        """Sort by the next column; behind the last, by none."""
        column = -1 if self._column is None else self._column
        self._column = column + 1 if column + 1 < len(COLUMNS) else None
        self._draw()

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._reverse = not self._reverse
        self._draw()

    def action_group(self) -> None:
        """Group by something else."""
        self._group = (self._group + 1) % len(GROUPS)
        self._draw()

    def action_filter(self) -> None:
        """Let a query be typed."""
        self.words.display = True
        self.words.focus()

    @on(Input.Changed, "#runs-filter")
    def narrow(self, event: Input.Changed) -> None:
        """Show what fits, as it is typed."""
        try:
            self._query = parse_query(event.value)
        except UserError as error:
            self.title_line.update(f"{error.message} {error.hint}")
            return
        self._draw()

    @on(Input.Submitted, "#runs-filter")
    def leave_filter(self) -> None:
        """Go to the rows that are left."""
        self.table.focus()

    def action_blind(self) -> None:
        """Hide models and outcomes, or no longer."""
        from dataclasses import replace

        self._settings = replace(self._settings, blind=not self._settings.blind)
        self.action_reload()

    def action_reload(self) -> None:
        """Read the list again."""
        self._reader.stop()
        self._reader = RunListReader(self, self._paths, self._settings)
        self._reader.start()

    def action_leave(self) -> None:
        """Drop the query, or close the list."""
        if self.words.display:
            self.words.value = ""
            self.words.display = False
            self.table.focus()
        else:
            self.dismiss(None)
