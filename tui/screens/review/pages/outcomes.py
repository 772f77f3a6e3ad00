"""The page with the outcomes of tests that a step's results print."""

from __future__ import annotations

import re

from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.sessions.records.model import Step
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.outcome_table import OutcomeTable

_LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+(\S+::\S.*?)(?: - (.*))?$")
_VERBOSE = re.compile(r"^(\S+::\S.*?)\s+(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
_OUTCOMES = {
    "PASSED": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.XFAILED,
    "XPASS": Outcome.XPASSED,
}
_MOST_LINES = 200_000


class OutcomesPage(RunPage[list[TestResult]], OutcomeTable):
    """The outcomes of the tests that a step's results name."""

    def read(self, context: PageContext, job: Job) -> list[TestResult]:
        """Return the tests with their outcomes."""
        return outcomes(context.document.step(context.index))

    def fill(self, content: list[TestResult]) -> str:
        """Show the tests, and return a note on their origin."""
        self.show_results(content)
        return (
            "Derived from the output: only the tests that it names are listed."
            if content
            else "The output does not name any tests."
        )


def outcomes(step: Step) -> list[TestResult]:
    """Return the outcomes that a step's results contain, as pytest prints them. A summary takes precedence.

    Only the first 200,000 lines of each result are read.
    """
    found: dict[str, TestResult] = {}
    for result in step.results:
        for line in result.text.split("\n", _MOST_LINES)[:_MOST_LINES]:
            line = line.rstrip("\r")
            summary = _LINE.match(line)
            if summary:
                found[summary[2]] = TestResult(summary[2], _OUTCOMES[summary[1]], message=summary[3] or "")
            elif (verbose := _VERBOSE.match(line)) is not None:
                found.setdefault(verbose[1], TestResult(verbose[1], _OUTCOMES[verbose[2]]))
    return list(found.values())
