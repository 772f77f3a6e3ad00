"""The entry of an attempt in a list: a few values that stay small, however long its journal grows."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gistpoint.core.attempts.clock import Clock, ClockActivity
from gistpoint.core.attempts.events import PauseReason
from gistpoint.core.attempts.parts import AttemptCall, Ending, Submission
from gistpoint.core.attempts.results import AttemptResult
from gistpoint.core.attempts.state import AttemptState, attempt_result
from gistpoint.core.chat import Usage
from gistpoint.core.tasks.budgets import NOTHING_LEFT, Budgets, Remaining
from gistpoint.core.tools.declaration import NOTHING_REVEALED
from gistpoint.sessions.agentruns.control import has_person


class PassedTests(msgspec.Struct, frozen=True):
    """The number of tests that pass with a submission, of those that passed on the original."""

    passed: int
    of: int

    @property
    def words(self) -> str:
        """The counts in words: `153 of 168 tests`."""
        return f"{self.passed:,} of {self.of:,} tests"


class ShownAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of an attempt, without its text. The defaults describe an attempt that has not begun."""

    begun: bool = False
    unit: str = "tool use"
    """The unit of the budget of calls."""
    hands_in_once: bool = False
    budgets: Budgets = msgspec.field(default_factory=Budgets)
    remaining: Remaining = NOTHING_LEFT
    turns: int = 0
    calls: int = 0
    last: AttemptCall | None = None
    """The last call, without its answer."""
    pending: bool = False
    """Whether the last call has no answer yet."""
    waits: bool = False
    """Whether the attempt waits until the endpoint may be asked again."""
    paused: bool = False
    has_person: bool = False
    """Whether a person has control of the attempt."""
    mixed: bool = False
    usage: Usage = msgspec.field(default_factory=Usage)
    submissions: int = 0
    """The number of counted submissions with a result."""
    tests: PassedTests | None = None
    """The tests of the last of these; None without a submission or without counts."""
    status: str = ""
    """The status of its run (`core.outcomes.RunStatus`); empty without a submission."""
    score: str = ""
    """Its score in words; empty without a submission."""
    ending: Ending | None = None
    result: AttemptResult = AttemptResult.NOT_SOLVED
    clock: Clock = msgspec.field(default_factory=Clock)

    @property
    def tool(self) -> str:
        """The name of the last tool called; empty without a call."""
        return self.last.tool if self.last is not None else ""

    def spent_ms(self) -> int:
        """Return the time of the attempt up to its last event, except between two processes."""
        return sum(self.clock.of(activity) for activity in ClockActivity)


NOT_BEGUN = ShownAttempt()


def shown_attempt(state: AttemptState) -> ShownAttempt:
    """Return the entry of an attempt in a list."""
    if not state.started:
        return NOT_BEGUN
    last, pending = state.last, state.pending
    call = state.calls[-1] if state.calls else None
    waits = state.pause is not None and state.pause.reason == PauseReason.ENDPOINT_WAIT
    return ShownAttempt(
        begun=True,
        unit=state.of_kind.unit,
        hands_in_once=state.of_kind.hands_in_once,
        budgets=state.budgets,
        remaining=state.remaining,
        turns=len(state.turns),
        calls=len(state.calls),
        last=None
        if call is None
        else replace(call, text=None, revealed=NOTHING_REVEALED, thought="", raw=""),
        pending=pending is not None,
        waits=waits,
        paused=state.pause is not None,
        has_person=has_person(state),
        mixed=state.mixed,
        usage=state.spent.usage,
        submissions=len(state.counted_submissions),
        tests=None if last is None else tests_of(last),
        status=last.status if last is not None else "",
        score="" if last is None or last.score is None else state.of_kind.score_words(last.score),
        ending=state.ending,
        result=attempt_result(state),
        clock=state.clock,
    )


def tests_of(submission: Submission) -> PassedTests | None:
    """Return the counts of a submission's tests; None if there are none, or for a gist, which has a score."""
    of = submission.passed + len(submission.failing)
    return PassedTests(submission.passed, of) if of and not submission.metrics else None
