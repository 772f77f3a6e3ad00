"""The jobs of a run: the operations that a run records on them, and the state of each job after these.

A job is one attempt to make. Its state is computed from its operations alone (decision 75).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

HANDED_OVER = "handed_over"
"""The problem of a halted job whose attempt a person has taken over."""
EXCLUDED = "excluded"
"""The outcome of a decision that excludes a job from all rates."""
STOPPED, QUEUED = "stopped", "queued"
"""The obstacles for jobs without a problem: the process was stopped or died, or the job was never begun."""


class AgentJob(msgspec.Struct, frozen=True):
    """One attempt to make: its task and the number of the repeat, counted from 1."""

    key: str
    task: str
    repeat: int = 1


class _Operation(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True):
    job: str
    utc_ms: int = 0


class JobQueued(_Operation, frozen=True, tag="queued", kw_only=True):
    """Records that a job belongs to the run."""

    task: str
    repeat: int = 1


class JobAttempt(_Operation, frozen=True, tag="attempt", kw_only=True):
    """Records that the job's attempt was begun or resumed."""

    attempt: str


class JobHalted(_Operation, frozen=True, tag="halted", kw_only=True):
    """Records that the job can't continue now, for a reason other than the solver, and has not ended."""

    problem: str
    message: str = ""


class JobEnded(_Operation, frozen=True, tag="ended", kw_only=True):
    """Records that the job is done; without an attempt, `reason` explains why none is possible."""

    reason: str
    message: str = ""


class JobAsked(_Operation, frozen=True, tag="asked", kw_only=True):
    """Records that a request is about to be sent, so that its cost is known if the process dies.

    The request is over once the journal contains its turn, or after a loss, a halt or an end of the job. If
    it gets no reply, it is recorded again without tokens (decision 210).
    """

    turn: int
    """The number of the turn for which a reply is requested; 0 if that is not known yet."""
    request: int = 0
    """The number of a program's request, which is recorded again when it is over; 0 for gistpoint's own."""
    tokens: int = 0
    """The estimated number of tokens in the prompt; 0 if the request is over."""
    cost_usd: float | None = None
    failed_tokens: int = 0
    """The estimated number of tokens in failed requests: those for the same reply, or all of a program's."""
    failed_usd: float | None = None
    failed_s: float = 0.0
    """The duration of all requests of this process that failed, in seconds."""
    sent_ms: int = 0
    """The monotonic time when the request was sent, in ms as in the journal; 0 if it is over or unknown."""


class JobLost(_Operation, frozen=True, tag="lost", kw_only=True):
    """Records paid replies that are in no journal, because requests failed; `tokens` is an estimate.

    With `abandoned`, the loss is an attempt that a scaffold can't continue, so the job has no attempt.
    """

    tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    """The time for which these requests were under way."""
    abandoned: str = ""
    """The id of the attempt that was abandoned; empty for the loss of requests."""
    abandoned_s: float = 0.0
    """The duration of that attempt."""


class JobSettled(_Operation, frozen=True, tag="settled", kw_only=True):
    """Records a decision on a job that has not ended: to end its attempt, or to exclude it (decision 150).

    The end itself is in the attempt's journal, and then in a separate operation.
    """

    outcome: str
    """A `settling.SettledAs`."""
    problem: str
    """The obstacle of the job before the decision."""
    by: str = ""
    why: str = ""


class JobUnsettled(_Operation, frozen=True, tag="unsettled", kw_only=True):
    """Records that the last decision on a job no longer applies."""

    by: str = ""
    why: str = ""


class JobPlace(_Operation, frozen=True, tag="place", kw_only=True):
    """Records that the job's attempt was made, or continued, on a worker of a cluster."""

    worker: str
    clock_ms: int = 0
    """The worker's clock minus the clock of the run's machine, when the worker connected; 0 if equal."""


JobOperation = (
    JobQueued | JobAttempt | JobHalted | JobEnded | JobAsked | JobLost | JobPlace | JobSettled | JobUnsettled
)


