"""Repeats the recorded calls of a run in a new workspace of its task, and compares the results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gistpoint.core import diffs
from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.attempts.events import EndReason, EventData, JournalEvent
from gistpoint.core.attempts.harness import ForcedOutcome, TaskJudge
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.attempts.state import AttemptCall, AttemptResult, result_of
from gistpoint.core.diffs import unified
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.outcomes import FREE, RunStatus
from gistpoint.core.ports import TimeSource
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import bounded
from gistpoint.core.tools.declaration import RefusalError, named
from gistpoint.sessions.records.model import UNSOLVED
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

_NAME = r"[\w.+@~-]{1,255}"
_FOLDERS = rf"(?:/{_NAME}){{0,40}}?"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"(?<![\w./~-]){_FOLDERS}/(?:site|dist)-packages(?=/)"), "<packages>"),
    (re.compile(rf"(?<![\w./~-]){_FOLDERS}/lib(?:64)?/python3\.\d{{1,3}}(?=/)"), "<python>"),
    (
        re.compile(rf"(?<![\w./~-])(?:/private)?/tmp/pytest-of-{_NAME}/pytest-(?:\d{{1,9}}|current)\b"),
        "<tmp>",
    ),
    (re.compile(rf"(?<![\w./~-])(?:/private)?/var/folders/{_NAME}/{_NAME}/T(?:/{_NAME})?"), "<tmp>"),
    (re.compile(rf"(?<![\w./~-])(?:(?:/private|/var)?/tmp|/dev/shm)/{_NAME}"), "<tmp>"),
    (re.compile(rf"\b[A-Za-z]:\\Users\\{_NAME}\\AppData\\Local\\Temp\\{_NAME}"), "<tmp>"),
    (re.compile(r"(?<=/)tmp[a-z0-9_]{8}(?!\w)"), "<tmp>"),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "0x<address>"),
    (
        re.compile(
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:"
            r" ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?![\w:])",
        ),
        "<time>",
    ),
    (re.compile(r"(?<![\w.:])\d{1,3}:\d\d:\d\d(?:[.,]\d{1,9})?(?![\w:])"), "<time>"),
    (
        re.compile(
            r"(?<![\w.])\d{1,12}(?:\.\d{1,12})?(?:e-?\d{1,3})?"
            r" ?(?:ns|µs|μs|us|ms|s|secs?|seconds?|minutes?)\b(?!\()"
        ),
        "<duration>",
    ),
)


def normalised(text: str) -> str:
    """Return `text` with words in angle brackets in place of parts that may differ between two runs.

    These are durations with a unit, times of day, dates with a time, addresses of six digits and more,
    temporary folders, and the folders in which Python and its packages are installed.
    """
    text = text.replace("\r\n", "\n")
    for pattern, word in _PATTERNS:
        text = pattern.sub(word, text)
    return text


_COMPARED_IN_FULL = 200_000


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """The comparison of a result with the recorded one."""

    diff: str = ""
    """A unified diff from the recorded to the new result, both normalised; empty if they are the same."""
    exact: bool = True
    """Whether the results are identical even without normalising."""


def compare(
    recorded: str | None, now: str, recorded_facts: Mapping[str, str], facts: Mapping[str, str]
) -> ResultComparison:
    """Return the comparison of a result and its facts with the recorded ones.

    Unrecorded facts are not compared. The strings in the diff are limited to 200,000 characters.
    """
    known = [name for name in recorded_facts if name in facts]
    differing = [name for name in known if normalised(recorded_facts[name]) != normalised(facts[name])]
    one, other = ("", "") if recorded is None else (normalised(recorded), normalised(now))
    if one == other and not differing:
        has_exact_facts = all(recorded_facts[name] == facts[name] for name in known)
        return ResultComparison("", recorded in (None, now) and has_exact_facts)
    before = _difference_text(
        one, other, [f"{name}: {normalised(recorded_facts[name])}" for name in differing]
    )
    after = _difference_text(other, one, [f"{name}: {normalised(facts[name])}" for name in differing])
    return ResultComparison(unified(diffs.compute(before, after, old_path="recorded", new_path="now")), False)


def _difference_text(text: str, against: str, facts: list[str]) -> str:
    parts = [_around_difference(text, against)] if text != against else []
    return "\n".join([*parts, *facts]) + "\n"


def _around_difference(text: str, against: str) -> str:
    """Return `text` for a diff; if either string is long, only the part around the first difference."""
    if max(len(text), len(against)) <= _COMPARED_IN_FULL:
        return text
    first = next(
        (n for n, (a, b) in enumerate(zip(text, against, strict=False)) if a != b),
        min(len(text), len(against)),
    )
    start = max(0, text.rfind("\n", 0, max(0, first - 500)) + 1)
    head = f"[... {start} characters that are the same ...]\n" if start else ""
    return head + bounded(text[start:], _COMPARED_IN_FULL, what="result")


NOT_REPEATED = frozenset({RunStatus.CANCELLED, *FREE})


class RunReplayError(UserError):
    """A run can't be replayed on a task."""


