"""Makes each recorded call of a run again, in a fresh workspace of its task, and says whether the same comes back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from gistpoint.core.attempts.bench import OnProgress
from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.attempts.events import EndReason, Event
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.attempts.state import AttemptResult, Call, result_of
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import AttemptError, CancelledError, InfrastructureError, UserError
from gistpoint.core.kinds.gist.entrypoints import parse_entrypoint
from gistpoint.core.kinds.gist.judge import GistJudgement, GistProgress
from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.kinds.gist.overrides import as_attempted
from gistpoint.core.kinds.gist.text import GIST_BUFFER
from gistpoint.core.kinds.gist.verdict import ScoresGists
from gistpoint.core.kinds.repair.judge import FREE, Judge
from gistpoint.core.kinds.repair.tools import with_replacement
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import EntrypointRunner, Runner, RunProgress, RunRequest, TimeSource
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tools.declaration import RefusalError
from gistpoint.core.tools.registry import named
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
from gistpoint.sessions.runs.model import UNSOLVED

NOT_REPEATED = frozenset({RunStatus.CANCELLED, *FREE})


@dataclass
class Instead:
    """How the next run ends without being run; None where it is run."""

    status: RunStatus | None = None
    reason: str = ""


@dataclass
class _Runner:
    """Runs as the runner it is given, but for a run that ends as it is told to."""

    inner: Runner
    instead: Instead

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
        if self.instead.status is not None:
            return SuiteReport(self.instead.status, reason=self.instead.reason, backend=self.backend)
        return self.inner.run(request, on_progress=on_progress, cancel=cancel)


@dataclass
class _Gists:
    """Scores as the judge it is given, but for a gist whose scoring ends as it is told to."""

    inner: ScoresGists
    instead: Instead

    @property
    def task(self) -> Task:
        return self.inner.task

    @property
    def answer(self) -> GistAnswer:
        return self.inner.answer

    @property
    def runner(self) -> EntrypointRunner:
        return self.inner.runner

    def judge(
        self,
        gist: str,
        *,
        on_progress: Callable[[GistProgress], None] | None = None,
        cancel: CancelToken | None = None,
        thorough: bool = True,
    ) -> GistJudgement:
        if self.instead.status is RunStatus.CANCELLED:
            raise CancelledError(self.instead.reason)
        if self.instead.status is not None:
            raise InfrastructureError(self.instead.reason)
        return self.inner.judge(gist, on_progress=on_progress, cancel=cancel, thorough=thorough)


def judging_instead(judge: Judge | ScoresGists, instead: Instead) -> Judge | ScoresGists:
    """Return a judge that asks `instead` before every run."""
    if isinstance(judge, Judge):
        return replace(judge, runner=_Runner(judge.runner, instead))
    return _Gists(judge, instead)


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
    """What an attempt came to; None for what is not known."""

    passed: bool | None
    score: float | None
    suspicious: tuple[str, ...] = ()
    """Why the pass is to be read before it counts as solved."""

    @property
    def result(self) -> AttemptResult | None:
        """What it comes to before anybody has read it."""
        return None if self.passed is None else result_of(self.passed, self.suspicious)

    @property
    def solved(self) -> bool | None:
        """Whether it counts as solved."""
        return None if self.result is None else self.result is AttemptResult.SOLVED

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        word = "not recorded" if self.result is None else self.result.value
        why = f" ({', '.join(self.suspicious)})" if self.result is AttemptResult.TO_BE_READ else ""
        return f"{word}{why}" if self.score is None else f"{word}{why}, score {self.score:.3f}"


@dataclass
class _Journal:
    """Takes events and keeps none: a replay is read off the attempt's state."""

    clock: TimeSource
    written: int = 0

    def append(self, type: str, data: Mapping[str, Any], *, durable: bool = True) -> Event:
        self.written += 1
        return Event(self.written, type, self.clock.utc_ms(), self.clock.mono_ms(), dict(data))


