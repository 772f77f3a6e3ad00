"""The summary of an attempt in an editor: its ending, times and budgets, and the expected text."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gistpoint.core.attempts.harness import Judged
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.tui.screens.solve.results_pane import results_of
from gistpoint.tui.screens.summary import (
    ComparedPart,
    SummaryPage,
    SummaryScreen,
    SummaryTextPage,
    compared,
    summary_rows,
)
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.plain import Plain, plain_line


def editor_summary(
    task: Task,
    answer: Answer,
    state: AttemptState,
    judgement: Judged | None = None,
    *,
    accepted: bool | None = None,
) -> SummaryScreen:
    """Return the summary. `judgement` is the last submission's run if it took place in this process.

    `accepted` is the reviewers' decision on a pass, None if there is none.
    """
    pages = []
    expected = kind_of(task).expected(task, answer)
    if expected:
        title = "True function" if answer.targets else "Answer"
        pages.append(SummaryPage(title, FunctionsPage(compared(expected, state)), "#true-diff"))
    elif state.last is not None:
        pages.append(
            SummaryPage("Submission", SummaryTextPage(state.last.replacement.code, id="page-submission"))
        )
    outcomes = _outcomes(answer, state, judgement)
    if outcomes:
        tests = OutcomeTable(id="page-tests")
        tests.show_results(outcomes)
        pages.append(SummaryPage("Tests", tests, "#page-tests ResultTable"))
    return SummaryScreen(task, state, summary_rows(task, state, accepted), pages, accepted=accepted)


class FunctionsPage(Vertical):
    """The page that compares each part of the answer with the solver's text."""

    def __init__(self, pairs: Sequence[ComparedPart]) -> None:
        super().__init__(id="page-functions")
        self._compared = pairs

    def compose(self) -> ComposeResult:
        """Lay out the list of parts, the legend and the diff."""
        yield OptionList(
            *(Option(plain_line(pair.label)) for pair in self._compared), id="targets", compact=True
        )
        yield Plain("", classes="summary-legend")
        yield DiffView(id="true-diff")

    def on_mount(self) -> None:
        """Show the first part, and hide the list if there is no other part."""
        self.query_one("#targets").display = len(self._compared) > 1
        if self._compared:
            self._show(self._compared[0])

    def _show(self, pair: ComparedPart) -> None:
        self.query_one(".summary-legend", Plain).update(pair.legend)
        self.query_one("#true-diff", DiffView).load(pair.yours, pair.true, whole=True)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the highlighted part."""
        event.stop()
        self._show(self._compared[event.option_index])


def _outcomes(answer: Answer, state: AttemptState, judgement: Judged | None) -> list[TestResult]:
    last = state.last
    passed, failing = (
        (answer.baselines[0].passed, answer.baselines[0].failing) if answer.baselines else ((), ())
    )
    if last is None:
        return [TestResult(id, Outcome.FAILED) for id in sorted(failing)]
    shown = results_of(last, judgement)
    rest = [] if last.status != "finished" else sorted({*passed} - {result.id for result in shown})
    return [*shown, *(TestResult(id, Outcome.PASSED) for id in rest)]
