"""The figures of a run for a table of results, computed from the journals of its attempts.

Rates are over the attempts of the model alone that have ended; others are counted separately, and bounds
show what their outcomes could change. A pass that a reviewer has yet to read does not count as solved, and is
reported separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from statistics import fmean
from typing import Any

import msgspec
from msgspec import structs

from gistpoint.core.agents.conversation import has_unread_calls
from gistpoint.core.agents.scaffolds import NO_TOOLS, OWN
from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import EndReason, GiveUpCode
from gistpoint.core.attempts.state import AttemptResult, AttemptState
from gistpoint.core.csv_text import csv_line
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.confirming import standing
from gistpoint.sessions.agentruns.endpoint_times import EndpointTimes
from gistpoint.sessions.agentruns.jobs import JobState, JobStatus
from gistpoint.sessions.agentruns.killed_requests import killed_requests, sum_of
from gistpoint.sessions.agentruns.rates import OutcomeBounds, Rate, RepeatFigures, bounds, rate, repeats_of
from gistpoint.sessions.agentruns.store import AgentRun, RunSettings
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL, read_journal

UNREADABLE = "unreadable"
"""The reason in the row of a job whose journal can't be read, or belongs to another job."""
_SILENT = f"{EndReason.GAVE_UP}: {GiveUpCode.NO_TOOL_CALL}"


class AttemptFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The row of one job. Times are seconds; values that need an attempt are None without one."""

    task: str
    repeat: int
    framework: str = OWN
    """The agent that worked with the model: gistpoint's own loop, or a scaffold."""
    client_tools: str = NO_TOOLS
    """The kinds of the agent's own tools, whose use costs nothing."""
    status: str
    """The state of the job: `queued`, `begun`, `halted`, `ended` or `excluded`."""
    attempt: str = ""
    mode: str = ""
    result: str = ""
    """`solved`, `solved, to be read` or `not solved`; empty if the attempt has not ended."""
    reason: str = ""
    """The reason why the attempt ended or the job halted, with any code: `gave_up: declined`."""
    message: str = ""
    mixed: bool = False
    """Whether a person had control for a time; such attempts are excluded from all rates."""
    score: float | None = None
    """The score of the last submission; None without one."""
    calls: int | None = None
    submissions: int | None = None
    malformed: int | None = None
    turns: int | None = None
    retried: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    """The number of sent tokens that the endpoint wrote to its cache."""
    reasoning_tokens: int | None = None
    estimated: bool = False
    """Whether some tokens were estimated from the length of text."""
    cost_usd: float | None = None
    lost_tokens: int = 0
    """The number of tokens, mostly estimated, in requests without a reply, even if they were sent again."""
    lost_usd: float | None = None
    lost_s: float = 0.0
    """The time for which requests without a reply were under way."""
    abandoned_s: float = 0.0
    """The duration of the job's earlier attempts that a scaffold could not continue."""
    wall_s: float | None = None
    """The time from the attempt's first event to its last, except between two processes; None if unknown."""
    model_s: float | None = None
    """The time between requests and their replies; simultaneous requests count once."""
    endpoint_wait_s: float | None = None
    """The time spent waiting after failed requests and because of limits."""
    streamed: int | None = None
    """The number of replies received in pieces."""
    worker: str = ""
    """The worker of a cluster that had the job last; empty if none had it."""
    clock_ms: int = 0
    """The milliseconds by which that worker's clock was ahead of this machine's, as far as known."""

    by_tests: bool = False
    """Whether the tests passed, regardless of any review or confirmation."""
    confirmation: str = ""
    """The result of confirming a pass, a `core.attempts.results.Standing`; empty without a pass."""
    settled: str = ""
    """The decision on the halted job, a `settling.SettledAs`; empty without one."""
    settled_by: str = ""
    settled_why: str = ""
    in_rates: bool = False
    """Whether the job is in the rates."""
    solved_at_worst: int | None = None
    """1 if the job counts as solved, 0 if not or if its outcome is missing; None if no attempt is needed."""
    solved_at_best: int | None = None
    """1 if the job counts as solved or its outcome is missing, 0 if not; None if no attempt is needed.

    The means of these two columns are the bounds of the rate.
    """
    unread_calls: bool = False
    """Whether a reply without a call contains the text of a call."""

    @property
    def tokens(self) -> int | None:
        """All tokens, sent and received; None without an attempt."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens

    @property
    def counted(self) -> bool:
        """Whether the job is in the rates: its attempt has ended, and no person had control (decision 79)."""
        return bool(self.result) and not self.mixed

    @property
    def refused(self) -> bool:
        """Whether the job ended without an attempt, because its task does not fit the settings."""
        return self.status == JobStatus.ENDED and not self.attempt

    @property
    def missing(self) -> bool:
        """Whether the model's own outcome is not known (decision 150)."""
        return not self.counted and not self.refused

    @property
    def solved(self) -> bool:
        """Whether the job counts as solved."""
        return self.result == AttemptResult.SOLVED

    @property
    def passes(self) -> bool:
        """Whether the job is solved, or may be solved once its pass is reviewed."""
        return self.solved or self.result == AttemptResult.TO_BE_READ


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a whole run."""

    jobs: int
    ended: int
    left: int
    counted: int
    """The number of ended attempts of the model alone."""
    mixed: int
    refused: int
    """The number of jobs that ended without an attempt."""
    never_called: int
    """The number of attempts given up without a call, possibly because the server supports no calls."""
    halted: int
    excluded: dict[str, int]
    """The number of excluded jobs for each problem; they are excluded from all rates."""
    missing: int
    """The number of jobs with unknown outcomes, which the bounds of the rates cover."""
    solved: Rate | None
    solved_bounds: OutcomeBounds | None
    """The bounds of `solved`; None, like the other bounds, if no outcome is missing."""
    to_be_read: int
    """The number of additional passes that await a reviewer's ruling."""
    solved_with_unread: Rate | None
    solved_with_unread_bounds: OutcomeBounds | None
    repeats: RepeatFigures | None
    reasons: dict[str, int]
    calls_per_attempt: float | None
    submissions_per_attempt: float | None
    malformed: Rate | None
    """The rate of malformed calls among all calls; None without a call."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    written_tokens: int
    reasoning_tokens: int
    estimated: bool
    lost_tokens: int
    """The tokens of requests without a reply; none of the counts above includes them."""
    cost_usd: float | None
    """The whole cost, including lost replies."""
    wall_s: float
    model_s: float
    endpoint_wait_s: float
    retried: int
    """The number of times that requests were sent again before they were answered."""
    lost_s: float = 0.0
    """The time for which requests without a reply were under way."""
    abandoned_s: float = 0.0
    """The duration of attempts that scaffolds could not continue, in addition to `wall_s`."""
    by_tests: Rate | None = None
    """The rate by the tests alone, before any review or confirmation, as in the Breakpoint paper."""
    by_tests_bounds: OutcomeBounds | None = None
    confirmation: dict[str, int] = {}
    """The number of passes for each result of confirming."""
    unread_calls: int = 0
    """The number of attempts, given up or without any call, in which a reply contains the text of a call."""
    misdated: int = 0
    """The number of attempts whose dates were recorded by a wrong clock."""


@dataclass(frozen=True, slots=True)
class FiguresOfRun:
    """The figures of a run, and the row of each job."""

    totals: RunFigures
    attempts: tuple[AttemptFigures, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as JSON values, under `totals` and `attempts`."""
        rows = [msgspec.to_builtins(row) for row in self.attempts]
        return {"totals": msgspec.to_builtins(self.totals), "attempts": rows}

    def as_csv(self) -> Iterator[str]:
        """Yield the lines of a CSV table: a header, and a row for each job."""
        fields = AttemptFigures.__struct_fields__
        for values in (fields, *(structs.astuple(row) for row in self.attempts)):
            yield csv_line(values)


