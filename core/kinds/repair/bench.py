"""A repair: replacements of functions, judged by the suite, and the wording of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.attempts.bench import Log, OnProgress, Outcome, Price
from gistpoint.core.attempts.budgets import Budgets, Remaining
from gistpoint.core.attempts.events import EndReason, EventType
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptState, Call, Replacement, Submission
from gistpoint.core.cancel import CancelToken
from gistpoint.core.kinds.repair.judge import Judge, Judgement, test_run_data
from gistpoint.core.kinds.repair.tools import with_replacement
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tools.declaration import Tool, ToolContext, ToolOutput
from gistpoint.core.tools.registry import call as call_tool
from gistpoint.core.tools.registry import declarations_sha256, tools_of
from gistpoint.core.trees import SourceTree

_FREE_REFUSALS = 2
"""In a row, at the last use, so that a slip does not take away the only submission."""


class RepairBench:
    """Tools see the corrupted tree; in discovery, with every accepted replacement on top."""

    def __init__(self, task: Task, judge: Judge) -> None:
        self.task, self.judge = task, judge
        self._base = SourceTree.open(task.tree_path)
        self._tree = self._base

    @property
    def backend(self) -> BackendRecord:
        """The isolation that the tests run in."""
        return self.judge.runner.backend

    @property
    def tree(self) -> SourceTree:
        """The repository, accepted replacements included."""
        return self._tree

    @property
    def _persistent(self) -> bool:
        return self.task.mode is Mode.DISCOVERY

    def _awaits_submission(self, state: AttemptState) -> bool:
        """Whether only a submission can follow."""
        return state.remaining.tool_uses == 1 and not state.submitted

    def restore(self, state: AttemptState) -> None:
        """Apply the replacements that persist."""
        self._tree = self._base
        for replacement in state.replacements:
            self._tree = with_replacement(self._tree, replacement)

    def budgets(self, role: Role) -> Budgets:
        """Return the task's budgets."""
        return self.task.budgets

    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        """Return the hash of the tools."""
        return {"tools_sha256": declarations_sha256(self.task.mode)}

    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools of the mode."""
        return tools_of(self.task.mode)

    def offered(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return all tools; at the last use without a submission, only those that submit."""
        tools = self.tools(state)
        return tuple(tool for tool in tools if tool.submits) if self._awaits_submission(state) else tools

    def price(self, tool: Tool, state: AttemptState) -> Price:
        """Return what a call would spend."""
        remaining, submissions = state.remaining, int(tool.submits)
        return Price(1, submissions, remaining.tool_uses == 1, bool(submissions) and remaining.submissions == 1)

    def to_save(self, tool: str, arguments: Mapping[str, Any], state: AttemptState) -> str | None:
        """Return None: code that was typed goes with its submission."""
        return None

    def handle(
        self, call: Call, tool: Tool, log: Log, on_progress: OnProgress | None, cancel: CancelToken | None
    ) -> Outcome:
        """Answer a look, or judge a submission; one that was begun before is judged as it was submitted."""
        done = next((s for s in log.state.submissions if s.call_id == call.call_id), None)
        if done is None:
            output = call_tool(tool, self._context(), call.arguments)
            if output.replacement is None:
                charged = int(output.refused and tool.submits and self.task.rules.refused_costs_attempt)
                return Outcome(output, Remaining(1, charged))
            self._submit(call, output.replacement, log)
            done = log.state.submissions[-1]
        return self._judge(call, done, log, on_progress, cancel)

    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        """Return what is left, and that only a submission can follow."""
        lines = [budget_line(left)]
        if left.tool_uses == 1 and charged.tool_uses and not state.submitted:
            lines.append(LAST_USE)
        return lines

    def refusal(self, tool: Tool) -> str:
        """Return that only a submission can follow."""
        return LAST_USE

    def refuse(self, reason: str, state: AttemptState) -> Outcome:
        """Charge a use; while only a submission can follow, say so at no cost twice in a row before."""
        if not self._awaits_submission(state) or state.refused_free >= _FREE_REFUSALS:
            return Outcome(ToolOutput(f"Refused: {reason}", refused=True), Remaining(1, 0))
        text = reason if reason == LAST_USE else f"{reason} {LAST_USE}"
        return Outcome(ToolOutput(f"Refused: {text}", refused=True), Remaining(0, 0))

    def ending(self, state: AttemptState) -> EndReason | None:
        """Return the reason where it is solved or a budget is spent."""
        if state.solved:
            return EndReason.SOLVED
        if state.remaining.submissions == 0:
            return EndReason.SUBMISSIONS_EXHAUSTED
        return EndReason.CALLS_EXHAUSTED if state.remaining.tool_uses == 0 else None

    def last_call(self, state: AttemptState) -> str:
        """Return nothing: a repair that was not submitted is not judged."""
        return ""

    def _context(self) -> ToolContext:
        return ToolContext(
            tree=self._tree if self._persistent else self._base,
            limits=self.task.limits,
            mode=self.task.mode,
            target=self.task.brief.target,
            test_files=frozenset(self.task.suite.test_files),
        )

    def _submit(self, call: Call, replacement: Replacement, log: Log) -> None:
        data = {
            "call_id": call.call_id,
            "number": len(log.state.submissions) + 1,
            "replacement": {"path": replacement.path, "qualname": replacement.qualname, "code": replacement.code},
            "persistent": self._persistent,
        }
        if self._persistent:
            self._tree = with_replacement(self._tree, replacement)
        log.append(EventType.SUBMIT, data)

    def _judge(
        self, call: Call, submission: Submission, log: Log, on_progress: OnProgress | None, cancel: CancelToken | None
    ) -> Outcome:
        tree = self._tree if self._persistent else with_replacement(self._base, submission.replacement)
        before = [known for known in log.state.submissions if known.call_id != call.call_id]
        failed = before[-1].failing if before else ()
        replaced = (submission, *reversed(before)) if self._persistent else (submission,)
        names = tuple(f"{known.replacement.path}::{known.replacement.qualname}" for known in replaced)
        judgement = self.judge.judge(
            tree, on_progress=on_progress, cancel=cancel, first=failed, replaced=tuple(dict.fromkeys(names))
        )
        log.append(EventType.TEST_RUN, test_run_data(call.call_id, judgement, self.task))
        score = {
            "call_id": call.call_id,
            "score": judgement.score.value,
            "solved": judgement.solved,
            "changed": list(judgement.changed),
        }
        log.append(EventType.SCORE, score)
        charged = Remaining(1, 1) if judgement.counts else Remaining(0, 0)
        return Outcome(ToolOutput(submission_text(self.task, judgement)), charged, judgement)


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
