"""Runs the suite on a submission and says what it is worth; the only place where an attempt meets the answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.attempts.state import AttemptResult, result_of
from gistpoint.core.cancel import CancelToken
from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunProgress, RunRequest
from gistpoint.core.scoring import Score, score, solved
from gistpoint.core.tasks.entered import entering_tests
from gistpoint.core.tasks.model import Answer, Baseline, Target, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.trees import SourceTree

FREE = frozenset({RunStatus.INFRASTRUCTURE})
"""Statuses that cost no submission: the harness failed, not the solver."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a submission is worth, and the run that says so."""

    report: SuiteReport
    score: Score
    solved: bool
    changed: tuple[str, ...]
    """Corrupted functions that are another program than the corrupted one."""
    suspicious: tuple[str, ...] = ()
    """Why a pass is to be read before it counts as solved; such a pass was shown twice."""

    @property
    def result(self) -> AttemptResult:
        """What it comes to before anybody has read it."""
        return result_of(self.solved, self.suspicious)

    @property
    def counts(self) -> bool:
        """Whether it costs a submission."""
        return self.report.status not in FREE


@dataclass(frozen=True, slots=True)
class Judge:
    """Holds a task's answer and the runner, and judges trees."""

    task: Task
    answer: Answer
    runner: Runner
    _found: list[Protection] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def baseline(self) -> Baseline:
        """The baseline that fits the runner's backend."""
        return self.answer.baseline_for(self.runner.backend.name)

    def judge(
        self,
        tree: SourceTree,
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Run the whole suite on `tree`, whose tests are the original ones, and score it.

        Where the baseline allows any order, the ids in `first` run before the rest, then those of F0, then the tests
        that enter a function in `replaced`. A failure outside F0 in such a run counts only if the suite shows it in
        its own order too. A pass of a suspicious submission stands only if the suite passes again backwards, as the
        original does.
        """
        request = RunRequest(
            tree=tree,
            environment=self.task.environment,
            timeout_s=self.task.suite.timeout_s,
            deselect=self.task.suite.deselected,
            expected=self.baseline.collected,
        )
        protection = self.protection(on_progress=on_progress, cancel=cancel)
        if isinstance(protection, Protection):
            request = replace(request, writable=protection.writable, first=self._order(first, replaced))
            report = self.runner.run(request, on_progress=on_progress, cancel=cancel)
        else:
            report = protection
        if request.first and score(self.baseline, report).failing - self.baseline.failing:
            report = self._in_own_order(request, report, on_progress, cancel)
        suspicious = self._suspicious(tree)
        if suspicious and score(self.baseline, report).all_pass:
            report = self._confirmed(request, report, suspicious, cancel)
        changed = changed_targets(tree, self.answer.targets)
        result = score(self.baseline, report)
        names = [target.name for target in self.answer.targets]
        return Judgement(report, result, solved(result, names, changed), changed, suspicious)

    def protection(
        self, *, on_progress: Callable[[RunProgress], None] | None = None, cancel: CancelToken | None = None
    ) -> Protection | SuiteReport:
        """Return what of the tree a submission may change, or the report of a run that failed to find it out.

        A task that was made before this was known is completed: its original runs, once for most.
        """
        backend = self.runner.backend.name
        known = self.baseline.protections.get(backend) or next(iter(self._found), None)
        if known is not None:
            return known
        from gistpoint.core.attempts.protection import find_protection
        from gistpoint.core.generation.proof import repaired_tree
        from gistpoint.core.tasks.folder import write_baseline

        task, baseline = self.task, self.baseline
        original = repaired_tree(SourceTree.open(task.tree_path), self.answer.targets)
        request = RunRequest(original, task.environment, task.suite.timeout_s, deselect=task.suite.deselected)
        found = find_protection(
            request, baseline.passed, lambda asked, _: self.runner.run(asked, on_progress=on_progress, cancel=cancel)
        )
        if isinstance(found, Protection):
            self._found.append(found)
            with contextlib.suppress(OSError):  # the task lies where it can't be written
                protections = {**baseline.protections, backend: found}
                write_baseline(task.folder, replace(baseline, protections=protections))
        return found

    def _untouched(self, tree: SourceTree) -> SourceTree:
        same = tree.tar == self.task.tree_path
        return SourceTree(tree.tar, tree.members) if same else SourceTree.open(self.task.tree_path)

    def _suspicious(self, tree: SourceTree) -> tuple[str, ...]:
        from gistpoint.core.suspicion.submission import marks

        given = self._untouched(tree)
        return marks(given, tree, self._original(given), self.task.suite.test_files)

    def _original(self, given: SourceTree) -> SourceTree:
        from gistpoint.core.generation.proof import repaired_tree

        return repaired_tree(given, self.answer.targets)

    def _order(self, first: tuple[str, ...], replaced: tuple[str, ...]) -> tuple[str, ...]:
        baseline = self.baseline
        if not baseline.any_order:
            return ()
        told = tuple(failure.id for failure in self.task.brief.failing if failure.id in baseline.failing)
        wanted = (*first, *told, *sorted(baseline.failing), *entering_tests(self.answer.entered, replaced))
        return tuple(dict.fromkeys(id for id in wanted if id in baseline.collected))

    def _in_own_order(
        self,
        request: RunRequest,
        report: SuiteReport,
        on_progress: Callable[[RunProgress], None] | None,
        cancel: CancelToken | None,
    ) -> SuiteReport:
        """Return what the suite shows in its own order: a test that was moved may fail for that alone."""
        if report.status is not RunStatus.FINISHED:
            return report
        return self.runner.run(replace(request, first=()), on_progress=on_progress, cancel=cancel)

    def _confirmed(
        self, request: RunRequest, report: SuiteReport, suspicious: tuple[str, ...], cancel: CancelToken | None
    ) -> SuiteReport:
        """Return `report` if another run, backwards and with another hash seed, agrees with it; else what it showed."""
        again = replace(request, first=(), backwards=True, hash_seed=1)
        second = self.runner.run(again, cancel=cancel)
        if second.status is not RunStatus.FINISHED:
            return second
        lost = self.baseline.passed - second.passed
        if lost:
            # Tests may depend on their order: only what the original passes backwards counts.
            original = self._original(self._untouched(request.tree))
            lost &= self.runner.run(replace(again, tree=original), cancel=cancel).passed
        if not lost:
            return report
        reason = f"With {', '.join(suspicious[:5])} in the submission the suite was run again in the opposite order, "
        reason += f"and {len(lost)} tests that had passed did not: {min(lost)}."
        return replace(second, status=RunStatus.INVALID, reason=reason)


def changed_targets(tree: SourceTree, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the targets that are no longer the same program as the corrupted one."""
    from gistpoint.core.code.compare import same_program
    from gistpoint.core.code.index import index_source
    from gistpoint.core.code.parsing import CodeError

    changed = []
    for target in targets:
        try:
            now = index_source(target.path, tree.read(target.path)).get(target.qualname).source
            if same_program(now, target.corrupted):
                continue
        except (CodeError, FileNotFoundError):
            pass
        changed.append(target.name)
    return tuple(changed)


def test_run_data(call_id: str, judgement: Judgement, task: Task) -> dict[str, Any]:
    """Return the data of the `test_run` event of a submission."""
    report, score = judgement.report, judgement.score
    failures = [
        (result.id, result.message[: task.limits.failure_characters])
        for result in report.failed
        if result.id in score.failing
    ]
    return {
        "call_id": call_id,
        "status": report.status.value,
        "reason": report.reason,
        "counts": judgement.counts,
        "passed": score.passing,
        "failing": sorted(score.failing) if score.valid else [],
        "failures": failures[:20],
        "seconds": round(report.seconds, 3),
        "suspicious": list(judgement.suspicious),
        "backend": {
            "name": report.backend.name,
            "version": report.backend.version,
            "isolated": report.backend.isolated,
            "limits": dict(report.backend.limits),
        },
    }
