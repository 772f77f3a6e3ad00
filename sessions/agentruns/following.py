"""Follows runs and attempts that another process carries out, by reading the new lines of their journals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.state import AttemptState, Standing, advance
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.registry import blank_state
from gistpoint.sessions.agentruns.endpoint_times import EndpointTimes
from gistpoint.sessions.agentruns.figures import AttemptFigures, job_figures, with_attempt
from gistpoint.sessions.agentruns.jobs import JobState, JobStatus
from gistpoint.sessions.agentruns.shown_attempts import NOT_BEGUN, ShownAttempt, shown_attempt
from gistpoint.sessions.agentruns.store import JOBS_FILE, AgentRun
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.journal import JOURNAL, decoded, is_open


class JournalFollower:
    """Follows one attempt by reading its journal, which it never changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / JOURNAL
        self._read = 0
        self._size = -1
        """The size of the journal, in bytes, when it was last read; -1 before that."""
        self.state = AttemptState()
        self.times = EndpointTimes()
        self.problem = ""
        """The reason why the attempt can't be followed any further, as a sentence; empty if it can be."""

    @property
    def live(self) -> bool:
        """Whether a process has the journal open for writing."""
        return is_open(self.folder)

    def poll(self) -> bool:
        """Read the new complete lines; return whether there were any.

        If the journal can't be read, `problem` is set, and nothing more is read.
        """
        if self.problem:
            return False
        try:
            size = self._path.stat().st_size
            if size == self._size:
                return False
            with self._path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
            self._size = size
        except OSError as error:
            self.problem = f"{self._path.parent.name}/{JOURNAL} can't be read: {error.strerror}."
            return False
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            self._take(line)
        return bool(whole)

    def forget(self) -> None:
        """Drop the state; if the journal grows, it is read from the beginning again."""
        self._read, self.state, self.times = 0, AttemptState(), EndpointTimes()

    def _take(self, line: bytes) -> None:
        event = decoded(line)
        if event is None:
            self.problem = f"Event {self.state.events + 1} can't be read."
            return
        try:
            if isinstance(event.data, AttemptStarted) and not self.state.events:
                self.state = AttemptState(of_kind=blank_state(event.data.mode))
            self.state = advance(self.state, event)
            self.times.take(event)
        except AttemptError as error:
            self.problem = str(error)


@dataclass(frozen=True, slots=True, eq=False)
class FollowedJob:
    """A job with the entry of its attempt in a list.

    The object stays the same until the job or the attempt changes.
    """

    job: JobState
    shown: ShownAttempt = NOT_BEGUN
    figures: AttemptFigures = field(default_factory=lambda: AttemptFigures(task="", repeat=0, status=""))
    """The row of the job in the figures of the run."""
    settled: bool = False
    """Whether the attempt has ended and no confirmation is expected, so that its journal stays unchanged."""


class RunFollower:
    """Follows a run and all of its attempts.

    Only attempts under way keep their states, so memory does not grow with the number of attempts that have
    ended.
    """

    def __init__(self, run: AgentRun, attempts: Path) -> None:
        """`attempts` is the folder of the attempts."""
        self.run = run
        self._attempts = attempts
        self._followers: dict[str, JournalFollower] = {}
        self._jobs: dict[str, FollowedJob] = {}
        self._stamp: tuple[int, int] | None = None
        """The size and the time of change of the file of jobs when it was last read."""

    def poll(self) -> Sequence[FollowedJob]:
        """Return the current state of the jobs and their attempts.

        Raises `AgentRunError` if the run can't be read.
        """
        stamp = self._stamp_of_jobs()
        if stamp is None or stamp != self._stamp:
            self.run.reload()
            self._stamp = stamp
        self._jobs = {key: self._followed(key, job) for key, job in self.run.jobs.items()}
        return list(self._jobs.values())

    def _stamp_of_jobs(self) -> tuple[int, int] | None:
        try:
            found = (self.run.folder / JOBS_FILE).stat()
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns

    def _followed(self, key: str, job: JobState) -> FollowedJob:
        """Return the current state of a job: the same object as before if nothing has changed."""
        before = self._jobs.get(key)
        if before is not None and before.job.attempt != job.attempt:
            before = None
        is_final = before is not None and (before.settled or not job.attempt)
        if before is not None and is_final and before.job == job:
            return before
        if not job.attempt:
            return FollowedJob(job, figures=job_figures(job))
        follower = self._follower(job.attempt)
        found = _polled(job, before, follower)
        if found is not before and _at_rest(found, follower):
            follower.forget()
        return found

    def _follower(self, attempt: str) -> JournalFollower:
        if attempt not in self._followers:
            self._followers[attempt] = JournalFollower(self._attempts / attempt)
        return self._followers[attempt]


def _polled(job: JobState, before: FollowedJob | None, follower: JournalFollower) -> FollowedJob:
    """Return the current state of a job, from its journal if new or grown, otherwise from `before`."""
    has_grown = follower.poll()
    if before is None or has_grown:
        return _of_journal(job, follower)
    return before if before.job == job else _after_job(before, job)


def _at_rest(followed: FollowedJob, follower: JournalFollower) -> bool:
    """Return whether nothing is likely to be written to the journal soon."""
    return followed.shown.ending is not None or (
        followed.job.status is JobStatus.HALTED and not follower.live
    )


def _of_journal(job: JobState, follower: JournalFollower) -> FollowedJob:
    """Return a job whose attempt was just read."""
    state = follower.state
    summary = AttemptSummary(
        job.attempt, job.job.task, state.header.mode, state.header.role, 0, state, follower.problem
    )
    figures = with_attempt(job_figures(job), summary, follower.times)
    settled = state.ended and state.standing is not Standing.NOT_ASKED
    return FollowedJob(job, shown_attempt(state), figures, settled)


def _after_job(before: FollowedJob, job: JobState) -> FollowedJob:
    """Return `before` updated from `job`, whose attempt has not changed."""
    own, earlier = job_figures(job), job_figures(before.job)
    kept = before.figures
    ended = before.shown.ending is not None
    figures = msgspec.structs.replace(
        kept,
        status=kept.status if ended else own.status,
        reason=kept.reason if ended else own.reason,
        message=own.message,
        # The attempt's own losses were added to the job's losses at that time.
        lost_tokens=kept.lost_tokens + own.lost_tokens - earlier.lost_tokens,
        lost_usd=kept.lost_usd if own.lost_usd == earlier.lost_usd else _grown(kept, own, earlier),
        lost_s=own.lost_s,
        worker=own.worker,
        clock_ms=own.clock_ms,
    )
    return replace(before, job=job, figures=figures)


def _grown(kept: AttemptFigures, own: AttemptFigures, earlier: AttemptFigures) -> float:
    """Return the cost of lost calls: the known cost, plus the growth of the job's own."""
    return (kept.lost_usd or 0.0) + (own.lost_usd or 0.0) - (earlier.lost_usd or 0.0)
