"""Summary of a repair: how it ended, what it took, and the true function beside the solver's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.repair.judge import Judgement
from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.tui.screens.ended import EndedScreen
from gistpoint.tui.screens.solve.results_pane import results_of
from gistpoint.tui.summary_model import Compared, Rows, compared, summary_rows
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.plain import Plain, plain_line


class SummaryScreen(EndedScreen):
    """A repair that has ended."""

    PAGES: ClassVar[Mapping[str, str]] = {
        "page-result": "Result",
        "page-functions": "True function",
        "page-tests": "Tests",
        "page-notes": "Notes",
    }
    INSIDE: ClassVar[Mapping[str, str]] = {"page-functions": "#true-diff", "page-tests": "#page-tests DataTable"}

    def __init__(
        self,
        task: Task,
        answer: Answer,
        state: AttemptState,
        judgement: Judgement | None = None,
        *,
        accepted: bool | None = None,
    ) -> None:
        """`judgement` is the run of the last submission, if it happened in this process."""
        super().__init__(task, state, accepted)
        self._answer, self._judgement = answer, judgement
        self._compared: tuple[Compared, ...] = compared(answer, state)

    def rows(self) -> list[tuple[str, Rows]]:
        """Return what the first page says."""
        return summary_rows(self._ended_task, self._state, self._accepted)

    def more_pages(self) -> Iterable[Widget]:
        """Return the page of the functions and the one of the tests."""
        yield Vertical(
            OptionList(*(Option(plain_line(c.label)) for c in self._compared), id="targets", compact=True),
            Plain("", classes="summary-legend"),
            DiffView(id="true-diff"),
            id="page-functions",
        )
        yield OutcomeTable(id="page-tests")

    def on_mount(self) -> None:
        """Fill the pages."""
        self.query_one("#page-tests", OutcomeTable).show_results(self._outcomes())
        self.query_one("#targets").display = len(self._compared) > 1
        if self._compared:
            self._compare(self._compared[0])

    def _outcomes(self) -> list[TestResult]:
        last = self._state.last
        baseline = self._answer.baselines[0]
        if last is None:
            return [TestResult(id, Outcome.FAILED) for id in sorted(baseline.failing)]
        shown = results_of(last, self._judgement)
        known = {result.id for result in shown}
        rest = [] if last.status != "finished" else sorted(baseline.passed - known)
        return [*shown, *(TestResult(id, Outcome.PASSED) for id in rest)]

    def _compare(self, pair: Compared) -> None:
        self.query_one(".summary-legend", Plain).update(pair.legend)
        self.query_one("#true-diff", DiffView).load(pair.yours, pair.true, whole=True)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show another target."""
        event.stop()
        self._compare(self._compared[event.option_index])
