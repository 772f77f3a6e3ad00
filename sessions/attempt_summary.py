"""The summary of an attempt for tables, its outcome in words, and its row in a list."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.attempts.parts import Ending
from gistpoint.core.attempts.results import Standing
from gistpoint.core.attempts.state import AttemptResult, AttemptState, Submission, attempt_result
from gistpoint.core.kinds.confirming import confirmation_words, standing
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.readable import duration, stamp
from gistpoint.sessions.blinding import hidden_error
from gistpoint.sessions.heads import Head, HeadOrigin


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """An attempt as shown in tables."""

    attempt_id: str
    task_id: str
    mode: str
    role: str
    started_utc_ms: int
    state: AttemptState
    problem: str = ""
    """The fault of the journal, as a sentence; empty if there is none."""
    accepted: bool | None = None
    """Whether reviewers accept its pass (see `annotations.settling`); None without a ruling."""
    head: str = ""
    """The hash of the journal's last line."""
    calls: int = 0
    kept: Head | None = None
    """The head stored outside the journal; None without a readable head, as for another machine's journal."""
    open: bool = False
    """Whether a process has the attempt open for writing."""
    elsewhere: bool = False
    """Whether the attempt comes from another machine and has not been continued on this one."""
    withheld: bool = False
    """Whether the outcome is hidden because the attempt's study is open; the state then has no outcome."""

    @property
    def actor(self) -> str:
        """The kind of solver: `person`, `model`, `replay` or `simulated`."""
        return self.state.header.actor

    @property
    def own_id(self) -> str:
        """The id in the journal, which is also the folder's name unless the folder was copied or renamed."""
        return self.state.header.attempt_id

    @property
    def participant(self) -> str:
        """The pseudonym of the person; empty if there is none."""
        return self.state.header.participant or ""

    def is_of(self, participant: str) -> bool:
        """Return whether the person with this pseudonym made the attempt.

        An empty pseudonym means anybody who works on this machine without a pseudonym.
        """
        return _is_of(self, self.actor, participant)

    @property
    def branch(self) -> str:
        """The machine that wrote this branch, if several machines continued the attempt; otherwise empty."""
        return _branch_in(self.attempt_id)

    @property
    def witnessed(self) -> bool:
        """Whether this machine has stored a head since the first event, so that no removal goes unnoticed."""
        if self.kept is None:
            return False
        return self.kept.origin is HeadOrigin.HERE and self.kept.since == 1

    @property
    def result(self) -> AttemptResult:
        """The result so far; `NOT_SOLVED` if the journal is damaged or the outcome is hidden."""
        return AttemptResult.NOT_SOLVED if self.problem else attempt_result(self.state, self.accepted)


HIDDEN = "hidden until closed"
"""The outcome of an attempt that hides it."""


def withheld(summary: AttemptSummary) -> AttemptSummary:
    """Return an attempt without anything from which its outcome follows (decision 191)."""
    state = summary.state
    shown = AttemptState(
        header=state.header,
        budgets=state.budgets,
        remaining=replace(
            state.remaining, submissions=state.budgets.submissions, tool_uses=state.budgets.tool_uses
        ),
        clock=state.clock,
        pause=state.pause,
        ending=None if state.ending is None else Ending(HIDDEN),
        handovers=state.handovers,
        of_kind=blank_state(state.header.mode),
        processes=state.processes,
        events=state.events,
    )
    return replace(summary, state=shown, accepted=None, withheld=True)


def hidden_words(summary: AttemptSummary) -> str:
    """Return why the outcome of an attempt is hidden, and how to show it."""
    error = hidden_error(summary.attempt_id, str(summary.state.header.study))
    return f"{error.message} {error.hint}"


def require_shown(summary: AttemptSummary) -> None:
    """Raise `UserError` if the outcome of an attempt is hidden."""
    if summary.withheld:
        raise hidden_error(summary.attempt_id, str(summary.state.header.study))


def outcome(summary: AttemptSummary) -> str:
    """Return in words how an attempt ended, or that it hasn't; a pass that does not count is marked."""
    ending = summary.state.ending
    if summary.problem:
        return "damaged"
    if ending is None:
        return "open in another window or process" if summary.open else "unfinished"
    if summary.state.solved and summary.result is not AttemptResult.SOLVED:
        return summary.result.value if summary.result.passes else "solved, rejected"
    return f"{ending.reason} ({ending.code})" if ending.code else ending.reason


