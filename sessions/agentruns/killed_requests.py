"""Requests whose process died before the reply was in the journal: their cost counts, once (decision 150)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import fsum

from msgspec import UNSET

from gistpoint.core.attempts.events import Heartbeat, JournalEvent, ModelTurn, Paused, ProcessStarted
from gistpoint.core.attempts.reasons import PauseReason
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.errors import UserError
from gistpoint.sessions.agentruns.jobs import JobAsked, JobLost, JobState
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL, read_journal


def losses_of_killed_requests(run: AgentRun, attempts: AttemptStore) -> list[JobLost]:
    """Return the losses of requests that a dead process had announced, for jobs not ended or halted since."""
    found = []
    for job in run.jobs.values():
        if job.asked is None and not job.relayed:
            continue
        with suppress(UserError):
            state = attempts.summary(job.attempt).state
            lost = killed_requests(job, state, read_journal(attempts.folder(job.attempt) / JOURNAL).events)
            if lost is not None:
                found.append(lost)
    return found


def killed_requests(job: JobState, state: AttemptState, events: Sequence[JournalEvent]) -> JobLost | None:
    """Return the loss of the requests that a dead process had announced; None if none was lost.

    `state` and `events` are those of the job's attempt. A request was answered if the journal contains its
    turn, which also records the usage, but not the time, of failed requests before it. If the attempt waits
    for the endpoint, gistpoint's own request was not sent.
    """
    own = [job.asked] if job.asked is not None else []
    last = [*job.relayed[-1:], *own]
    failed = [one for one in last if one.request or not _is_answered(one, state)]
    unanswered = _unanswered(job, state)
    failed_s = max((one.failed_s for one in last), default=0.0)
    # One number of tokens for each failed and each unanswered request, with its cost.
    tokens = [*(one.failed_tokens for one in failed), *(one.tokens for one in unanswered)]
    costs = [*(one.failed_usd for one in failed), *(one.cost_usd for one in unanswered)]
    if not failed_s and not any(tokens):
        return None
    return JobLost(
        job=job.job.key,
        tokens=sum(tokens),
        cost_usd=sum_of(costs),
        seconds=round(failed_s + _under_way_ms(unanswered, events) / 1000, 3),
    )


def _unanswered(job: JobState, state: AttemptState) -> list[JobAsked]:
    """Return the announced requests that are not over and have no reply in the journal."""
    is_waiting = state.pause is not None and state.pause.reason == PauseReason.ENDPOINT_WAIT
    own = [job.asked] if job.asked is not None and not is_waiting else []
    return [one for one in (*job.relayed, *own) if one.tokens and not _is_answered(one, state)]


def _is_answered(asked: JobAsked, state: AttemptState) -> bool:
    return 0 < asked.turn <= len(state.turns)


def _under_way_ms(unanswered: Sequence[JobAsked], events: Sequence[JournalEvent]) -> int:
    """Return the milliseconds up to the last event for which only unanswered requests were under way.

    Without the time of sending, which older versions do not record, it is all time that is not the model's.
    """
    if not unanswered or not events:
        return 0
    sent_ms = min(one.sent_ms for one in unanswered)
    if not sent_ms:
        return unanswered_ms(events)
    last = len(events)
    while last and events[last - 1].mono_ms > sent_ms and not isinstance(events[last - 1].data, ModelTurn):
        last -= 1
    before, after = events[:last], events[last:]
    # Time of earlier requests that was excluded since then must not be subtracted from this request's time.
    excluded = sum(
        event.data.thinking_ms
        for event in after
        if isinstance(event.data, Paused) and event.data.thinking_ms is not UNSET
    )
    thinking = fold(events).clock.thinking - fold(before).clock.thinking + excluded
    begun = max(sent_ms, before[-1].mono_ms if before else sent_ms)
    return max(0, min(thinking, events[-1].mono_ms - begun))


def unanswered_ms(events: Sequence[JournalEvent]) -> int:
    """Return the milliseconds of thinking in a journal after the last event of the attempt itself.

    If the process died, they were spent on a request that got no reply, so they are not the model's time.
    Heartbeats, and starts of processes that then died as well, are not events of the attempt itself.
    """
    before = len(events)
    while before and isinstance(events[before - 1].data, Heartbeat | ProcessStarted):
        before -= 1
    if before == len(events):
        return 0
    return fold(events).clock.thinking - fold(events[:before]).clock.thinking


def sum_of(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the known costs; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if known else None
