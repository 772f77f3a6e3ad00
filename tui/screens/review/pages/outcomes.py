"""The page with the outcomes of tests that a step's results print."""

from __future__ import annotations

from gistpoint.core.outcomes import TestResult
from gistpoint.sessions.runs.named_tests import tests_named_in
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.outcome_table import OutcomeTable


class OutcomesPage(RunPage[list[TestResult]], OutcomeTable):
    """The outcomes of the tests that a step's results name."""

    def read(self, context: PageContext, job: Job) -> list[TestResult]:
        """Return the tests with their outcomes."""
        return tests_named_in(context.step)

    def fill(self, content: list[TestResult]) -> str:
        """Show the tests, and return a note on their origin."""
        self.show_results(content)
        return (
            "Derived from the output: only the tests that it names are listed."
            if content
            else "The output does not name any tests."
        )
