"""The wording of what a submission is answered with: one text for a person, a model and a replay."""

from __future__ import annotations

from gistpoint.core.attempts.budgets import Remaining
from gistpoint.core.attempts.judging import Judgement
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Task

_STATUS = {
    RunStatus.INVALID: "The test run is invalid",
    RunStatus.TIMED_OUT: "The tests were stopped at their time limit",
    RunStatus.OUT_OF_MEMORY: "The tests were stopped at their memory limit",
    RunStatus.CRASHED: "The test run did not finish",
    RunStatus.COULD_NOT_RUN: "The tests could not be run",
    RunStatus.INFRASTRUCTURE: "The test run failed for no fault of the submission",
    RunStatus.CANCELLED: "The test run was cancelled",
}


def submission_text(task: Task, judgement: Judgement) -> str:
    """Return score, counts and the first failing text of a judged submission."""
    report, score = judgement.report, judgement.score
    total = score.passing + len(score.failing)
    if report.status is not RunStatus.FINISHED:
        reason = f": {report.reason}" if report.reason else "."
        cost = "" if judgement.counts else " It costs no submission."
        return f"{_STATUS[report.status]}{reason} Score 0.{cost}"
    text = f"Score {score.value:.3f}: {score.passing} of {total} tests pass, {len(score.failing)} fail."
    shown = first_failure(judgement, task.limits.failure_characters)
    return f"{text}\n\n{shown}" if shown else text


def first_failure(judgement: Judgement, characters: int) -> str:
    """Return the first failing test that counts with its failure, or the first error of collection."""
    failing = judgement.score.failing
    for result in judgement.report.results.values():
        if result.id in failing:
            return f"{result.id} ({result.outcome})\n{result.message[:characters]}".rstrip()
    for error in judgement.report.collection_errors:
        return f"{error.id} can't be collected\n{error.message[:characters]}".rstrip()
    return f"{min(failing)} was not run." if failing else ""


def budget_line(remaining: Remaining) -> str:
    """Return the line that ends every answer."""
    uses = f"{remaining.tool_uses} tool {'use' if remaining.tool_uses == 1 else 'uses'}"
    submissions = f"{remaining.submissions} {'submission' if remaining.submissions == 1 else 'submissions'}"
    return f"[{uses} and {submissions} left]"


LAST_USE = (
    "This was the last tool use before the final one, and nothing was submitted yet: only a submission can follow."
)
