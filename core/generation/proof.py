"""Proof: what the suite shows on a corrupted tree, and whether that makes a task."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.intake import LOOK, Intake, NoGood, NoTaskError, OnMaking, run_step
from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.tasks.model import Failure, Limits, Target
from gistpoint.core.trees import SourceTree

DEFAULT_MIN_FAILING = 5


@dataclass(frozen=True, slots=True)
class Proof:
    """A corruption that was shown to break enough tests."""

    targets: tuple[Target, ...]
    tree: SourceTree
    report: SuiteReport
    failing: frozenset[str]
    any_order: bool = False
    """Whether with the failing tests before all others the original passes as well, and they fail as well."""

    @property
    def passed_corrupted(self) -> frozenset[str]:
        """The ids that pass on the corrupted tree."""
        return self.report.passed

    def failures(self, limits: Limits) -> tuple[Failure, ...]:
        """Return the failing tests as the brief tells them: all ids, the first few with their texts."""
        ran = [result for result in self.report.results.values() if result.id in self.failing]
        missing = sorted(self.failing - {result.id for result in ran})
        told = [
            Failure(result.id, result.message[: limits.failure_characters] if n < limits.brief_failures else "")
            for n, result in enumerate(ran)
        ]
        return (*told, *(Failure(id) for id in missing))


def corrupted_tree(tree: SourceTree, targets: tuple[Target, ...]) -> SourceTree:
    """Return `tree` with every target's corrupted text in place. Raises `CodeError` where one does not fit."""
    for target in targets:
        index = index_source(target.path, tree.read(target.path))
        tree = tree.with_files({target.path: replace_definition(index, index.get(target.qualname), target.corrupted)})
    return tree


def repaired_tree(tree: SourceTree, targets: tuple[Target, ...]) -> SourceTree:
    """Return a corrupted tree with every target's original text in place."""
    for target in targets:
        index = index_source(target.path, tree.read(target.path))
        tree = tree.with_files({target.path: replace_definition(index, index.get(target.qualname), target.original)})
    return tree


def prove(
    intake: Intake,
    targets: tuple[Target, ...],
    runner: Runner,
    *,
    min_failing: int = DEFAULT_MIN_FAILING,
    on_progress: OnMaking | None = None,
    cancel: CancelToken | None = None,
) -> Proof:
    """Run the whole suite on the corrupted tree; a second time where a test fails on which the change can't tell.

    That needs the test map. What passes one of the two times failed by chance, and doesn't count as failing. Raises
    `NoTaskError` where the corruption makes no task, `InfrastructureError` where the suite could not be run.
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
    report = run_step(runner, request, f"suite with {names} corrupted", on_progress, cancel)
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
        again = run_step(runner, request, step, on_progress, cancel)
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
    any_order = _borne(in_front, intake, names, runner, on_progress, cancel)
    return Proof(targets, tree, report, failing, any_order)


def _borne(
    in_front: RunRequest,
    intake: Intake,
    names: str,
    runner: Runner,
    on_progress: OnMaking | None,
    cancel: CancelToken | None,
) -> bool:
    """Return whether failing tests can be moved to the front: of the original all pass, and on their own they fail.

    A test may fail only behind another one, by what that one left; in front it would pass on the corrupted tree. They
    are run backwards, as any of them may come first.
    """
    original = replace(in_front, tree=intake.repository.tree)
    step = "suite of the original, those tests first"
    if not run_step(runner, original, step, on_progress, cancel).passed >= intake.passed:
        return False
    alone = replace(in_front, first=(), select=in_front.first[::-1], expected=frozenset(in_front.first))
    report = run_step(runner, alone, f"those tests alone, backwards, with {names} corrupted", on_progress, cancel)
    return report.status is RunStatus.FINISHED and report.passed.isdisjoint(in_front.first)


def _by_chance(intake: Intake, targets: tuple[Target, ...], failing: frozenset[str]) -> frozenset[str]:
    """Return which tests may have failed by chance: by the map a change of the targets can't tell on them."""
    if intake.test_map is None:
        return frozenset()
    return failing - set(intake.test_map.seeing(target.name for target in targets))


def _with_passes(report: SuiteReport, again: SuiteReport, ids: frozenset[str]) -> SuiteReport:
    """Return `report` with the results of those of `ids` that passed the second time."""
    passing = {id: again.results[id] for id in ids & again.passed}
    return replace(report, results={**report.results, **passing})
