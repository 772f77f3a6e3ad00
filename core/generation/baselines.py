"""Another baseline of a task: the outcomes of its suite on another backend, where some ids may differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gistpoint.core.generation.intake import NoGood, NoTaskError, take_in
from gistpoint.core.generation.proof import prove
from gistpoint.core.ports import Runner
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Answer, Baseline, Task
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, RUNS, Repository
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class BaselineDifference:
    """The ids in which a baseline differs from another; each is empty if there is no difference."""

    only_here: frozenset[str]
    """Tests that pass here and not there."""
    only_there: frozenset[str]
    failing_only_here: frozenset[str]
    """Tests that fail when corrupted here and not there."""
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
    run: RunContext = UNATTENDED,
) -> Baseline:
    """Run the original `runs` times and the corrupted tree once, and return the baseline.

    Raises `NoTaskError` if the suite is not green on this runner, or the corruption breaks too few tests.
    """
    tree = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
    repository = Repository(task.source, tree, task.environment)
    out = task.suite.deselected
    longest = max(MAX_SUITE_SECONDS, task.suite.timeout_s)
    intake = take_in(repository, runner, runs=runs, max_seconds=longest, deselect=out, run=run)
    proof = prove(intake, answer.targets, runner, min_failing=task.rules.min_failing, run=run)
    if intake.flaky:
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"{len(intake.flaky)} tests came out differently between the runs here, first {intake.flaky[0]}.",
            hint="The task's own list of deselected tests is part of it: make the task again on this backend.",
        )
    return proof.baseline(intake, runner.backend.name)


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
