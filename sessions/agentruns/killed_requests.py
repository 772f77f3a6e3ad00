"""Requests whose process died before the reply was in the journal: their cost counts, once (decision 150)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from gistpoint.core.attempts.events import Heartbeat, JournalEvent
from gistpoint.core.attempts.reasons import PauseReason
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.errors import UserError
from gistpoint.sessions.agentruns.store import AgentRun, JobAsked, JobLost, JobState
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL, read_journal


def losses_of_killed_requests(run: AgentRun, attempts: AttemptStore) -> list[JobLost]:
    """Return the losses of requests that a dead process had announced, for jobs not ended or halted since."""
    found = []
    for job in run.jobs.values():
        if job.asked is None:
            continue
        with suppress(UserError):
            state = attempts.summary(job.attempt).state
            lost = killed_request(job, state, read_journal(attempts.folder(job.attempt) / JOURNAL).events)
            if lost is not None:
                found.append(lost)
    return found


def killed_request(job: JobState, state: AttemptState, events: Iterable[JournalEvent]) -> JobLost | None:
    """Return the loss of the request that a dead process had announced; None if it was answered or is over.

    `state` and `events` are those of the job's attempt. The request was answered if the journal contains its
    turn. If the attempt waits for the endpoint, only the earlier requests for the same reply were sent, so
    the loss may be 0.
    """
    asked = job.asked
    if asked is None or len(state.turns) >= asked.turn:
        return None
    if state.pause is not None and state.pause.reason == PauseReason.ENDPOINT_WAIT:
        return _loss(asked, 0, None, 0.0)
    last_utc_ms = max((event.utc_ms for event in events), default=0)
    return _loss(asked, asked.tokens, asked.cost_usd, max(0, last_utc_ms - asked.utc_ms) / 1000)


def unanswered_ms(events: Sequence[JournalEvent]) -> int:
    """Return the milliseconds of thinking in a journal after the last event that is not a heartbeat.

    If the process died, they passed with a request that brought no reply, so they are not the model's time.
    """
    before = len(events)
    while before and isinstance(events[before - 1].data, Heartbeat):
        before -= 1
    if before == len(events):
        return 0
    return fold(events).clock.thinking - fold(events[:before]).clock.thinking


def _loss(asked: JobAsked, tokens: int, cost_usd: float | None, seconds: float) -> JobLost:
    costs = [cost for cost in (asked.failed_usd, cost_usd) if cost is not None]
    return JobLost(
        job=asked.job,
        tokens=asked.failed_tokens + tokens,
        cost_usd=sum(costs) if costs else None,
        seconds=asked.failed_s + seconds,
    )