class Sameness(StrEnum):
    """The outcome of a repeated call."""

    SAME = "same"
    DIFFERS = "differs"
    COULD_NOT_RUN = "could not run"
    NOT_RECORDED = "not recorded"
    """The call was repeated, but the run did not record its result."""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A repeated call and its outcome."""

    call: RecordedCall
    sameness: Sameness
    reason: str = ""
    """The reason why the call could not run, or a remark."""
    diff: str = ""
    exact: bool = True
    """False for a result that is the same only if times, addresses and folders are ignored."""
    text: str = ""
    """The new result."""


@dataclass(frozen=True, slots=True)
class ReplayedVerdict:
    """The verdict on an attempt; unknown fields are None."""

    passed: bool | None
    score: float | None
    suspicious: tuple[str, ...] = ()
    """The reasons why the pass must be reviewed before it counts as solved."""

    @property
    def result(self) -> AttemptResult | None:
        """The result before any review; None if it is unknown."""
        return None if self.passed is None else result_of(self.passed, self.suspicious)

    @property
    def solved(self) -> bool | None:
        """Whether the attempt counts as solved; None if that is unknown."""
        return None if self.result is None else self.result is AttemptResult.SOLVED

    @property
    def words(self) -> str:
        """The verdict in words for people."""
        word = "not recorded" if self.result is None else self.result.value
        why = f" ({', '.join(self.suspicious)})" if self.result is AttemptResult.TO_BE_READ else ""
        return f"{word}{why}" if self.score is None else f"{word}{why}, score {self.score:.3f}"


@dataclass
class _Journal:
    """Accepts events and stores none, because the results of a replay are taken from the attempt's state."""

    clock: TimeSource
    written: int = 0

    def append(self, data: EventData) -> JournalEvent:
        self.written += 1
        return JournalEvent(self.written, data.type, self.clock.utc_ms(), self.clock.mono_ms(), data)


