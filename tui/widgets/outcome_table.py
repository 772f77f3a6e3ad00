"""Tests with their outcomes, filtered as one types, and the failure text of the one that is selected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.style import Style
from textual.timer import Timer
from textual.widgets import DataTable, Input

from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.tui.widgets.plain import Plain, plain_cell
from gistpoint.tui.widgets.text_view import TextView

GLYPHS = {
    Outcome.PASSED: ("✓", "$text-success"),
    Outcome.FAILED: ("✗", "$text-error"),
    Outcome.ERROR: ("!", "$text-error"),
    Outcome.SKIPPED: ("-", "$foreground 60%"),
    Outcome.XFAILED: ("x", "$text-warning"),
    Outcome.XPASSED: ("X", "$text-warning"),
}

_TYPING_SECONDS = 0.15
"""The table is filled anew when no key has been pressed in the filter for so long."""


class OutcomeTable(Vertical):
    """A table of test results with a filter above and the failure text below."""

    DEFAULT_CSS = """
    OutcomeTable { height: 1fr; }
    OutcomeTable Input { height: 1; border: none; padding: 0 1; }
    OutcomeTable DataTable { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    OutcomeTable Plain { height: 1; padding: 0 1; color: $foreground 70%; text-wrap: nowrap; text-overflow: ellipsis; }
    OutcomeTable TextView { height: 1fr; border-top: solid $primary; display: none; }
    OutcomeTable.-failure TextView { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter tests", show=False, id="tests.filter"),
    ]

    class Selected(Message):
        """Another test is under the cursor."""

        def __init__(self, table: OutcomeTable, result: TestResult) -> None:
            super().__init__()
            self.table = table
            self.result = result

        @property
        def control(self) -> OutcomeTable:
            """The table."""
            return self.table

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._results: tuple[TestResult, ...] = ()
        self._shown: list[TestResult] = []
        self._wanted = ""
        self._typing: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out filter, count, table and failure text."""
        yield Input(placeholder="/ filter: words of the id or an outcome", compact=True, select_on_focus=False)
        yield Plain()
        yield DataTable(cursor_type="row", zebra_stripes=False)
        yield TextView()

    def on_mount(self) -> None:
        """Make the columns."""
        table = self.table
        table.add_column(plain_cell("outcome"), width=9)
        table.add_column(plain_cell("seconds"), width=7)
        table.add_column(plain_cell("test"))
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._fill())
        self._fill()

    @property
    def table(self) -> DataTable[object]:
        """The table itself."""
        return self.query_one(DataTable)

    @property
    def shown(self) -> list[TestResult]:
        """The results that pass the filter, in the order shown."""
        return list(self._shown)

    def show_results(self, results: Iterable[TestResult]) -> None:
        """Show other results, in their order."""
        self._results = tuple(results)
        if self.is_mounted:
            self._fill()

    def action_filter(self) -> None:
        """Go to the filter."""
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._wanted = event.value
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_TYPING_SECONDS, self._fill)

    @on(Input.Submitted)
    def _filter_done(self, event: Input.Submitted) -> None:
        event.stop()
        self.table.focus()

    def _fill(self) -> None:
        words = self._wanted.lower().split()
        self._shown = [r for r in self._results if all(w in f"{r.outcome} {r.id}".lower() for w in words)]
        table = self.table
        table.clear()
        table.add_rows(self._cells(result) for result in self._shown)
        self.query_one(Plain).update(self._summary())
        self._show_failure(self._shown[0] if self._shown else None)

    def _cells(self, result: TestResult) -> tuple[object, ...]:
        glyph, colour = GLYPHS[result.outcome]
        return (
            plain_cell(f"{glyph} {result.outcome}", Style.parse(colour).rich_style),
            plain_cell(f"{result.seconds:7.2f}"),
            plain_cell(result.id),
        )

    def _summary(self) -> str:
        counts = Counter(result.outcome for result in self._results)
        parts = [f"{GLYPHS[o][0]} {counts[o]} {o}" for o in Outcome if counts[o]]
        shown = "" if len(self._shown) == len(self._results) else f"showing {len(self._shown)} of "
        return f"{shown}{len(self._results)} tests" + "".join(f"  {part}" for part in parts)

    @on(DataTable.RowHighlighted)
    def _row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        if 0 <= event.cursor_row < len(self._shown):
            result = self._shown[event.cursor_row]
            self._show_failure(result)
            self.post_message(self.Selected(self, result))

    def _show_failure(self, result: TestResult | None) -> None:
        failing = result is not None and bool(result.message)
        self.set_class(failing, "-failure")
        view = self.query_one(TextView)
        if result is not None and failing and view.text != result.message:
            view.load(result.message, title=result.id)
