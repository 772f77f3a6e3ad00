"""Summary: how an attempt ended, what it took, and the true function beside the solver's."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher, OptionList
from textual.widgets.option_list import Option

from gistpoint.core.attempts.judging import Judgement
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.solve.results_pane import results_of
from gistpoint.tui.summary_model import Compared, compared, headline, summary_rows
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.plain import Plain, plain_line
from gistpoint.tui.widgets.text_view import TextView

PAGES = {"page-result": "Result", "page-functions": "True function", "page-tests": "Tests", "page-notes": "Notes"}


class PageTab(Plain):
    """The name of a page; a click goes there."""

    class Clicked(Message):
        """A page is wanted."""

        def __init__(self, page: str) -> None:
            super().__init__()
            self.page = page

    def __init__(self, page: str) -> None:
        super().__init__(classes="page-tab")
        self.page = page

    def on_click(self, event: events.Click) -> None:
        """Go to the page."""
        event.stop()
        self.post_message(self.Clicked(self.page))


class SummaryScreen(Screen[None]):
    """An attempt that has ended."""

    CSS_PATH = "summary.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.SUMMARY)]
    HELP_PAGE = "summary"
    SCOPES = (Scope.SUMMARY,)

    pages = query_one("#summary-pages", ContentSwitcher)

    def __init__(self, task: Task, answer: Answer, state: AttemptState, judgement: Judgement | None = None) -> None:
        """`judgement` is the run behind the last submission, where it happened in this process."""
        super().__init__()
        self._repair, self._answer, self._state, self._judgement = task, answer, state, judgement
        self._compared: tuple[Compared, ...] = compared(answer, state)

    def compose(self) -> ComposeResult:
        """Lay out headline and pages."""
        yield Plain(headline(self._state), id="summary-headline", classes="-solved" if self._state.solved else "")
        with Horizontal(id="page-tabs"):
            yield from (PageTab(page) for page in PAGES)
        with ContentSwitcher(initial="page-result", id="summary-pages"):
            with VerticalScroll(id="page-result"):
                for title, rows in summary_rows(self._repair, self._state):
                    yield Plain(title, classes="summary-title")
                    for name, value in rows:
                        with Horizontal(classes="summary-row"):
                            yield Plain(name, classes="summary-name")
                            yield Plain(value, classes="summary-value")
            with Vertical(id="page-functions"):
                yield OptionList(*(Option(plain_line(c.label)) for c in self._compared), id="targets", compact=True)
                yield Plain("- as it was, + as it should be or as you wrote it", classes="summary-legend")
                yield DiffView(id="true-diff")
            yield OutcomeTable(id="page-tests")
            yield TextView(id="page-notes")
        yield KeyBar()

    def on_mount(self) -> None:
        """Fill the pages."""
        self.query_one("#page-tests", OutcomeTable).show_results(self._outcomes())
        self.query_one("#page-notes", TextView).load(self._state.notes or "No notes were taken.")
        self.query_one("#targets").display = len(self._compared) > 1
        if self._compared:
            self._compare(self._compared[0])
        self._draw_tabs()
        self.query_one("#page-result").focus()

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
        self.query_one("#true-diff", DiffView).load(pair.yours, pair.true)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show another target."""
        event.stop()
        self._compare(self._compared[event.option_index])

    def on_page_tab_clicked(self, message: PageTab.Clicked) -> None:
        """Turn to a page by the mouse."""
        self._turn_to(message.page)

    def action_section(self, by: int) -> None:
        """Turn to the next page or the one before."""
        pages = list(PAGES)
        self._turn_to(pages[(pages.index(self.pages.current or pages[0]) + by) % len(pages)])

    def _turn_to(self, page: str) -> None:
        self.pages.current = page
        self._draw_tabs()
        inside = {"page-functions": "#true-diff", "page-tests": "#page-tests DataTable"}
        self.query_one(inside.get(page, f"#{page}")).focus()

    def _draw_tabs(self) -> None:
        for tab in self.query(PageTab):
            active = tab.page == self.pages.current
            tab.update(f"[{PAGES[tab.page]}]" if active else f" {PAGES[tab.page]} ")
            tab.set_class(active, "-active")

    def action_home(self) -> None:
        """Back to tasks and attempts."""
        self.dismiss(None)
