"""Proof: the results of the suite on a corrupted tree, whether they make a task, and its further baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.intake import LOOK, Intake, NoGood, NoTaskError, run_step, take_in
from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Answer, Baseline, Failure, Target, Task, ToolLimits
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, RUNS, Repository
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.trees import SourceTree

DEFAULT_MIN_FAILING = 5


@dataclass(frozen=True, slots=True)
class CorruptionProof:
    """A corruption that was shown to break enough tests."""

    targets: tuple[Target, ...]
    tree: SourceTree
    report: SuiteReport
    failing: frozenset[str]
    any_order: bool = False
    """Whether the failing tests may run first: the original still passes, and they still fail."""

    @property
    def passed_corrupted(self) -> frozenset[str]:
        """The ids that pass on the corrupted tree."""
        return self.report.passed

    def failures(self, limits: ToolLimits) -> tuple[Failure, ...]:
        """Return the failing tests as the brief lists them: all ids, the first few with their texts."""
        ran = [result for result in self.report.results.values() if result.id in self.failing]
        missing = sorted(self.failing - {result.id for result in ran})
        listed = [
            Failure(result.id, result.message[: limits.failure_characters] if n < limits.brief_failures else "")
            for n, result in enumerate(ran)
        ]
        return (*listed, *(Failure(id) for id in missing))

    def baseline(self, intake: Intake, backend: str) -> Baseline:
        """Return the baseline of the suite on the original and on the corrupted tree, both run on `backend`."""
        return Baseline(
            backend=backend,
            environment=sha256_of_json(sorted(intake.repository.environment.lock)),
            runs=intake.runs,
            collected=intake.collected,
            passed=intake.passed,
            passed_corrupted=self.passed_corrupted & intake.passed,
            seconds=round(intake.seconds, 2),
            any_order=self.any_order,
            protections={backend: intake.protection} if intake.protection else {},
        )


def prove(
    intake: Intake,
    targets: tuple[Target, ...],
    runner: Runner,
    *,
    min_failing: int = DEFAULT_MIN_FAILING,
    run: RunContext = UNATTENDED,
) -> CorruptionProof:
    """Run the whole suite on the corrupted tree; a second time if a test fails that the change can't reach.

    That needs the test map. A test that passes one of the two times failed by chance, and doesn't count as failing.
    Raises `NoTaskError` if the corruption can't make a task, `InfrastructureError` if the suite could not be run.
    """
    tree = corrupted_tree(intake.repository.tree, targets)
    request = RunRequest(
        tree,
        intake.repository.environment,
        intake.timeout_s,
        deselect=intake.flaky,
        expected=intake.collected,
        writable=intake.writable,
    )
    names = ", ".join(target.name for target in targets)
    report = run_step(runner, request, f"suite with {names} corrupted", run)
    if report.status is RunStatus.INFRASTRUCTURE:
        raise InfrastructureError(f"The suite could not be run with {names} corrupted. {report.reason}", hint=LOOK)
    if report.status in (RunStatus.TIMED_OUT, RunStatus.OUT_OF_MEMORY):
        raise NoTaskError(NoGood.HANGS, f"With {names} corrupted the suite was stopped: {report.status}.")
    if report.status is not RunStatus.FINISHED:
        raise NoTaskError(
            NoGood.COULD_NOT_RUN, f"With {names} corrupted the suite did not run: {report.status}. {report.reason}"
        )
    if by_chance := _by_chance(intake, targets, intake.passed - report.passed):
        step = f"suite with {names} corrupted, again: a test failed that does not enter it"
        again = run_step(runner, request, step, run)
        report = _with_passes(report, again, by_chance)
    failing = intake.passed - report.passed
    if len(failing) < min_failing:
        raise NoTaskError(
            NoGood.TOO_FEW_FAILING,
            f"With {names} corrupted {len(failing)} tests fail; a task needs {min_failing}.",
            hint="Choose another function, or lower the bar with --min-failing.",
        )
    if not any(result.id in failing for result in report.failed):
        raise NoTaskError(
            NoGood.BREAKS_COLLECTION, f"With {names} corrupted nothing but the collection of tests fails."
        )
    in_front = replace(request, first=tuple(id for id in report.results if id in failing))
    any_order = _borne(in_front, intake, names, runner, run)
    return CorruptionProof(targets, tree, report, failing, any_order)


def _borne(in_front: RunRequest, intake: Intake, names: str, runner: Runner, run: RunContext) -> bool:
    """Return whether failing tests can be moved to the front: all pass on the original, and they fail on their own.

    A test may fail only after another one, by what that one left; in front it would pass on the corrupted tree. They
    are run backwards, as any of them may come first.
    """
    original = replace(in_front, tree=intake.repository.tree)
    step = "suite of the original, the failing tests first"
    if not run_step(runner, original, step, run).passed >= intake.passed:
        return False
    alone = replace(in_front, first=(), select=in_front.first[::-1], expected=frozenset(in_front.first))
    report = run_step(runner, alone, f"the failing tests alone, in reverse order, with {names} corrupted", run)
    return report.status is RunStatus.FINISHED and report.passed.isdisjoint(in_front.first)


def _by_chance(intake: Intake, targets: tuple[Target, ...], failing: frozenset[str]) -> frozenset[str]:
    """Return which tests may have failed by chance: by the map, a change of the targets can't reach them."""
    if intake.test_map is None:
        return frozenset()
    return failing - set(intake.test_map.seeing(target.name for target in targets))


def _with_passes(report: SuiteReport, again: SuiteReport, ids: frozenset[str]) -> SuiteReport:
    """Return `report` with the second results of those of `ids` that then passed."""
    passing = {id: again.results[id] for id in ids & again.passed}
    return replace(report, results={**report.results, **passing})


# Another baseline of a task: the outcomes of its suite on another backend, where some ids may differ


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
