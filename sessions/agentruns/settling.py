"""Decides on jobs that have not ended: each gets an end that counts, or is excluded (decision 150).

A decision is an operation of the run, with its author and reason. An end that counts is then written into the
attempt's journal, since figures come from journals alone (decision 75). The operation comes first, so that if
a process dies in between, the next one carries out the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

from msgspec import UNSET, structs

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import AttemptEnded, EndWithdrawn
from gistpoint.core.attempts.reasons import EndReason, GiveUpCode
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatProblem
from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.text import whole_number
from gistpoint.sessions.agentruns.control import has_person
from gistpoint.sessions.agentruns.jobs import (
    EXCLUDED,
    HANDED_OVER,
    QUEUED,
    STOPPED,
    JobEnded,
    JobOperation,
    JobSettled,
    JobState,
    JobStatus,
    JobUnsettled,
)
from gistpoint.sessions.agentruns.killed_requests import losses_of_killed_requests
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt

_MOST_CHARACTERS = 500
"""The longest name or reason of a decision, in characters."""


class SettledAs(StrEnum):
    """The outcome that a decision gives to a job."""

    NOT_SOLVED = "not_solved"
    CONTEXT_EXHAUSTED = "context_exhausted"
    DECLINED = "declined"
    NO_TOOL_CALL = "no_tool_call"
    EXCLUDED = EXCLUDED

    @property
    def counts(self) -> bool:
        """Whether the job counts in the rates; it counts as not solved unless its gist so far is right."""
        return self is not SettledAs.EXCLUDED


_ENDS: dict[SettledAs, tuple[EndReason, GiveUpCode | None]] = {
    SettledAs.NOT_SOLVED: (EndReason.SETTLED, None),
    SettledAs.CONTEXT_EXHAUSTED: (EndReason.CONTEXT_EXHAUSTED, None),
    SettledAs.DECLINED: (EndReason.GAVE_UP, GiveUpCode.DECLINED),
    SettledAs.NO_TOOL_CALL: (EndReason.GAVE_UP, GiveUpCode.NO_TOOL_CALL),
}
"""How an attempt with each outcome ends; with `SETTLED`, the job's problem takes the place of the code."""

_FAILED = "The endpoint failed. Resume the run when it works again, or exclude the job."
_ADVICE: dict[str, str] = {
    ChatProblem.RATE_LIMITED: _FAILED,
    ChatProblem.SERVER_ERROR: _FAILED,
    ChatProblem.TIMED_OUT: _FAILED,
    ChatProblem.NO_CONNECTION: _FAILED,
    ChatProblem.MALFORMED_REPLY: _FAILED,
    ChatProblem.NOT_AUTHORISED: "The endpoint refuses the key. Set the right key, then resume the run.",
    ChatProblem.ACCOUNT_EMPTY: "The account has no credit left. Add credit, then resume the run.",
    ChatProblem.UNKNOWN_MODEL: "The endpoint does not have the model. Start it there, then resume the run.",
    ChatProblem.CONTEXT_FULL: "The conversation is too long for the model: context_exhausted.",
    ChatProblem.REJECTED: (
        "Resuming sends the same request again. Decide according to the message: context_exhausted if the"
        " conversation is too long, declined if the model's answer was withheld, no_tool_call if its call was"
        " malformed, otherwise not_solved or excluded."
    ),
    "history_cut": "Give the server a longer context and resume the run, or decide: context_exhausted.",
    "infrastructure": "A submission could not be judged. Resume the run when the sandbox works again.",
    "sandbox": "No sandbox works: see `gistpoint doctor`. Then resume the run.",
    "task": "The task is missing or damaged. Restore it and resume the run, or exclude the job.",
    "attempt": "The journal of the attempt can't be continued; the message gives the reason.",
    "refused": "The attempt can't be made; the message gives the reason.",
    "over_cost": "Resume the run with a higher --max-cost, or decide.",
    HANDED_OVER: "A person has the attempt, and has to give it back. Or exclude the job.",
    STOPPED: "The run was stopped. Resume it, or decide.",
    QUEUED: "The job was never begun. Resume the run, or exclude the job.",
}


