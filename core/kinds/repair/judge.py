"""The harness of a repair, which answers calls, and the judge, which runs the suite on submissions.

The judge is the only place where an attempt uses the answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gistpoint.core.attempts.events import SubmissionMade, SubmissionRun, SubmissionScored
from gistpoint.core.attempts.harness import CallOutcome, ForcedOutcome, Log, Price, TaskHarness
from gistpoint.core.attempts.state import (
    AttemptCall,
    AttemptResult,
    AttemptState,
    NoKindState,
    Submission,
    result_of,
)
from gistpoint.core.kinds.beginning import ControlledRunner, settled
from gistpoint.core.kinds.protecting import find_protection
from gistpoint.core.kinds.repair.brief import repair_brief
from gistpoint.core.kinds.repair.measures import searched
from gistpoint.core.kinds.repair.scoring import Score, changed_targets, score, solved
from gistpoint.core.outcomes import FREE, BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunRequest, WatchedSpan
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.documents import write_protection
from gistpoint.core.tasks.entered import entering_tests
from gistpoint.core.tasks.model import Answer, Baseline, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.tools.declaration import (
    BoundCall,
    Replacement,
    Tool,
    ToolContext,
    ToolOutput,
    declarations_sha256,
)
from gistpoint.core.tools.replacing import REPAIR_TOOLS
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Judgement:
    """The score of a submission, and the run that shows it."""

    report: SuiteReport
    score: Score
    solved: bool
    changed: tuple[str, ...]
    """Corrupted functions that are no longer equivalent to the corrupted version."""
    suspicious: tuple[str, ...] = ()
    """The reasons why somebody must read a pass before it counts as solved; such a pass was run twice."""

    @property
    def result(self) -> AttemptResult:
        """The result before a person has read the submission."""
        return result_of(self.solved, self.suspicious)

    @property
    def reason(self) -> str:
        """The reason why the run did not finish; empty if the run finished."""
        return self.report.reason

    @property
    def counts(self) -> bool:
        """Whether the judgement costs a submission; False if the harness or the isolation failed."""
        return self.report.status not in FREE


@dataclass(frozen=True, slots=True)
class RepairJudge:
    """Judges trees with the suite of a repair task."""

    task: Task
    answer: Answer
    runner: Runner
    _found: list[Protection] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def backend(self) -> BackendRecord:
        """The isolation in which the tests run."""
        return self.runner.backend

    @property
    def blank(self) -> NoKindState:
        """An empty state: a repair needs only the parts of the state that every kind has."""
        return NoKindState()

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        """Return the task with these budgets, the only settings of a repair."""
        return replace(task, budgets=budgets)

    def harness(self, task: Task) -> RepairHarness:
        """Return the harness of a repair."""
        return RepairHarness(task, self)

    def ending_as(self, instead: ForcedOutcome) -> RepairJudge:
        """Return a judge like this one whose runs end with the status of `instead`, if it has one."""
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
        watch: bool = False,
    ) -> Judgement:
        """Run the whole suite on `tree`, whose tests are the original ones, and return the judgement.

        If the baseline allows any order, the ids in `first` run first, then those that fail on the corrupted
        tree, then the tests that enter a function in `replaced`, and then the rest. If any other test fails
        in such a run, the suite is run again in its own order, and only that run counts. A pass of a
        suspicious submission counts only if the suite passes again backwards, as the original does; that run
        is watched (decision 116), and its observations are suspicious too. `watch` requests this run even if
        the text of the submission is not suspicious.
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
            # The tree is protected before anything runs, because a test could be rewritten before it is read
            # (decision 41).
            request = replace(request, writable=protection.writable, first=self._order(first, replaced))
            report = self._controlled.run(request, run=run)
        else:
            report = protection
        result = score(self.baseline, report)
        # A correct submission must not fail because of the changed order (decision 10).
        fails_elsewhere = bool(result.failing - self.baseline.failing)
        if request.first and fails_elsewhere:
            report = self._in_own_order(request, report, run)
            result = score(self.baseline, report)
        suspicious = self._suspicious(tree)
        # Only a pass is run once more: nothing else can count as solved (decisions 43 and 116).
        is_watched = watch or bool(suspicious)
        if is_watched and result.all_pass:
            report, seen = self._confirmed(request, report, suspicious, run.quiet)
            suspicious = tuple(sorted({*suspicious, *seen}))
            result = score(self.baseline, report)
        changed = changed_targets(tree, self.answer.targets)
        names = [target.name for target in self.answer.targets]
        return Judgement(report, result, solved(result, names, changed), changed, suspicious)

    def protection(self, *, run: RunContext = UNATTENDED) -> Protection | SuiteReport:
        """Return the parts of the tree that a submission may change, or the report of a failed run.

        If the task has no such record, or a record from elsewhere (decision 158), the original is run,
        usually once, and the result is stored.
        """
        backend = self.runner.backend.name
        known = self.baseline.protections.get(backend) or next(iter(self._found), None)
        # An older task has no record: its original is run on the first scored run (decision 41).
        if known is not None:
            return known
        task = self.task
        baseline = self.baseline
        original = repaired_tree(SourceTree.open(task.tree_path), self.answer.targets)
        request = RunRequest(original, task.environment, task.suite.timeout_s, deselect=task.suite.deselected)
        found = find_protection(
            request, baseline.passed, lambda asked, _: self._controlled.run(asked, run=run)
        )
        if not isinstance(found, Protection):
            return found
        self._found.append(found)
        with contextlib.suppress(OSError):  # the task's folder may not be writable
            write_protection(task.folder, backend, found)
        return found

    @property
    def _controlled(self) -> ControlledRunner:
        return ControlledRunner(self.runner, lambda: SourceTree.open(self.task.tree_path))

    def _untouched(self, tree: SourceTree) -> SourceTree:
        same = tree.tar == self.task.tree_path
        if same:
            return SourceTree(tree.tar, tree.members)
        return SourceTree.open(self.task.tree_path)

    def _suspicious(self, tree: SourceTree) -> tuple[str, ...]:
        from gistpoint.core.suspicion.submission import marks

        given = self._untouched(tree)
        return marks(given, tree, self._original(given), self.task.suite.test_files)

    def _original(self, given: SourceTree) -> SourceTree:
        return repaired_tree(given, self.answer.targets)

    def _order(self, first: tuple[str, ...], replaced: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tests that run first, starting with the most informative.

        The result is empty if the order matters (decision 10).
        """
        baseline = self.baseline
        if not baseline.any_order:
            return ()
        listed = [failure.id for failure in self.task.brief.failing if failure.id in baseline.failing]
        wanted = (*first, *listed, *sorted(baseline.failing), *entering_tests(self.answer.entered, replaced))
        return tuple(dict.fromkeys(id for id in wanted if id in baseline.collected))

    def _in_own_order(
        self,
        request: RunRequest,
        report: SuiteReport,
        run: RunContext,
    ) -> SuiteReport:
        """Return the report of the suite in its own order, because a test may fail only because it was moved.

        If the earlier run did not finish, its `report` is returned.
        """
        if report.status is not RunStatus.FINISHED:
            return report
        return self._controlled.run(replace(request, first=()), run=run)

    def _confirmed(
        self, request: RunRequest, report: SuiteReport, suspicious: tuple[str, ...], run: RunContext
    ) -> tuple[SuiteReport, tuple[str, ...]]:
        """Return `report` if a second run, backwards with another hash seed, agrees; else the second report.

        The second run is watched. Observations that the true functions do not share are returned as well.
        """
        again = replace(request, first=(), backwards=True, hash_seed=1, watched=self._spans(request.tree))
        second = self._controlled.run(again, run=run)
        if second.status is not RunStatus.FINISHED:
            return second, ()
        seen = self._observations(again, second, run)
        lost = self.baseline.passed - second.passed
        if lost:
            # Tests may depend on their order, so only tests that the original also passes in reverse count.
            original = self._original(self._untouched(request.tree))
            lost &= self._controlled.run(replace(again, tree=original, watched=()), run=run).passed
        if not lost:
            return report, seen
        why = "As the pass was not confirmed,"
        if suspicious:
            why = f"With {', '.join(suspicious[:5])} in the submission"
        reason = (
            f"{why} the suite was run again in the opposite order, "
            f"and {len(lost)} tests that had passed did not: {min(lost)}."
        )
        return replace(second, status=RunStatus.INVALID, reason=reason), seen

    def _spans(self, tree: SourceTree) -> tuple[WatchedSpan, ...]:
        from gistpoint.core.suspicion.submission import submitted_spans

        return tuple(WatchedSpan(*span) for span in submitted_spans(self._untouched(tree), tree))

    def _observations(self, request: RunRequest, report: SuiteReport, run: RunContext) -> tuple[str, ...]:
        """Return the observations of the watched run, without those that the true functions share."""
        if not report.watched:
            return ()
        original = self._original(self._untouched(request.tree))
        true = self._controlled.run(replace(request, tree=original, watched=self._spans(original)), run=run)
        return tuple(mark for mark in report.watched if mark not in true.watched)


@dataclass(frozen=True, slots=True)
class _EndingAs:
    """A runner that runs like another one, unless an outcome is forced."""

    inner: Runner
    instead: ForcedOutcome

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


class JudgesTrees(Protocol):
    """A judge that runs the suite of one task on trees and scores them: `RepairJudge`, or a scripted one."""

    @property
    def runner(self) -> Runner:
        """The runner of the suite."""
        ...

    def judge(
        self,
        tree: SourceTree,
        *,
        run: RunContext = UNATTENDED,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Run the suite on a tree and return the judgement."""
        ...


_FREE_REFUSALS = 2
"""The number of consecutive free refusals at the last use: a slip must not cost the only submission."""


class RepairHarness(TaskHarness):
    """The harness of a repair; tools read the corrupted tree, in discovery with accepted replacements."""

    def __init__(self, task: Task, judge: JudgesTrees) -> None:
        super().__init__(task, judge.runner.backend)
        self.judge = judge
        self._base = SourceTree.open(task.tree_path)
        self._tree = self._base

    @property
    def tree(self) -> SourceTree:
        """The repository, with accepted replacements."""
        return self._tree

    @property
    def _persistent(self) -> bool:
        return searched(self.task.mode)

    def _awaits_submission(self, state: AttemptState) -> bool:
        """Return whether only a submission is possible next."""
        return state.remaining.tool_uses == 1 and not state.submitted

    def files(self, state: AttemptState) -> Mapping[str, bytes | None]:
        """Return the changed files by path, with the replacements that persist or the last submission's."""
        if self._persistent or not state.submissions:
            return dict(self._tree.overlay)
        return dict(state.submissions[-1].replacement.on(self._tree).overlay)

    def restore(self, state: AttemptState) -> None:
        """Apply the replacements that persist."""
        self._tree = self._base
        for replacement in state.replacements:
            self._tree = replacement.on(self._tree)

    def brief(self, task: Task) -> str:
        """Return the brief of a task as it is shown and sent."""
        return repair_brief(task)

    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        """Return the hash of the tools."""
        return {"tools_sha256": declarations_sha256(REPAIR_TOOLS[self.task.mode])}

    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools of the mode."""
        return REPAIR_TOOLS[self.task.mode]

    def offered(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return all tools; at the last use without a submission, only those that submit."""
        tools = self.tools(state)
        if self._awaits_submission(state):
            return tuple(tool for tool in tools if tool.submits)
        return tools

    def price(self, tool: Tool, state: AttemptState) -> Price:
        """Return the cost of a call.

        If it leaves one use and no submission was made, only a submission can follow.
        """
        then_submit = state.remaining.tool_uses == 2 and not state.submissions and not tool.submits
        return replace(super().price(tool, state), then_submit=then_submit)

    def handle(self, call: AttemptCall, bound: BoundCall, log: Log, run: RunContext) -> CallOutcome:
        """Return the outcome of a call; an unfinished submission is judged with its recorded code."""
        done = next((s for s in log.state.submissions if s.call_id == call.call_id), None)
        if done is None:
            output = bound.answer(self._context())
            if output.replacement is None:
                # No test has run, so the solver has learned nothing from the call. It costs no submission
                # unless the task's rules say so (decision 3).
                charged = int(output.refused and bound.tool.submits and self.task.rules.refused_costs_attempt)
                return CallOutcome(output, Remaining(1, charged))
            self._submit(call, output.replacement, log)
            done = log.state.submissions[-1]
        return self._judge(call, done, log, run)

    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        """Return the remaining budgets, and a remark if only a submission is possible next."""
        lines = [budget_line(left)]
        is_last_use = left.tool_uses == 1 and charged.tool_uses
        if is_last_use and not state.submitted:
            lines.append(LAST_USE)
        return lines

    def refusal(self, tool: Tool) -> str:
        """Return the message that only a submission is possible next."""
        return LAST_USE

    def refuse(self, reason: str, state: AttemptState) -> CallOutcome:
        """Return the refusal, which costs a use; if only a submission can follow, two refusals are free."""
        # The third refusal takes the last use, so that every sequence of calls ends (decision 49).
        is_free = self._awaits_submission(state) and state.refused_free < _FREE_REFUSALS
        if not is_free:
            return CallOutcome(ToolOutput(f"Refused: {reason}", refused=True), Remaining(1, 0))
        text = reason if reason == LAST_USE else f"{reason} {LAST_USE}"
        return CallOutcome(ToolOutput(f"Refused: {text}", refused=True), Remaining(0, 0))

    def _context(self) -> ToolContext:
        return ToolContext(
            tree=self._tree if self._persistent else self._base,
            limits=self.task.limits,
            target=self.task.brief.target,
            test_files=frozenset(self.task.suite.test_files),
        )

    def _submit(self, call: AttemptCall, replacement: Replacement, log: Log) -> None:
        if self._persistent:
            self._tree = replacement.on(self._tree)
        number = len(log.state.submissions) + 1
        log.append(SubmissionMade(call.call_id, number, replacement, self._persistent))

    def _judge(self, call: AttemptCall, submission: Submission, log: Log, run: RunContext) -> CallOutcome:
        before = [known for known in log.state.submissions if known.call_id != call.call_id]
        if self._persistent:
            tree = self._tree
            replaced = [submission, *reversed(before)]
        else:
            tree = submission.replacement.on(self._base)
            replaced = [submission]
        names = dict.fromkeys(known.replacement.name for known in replaced)
        failed = before[-1].failing if before else ()
        judgement = self.judge.judge(tree, run=run, first=failed, replaced=tuple(names))
        # Runs that did not start are given back at most three times (decision 121).
        judgement = replace(judgement, report=settled(judgement.report, log.state.given_back))
        log.append(submission_run(call.call_id, judgement, self.task))
        text = submission_text(self.task, judgement)
        if not judgement.counts:
            return CallOutcome(ToolOutput(text), Remaining(0, 0), judgement)
        log.append(SubmissionScored(call.call_id, judgement.score.value, judgement.solved, judgement.changed))
        return CallOutcome(ToolOutput(text), Remaining(1, 1), judgement)


def submission_run(call_id: str, judgement: Judgement, task: Task) -> SubmissionRun:
    """Return the event of a submission's test run, with the messages of at most 20 failing tests."""
    report = judgement.report
    score = judgement.score
    failures = [
        (result.id, result.message[: task.limits.failure_characters])
        for result in report.failed
        if result.id in score.failing
    ]
    return SubmissionRun(
        call_id,
        report.status.value,
        report.reason,
        counts=judgement.counts,
        passed=score.passing,
        failing=tuple(sorted(score.failing)) if score.valid else (),
        failures=tuple(failures[:20]),
        seconds=round(report.seconds, 3),
        suspicious=judgement.suspicious,
        backend=report.backend,
    )


_STATUS = {
    RunStatus.INVALID: "The test run is invalid",
    RunStatus.TIMED_OUT: "The tests were stopped at their time limit",
    RunStatus.OUT_OF_MEMORY: "The tests were stopped at their memory limit",
    RunStatus.CRASHED: "The test run did not finish",
    RunStatus.COULD_NOT_RUN: "The tests could not be run",
    RunStatus.INFRASTRUCTURE: "The test run failed for no fault of the submission",
    RunStatus.HARNESS_FAILED: "The tests did not begin, for no fault of the submission",
    RunStatus.CANCELLED: "The test run was cancelled",
}


_TELLING = frozenset({RunStatus.TIMED_OUT, RunStatus.OUT_OF_MEMORY, RunStatus.CANCELLED})
"""Statuses whose reason, if present, suffices to explain the outcome."""


def submission_text(task: Task, judgement: Judgement) -> str:
    """Return the text about a judged submission.

    It contains the score, the counts and the first failing test, or the reason why judging did not finish.
    """
    report = judgement.report
    score = judgement.score
    total = score.passing + len(score.failing)
    if report.status is RunStatus.HARNESS_FAILED:
        return report.reason or f"{_STATUS[report.status]}."
    if report.status is not RunStatus.FINISHED:
        cost = "" if judgement.counts else " It costs no submission."
        if report.reason and report.status in _TELLING:
            return f"{report.reason} Score 0.{cost}"
        reason = f": {report.reason}" if report.reason else "."
        return f"{_STATUS[report.status]}{reason} Score 0.{cost}"
    text = f"Score {score.value:.3f}: {score.passing} of {total} tests pass, {len(score.failing)} fail."
    shown = first_failure(judgement, task.limits.failure_characters)
    return f"{text}\n\n{shown}" if shown else text


def first_failure(judgement: Judgement, characters: int) -> str:
    """Return the first failing test that counts, with its failure, or the first error of collection.

    Without either, return a failing test that was not run, or an empty string if no test fails. `characters`
    limits the length of the message.
    """
    failing = judgement.score.failing
    for result in judgement.report.results.values():
        if result.id in failing:
            return f"{result.id} ({result.outcome})\n{result.message[:characters]}".rstrip()
    for error in judgement.report.collection_errors:
        return f"{error.id} can't be collected\n{error.message[:characters]}".rstrip()
    return f"{min(failing)} was not run." if failing else ""


def budget_line(remaining: Remaining) -> str:
    """Return the line of an answer that states the remaining budgets."""
    uses = f"{remaining.tool_uses} tool {'use' if remaining.tool_uses == 1 else 'uses'}"
    submissions = f"{remaining.submissions} {'submission' if remaining.submissions == 1 else 'submissions'}"
    return f"[{uses} and {submissions} left]"


LAST_USE = (
    "This was the last tool use before the final one, and nothing was submitted yet: only a submission can"
    " follow."
)