def figures_of(run: AgentRun, attempts: AttemptStore) -> FiguresOfRun:
    """Return the figures of a run from its journals; the row of an unreadable journal contains its fault."""
    at_work = run.worked_on
    rows = tuple(_bounded(_row(state, attempts, at_work=at_work)) for state in run.jobs.values())
    return FiguresOfRun(totals_of(rows), tuple(_by_agent(row, run.settings) for row in rows))


def _by_agent(row: AttemptFigures, settings: RunSettings) -> AttemptFigures:
    """Return a row with the agent that worked with the model."""
    tools = NO_TOOLS if settings.scaffold is None else settings.scaffold.client_tools
    return structs.replace(row, framework=settings.framework, client_tools=tools)


def outcomes_of(run: AgentRun, attempts: AttemptStore) -> RunFigures:
    """Return the figures of a run's outcomes, without costs and details, from the outlines of its attempts.

    An unchanged journal is not read again, so this is fast enough for a list of runs.
    """
    known = {one.attempt_id: one for one in attempts.outlines_of(s.attempt for s in run.jobs.values())}
    return totals_of([_outlined(state, known.get(state.attempt)) for state in run.jobs.values()])


def _outlined(state: JobState, attempt: AttemptSummary | None) -> AttemptFigures:
    row = AttemptFigures(
        task=state.job.task,
        repeat=state.job.repeat,
        status=state.status.value,
        attempt=state.attempt,
        reason=state.obstacle,
    )
    if attempt is not None and not _is_of(attempt.state, state):
        return structs.replace(row, reason=UNREADABLE)
    if attempt is None or attempt.problem or attempt.state.ending is None:
        return row
    return structs.replace(
        row,
        status=JobStatus.ENDED.value,
        result=attempt.result.value,
        reason=attempt.state.ending.reason,
        mixed=attempt.state.mixed,
    )