def advice(obstacle: str) -> str:
    """Return advice about a job with this obstacle, in one or two sentences."""
    return _ADVICE.get(obstacle, "Resume the run, or decide.")


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision on one or several jobs, with its author and reason."""

    outcome: SettledAs
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class DecidedJob:
    """A job after a decision, or with the reason why the decision is not possible."""

    job: JobState
    refused: str = ""
    """The reason why nothing was decided, as a sentence; empty if the decision applies."""


class RefusedDecisionError(UserError):
    """A job can't be decided in this way."""


class Settler:
    """Decides jobs of a run that this process has locked (`AgentRun.held`)."""

    def __init__(
        self,
        run: AgentRun,
        attempts: AttemptStore,
        reopen: Callable[[JobState], OpenAttempt],
        utc_ms: Callable[[], int],
    ) -> None:
        """`reopen` opens the attempt of a job for writing. It may raise `UserError`."""
        self._run = run
        self._attempts = attempts
        self._reopen = reopen
        self._utc_ms = utc_ms

    def settle(self, jobs: Iterable[JobState], decision: Decision) -> Iterator[DecidedJob]:
        """Apply a decision to each job, and yield the results. Raises `OSError` if they can't be written."""
        for state in jobs:
            try:
                self._settle(state, decision)
            except UserError as error:
                yield DecidedJob(self._run.jobs[state.job.key], str(error))
            else:
                yield DecidedJob(self._run.jobs[state.job.key])

    def _settle(self, state: JobState, decision: Decision) -> None:
        settled = JobSettled(
            job=state.job.key,
            outcome=decision.outcome.value,
            problem=state.obstacle,
            by=decision.by[:_MOST_CHARACTERS],
            why=decision.why[:_MOST_CHARACTERS],
        )
        if state.over:
            raise RefusedDecisionError("The job has ended, or was excluded.")
        if not decision.outcome.counts:
            self._note(settled)
            return
        if not state.attempt:
            raise RefusedDecisionError("It has no attempt that could count: resume the run, or exclude it.")
        if has_person(self._attempts.summary(state.attempt).state):
            raise RefusedDecisionError("A person has taken the attempt over and has not given it back yet.")
        # The attempt is opened first: if that fails, the decision must not be recorded.
        with self._opened(state) as attempt:
            attempt.finish_pending()
            if not attempt.state.ended:
                self._note(settled)
                _end(attempt, settled, state.message)
            self._note_end(state, attempt.state)

    def undo(self, jobs: Iterable[JobState], by: str, why: str) -> Iterator[DecidedJob]:
        """Undo the decision on each job, and yield the results. Raises `OSError` as `settle` does."""
        for state in jobs:
            try:
                self._undo(state, by[:_MOST_CHARACTERS], why[:_MOST_CHARACTERS])
            except UserError as error:
                yield DecidedJob(self._run.jobs[state.job.key], str(error))
            else:
                yield DecidedJob(self._run.jobs[state.job.key])

    def _undo(self, state: JobState, by: str, why: str) -> None:
        if state.settled is None:
            raise RefusedDecisionError("Nothing was decided on the job.")
        undone = JobUnsettled(job=state.job.key, by=by, why=why)
        if not SettledAs(state.settled.outcome).counts:
            self._note(undone)
            return
        with self._opened(state) as attempt:
            if attempt.state.ended and not attempt.state.settled:
                raise RefusedDecisionError("The gist was judged at that end, which can't be undone.")
            self._note(undone)
            _withdraw(attempt, undone)

    def carry_out(self) -> list[JobState]:
        """Complete the records of a process that died, and return the jobs that are left without a decision.

        This records the losses of the requests that it had under way, and the decided ends. A decision whose
        attempt can't be opened remains. Raises `OSError` as `settle` does.
        """
        for lost in losses_of_killed_requests(self._run, self._attempts):
            self._note(lost)
        for state in self._run.jobs.values():
            with suppress(UserError):
                self._carry_out(state)
        return [state for state in self._run.left if state.settled is None]

    def _carry_out(self, state: JobState) -> None:
        settled = state.settled
        if state.over or not state.attempt:
            return
        if settled is not None:
            with self._opened(state) as attempt:
                attempt.finish_pending()
                _end(attempt, settled, state.message)
                self._note_end(state, attempt.state)
        elif self._attempts.summary(state.attempt).state.settled:
            with self._opened(state) as attempt:
                _withdraw(attempt, JobUnsettled(job=state.job.key))

    @contextmanager
    def _opened(self, state: JobState) -> Iterator[Attempt]:
        opened = self._reopen(state)
        try:
            yield opened.attempt
        finally:
            opened.close()

    def _note_end(self, job: JobState, state: AttemptState) -> None:
        """Record the end of an attempt. Raises `RefusedDecisionError` if the attempt has no end after all."""
        if state.ending is None:
            self._note(JobUnsettled(job=job.job.key, why="The gist could not be judged."))
            raise RefusedDecisionError(f"The gist could not be judged: {state.submissions[-1].reason}")
        self._note(JobEnded(job=job.job.key, reason=state.ending.reason))

    def _note(self, operation: JobOperation) -> None:
        self._run.append([structs.replace(operation, utc_ms=self._utc_ms())])


