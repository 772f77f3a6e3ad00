"""A table of tests with their outcomes, a filter, and the failure text of the selected test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Input

from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.core.query_grammar import QueryError
from gistpoint.core.text import plural
from gistpoint.tui import signs
from gistpoint.tui.tables import Column
from gistpoint.tui.test_names import unescaped
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table
from gistpoint.tui.widgets.text_view import TextView

GLYPHS = {
    Outcome.PASSED: (signs.GOOD, "$text-success"),
    Outcome.FAILED: (signs.BAD, "$text-error"),
    Outcome.ERROR: ("!", "$text-error"),
    Outcome.SKIPPED: ("-", "$foreground 60%"),
    Outcome.XFAILED: ("x", "$text-warning"),
    Outcome.XPASSED: ("X", "$text-warning"),
}

COLUMNS: tuple[Column[TestResult], ...] = (
    Column(
        "outcome",
        lambda result: f"{GLYPHS[result.outcome][0]} {result.outcome}",
        width=9,
        style=lambda result: GLYPHS[result.outcome][1],
        text=lambda result: str(result.outcome),
    ),
    Column(
        "seconds", lambda result: f"{result.seconds:.2f}", lambda result: result.seconds, width=7, right=True
    ),
    Column(
        "test",
        lambda result: unescaped(result.id),
        text=lambda result: f"{result.id} {unescaped(result.id)}",
    ),
)


class ResultTable(Table[TestResult]):
    """The table of tests, one per row."""

    MARGIN, GAP, SIDEWAYS = 1, 2, True

    def __init__(self) -> None:
        super().__init__(COLUMNS, key=lambda result: result.id, id="results")


_TYPING_SECONDS = 0.15
"""Seconds without typing after which the filter is applied."""


class OutcomeTable(Vertical):
    """A table of test results, with a filter above it and a failure text below it."""

    DEFAULT_CSS = """
    OutcomeTable { height: 1fr; }
    OutcomeTable Input { height: 1; border: none; padding: 0 1; }
    OutcomeTable ResultTable {
        height: 1fr;
        background: $surface;
        overflow-x: auto;
        scrollbar-size-horizontal: 1;
    }
    OutcomeTable Plain {
        height: 1;
        padding: 0 1;
        color: $foreground 70%;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    OutcomeTable TextView { height: 1fr; border-top: solid $primary; display: none; }
    OutcomeTable.-failure TextView { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter tests", show=False, id="tests.filter")
    ]

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._results: tuple[TestResult, ...] = ()
        self._wanted = ""
        self._typing: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the filter, the counts, the table and the failure text."""
        yield Input(
            placeholder="/ filter: words of the id, an outcome, seconds>1, -passed",
            compact=True,
            select_on_focus=False,
        )
        yield Plain()
        yield ResultTable()
        yield TextView()

    def on_mount(self) -> None:
        """Show the results."""
        self._fill()

    @property
    def table(self) -> ResultTable:
        """The table of tests."""
        return self.query_one(ResultTable)

    @property
    def shown(self) -> list[TestResult]:
        """The results that match the filter, in the displayed order."""
        return self.table.shown

    def show_results(self, results: Iterable[TestResult]) -> None:
        """Show other results, in the given order."""
        self._results = tuple(results)
        if self.is_mounted:
            self._fill()

    def action_filter(self) -> None:
        """Focus the filter."""
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._wanted = event.value
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_TYPING_SECONDS, self._narrow)

    @on(Input.Submitted)
    def _filter_done(self, event: Input.Submitted) -> None:
        event.stop()
        self.table.focus()

    def _fill(self) -> None:
        self.table.show(self._results)
        self._show_failure(self.table.chosen)

    def _narrow(self) -> None:
        try:
            self.table.narrow(self._wanted)
        except QueryError as error:
            self.query_one(Plain).update(f"{error.message} {error.hint}")

    @on(Table.Arranged)
    def _arranged(self, event: Table.Arranged) -> None:
        event.stop()
        self.query_one(Plain).update(self._summary())
        self._show_failure(self.table.chosen)

    def _summary(self) -> str:
        counts = Counter(result.outcome for result in self._results)
        parts = [
            f"{GLYPHS[outcome][0]} {counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]
        ]
        shown = "" if len(self.shown) == len(self._results) else f"showing {len(self.shown)} of "
        return f"{shown}{plural(len(self._results), 'test')}" + "".join(f"  {part}" for part in parts)

    @on(RecordList.Moved)
    def _moved(self, event: RecordList.Moved) -> None:
        event.stop()
        self._show_failure(self.table.chosen)

    def _show_failure(self, result: TestResult | None) -> None:
        failing = result is not None and bool(result.message)
        self.set_class(failing, "-failure")
        view = self.query_one(TextView)
        if result is not None and failing and view.text != result.message:
            view.load(result.message, title=unescaped(result.id))