@dataclass
class Replay:
    """The replay of a run on a task. Raises `RunReplayError` if the run was recorded on another task."""

    document: RunDocument
    judge: TaskJudge
    clock: TimeSource = field(default_factory=SystemTime)

    def __post_init__(self) -> None:
        self.origin: Origin = origin_of(self.document)
        task = self.judge.task
        require_task(self.document.name, self.origin, task)
        if self.document.format.refused_costs_attempt:
            task = replace(task, rules=replace(task.rules, refused_costs_attempt=True))
        self._forced = ForcedOutcome()
        budgets = self.origin.budgets(task)
        task = self.judge.as_recorded(task, self.origin.start, budgets)
        self.attempt = Attempt(task, self.judge.ending_as(self._forced), _Journal(self.clock), self.clock)
        self.attempt.start(
            Enrolment(actor="replay", role=Role.QA),
            budgets=budgets,
            tool_semantics=self.origin.tool_semantics,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each change since the recording: of the journal, the tools or the backend."""
        notes = []
        if (line := broken_at(self.document)) is not None:
            notes.append(f"The journal was changed later: its chain of hashes breaks at line {line}.")
        tools = self.origin.start.get("tools_sha256")
        if tools and tools != self.attempt.state.header.extra["tools_sha256"]:
            notes.append("The tools were declared differently when this was recorded.")
        recorded = self.origin.start.get("backend")
        name, now = recorded.get("name") if isinstance(recorded, dict) else None, self.judge.backend.name
        if name and name != now:
            notes.append(f"The tests ran in {name} then, and run in {now} now.")
        return tuple(notes)

    def calls(self, *, run: RunContext = UNATTENDED) -> Iterator[ReplayedCall]:
        """Repeat the calls one after another and yield their outcomes; can be called only once.

        Raises `CancelledError` when cancelled.
        """
        typed: RecordedCall | None = None
        for call in recorded_calls(self.document, is_own=self.origin.is_own):
            run.check()
            if typed is not None and call.typed:
                yield self._replayed(typed, run)
            if call.typed and call.arguments is not None:
                self.attempt.edit(
                    kind_of(self.attempt.task).buffer(self.attempt.task),
                    str(call.arguments.get("content", "")),
                )
                typed = call
                continue
            place = len(self.attempt.state.calls)
            replayed = self._replayed(call, run)
            run.check()
            if typed is not None:
                yield self._saved(typed, place)
                typed = None
            yield replayed
        if typed is not None:
            yield self._replayed(typed, run)

    def files(self) -> Mapping[str, bytes | None]:
        """Return the contents of the files changed by the last submission so far, by path.

        The content of a deleted file is None.
        """
        return self.attempt.files()

    def verdict_then(self) -> ReplayedVerdict:
        """Return the recorded verdict; it is complete once the run has been read to its end."""
        return recorded_verdict(self.document)

    def verdict_now(self) -> ReplayedVerdict:
        """Return the verdict of the replay so far."""
        state = self.attempt.state
        score = state.submissions[-1].score if state.submissions else None
        return ReplayedVerdict(state.solved, score, state.suspicious)

    def same_verdict(self) -> bool:
        """Return whether the replay has the recorded verdict; only runs of gistpoint are compared by score.

        An unknown recorded outcome or score is not compared. Neither are reasons for suspicion, because the
        rules for them may have changed.
        """
        then, now = self.verdict_then(), self.verdict_now()
        if then.passed is not None and then.passed is not now.passed:
            return False
        if not self.origin.is_own or then.score is None:
            return True
        return now.score is not None and math.isclose(then.score, now.score, abs_tol=1e-9)

    def _replayed(self, call: RecordedCall, run: RunContext) -> ReplayedCall:
        if reason := self._why_not(call):
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, reason)
        # A cancelled or failed test run can't be repeated, so the judge returns the recorded status.
        is_forced = call.status in NOT_REPEATED
        self._forced.status = RunStatus(call.status) if is_forced else None
        self._forced.reason = call.reason
        try:
            result = self._make_call(call, run)
        except AttemptError as error:
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, error.message)
        if why := _harness_failed(result):
            why = "The harness had failed, so its run is not repeated." if is_forced else why
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, why, text=result.text)
        replayed = self._compare_result(call, result)
        if is_forced:
            return replace(replayed, reason="The run of the tests was cancelled, so it is not repeated.")
        return replayed

    def _make_call(self, call: RecordedCall, run: RunContext) -> ToolResult:
        """Make a call, or return the one that the attempt made at a limit.

        Raises `AttemptError` if neither is possible.
        """
        if call.automatic not in set(EndReason):
            return self.attempt.call(call.tool, call.arguments, raw=call.raw, run=run)
        if not self.attempt.state.ended:
            self.attempt.hand_in(EndReason(call.automatic))
            self.attempt.finish_pending(run=run)
        made = self.attempt.state.calls[-1:]
        if not made or not made[0].automatic:
            raise AttemptError("The attempt did not reach the limit at which this call was made.")
        return self._result(made[0])

    def _result(self, made: AttemptCall) -> ToolResult:
        return ToolResult(made.call_id, made.text or "", made.refused, self.attempt.found.get(made.call_id))

    def _saved(self, call: RecordedCall, place: int) -> ReplayedCall:
        """Compare the recorded saving of a typed gist with the one at `place` among the attempt's calls."""
        made = self.attempt.state.calls[place : place + 1]
        if not made or made[0].tool != call.tool:
            return ReplayedCall(call, Sameness.COULD_NOT_RUN, "The attempt had nothing to save.")
        return self._compare_result(call, self._result(made[0]))

    def _why_not(self, call: RecordedCall) -> str:
        """Return why a call can't be made; empty if it can. Refusals in gistpoint's own runs are repeated."""
        if call.damage:
            return f"The record can't be read: {call.damage}."
        if self.origin.is_own:
            return ""
        if call.arguments is None:
            return "Its arguments were not recorded as an object with names."
        try:
            named(self.attempt.tools, call.tool).bind(call.arguments)
        except RefusalError as refusal:
            return str(refusal)
        return ""

    def _compare_result(self, call: RecordedCall, result: ToolResult) -> ReplayedCall:
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
    """Return why the harness failed, in which case there is no result to compare; empty if it did not."""
    if result.found is not None and not result.found.counts:
        return result.found.reason or "The harness failed."
    return ""


def recorded_verdict(document: RunDocument) -> ReplayedVerdict:
    """Return the verdict that a run records, as far as the run has been read."""
    run = document.header
    passed = {AttemptResult.SOLVED: True, AttemptResult.TO_BE_READ: True, UNSOLVED: False}.get(run.verdict)
    return ReplayedVerdict(passed, run.score, run.suspicious)


def require_task(name: str, origin: Origin, task: Task) -> None:
    """Raise `RunReplayError` if the run `name` was recorded on another task."""
    recorded = str(origin.start.get("task_id") or "")
    if recorded and recorded != task.id:
        raise RunReplayError(
            f"{name} was recorded on the task {recorded[:12]}, not on {task.short_id}.",
            hint=f"Replay it with --task {recorded[:12]}, if that task is on this machine.",
        )
