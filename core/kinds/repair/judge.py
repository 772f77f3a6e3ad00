"""Runs the suite on a submission and scores it; the only place where an attempt uses the answer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.attempts.bench import Instead
from gistpoint.core.attempts.state import NoKindState
from gistpoint.core.kinds.protecting import find_protection
from gistpoint.core.kinds.repair.bench import Judgement, RepairHarness
from gistpoint.core.kinds.repair.scoring import changed_targets, score, solved
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.documents import write_baseline
from gistpoint.core.tasks.entered import entering_tests
from gistpoint.core.tasks.model import Answer, Baseline, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class RepairJudge:
    """Holds a task's answer and the runner, and judges trees."""

    task: Task
    answer: Answer
    runner: Runner
    _found: list[Protection] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def backend(self) -> BackendRecord:
        """The isolation that the tests run in."""
        return self.runner.backend

    @property
    def blank(self) -> NoKindState:
        """An empty state: a repair needs only the parts of the state that every kind has."""
        return NoKindState()

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        """Return the task with these budgets: a repair has no other settings."""
        return replace(task, budgets=budgets)

    def bench(self, task: Task) -> RepairHarness:
        """Return the harness of a repair."""
        return RepairHarness(task, self)

    def ending_as(self, instead: Instead) -> RepairJudge:
        """Return a judge like this one that asks `instead` before every run."""
        return replace(self, runner=_EndingAs(self.runner, instead))

    @property
    def baseline(self) -> Baseline:
        """The baseline that fits the runner's backend."""
        return self.answer.baseline_for(self.runner.backend.name)

    def judge(
        self,
        tree: SourceTree,
        *,
        run: RunContext = UNATTENDED,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Run the whole suite on `tree`, whose tests are the original ones, and score it.

        If the baseline allows any order, the ids in `first` run before the rest, then those of F0, then the tests that
        enter a function in `replaced`. A failure outside F0 in such a run counts only if the suite also fails there in
        its own order. A pass of a suspicious submission counts only if the suite passes again backwards, as the
        original does.
        """
        request = RunRequest(
            tree=tree,
            environment=self.task.environment,
            timeout_s=self.task.suite.timeout_s,
            deselect=self.task.suite.deselected,
            expected=self.baseline.collected,
        )
        protection = self.protection(run=run)
        if isinstance(protection, Protection):
            request = replace(request, writable=protection.writable, first=self._order(first, replaced))
            report = self.runner.run(request, run=run)
        else:
            report = protection
        result = score(self.baseline, report)
        if request.first and result.failing - self.baseline.failing:
            report = self._in_own_order(request, report, run)
            result = score(self.baseline, report)
        suspicious = self._suspicious(tree)
        if suspicious and result.all_pass:
            report = self._confirmed(request, report, suspicious, run.quiet)
            result = score(self.baseline, report)
        changed = changed_targets(tree, self.answer.targets)
        names = [target.name for target in self.answer.targets]
        return Judgement(report, result, solved(result, names, changed), changed, suspicious)

    def protection(self, *, run: RunContext = UNATTENDED) -> Protection | SuiteReport:
        """Return which parts of the tree a submission may change, or the report of a run that failed to find out.

        An older task that lacks this record is completed by running its original, usually once.
        """
        backend = self.runner.backend.name
        known = self.baseline.protections.get(backend) or next(iter(self._found), None)
        if known is not None:
            return known
        task, baseline = self.task, self.baseline
        original = repaired_tree(SourceTree.open(task.tree_path), self.answer.targets)
        request = RunRequest(original, task.environment, task.suite.timeout_s, deselect=task.suite.deselected)
        found = find_protection(request, baseline.passed, lambda asked, _: self.runner.run(asked, run=run))
        if isinstance(found, Protection):
            self._found.append(found)
            with contextlib.suppress(OSError):  # the task's folder may not be writable
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
        return repaired_tree(given, self.answer.targets)

    def _order(self, first: tuple[str, ...], replaced: tuple[str, ...]) -> tuple[str, ...]:
        baseline = self.baseline
        if not baseline.any_order:
            return ()
        listed = tuple(failure.id for failure in self.task.brief.failing if failure.id in baseline.failing)
        wanted = (*first, *listed, *sorted(baseline.failing), *entering_tests(self.answer.entered, replaced))
        return tuple(dict.fromkeys(id for id in wanted if id in baseline.collected))

    def _in_own_order(
        self,
        request: RunRequest,
        report: SuiteReport,
        run: RunContext,
    ) -> SuiteReport:
        """Return the report of the suite in its own order: a test may fail only because it was moved."""
        if report.status is not RunStatus.FINISHED:
            return report
        return self.runner.run(replace(request, first=()), run=run)

    def _confirmed(
        self, request: RunRequest, report: SuiteReport, suspicious: tuple[str, ...], run: RunContext
    ) -> SuiteReport:
        """Return `report` if another run, backwards with another hash seed, agrees; else that run's report."""
        again = replace(request, first=(), backwards=True, hash_seed=1)
        second = self.runner.run(again, run=run)
        if second.status is not RunStatus.FINISHED:
            return second
        lost = self.baseline.passed - second.passed
        if lost:
            # Tests may depend on their order: only what the original passes backwards counts.
            original = self._original(self._untouched(request.tree))
            lost &= self.runner.run(replace(again, tree=original), run=run).passed
        if not lost:
            return report
        reason = f"With {', '.join(suspicious[:5])} in the submission the suite was run again in the opposite order, "
        reason += f"and {len(lost)} tests that had passed did not: {min(lost)}."
        return replace(second, status=RunStatus.INVALID, reason=reason)


@dataclass(frozen=True, slots=True)
class _EndingAs:
    """Runs as the runner that it is given, unless the run is to end otherwise."""

    inner: Runner
    instead: Instead

    @property
    def backend(self) -> BackendRecord:
        return self.inner.backend

    def run(
        self,
        request: RunRequest,
        *,
        run: RunContext = UNATTENDED,
    ) -> SuiteReport:
        if self.instead.status is not None:
            return SuiteReport(self.instead.status, reason=self.instead.reason, backend=self.backend)
        return self.inner.run(request, run=run)
