"""Makes each recorded call of a run again, in a fresh workspace of its task, and says whether the same comes back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.attempts.engine import Attempt, OnProgress, ToolResult
from gistpoint.core.attempts.events import Event
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.attempts.judging import FREE, Judge
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunProgress, RunRequest, TimeSource
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tools.declaration import RefusalError
from gistpoint.core.tools.registry import declarations_sha256, tool_named
from gistpoint.core.tools.replacement import with_replacement
from gistpoint.sessions.replay.comparing import compare
from gistpoint.sessions.replay.recorded import (
    Origin,
    RecordedCall,
    broken_at,
    origin_of,
    recorded_calls,
    spelled,
    spelled_ids,
    spelled_score,
)
from gistpoint.sessions.runs.document import RunDocument

_NOT_REPEATED = frozenset({RunStatus.CANCELLED, *FREE})
"""Runs of the tests that ended by something other than the code under test: they end so again, without being run."""


class ReplayError(UserError):
    """A run can't be replayed on the task."""


class Sameness(StrEnum):
    """What became of a call that was made again."""

    SAME = "same"
    DIFFERS = "differs"
    COULD_NOT_RUN = "could not run"
    NOT_RECORDED = "not recorded"
    """It was made again, and the run does not tell what had come back."""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call that was made again."""

    call: RecordedCall
    sameness: Sameness
    reason: str = ""
    """Why it could not run, or what there is to know of it."""
    diff: str = ""
    exact: bool = True
    """False for a result that is the same only but for times, addresses and folders."""
    text: str = ""
    """What came back now."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attempt came to; None where it is not known."""

    solved: bool | None
    score: float | None

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        word = {True: "solved", False: "not solved", None: "not recorded"}[self.solved]
        return word if self.score is None else f"{word}, score {self.score:.3f}"


@dataclass
class _Journal:
    """Takes events and keeps none: a replay is read off the attempt's state."""

    clock: TimeSource
    written: int = 0

    def append(self, type: str, data: Mapping[str, Any], *, durable: bool = True) -> Event:
        self.written += 1
        return Event(self.written, type, self.clock.utc_ms(), self.clock.mono_ms(), dict(data))