def _bounded(row: AttemptFigures) -> AttemptFigures:
    """Return a row with the columns that contain its share in the rate and in the bounds of the rate."""
    if row.refused:
        return row
    return structs.replace(
        row,
        in_rates=row.counted,
        solved_at_worst=int(row.counted and row.solved),
        solved_at_best=int(row.missing or row.solved),
    )


def job_figures(state: JobState) -> AttemptFigures:
    """Return the row of a job, without values that only its attempt's journal contains."""
    settled = state.settled
    return AttemptFigures(
        task=state.job.task,
        repeat=state.job.repeat,
        status=state.status.value,
        attempt=state.attempt,
        reason=state.obstacle if state.status is JobStatus.EXCLUDED else state.problem,
        message=state.message,
        lost_tokens=state.lost_tokens,
        lost_usd=state.lost_usd,
        lost_s=state.lost_s,
        abandoned_s=state.abandoned_s,
        settled=settled.outcome if settled is not None else "",
        settled_by=settled.by if settled is not None else "",
        settled_why=settled.why if settled is not None else "",
        worker=state.worker,
        clock_ms=state.clock_ms,
    )


def _row(state: JobState, attempts: AttemptStore, *, at_work: bool) -> AttemptFigures:
    """Return the row of a job; unless its run is `at_work`, a request without a reply counts as lost."""
    row = job_figures(state)
    if not state.attempt:
        return row
    try:
        summary = attempts.summary(state.attempt)
        events = read_journal(attempts.folder(state.attempt) / JOURNAL).events
    except AttemptError as error:
        return structs.replace(row, reason=UNREADABLE, message=str(error))
    if not _is_of(summary.state, state):
        return structs.replace(
            row, reason=UNREADABLE, message=f"The attempt {state.attempt} does not belong to this job."
        )
    if not at_work and (lost := killed_requests(state, summary.state, events)) is not None:
        with_loss = state.after(lost)
        row = structs.replace(
            row, lost_tokens=with_loss.lost_tokens, lost_usd=with_loss.lost_usd, lost_s=with_loss.lost_s
        )
    return with_attempt(row, summary, EndpointTimes.of(events))


def _is_of(attempt: AttemptState, job: JobState) -> bool:
    """Return whether an attempt belongs to a job, which its header names."""
    return (attempt.header.solver or {}).get("job") == job.job.key


def with_attempt(row: AttemptFigures, summary: AttemptSummary, times: EndpointTimes) -> AttemptFigures:
    """Return the row of a job with the values from its attempt's journal, whose times are `times`."""
    state, spent = summary.state, summary.state.spent
    usage = spent.replies
    ending = state.ending
    reason = row.reason
    if ending is not None:
        reason = f"{ending.reason}: {ending.code}" if ending.code else ending.reason
    last = state.last
    return structs.replace(
        row,
        status=JobStatus.ENDED.value if ending is not None else row.status,
        mode=summary.mode,
        result=summary.result.value if ending is not None else "",
        reason=reason,
        message=summary.problem or row.message,
        mixed=state.mixed,
        by_tests=state.solved and not summary.problem,
        confirmation="" if summary.problem else str(standing(state) or ""),
        unread_calls=has_unread_calls(state),
        score=None if last is None else last.score,
        calls=len(state.calls),
        submissions=len(state.counted_submissions),
        malformed=spent.malformed,
        turns=spent.turns,
        retried=spent.retried,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        written_tokens=usage.written_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        estimated=usage.estimated,
        cost_usd=usage.cost_usd,
        lost_tokens=row.lost_tokens + spent.failed.tokens,
        lost_usd=sum_of((row.lost_usd, spent.failed.cost_usd)),
        wall_s=sum(state.clock.of(activity) for activity in ClockActivity) / 1000,
        model_s=times.model_ms / 1000,
        endpoint_wait_s=times.waited_ms / 1000,
        streamed=sum(turn.streamed is True for turn in state.turns),
    )


