"""A trial of a corrupted function: one run of the suite, and what it shows of the corruption."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.evidence import Evidence, is_own_test
from gistpoint.core.corruption.model_rounds import Trial, Verdict
from gistpoint.core.corruption.subtlety import subtlety
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.intake import Intake, OnMaking, run_step
from gistpoint.core.generation.proof import corrupted_tree
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.tasks.model import Failure, Target
from gistpoint.core.trees import SourceTree

Rate = Callable[[Target, Trial], "tuple[float, Mapping[str, float]]"]
"""Returns the subtlety of a corruption (0 to 1) and its parts, from what its trial showed."""

_SHOWN = 2
_ASSERTION = re.compile(r"^E\s+(?:AssertionError\b|assert\b|Failed:)|: AssertionError$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SuiteTrials:
    """Tries corruptions by the whole suite, in the sandbox."""

    intake: Intake
    runner: Runner
    rate: Rate
    on_progress: OnMaking | None = None
    cancel: CancelToken | None = None

    def __call__(self, target: Target) -> Trial:
        """Run the suite with the function corrupted. Raises `InfrastructureError` where the sandbox failed."""
        intake = self.intake
        tree = corrupted_tree(intake.repository.tree, (target,))
        request = RunRequest(
            tree,
            intake.repository.environment,
            intake.timeout_s,
            deselect=intake.flaky,
            expected=intake.collected,
        )
        step = f"suite with {target.name} corrupted by the model"
        report = run_step(self.runner, request, step, self.on_progress, self.cancel)
        if report.status is RunStatus.INFRASTRUCTURE:
            raise InfrastructureError(f"The sandbox failed while a corruption was tried. {report.reason}".rstrip())
        if report.status in (RunStatus.TIMED_OUT, RunStatus.OUT_OF_MEMORY):
            return Trial(Verdict.HANGS, detail=f"{report.status}")
        if report.status is not RunStatus.FINISHED:
            return Trial(Verdict.COULD_NOT_RUN, detail=f"{report.status}. {report.reason}".strip())
        failing = intake.passed - report.passed
        shown = [result for result in report.failed if result.id in failing]
        if failing and not shown:
            return Trial(Verdict.BREAKS_COLLECTION, len(failing), len(intake.passed))
        trial = Trial(
            Verdict.ACCEPTED,
            len(failing),
            len(intake.passed),
            sum(is_assertion(result.message) for result in shown),
            sum(passes_through(result.message, tree, target) for result in shown),
            failing,
            len({last_line(result.message) for result in shown}),
            tuple(Failure(result.id, result.message) for result in shown[:_SHOWN]),
        )
        subtlety, parts = self.rate(target, trial)
        return replace(trial, subtlety=subtlety, parts=parts)


def last_line(message: str) -> str:
    """Return the last line of what pytest says was raised; the last line of all where it says nothing."""
    lines = [line for line in message.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if line.startswith("E ")), lines[-1] if lines else "")


def is_assertion(message: str) -> bool:
    """Whether pytest's text of a failure says that an assertion failed, and not that something else was raised."""
    return bool(_ASSERTION.search(message))


def passes_through(message: str, tree: SourceTree, target: Target) -> bool:
    """Whether a line of the function, as it stands in `tree`, is in the traceback of a failure."""
    definition = index_source(target.path, tree.read(target.path)).get(target.qualname)
    lines = re.findall(rf"^{re.escape(target.path)}:(\d+):", message, re.MULTILINE)
    return any(definition.start_line <= int(line) <= definition.end_line for line in lines)


def rating(entering: int, least: int, most: int) -> Rate:
    """Return what rates a corruption by its failing tests, `entering` being how many tests see the function at all.

    `least` and `most` are the band of failing tests that is aimed at.
    """

    def rate(target: Target, trial: Trial) -> tuple[float, Mapping[str, float]]:
        evidence = Evidence(
            failing=trial.failing,
            by_assertion=trial.by_assertion or 0,
            through_target=trial.through_target or 0,
            entering=max(entering, trial.failing),
            own_tests=sum(is_own_test(target.name, id) for id in trial.failing_ids),
            messages=trial.messages,
            changed_lines=changed_lines(target.original, target.corrupted),
        )
        rated = subtlety(evidence, least, most)
        return rated.value, rated.parts

    return rate