class JobStatus(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    BEGUN = "begun"
    """The job's attempt has begun and not ended: it is running, or its process has died."""
    HALTED = "halted"
    ENDED = "ended"
    EXCLUDED = "excluded"
    """The job was excluded by a decision: it is not continued, and is excluded from all rates."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job after its operations."""

    job: AgentJob
    status: JobStatus = JobStatus.QUEUED
    attempt: str = ""
    problem: str = ""
    """The reason why the job halted or ended."""
    message: str = ""
    lost_tokens: int = 0
    lost_usd: float | None = None
    """The cost of replies that are in no journal, in US dollars; None if it is unknown or there are none."""
    lost_s: float = 0.0
    """The time for which the requests without a reply were under way."""
    abandoned: tuple[str, ...] = ()
    """The ids of earlier attempts that a scaffold could not continue."""
    abandoned_s: float = 0.0
    """The duration of these attempts."""
    asked: JobAsked | None = None
    """The last request, unless its loss or the job's halt or end was recorded after it."""
    relayed: tuple[JobAsked, ...] = ()
    """The requests of a scaffold's program that are under way, and the one that was recorded last."""
    settled: JobSettled | None = None
    """The decision on the job; None if there is none."""
    unsettled: JobState | None = None
    """The job before the decision; None if there is none."""
    worker: str = ""
    """The worker of a cluster that had the job last; empty if none had it."""
    clock_ms: int = 0
    """The milliseconds by which that worker's clock was ahead."""

    def after(self, operation: JobOperation) -> JobState:
        """Return the state after one more operation."""
        match operation:
            case JobAttempt(attempt=attempt):
                return replace(self, status=JobStatus.BEGUN, attempt=attempt, problem="", message="")
            case JobHalted(problem=problem, message=message) | JobEnded(reason=problem, message=message):
                status = JobStatus.HALTED if isinstance(operation, JobHalted) else JobStatus.ENDED
                return replace(self, status=status, problem=problem, message=message, asked=None, relayed=())
            case JobAsked(request=0):
                return replace(self, asked=operation)
            case JobAsked(request=number):
                others = (
                    one for one in self.relayed if one.tokens and not one.turn and one.request != number
                )
                return replace(self, relayed=(*others, operation))
            case JobLost():
                return self._after_loss(operation)
            case JobPlace(worker=worker, clock_ms=clock_ms):
                return replace(self, worker=worker, clock_ms=clock_ms)
            case JobSettled():
                return self._after_decision(operation)
            case JobUnsettled() if self.unsettled is not None:
                before = self.unsettled
                return replace(
                    self,
                    status=before.status,
                    problem=before.problem,
                    message=before.message,
                    settled=None,
                    unsettled=None,
                )
        return self

    def _after_loss(self, lost: JobLost) -> JobState:
        usd = self.lost_usd if lost.cost_usd is None else (self.lost_usd or 0.0) + lost.cost_usd
        after = replace(
            self,
            lost_tokens=self.lost_tokens + lost.tokens,
            lost_usd=usd,
            lost_s=self.lost_s + lost.seconds,
            asked=None,
            relayed=(),
        )
        if not lost.abandoned:
            return after
        return replace(
            after,
            status=JobStatus.QUEUED,
            attempt="",
            problem="",
            message="",
            abandoned=(*self.abandoned, lost.abandoned),
            abandoned_s=self.abandoned_s + lost.abandoned_s,
        )

    def _after_decision(self, settled: JobSettled) -> JobState:
        status = JobStatus.EXCLUDED if settled.outcome == EXCLUDED else self.status
        return replace(self, status=status, settled=settled, unsettled=self)

    @property
    def over(self) -> bool:
        """Whether the job is not continued: it has ended, or was excluded."""
        return self.status in (JobStatus.ENDED, JobStatus.EXCLUDED)

    @property
    def obstacle(self) -> str:
        """The problem of the job, before any decision; `stopped` or `queued` if there is none."""
        if self.settled is not None:
            return self.settled.problem
        return self.problem or (QUEUED if self.status is JobStatus.QUEUED else STOPPED)


def job_states(
    operations: Iterable[JobOperation], before: Mapping[str, JobState] | None = None
) -> dict[str, JobState]:
    """Return the states of the jobs by key, in the order of queueing; `before` are earlier states."""
    jobs = dict(before or {})
    for operation in operations:
        if isinstance(operation, JobQueued):
            job = AgentJob(operation.job, operation.task, operation.repeat)
            jobs.setdefault(operation.job, JobState(job))
        elif operation.job in jobs:
            jobs[operation.job] = jobs[operation.job].after(operation)
    return jobs


KINDS = frozenset({"queued", "attempt", "halted", "ended", "asked", "lost", "place", "settled", "unsettled"})
"""The kinds of operations that this version knows."""