def _end(attempt: Attempt, settled: JobSettled, message: str) -> None:
    """End an attempt as decided, unless it has ended.

    A gist is judged, as at any limit (decision 28), unless the decision is that the attempt is not solved.
    """
    if attempt.state.ended:
        return
    outcome = SettledAs(settled.outcome)
    reason, code = _ENDS[outcome]
    if attempt.state.of_kind.hands_in_once and outcome is not SettledAs.NOT_SOLVED:
        attempt.hand_in(reason, code)
        attempt.finish_pending()
        return
    cause = settled.problem if reason is EndReason.SETTLED else code
    attempt.append(AttemptEnded(reason.value, cause or UNSET, message or UNSET, settled_by=settled.by))


def _withdraw(attempt: Attempt, undone: JobUnsettled) -> None:
    if attempt.state.settled:
        attempt.append(EndWithdrawn(undone.by, undone.why or UNSET))


def chosen_jobs(
    run: AgentRun, jobs: Sequence[str], reasons: Sequence[str], *, settled: bool = False
) -> list[JobState]:
    """Return the jobs with these numbers or attempts, and with one of these obstacles.

    With `settled`, only jobs with a decision are returned; otherwise, only jobs without one, and if neither
    `jobs` nor `reasons` are given, only the halted ones among them. Raises `UserError` for a number, attempt
    or obstacle that no job has, and for a prefix that several attempts share.
    """
    numbered = dict(enumerate(run.jobs.values(), start=1))
    named = list(numbered.values()) if not jobs else [_job_named(numbered, name) for name in jobs]
    possible = [state for state in named if (state.settled is not None) is settled]
    if reasons:
        known = sorted({_obstacle_before(state) for state in numbered.values()} - {""})
        for reason in reasons:
            if reason not in known:
                raise UserError(
                    f"No job has the reason {reason!r}.{did_you_mean(reason, known)}",
                    hint=f"`gistpoint agent settle {run.name}` lists the reasons.",
                )
        return [state for state in possible if _obstacle_before(state) in reasons]
    if jobs or settled:
        return possible
    return [state for state in possible if state.status is JobStatus.HALTED]


def _obstacle_before(state: JobState) -> str:
    """Return the obstacle of a job, before any decision on it; empty if it has ended without a decision."""
    if state.settled is not None:
        return state.settled.problem
    return "" if state.over else state.obstacle


def _job_named(numbered: Mapping[int, JobState], name: str) -> JobState:
    number = whole_number(name)
    if number is not None and number in numbered:
        return numbered[number]
    found = [
        number
        for number, state in numbered.items()
        if name and state.attempt and state.attempt.startswith(name)
    ]
    if len(found) > 1:
        raise UserError(
            f"The attempts of several jobs begin with {name!r}: {', '.join(map(str, found))}.",
            hint="Choose one by its number, or write more of its attempt.",
        )
    if not found:
        raise UserError(
            f"No job has the number or attempt {name!r}.",
            hint=f"The jobs have the numbers 1 to {len(numbered)}.",
        )
    return numbered[found[0]]