@dataclass
class _Runner:
    """Runs as the runner it is given, but for one run that ends as it is told to."""

    inner: Runner
    instead: SuiteReport | None = None

    @property
    def backend(self) -> BackendRecord:
        return self.inner.backend

    def run(
        self,
        request: RunRequest,
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> SuiteReport:
        if self.instead is not None:
            return self.instead
        return self.inner.run(request, on_progress=on_progress, cancel=cancel)


@dataclass
class Replay:
    """A run that is replayed on a task. Raises `ReplayError` where it was recorded on another one."""

    document: RunDocument
    judge: Judge
    clock: TimeSource = field(default_factory=SystemTime)

    def __post_init__(self) -> None:
        self.origin: Origin = origin_of(self.document)
        task = self.judge.task
        require_task(self.document.name, self.origin, task)
        if self.origin.format == "breakpoint":
            task = replace(task, rules=replace(task.rules, refused_costs_attempt=True))
        self._runner = _Runner(self.judge.runner)
        judge = replace(self.judge, runner=self._runner)
        self.attempt = Attempt(task, judge, _Journal(self.clock), self.clock)
        self.attempt.start(Enrolment(actor="replay", role=Role.QA), budgets=self.origin.budgets(task))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as it was when the run was recorded, a sentence each."""
        notes = []
        if (line := broken_at(self.document)) is not None:
            notes.append(f"The journal was changed since: its chain of hashes breaks at line {line}.")
        tools = self.origin.start.get("tools_sha256")
        if tools and tools != declarations_sha256(self.attempt.task.mode):
            notes.append("The tools were declared differently when this was recorded.")
        recorded = self.origin.start.get("backend")
        name, now = recorded.get("name") if isinstance(recorded, dict) else None, self.judge.runner.backend.name
        if name and name != now:
            notes.append(f"The tests ran in {name} then, and run in {now} now.")
        return tuple(notes)

    def calls(
        self, *, on_progress: OnProgress | None = None, cancel: CancelToken | None = None
    ) -> Iterator[ReplayedCall]:
        """Make one call after another and yield what became of it; to be used once.

        Raises `CancelledError` when cancelled.
        """
        for call in recorded_calls(self.document, ours=self.origin.ours):
            if cancel is not None:
                cancel.check()
            replayed = self._replayed(call, on_progress, cancel)
            if cancel is not None:
                cancel.check()
            yield replayed

    def files(self) -> Mapping[str, bytes | None]:
        """Return the files that differ from the start as the replay stands: those of the last submission."""
        attempt = self.attempt
        tree = attempt.tree
        if attempt.task.mode is Mode.REMOVE and attempt.state.submissions:
            tree = with_replacement(tree, attempt.state.submissions[-1].replacement)
        return dict(tree.overlay)

    def verdict_then(self) -> Verdict:
        """Return the recorded verdict; complete when the run was read to its end."""
        run = self.document.header
        return Verdict({"solved": True, "unsolved": False}.get(run.verdict), run.score)

    def verdict_now(self) -> Verdict:
        """Return what the replay has come to by now."""
        state = self.attempt.state
        return Verdict(state.solved, state.submissions[-1].score if state.submissions else None)

    def same_verdict(self) -> bool:
        """Whether nothing that was recorded of the verdict differs; scores count where gistpoint recorded the run."""
        then, now = self.verdict_then(), self.verdict_now()
        if then.solved is not None and then.solved is not now.solved:
            return False
        if not self.origin.ours or then.score is None:
            return True
        return now.score is not None and math.isclose(then.score, now.score, abs_tol=1e-9)

    def _replayed(self, call: RecordedCall, on_progress: OnProgress | None, cancel: CancelToken | None) -> ReplayedCall:
        if reason := self._why_not(call):
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, reason)
        ends_so = call.status in _NOT_REPEATED
        self._runner.instead = (
            SuiteReport(RunStatus(call.status), reason=call.reason, backend=self._runner.backend) if ends_so else None
        )
        try:
            result = self.attempt.call(call.tool, call.arguments or {}, on_progress=on_progress, cancel=cancel)
        except AttemptError as error:
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, error.message)
        if result.judgement is not None and not result.judgement.counts:
            why = "The harness had failed, and its run of the tests is not repeated." if ends_so else ""
            return ReplayedCall(
                call, Sameness.COULD_NOT_RUN, why or result.judgement.report.reason or "The harness failed.",
                text=result.text,
            )  # fmt: skip
        replayed = self._compared(call, result)
        if ends_so:
            return replace(replayed, reason="The run of the tests was cancelled, and is not repeated.")
        return replayed

    def _why_not(self, call: RecordedCall) -> str:
        """Return why a call can't be made at all; empty where it can. Refusals that gistpoint recorded are repeated."""
        if call.damage:
            return f"The record can't be read: {call.damage}."
        if call.arguments is None:
            return "Its arguments are not recorded as an object with names."
        if self.origin.ours:
            return ""
        try:
            tool_named(self.attempt.task.mode, call.tool).bind(call.arguments)
        except RefusalError as refusal:
            return str(refusal)
        return ""

    def _compared(self, call: RecordedCall, result: ToolResult) -> ReplayedCall:
        if call.text is None:
            return ReplayedCall(call, Sameness.NOT_RECORDED, text=result.text)
        found = compare(call.text, result.text, call.facts, self._facts(result))
        sameness = Sameness.DIFFERS if found.diff else Sameness.SAME
        return ReplayedCall(call, sameness, diff=found.diff, exact=found.exact, text=result.text)

    def _facts(self, result: ToolResult) -> dict[str, str]:
        state = self.attempt.state
        left = state.calls[-1].remaining
        facts = {
            "refused": spelled(result.refused),
            "tool_uses left": str(left.tool_uses),
            "submissions left": str(left.submissions),
        }
        submission = next((s for s in state.submissions if s.call_id == result.call_id), None)
        if submission is not None and submission.score is not None:
            facts["tests"] = submission.status
            facts["failing"] = spelled_ids(list(submission.failing))
            facts["score"] = spelled_score(submission.score)
            facts["solved"] = spelled(submission.solved)
        return facts


def require_task(name: str, origin: Origin, task: Task) -> None:
    """Raise `ReplayError` where the run `name` tells that it was recorded on another task."""
    recorded = str(origin.start.get("task_id") or "")
    if recorded and recorded != task.id:
        raise ReplayError(
            f"{name} was recorded on the task {recorded[:12]}, not on {task.short_id}.",
            hint=f"Replay it with --task {recorded[:12]}, if that task is here.",
        )
