"""All answers so far, to read again; a submission also by test and as a diff if those may be shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.widgets import ContentSwitcher, OptionList
from textual.widgets.option_list import Option

from gistpoint.core.attempts.bench import Judged
from gistpoint.core.attempts.state import NOTHING_REPLACED, AttemptCall, AttemptState, Submission
from gistpoint.core.code.snippet import at_left_margin
from gistpoint.core.kinds.repair.judgement import Judgement
from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.solve.panes import StatePane
from gistpoint.tui.view_models import call_words, shows_evidence, submission_words
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.plain import Plain, plain_line
from gistpoint.tui.widgets.text_view import TextView

PAGES = {"answer": "Answer", "tests": "Tests", "changes": "Diff"}


class ResultsPane(StatePane):
    """A list of calls, and the pages of the chosen one."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.RESULTS)]

    calls = query_one("#calls", OptionList)
    pages = query_one("#result-pages", ContentSwitcher)
    title = query_one("#result-title", Plain)
    answer = query_one("#answer", TextView)

    def __init__(self, start_of: Callable[[str], str], judgement_of: Callable[[str], Judged | None]) -> None:
        """`start_of` returns a function's first code, `judgement_of` a run of this process by its call."""
        super().__init__(id="results")
        self._start_of, self._judgement_of = start_of, judgement_of
        self._state = AttemptState()
        self._drawn: tuple[AttemptCall, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay out list, title and pages."""
        yield OptionList(id="calls", compact=True)
        yield Plain("No call was made yet.", id="result-title", classes="pane-title")
        with ContentSwitcher(initial="answer", id="result-pages"):
            yield TextView(id="answer")
            yield OutcomeTable(id="tests")
            yield DiffView(id="changes")

    def on_mount(self) -> None:
        """Fold long lines of answers."""
        self.answer.wrap = True

    def update_from(self, state: AttemptState) -> None:
        """Show a new state; only calls that changed are drawn again."""
        self._state = state
        if state.calls == self._drawn:
            return
        for number, call in enumerate(state.calls):
            label = plain_line(call_words(call))
            if number < len(self._drawn):
                if call != self._drawn[number]:
                    self.calls.replace_option_prompt_at_index(number, label)
            else:
                self.calls.add_option(Option(label))
        self._drawn = state.calls

    def show_call(self, call_id: str) -> None:
        """Choose a call."""
        for number, call in enumerate(self._drawn):
            if call.call_id == call_id:
                if self.calls.highlighted == number:
                    self._show(call)
                self.calls.highlighted = number

    @on(OptionList.OptionHighlighted)
    def highlight(self, event: OptionList.OptionHighlighted) -> None:
        """Show the answer of the call under the cursor."""
        event.stop()
        if event.option_index < len(self._drawn):
            self._show(self._drawn[event.option_index])

    @on(OptionList.OptionSelected)
    def read(self, event: OptionList.OptionSelected) -> None:
        """Focus the answer at Enter."""
        event.stop()
        self.answer.focus()

    def _show(self, call: AttemptCall) -> None:
        self.answer.load(call.text if call.text is not None else "No answer yet.")
        submission = next((s for s in self._state.submissions if s.call_id == call.call_id), None)
        self._fill_evidence(submission)
        available = self._available(submission)
        if self.pages.current not in available:
            self.pages.current = "answer"
        self._draw_title(call, submission)

    def _available(self, submission: Submission | None) -> list[str]:
        if submission is None or submission.replacement is NOTHING_REPLACED:
            return ["answer"]
        return ["answer", *(["tests"] if shows_evidence(self._state) and submission.status else []), "changes"]

    def _fill_evidence(self, submission: Submission | None) -> None:
        if submission is None or submission.replacement is NOTHING_REPLACED:
            return
        replacement = submission.replacement
        start = self._start_of(replacement.name)
        self.query_one("#changes", DiffView).load(at_left_margin(start), at_left_margin(replacement.code))
        if shows_evidence(self._state):
            judgement = self._judgement_of(submission.call_id)
            self.query_one("#tests", OutcomeTable).show_results(results_of(submission, judgement))

    def _draw_title(self, call: AttemptCall, submission: Submission | None) -> None:
        pages = self._available(submission)
        tabs = "  ".join(f"[{PAGES[p]}]" if p == self.pages.current else PAGES[p] for p in pages)
        words = submission_words(submission) if submission is not None else call_words(call)
        self.title.update(f"{words}   {tabs}" if len(pages) > 1 else words)

    def action_page(self, by: int) -> None:
        """Turn to another page of the chosen result."""
        at = self.calls.highlighted
        if at is None or at >= len(self._drawn):
            return
        call = self._drawn[at]
        submission = next((s for s in self._state.submissions if s.call_id == call.call_id), None)
        pages = self._available(submission)
        current = pages.index(self.pages.current) if self.pages.current in pages else 0
        self.pages.current = pages[(current + by) % len(pages)]
        self._draw_title(call, submission)


def results_of(submission: Submission, judgement: Judged | None) -> list[TestResult]:
    """Return the outcome of every test, failing ones first; for an earlier process only those in the journal."""
    texts = dict(submission.failures)
    failing = [TestResult(id, Outcome.FAILED, message=texts.get(id, "")) for id in submission.failing]
    if not isinstance(judgement, Judgement):
        return failing
    known = judgement.report.results
    failing = [known.get(result.id, result) for result in failing]
    rest = [result for id, result in known.items() if id not in set(submission.failing)]
    return [*failing, *rest]