@dataclass
class Replay:
    """A run that is replayed on a task. Raises `ReplayError` where it was recorded on another one."""

    document: RunDocument
    judge: Judge | ScoresGists
    clock: TimeSource = field(default_factory=SystemTime)

    def __post_init__(self) -> None:
        self.origin: Origin = origin_of(self.document)
        task = self.judge.task
        require_task(self.document.name, self.origin, task)
        if self.origin.format == "breakpoint":
            task = replace(task, rules=replace(task.rules, refused_costs_attempt=True))
        self._instead = Instead()
        budgets = self.origin.budgets(task)
        task = as_attempted(task, self.origin.start, budgets)
        judge = judging_instead(self.judge, self._instead)
        self.attempt = Attempt(task, judge, _Journal(self.clock), self.clock)
        self.attempt.start(
            Enrolment(actor="replay", role=Role.QA),
            budgets=budgets,
            tool_semantics=self.origin.tool_semantics,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as it was when the run was recorded, a sentence each."""
        notes = []
        if (line := broken_at(self.document)) is not None:
            notes.append(f"The journal was changed since: its chain of hashes breaks at line {line}.")
        tools = self.origin.start.get("tools_sha256")
        if tools and tools != self.attempt.state.header["tools_sha256"]:
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
        typed: RecordedCall | None = None
        for call in recorded_calls(self.document, ours=self.origin.ours):
            if cancel is not None:
                cancel.check()
            if typed is not None and call.typed:
                yield self._replayed(typed, on_progress, cancel)
            if call.typed and call.arguments is not None:
                self.attempt.edit(GIST_BUFFER, str(call.arguments.get("content", "")))
                typed = call
                continue
            place = len(self.attempt.state.calls)
            replayed = self._replayed(call, on_progress, cancel)
            if cancel is not None:
                cancel.check()
            if typed is not None:
                yield self._saved(typed, place)
                typed = None
            yield replayed
        if typed is not None:
            yield self._replayed(typed, on_progress, cancel)

    def files(self) -> Mapping[str, bytes | None]:
        """Return the files that differ from the start as the replay stands: those of the last submission."""
        attempt = self.attempt
        tree = attempt.tree
        if attempt.task.mode is Mode.GIST:
            return {parse_entrypoint(attempt.task.entrypoint).gist_file: attempt.state.gist.now.encode()}
        if attempt.task.mode is Mode.REMOVE and attempt.state.submissions:
            tree = with_replacement(tree, attempt.state.submissions[-1].replacement)
        return dict(tree.overlay)

    def verdict_then(self) -> Verdict:
        """Return the recorded verdict; complete when the run was read to its end."""
        run = self.document.header
        passed = {AttemptResult.SOLVED: True, AttemptResult.TO_BE_READ: True, UNSOLVED: False}.get(run.verdict)
        return Verdict(passed, run.score, run.suspicious)

    def verdict_now(self) -> Verdict:
        """Return what the replay has come to by now."""
        state = self.attempt.state
        score = state.submissions[-1].score if state.submissions else None
        return Verdict(state.solved, score, state.suspicious)

    def same_verdict(self) -> bool:
        """Whether nothing that was recorded of the verdict differs; scores count if gistpoint recorded the run.

        What makes a pass suspicious may be another thing now than it was then.
        """
        then, now = self.verdict_then(), self.verdict_now()
        if then.passed is not None and then.passed is not now.passed:
            return False
        if not self.origin.ours or then.score is None:
            return True
        return now.score is not None and math.isclose(then.score, now.score, abs_tol=1e-9)

    def _replayed(self, call: RecordedCall, on_progress: OnProgress | None, cancel: CancelToken | None) -> ReplayedCall:
        if reason := self._why_not(call):
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, reason)
        ends_so = call.status in NOT_REPEATED
        self._instead.status = RunStatus(call.status) if ends_so else None
        self._instead.reason = call.reason
        try:
            result = self._made(call, on_progress, cancel)
        except AttemptError as error:
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, error.message)
        if why := _harness_failed(result):
            why = "The harness had failed, and its run is not repeated." if ends_so else why
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, why, text=result.text)
        replayed = self._compared(call, result)
        if ends_so:
            return replace(replayed, reason="The run of the tests was cancelled, and is not repeated.")
        return replayed

    def _made(self, call: RecordedCall, on_progress: OnProgress | None, cancel: CancelToken | None) -> ToolResult:
        """Make a call, or take the one that the attempt has made by itself at a limit. Raises `AttemptError`."""
        if not call.automatic:
            return self.attempt.call(call.tool, call.arguments, raw=call.raw, on_progress=on_progress, cancel=cancel)
        if not self.attempt.state.ended and call.automatic in set(EndReason):
            self.attempt.hand_in(EndReason(call.automatic))
            self.attempt.finish_pending(on_progress=on_progress, cancel=cancel)
        made = self.attempt.state.calls[-1:]
        if not made or not made[0].automatic:
            raise AttemptError("The attempt did not come to the limit at which this call was made.")
        return self._result(made[0])

    def _result(self, made: Call) -> ToolResult:
        verdict = self.attempt.verdicts.get(made.call_id)
        return ToolResult(made.call_id, made.text or "", made.refused, None, verdict)

    def _saved(self, call: RecordedCall, place: int) -> ReplayedCall:
        """Compare the step by which the attempt has saved what was typed, before the call that made it do so."""
        made = self.attempt.state.calls[place : place + 1]
        if not made or made[0].tool != call.tool:
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, "The attempt had nothing to save.")
        return self._compared(call, self._result(made[0]))

    def _why_not(self, call: RecordedCall) -> str:
        """Return why a call can't be made at all; empty where it can. Refusals that gistpoint recorded are repeated."""
        if call.damage:
            return f"The record can't be read: {call.damage}."
        if self.origin.ours:
            return ""
        if call.arguments is None:
            return "Its arguments are not recorded as an object with names."
        try:
            named(self.attempt.tools, call.tool).bind(call.arguments)
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
        left = next(call.remaining for call in state.calls if call.call_id == result.call_id)
        facts = {
            "refused": spelled(result.refused),
            "tool_uses left": str(left.tool_uses),
            "submissions left": str(left.submissions),
            "scores left": str(left.scores),
        }
        submission = next((s for s in state.submissions if s.call_id == result.call_id), None)
        if submission is not None and submission.score is not None:
            facts["tests"] = submission.status
            facts["failing"] = spelled_ids(list(submission.failing))
            facts["score"] = spelled_score(submission.score)
            facts["solved"] = spelled(submission.solved)
        return facts


def _harness_failed(result: ToolResult) -> str:
    """Return why there is nothing to compare, where the harness failed; else nothing."""
    if result.judgement is not None and not result.judgement.counts:
        return result.judgement.report.reason or "The harness failed."
    if result.verdict is not None and not result.verdict.counts:
        return result.verdict.reason or "The harness failed."
    return ""


def require_task(name: str, origin: Origin, task: Task) -> None:
    """Raise `ReplayError` where the run `name` tells that it was recorded on another task."""
    recorded = str(origin.start.get("task_id") or "")
    if recorded and recorded != task.id:
        raise ReplayError(
            f"{name} was recorded on the task {recorded[:12]}, not on {task.short_id}.",
            hint=f"Replay it with --task {recorded[:12]}, if that task is here.",
        )
