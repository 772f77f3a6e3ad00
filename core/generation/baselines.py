"""Another baseline of a task: what its suite shows on another backend, where some ids may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gistpoint.core.cancel import CancelToken
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.generation.intake import RUNS, NoGood, NoTaskError, OnMaking, Repository, take_in
from gistpoint.core.generation.proof import prove, repaired_tree
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.model import Answer, Baseline, Task
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class BaselineDifference:
    """The ids in which a baseline differs from another; each is empty where there is nothing to show."""

    only_here: frozenset[str]
    """Pass here, not there."""
    only_there: frozenset[str]
    failing_only_here: frozenset[str]
    """Fail when corrupted here, not there."""
    failing_only_there: frozenset[str]

    @property
    def any(self) -> bool:
        """Whether there is a difference."""
        return bool(self.only_here or self.only_there or self.failing_only_here or self.failing_only_there)


def record_baseline(
    task: Task,
    answer: Answer,
    runner: Runner,
    *,
    runs: int = RUNS,
    on_progress: OnMaking | None = None,
    cancel: CancelToken | None = None,
) -> Baseline:
    """Run the original `runs` times and the corrupted tree once, and return what they show.

    Raises `NoTaskError` where the suite is not green here, or the corruption breaks too few tests.
    """
    tree = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
    repository = Repository(task.source, tree, task.environment)
    out = task.suite.deselected
    intake = take_in(repository, runner, runs=runs, deselect=out, on_progress=on_progress, cancel=cancel)
    proof = prove(
        intake, answer.targets, runner, min_failing=task.rules.min_failing, on_progress=on_progress, cancel=cancel
    )
    if intake.flaky:
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"{len(intake.flaky)} tests came out differently between the runs here, first {intake.flaky[0]}.",
            hint="The task's own list of deselected tests is part of it: make the task again on this backend.",
        )
    return Baseline(
        backend=runner.backend.name,
        environment=sha256_of_json(sorted(task.environment.lock)),
        runs=intake.runs,
        collected=intake.collected,
        passed=intake.passed,
        passed_corrupted=proof.passed_corrupted & intake.passed,
        seconds=round(intake.seconds, 2),
        any_order=proof.any_order,
        protections={runner.backend.name: intake.protection} if intake.protection else {},
    )


def differences(answer: Answer, baseline: Baseline) -> Mapping[str, BaselineDifference]:
    """Return in which ids `baseline` differs from each other one of `answer`, by the name of its backend."""
    return {
        other.backend: BaselineDifference(
            baseline.passed - other.passed,
            other.passed - baseline.passed,
            (baseline.failing - other.failing) & other.passed,
            (other.failing - baseline.failing) & baseline.passed,
        )
        for other in answer.baselines
        if other.backend != baseline.backend
    }
