"""Handles runs in which the harness never started: the submission is not to blame, and is given back.

A reporter announces its start before any code of the tree is imported. Without that announcement, the tree
given to the solver is run as well: the submission is excused only if the harness does not start there either
(`harness_failed`; decision 121).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gistpoint.core.entrypoints.runs import GistTrial
from gistpoint.core.errors import HarnessFailedError
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.trees import SourceTree

MOST_GIVEN_BACK = 3
"""The maximum number of submissions that are given back in one attempt.

A failure that recurs can't be distinguished from one that the solver causes.
"""
NEVER_BEGAN = "The harness did not begin, and it does not begin on the code as it was given either."
_DO = "Run `gistpoint doctor` to see what is wrong on this machine, and submit again once it works."
_CHARGED = f"{MOST_GIVEN_BACK} submissions were already given back, so this one counts."
_LAST_WORDS = 300


@dataclass(frozen=True, slots=True)
class ControlledRunner:
    """Runs suites, and `given` as a control after each run in which the harness did not start."""

    inner: Runner
    given: Callable[[], SourceTree]

    @property
    def backend(self) -> BackendRecord:
        """The isolation of its runs."""
        return self.inner.backend

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        """Run a suite, and return the report; the status depends on the control if one had to run.

        The status is `HARNESS_FAILED` if the control did not start either, and `CANCELLED` if it was stopped.
        """
        report = self.inner.run(request, run=run)
        if report.began or report.status in (RunStatus.CANCELLED, RunStatus.HARNESS_FAILED):
            return report
        # If the tree as given does not start either, the submission is not to blame (decision 121).
        control = self.inner.run(replace(request, tree=self.given()), run=run.quiet)
        if control.status is RunStatus.CANCELLED:
            return replace(report, status=RunStatus.CANCELLED, reason=control.reason)
        if control.began:
            return report
        return replace(
            report, status=RunStatus.HARNESS_FAILED, reason=_with_output(NEVER_BEGAN, control.output)
        )


def _with_output(sentence: str, output: str) -> str:
    last = (output.strip().splitlines() or [""])[-1].strip()[:_LAST_WORDS]
    if last:
        return f"{sentence} It printed: {last}"
    return sentence


def check_beginning(began: bool, control: Callable[[], GistTrial]) -> None:
    """Run a control if the harness of a gist did not start.

    Raises `HarnessFailedError` if the control does not start either.
    """
    if began:
        return
    found = control()
    if not found.began:
        raise HarnessFailedError(_with_output(NEVER_BEGAN, found.output))


def is_given_back(status: RunStatus, given_back: int) -> bool:
    """Return whether a submission is given back after `given_back` earlier submissions of the attempt."""
    return status is RunStatus.HARNESS_FAILED and given_back < MOST_GIVEN_BACK


def given_back_words(reason: str, given_back: int) -> str:
    """Return the message for a submission that is given back after `given_back` earlier ones."""
    count = f"this is number {given_back + 1} of at most {MOST_GIVEN_BACK} in an attempt"
    return f"{reason} Nothing was scored, and the submission is given back: {count}. {_DO}".lstrip()


def charged_message(reason: str) -> str:
    """Return the message for a submission that is charged because too many were given back."""
    return f"{reason} {_CHARGED}".lstrip()


def settled(report: SuiteReport, given_back: int) -> SuiteReport:
    """Return the final report of a submission after `given_back` earlier ones were given back.

    If the harness failed, the reason says whether the submission is given back; if it is not, the status
    becomes `CRASHED`.
    """
    if report.status is not RunStatus.HARNESS_FAILED:
        return report
    if is_given_back(report.status, given_back):
        return replace(report, reason=given_back_words(report.reason, given_back))
    return replace(report, status=RunStatus.CRASHED, reason=charged_message(report.reason))