class ListedScore(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The score of a submission in a list."""

    score: float | None
    solved: bool
    metrics: bool
    """Whether the submission has metrics, as a gist has."""


class ListedAttempt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The row of an attempt in a long list; its strings are made once and stored in the index of lists."""

    attempt_id: str
    task_id: str
    mode: str
    actor: str
    role: str
    participant: str
    model: str
    started_utc_ms: int
    started: str
    active: str
    calls: str
    last: str
    best: str
    outcome: str
    confirmation: str
    ended: bool
    """Whether it has ended with an outcome that is shown."""
    result: AttemptResult
    standing: Standing | None
    """The standing of the attempt's pass; None if there is no pass or the journal is damaged."""
    own_id: str = ""
    """The id in its journal, which is also its folder's name unless the folder was copied or renamed."""
    study: str = ""
    """The study of a person's attempt, which may hide its outcome; empty for other attempts."""
    begun_by: str = ""
    """The kind of solver that began it."""
    active_ms: int = 0
    used: int = 0
    """The number of calls that its budget has paid for."""
    tool_uses: int = 0
    """The budget of calls."""
    last_score: ListedScore | None = None
    best_score: ListedScore | None = None
    end: str = ""
    """The reason why the attempt ended; empty if it has not ended."""
    problem: str = ""
    """The fault of its journal, as a sentence; empty if there is none."""
    paused: bool = False
    open: bool = False
    """Whether a process has it open for writing."""
    elsewhere: bool = False
    """Whether it comes from another machine and has not been continued on this one."""
    withheld: bool = False
    """Whether its outcome is hidden."""

    def is_of(self, participant: str) -> bool:
        """Return whether the person with this pseudonym made the attempt, as in `AttemptSummary.is_of`."""
        return _is_of(self, self.begun_by, participant)

    @property
    def branch(self) -> str:
        """The machine that wrote this branch, if several machines continued the attempt; otherwise empty."""
        return _branch_in(self.attempt_id)


def _is_of(attempt: AttemptSummary | ListedAttempt, actor: str, participant: str) -> bool:
    if actor != PERSON or attempt.participant != participant:
        return False
    return bool(participant or not attempt.elsewhere)


def _branch_in(attempt_id: str) -> str:
    return attempt_id.rpartition("~")[2] if "~" in attempt_id else ""


def listed_attempt(summary: AttemptSummary) -> ListedAttempt:
    """Return the row of an attempt."""
    state = summary.state
    words = summary.problem or outcome(summary)
    return ListedAttempt(
        attempt_id=summary.attempt_id,
        task_id=summary.task_id,
        mode=summary.mode,
        actor=actor_words(summary),
        role=summary.role,
        participant=summary.participant,
        model=str(state.header.model or ""),
        started_utc_ms=summary.started_utc_ms,
        started=stamp(summary.started_utc_ms),
        active=duration(state.clock.active) if state.started else "–",
        calls=str(summary.calls) if state.started and not summary.withheld else "–",
        last=score_words(state.last),
        best=score_words(state.best),
        outcome=f"{words}, branch of {summary.branch}" if summary.branch else words,
        confirmation=confirmation_words(state) or "–",
        ended=state.ended and not summary.withheld,
        result=summary.result,
        standing=None if summary.problem else standing(state),
        own_id=state.header.attempt_id,
        study=str(state.header.study or "") if state.header.actor == PERSON else "",
        begun_by=summary.actor,
        active_ms=state.clock.active,
        used=state.budgets.tool_uses - state.remaining.tool_uses,
        tool_uses=state.budgets.tool_uses,
        last_score=_listed_score(state.last),
        best_score=_listed_score(state.best),
        end="" if state.ending is None else state.ending.reason,
        problem=summary.problem,
        paused=state.pause is not None,
        open=summary.open,
        elsewhere=summary.elsewhere,
        withheld=summary.withheld,
    )


def _listed_score(submission: Submission | None) -> ListedScore | None:
    if submission is None:
        return None
    return ListedScore(submission.score, submission.solved, bool(submission.metrics))


def actor_words(summary: AttemptSummary) -> str:
    """Return the kind of solver, or all kinds if several had control, marked as mixed."""
    drivers = summary.state.drivers
    return f"{', '.join(drivers)} (mixed)" if summary.state.mixed else summary.actor


def score_words(submission: Submission | None) -> str:
    """Return a submission's score with three decimal places, 0 without one; a dash without a submission."""
    return "–" if submission is None else f"{submission.score or 0:.3f}"