@dataclass(frozen=True)
class _Sums:
    """Sums over all rows of a run, or over those in its rates; missing values count as 0."""

    rows: Sequence[AttemptFigures]

    @cached_property
    def counted(self) -> Sequence[AttemptFigures]:
        return [row for row in self.rows if row.counted]

    @cached_property
    def missing(self) -> int:
        return sum(row.missing for row in self.rows)

    def total(self, of: Callable[[AttemptFigures], float | None]) -> float:
        return fsum(of(row) or 0 for row in self.rows)

    def whole(self, of: Callable[[AttemptFigures], float | None]) -> int:
        return int(self.total(of))

    def of_status(self, status: JobStatus) -> int:
        return sum(row.status == status for row in self.rows)

    def mean(self, of: Callable[[AttemptFigures], float | None]) -> float | None:
        return fmean(of(row) or 0 for row in self.counted) if self.counted else None

    def among_counted(self, of: Callable[[AttemptFigures], float | None]) -> int:
        return int(sum(of(row) or 0 for row in self.counted))

    def share(self, of: Callable[[AttemptFigures], bool]) -> Rate | None:
        return rate(self.among_counted(of), len(self.counted))

    def between(self, of: Callable[[AttemptFigures], bool]) -> OutcomeBounds | None:
        return bounds(self.among_counted(of), len(self.counted), self.missing)


def totals_of(rows: Sequence[AttemptFigures]) -> RunFigures:
    """Return the figures of all rows together."""
    sums = _Sums(rows)
    ended, excluded = sums.of_status(JobStatus.ENDED), sums.of_status(JobStatus.EXCLUDED)
    return RunFigures(
        jobs=len(rows),
        ended=ended,
        left=len(rows) - ended - excluded,
        counted=len(sums.counted),
        mixed=sums.whole(lambda row: row.mixed),
        refused=sums.whole(lambda row: row.refused),
        never_called=sums.among_counted(lambda row: row.reason == _SILENT and row.calls == 0),
        halted=sums.of_status(JobStatus.HALTED),
        excluded=_excluded(rows),
        missing=sums.missing,
        solved=sums.share(lambda row: row.solved),
        solved_bounds=sums.between(lambda row: row.solved),
        to_be_read=sums.among_counted(lambda row: row.passes and not row.solved),
        solved_with_unread=sums.share(lambda row: row.passes),
        solved_with_unread_bounds=sums.between(lambda row: row.passes),
        repeats=repeats_of(rows),
        reasons=_reasons(rows),
        calls_per_attempt=sums.mean(lambda row: row.calls),
        submissions_per_attempt=sums.mean(lambda row: row.submissions),
        malformed=rate(
            sums.among_counted(lambda row: row.malformed), sums.among_counted(lambda row: row.calls)
        ),
        prompt_tokens=sums.whole(lambda row: row.prompt_tokens),
        completion_tokens=sums.whole(lambda row: row.completion_tokens),
        cached_tokens=sums.whole(lambda row: row.cached_tokens),
        written_tokens=sums.whole(lambda row: row.written_tokens),
        reasoning_tokens=sums.whole(lambda row: row.reasoning_tokens),
        estimated=bool(sums.whole(lambda row: row.estimated)),
        lost_tokens=sums.whole(lambda row: row.lost_tokens),
        cost_usd=_cost(rows),
        wall_s=sums.total(lambda row: row.wall_s),
        model_s=sums.total(lambda row: row.model_s),
        endpoint_wait_s=sums.total(lambda row: row.endpoint_wait_s),
        retried=sums.whole(lambda row: row.retried),
        lost_s=sums.total(lambda row: row.lost_s),
        abandoned_s=sums.total(lambda row: row.abandoned_s),
        by_tests=sums.share(lambda row: row.by_tests),
        by_tests_bounds=sums.between(lambda row: row.by_tests),
        confirmation=_confirmations(sums.counted),
        misdated=sums.whole(lambda row: bool(row.clock_ms)),
        unread_calls=sums.among_counted(
            lambda row: row.unread_calls and (row.reason == _SILENT or row.calls == 0)
        ),
    )


def _excluded(rows: Iterable[AttemptFigures]) -> dict[str, int]:
    """Return the number of excluded jobs for each reason, the most frequent reason first."""
    return dict(Counter(row.reason for row in rows if row.status == JobStatus.EXCLUDED).most_common())


def _confirmations(rows: Iterable[AttemptFigures]) -> dict[str, int]:
    return dict(Counter(row.confirmation for row in rows if row.by_tests))


def _reasons(rows: Iterable[AttemptFigures]) -> dict[str, int]:
    """Return the number of jobs for each reason, most frequent first, without ended jobs of mixed solvers."""
    of_model = (row for row in rows if row.counted or not row.result)
    return dict(Counter(row.reason for row in of_model if row.reason).most_common())


def _cost(rows: Iterable[AttemptFigures]) -> float | None:
    """Return the cost in US dollars, including lost replies; None if no cost is known."""
    return sum_of(cost for row in rows for cost in (row.cost_usd, row.lost_usd))
