"""The figures of a run for a table of results, computed from the journals of its attempts.

Rates are over the attempts of the model alone that have ended; others are counted separately. A pass that a
reviewer has yet to read does not count as solved, and is reported separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import Any

import msgspec
from msgspec import structs

from gistpoint.core.agents.conversation import has_unread_calls
from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import (
    EndReason,
    GiveUpCode,
    JournalEvent,
    Paused,
    PauseReason,
    ProcessStarted,
    Resumed,
)
from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.csv_text import csv_line
from gistpoint.core.errors import AttemptError
from gistpoint.core.estimates import wilson
from gistpoint.core.kinds.confirming import standing
from gistpoint.core.text import plural
from gistpoint.sessions.agentruns.store import AgentRun, JobState, JobStatus
from gistpoint.sessions.attempts import AttemptStore, AttemptSummary
from gistpoint.sessions.journal import JOURNAL, read_journal

_SILENT = f"{EndReason.GAVE_UP}: {GiveUpCode.NO_TOOL_CALL}"


class AttemptFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The row of one job. Times are seconds; values that need an attempt are None without one."""

    task: str
    repeat: int
    status: str
    """The state of the job: `queued`, `begun`, `halted` or `ended`."""
    attempt: str = ""
    mode: str = ""
    result: str = ""
    """`solved`, `solved, to be read` or `not solved`; empty if the attempt has not ended."""
    reason: str = ""
    """Why the attempt ended or the job halted, with any code: `gave_up: declined`."""
    message: str = ""
    mixed: bool = False
    """Whether a person had control for a time; such attempts are in no rate."""
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
    reasoning_tokens: int | None = None
    estimated: bool = False
    """Whether some tokens were estimated from the length of texts."""
    cost_usd: float | None = None
    lost_tokens: int = 0
    """The estimated tokens of replies that are in no journal: requests that failed or were dropped."""
    lost_usd: float | None = None
    wall_s: float | None = None
    """The time from the attempt's first event to its last, except between two processes; None if unknown."""
    model_s: float | None = None
    """The time between requests and their replies."""
    endpoint_wait_s: float | None = None
    """The time between a failed request and the next."""
    worker: str = ""
    """The worker of a cluster that had the job last; empty if none had it."""
    clock_ms: int = 0
    """The milliseconds by which that worker's clock was ahead of this machine's, as far as known."""

    by_tests: bool = False
    """Whether the tests passed, regardless of any review or confirmation."""
    confirmation: str = ""
    """The result of confirming a pass, a `core.attempts.results.Standing`; empty without a pass."""
    unread_calls: bool = False
    """Whether a reply without a call contains one as text."""

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
    def solved(self) -> bool:
        """Whether the job counts as solved."""
        return self.result == AttemptResult.SOLVED

    @property
    def passes(self) -> bool:
        """Whether the job is solved, or may be once its pass is read."""
        return self.solved or self.result == AttemptResult.TO_BE_READ


class Rate(msgspec.Struct, frozen=True):
    """A share, with its Wilson interval at 95 %."""

    share: float
    low: float
    high: float
    count: float
    """The numerator; not an integer if shares of tasks were added."""
    of: int

    @property
    def words(self) -> str:
        """The count and the interval in percent: `3 of 4 [30, 95]`."""
        return f"{self.count:g} of {self.of} [{self.low * 100:.0f}, {self.high * 100:.0f}]"


def rate(count: float, of: int) -> Rate | None:
    """Return the rate `count` / `of`; None if `of` is 0.

    For a mean of shares, one per task, the interval is that of as many binary results: too wide rather
    than too narrow. Repeats of a task do not make it narrower, since they are not independent.
    """
    if of == 0:
        return None
    low, high = wilson(count, of)
    return Rate(count / of, low, high, count, of)


class RepeatFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Rates over the tasks that were attempted `k` times each."""

    k: int
    tasks: int
    """The number of tasks with all repeats; only these are in the rates."""
    incomplete: int
    pass_at_1: Rate | None
    """None, like the other rates, if no task has all repeats."""
    pass_at_k: Rate | None
    """The share of tasks that were solved in at least one repeat; None if no task has all repeats."""
    all_k: Rate | None
    """The share of tasks that were solved in every repeat; None if no task has all repeats."""


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
    """The number of attempts that were given up without a call, perhaps because the server supports none."""
    solved: Rate | None
    to_be_read: int
    """The number of further passes, on which a reviewer has to rule."""
    solved_with_unread: Rate | None
    repeats: RepeatFigures | None
    reasons: dict[str, int]
    calls_per_attempt: float | None
    submissions_per_attempt: float | None
    malformed: Rate | None
    """The rate of malformed calls among all calls; None without a call."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    estimated: bool
    lost_tokens: int
    """The tokens of replies that are in no journal; none of the counts above includes them."""
    cost_usd: float | None
    """The whole cost, including lost replies."""
    wall_s: float
    model_s: float
    endpoint_wait_s: float
    retried: int
    """The number of repeated sends of requests that were finally answered."""
    by_tests: Rate | None = None
    """The rate solved by the tests alone, before any review or confirmation, as in the Breakpoint paper."""
    confirmation: dict[str, int] = {}
    """The number of passes for each result of confirming."""
    unread_calls: int = 0
    """The number of attempts, given up or without any call, in which a reply contains a call as text."""
    misdated: int = 0
    """The number of attempts whose dates come from a wrong clock."""


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
    rows = tuple(_row(state, attempts) for state in run.jobs.values())
    return FiguresOfRun(totals_of(rows), rows)


def _row(state: JobState, attempts: AttemptStore) -> AttemptFigures:
    row = AttemptFigures(
        task=state.job.task,
        repeat=state.job.repeat,
        status=state.status.value,
        attempt=state.attempt,
        reason=state.problem,
        message=state.message,
        lost_tokens=state.lost_tokens,
        lost_usd=state.lost_usd,
        worker=state.worker,
        clock_ms=state.clock_ms,
    )
    if not state.attempt:
        return row
    try:
        summary = attempts.summary(state.attempt)
        events = read_journal(attempts.folder(state.attempt) / JOURNAL).events
    except AttemptError as error:
        return structs.replace(row, reason="unreadable", message=str(error))
    if (summary.state.header.solver or {}).get("job") != state.job.key:
        return structs.replace(
            row, reason="unreadable", message=f"The attempt {state.attempt} does not belong to this job."
        )
    return _with_attempt(row, summary, events)


def _with_attempt(
    row: AttemptFigures, summary: AttemptSummary, events: Iterable[JournalEvent]
) -> AttemptFigures:
    state, spent = summary.state, summary.state.spent
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
        prompt_tokens=spent.usage.prompt_tokens,
        completion_tokens=spent.usage.completion_tokens,
        cached_tokens=spent.usage.cached_tokens,
        reasoning_tokens=spent.usage.reasoning_tokens,
        estimated=spent.usage.estimated,
        cost_usd=spent.usage.cost_usd,
        wall_s=sum(state.clock.of(activity) for activity in ClockActivity) / 1000,
        model_s=sum(turn.latency_ms for turn in state.turns) / 1000,
        endpoint_wait_s=endpoint_wait_ms(events) / 1000,
    )


def endpoint_wait_ms(events: Iterable[JournalEvent]) -> int:
    """Return for how many milliseconds the attempt paused because the endpoint asked to be called later."""
    total, since = 0, None
    for event in events:
        match event.data:
            case Paused(reason=PauseReason.ENDPOINT_WAIT):
                since = event.mono_ms
            case Resumed() if since is not None:
                total, since = total + event.mono_ms - since, None
            case ProcessStarted():
                since = None
    return total


def totals_of(rows: Sequence[AttemptFigures]) -> RunFigures:
    """Return the figures of all rows together."""
    counted = [row for row in rows if row.counted]
    ended = [row for row in rows if row.status == JobStatus.ENDED]

    def total(of: Callable[[AttemptFigures], float | None]) -> float:
        return sum(of(row) or 0 for row in rows)

    def mean(of: Callable[[AttemptFigures], float | None]) -> float | None:
        return fmean(of(row) or 0 for row in counted) if counted else None

    def among_counted(of: Callable[[AttemptFigures], float | None]) -> int:
        return int(sum(of(row) or 0 for row in counted))

    def share(of: Callable[[AttemptFigures], bool]) -> Rate | None:
        return rate(among_counted(of), len(counted))

    return RunFigures(
        jobs=len(rows),
        ended=len(ended),
        left=len(rows) - len(ended),
        counted=len(counted),
        mixed=int(total(lambda row: row.mixed)),
        refused=sum(not row.attempt for row in ended),
        never_called=among_counted(lambda row: row.reason == _SILENT and row.calls == 0),
        solved=share(lambda row: row.solved),
        to_be_read=among_counted(lambda row: row.passes and not row.solved),
        solved_with_unread=share(lambda row: row.passes),
        repeats=repeats_of(rows),
        reasons=_reasons(rows),
        calls_per_attempt=mean(lambda row: row.calls),
        submissions_per_attempt=mean(lambda row: row.submissions),
        malformed=rate(among_counted(lambda row: row.malformed), among_counted(lambda row: row.calls)),
        prompt_tokens=int(total(lambda row: row.prompt_tokens)),
        completion_tokens=int(total(lambda row: row.completion_tokens)),
        cached_tokens=int(total(lambda row: row.cached_tokens)),
        reasoning_tokens=int(total(lambda row: row.reasoning_tokens)),
        estimated=any(row.estimated for row in rows),
        lost_tokens=int(total(lambda row: row.lost_tokens)),
        cost_usd=_cost(rows),
        wall_s=total(lambda row: row.wall_s),
        model_s=total(lambda row: row.model_s),
        endpoint_wait_s=total(lambda row: row.endpoint_wait_s),
        retried=int(total(lambda row: row.retried)),
        by_tests=share(lambda row: row.by_tests),
        confirmation=dict(Counter(row.confirmation for row in counted if row.by_tests)),
        unread_calls=among_counted(
            lambda row: row.unread_calls and (row.reason == _SILENT or row.calls == 0)
        ),
        misdated=int(total(lambda row: bool(row.clock_ms))),
    )


def _reasons(rows: Iterable[AttemptFigures]) -> dict[str, int]:
    """Return the number of jobs, other than mixed ones, for each reason, the most frequent reason first."""
    of_model = (row for row in rows if row.counted or not row.result)
    return dict(Counter(row.reason for row in of_model if row.reason).most_common())


def _cost(rows: Iterable[AttemptFigures]) -> float | None:
    """Return the cost in US dollars, including lost replies; None if no cost is known."""
    costs = [cost for row in rows for cost in (row.cost_usd, row.lost_usd) if cost is not None]
    return sum(costs) if costs else None


def repeats_of(rows: Sequence[AttemptFigures]) -> RepeatFigures | None:
    """Return the rates over tasks; None if no task has more than one job."""
    by_task: dict[str, list[AttemptFigures]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    k = max(map(len, by_task.values()), default=0)
    if k < 2:
        return None
    whole = [
        [row.solved for row in jobs] for jobs in by_task.values() if len(jobs) == k and all_counted(jobs)
    ]
    return RepeatFigures(
        k=k,
        tasks=len(whole),
        incomplete=len(by_task) - len(whole),
        pass_at_1=rate(sum(pass_at(1, solved) for solved in whole), len(whole)),
        pass_at_k=rate(sum(pass_at(k, solved) for solved in whole), len(whole)),
        all_k=rate(sum(all(solved) for solved in whole), len(whole)),
    )


def all_counted(rows: Iterable[AttemptFigures]) -> bool:
    """Whether all rows are in the rates."""
    return all(row.counted for row in rows)


def pass_at(k: int, solved: Sequence[bool]) -> float:
    """Return the probability that at least one of `k` attempts drawn from `solved` is solved.

    This is the unbiased estimate of Chen and others 2021, the paper on Codex, equation 1.
    """
    return 1.0 - comb(len(solved) - sum(solved), k) / comb(len(solved), k)


def _solved(totals: RunFigures) -> dict[str, str]:
    solved = totals.solved.words if totals.solved else "0 of 0"
    if not totals.to_be_read:
        return {"solved": solved}
    lines = {"solved": f"{solved}, {totals.to_be_read} more to be read"}
    if totals.solved_with_unread:
        lines["solved, including those to be read"] = totals.solved_with_unread.words
    return lines


def _by_tests(totals: RunFigures) -> dict[str, str]:
    if totals.by_tests is None or not totals.confirmation:
        return {}
    standings = ", ".join(f"{count} {name}" for name, count in totals.confirmation.items())
    return {"solved by the tests alone": f"{totals.by_tests.words}: {standings}"}


def _repeats(repeats: RepeatFigures | None) -> dict[str, str]:
    if repeats is None:
        return {}
    rates = {
        "pass@1": repeats.pass_at_1,
        f"pass@{repeats.k}": repeats.pass_at_k,
        f"all of {repeats.k}": repeats.all_k,
    }
    lines = {
        name: f"{value.words} tasks" if value else "none of the tasks has all its repeats"
        for name, value in rates.items()
    }
    if repeats.incomplete:
        lines["tasks without all repeats"] = f"{repeats.incomplete}, not included in these"
    return lines


def summary_lines(totals: RunFigures) -> Mapping[str, str]:
    """Return the figures in words for people, by their labels."""
    lines: dict[str, str] = {"jobs": f"{totals.jobs}, {totals.ended} ended, {totals.left} left"}
    lines.update(_solved(totals))
    lines.update(_by_tests(totals))
    lines.update(_repeats(totals.repeats))
    if totals.mixed:
        lines["mixed"] = f"{totals.mixed} by a person and a model, not counted in any rate"
    if totals.refused:
        lines["without an attempt"] = str(totals.refused)
    lines["reasons"] = (
        ", ".join(f"{count} {reason}" for reason, count in totals.reasons.items()) or "none yet"
    )
    if totals.never_called:
        lines["without a call"] = (
            f"{totals.never_called}. `gistpoint show ATTEMPT` prints what the model wrote. If it"
            " wrote calls as text, configure the server for the form in which the model writes calls"
        )
    if totals.unread_calls:
        lines["calls as text"] = (
            f"in the replies of {plural(totals.unread_calls, 'attempt')}, which the server did not take for"
            " calls. `gistpoint agent run --calls text` reads them, in a run of its own"
        )
    if totals.calls_per_attempt is not None and totals.submissions_per_attempt is not None:
        lines["per attempt"] = (
            f"{totals.calls_per_attempt:.1f} calls, {totals.submissions_per_attempt:.1f} submissions"
        )
    if totals.malformed is not None:
        lines["malformed calls"] = f"{totals.malformed.words}"
    about = "about " if totals.estimated else ""
    lines["tokens"] = (
        f"{about}{totals.prompt_tokens:,} sent ({totals.cached_tokens:,} cached), "
        f"{totals.completion_tokens:,} received ({totals.reasoning_tokens:,} reasoning)"
    )
    if totals.lost_tokens:
        lines["lost"] = f"about {totals.lost_tokens:,} tokens in requests without a reply"
    lines["cost"] = "unknown" if totals.cost_usd is None else f"{about}${totals.cost_usd:.4f}"
    lines["time"] = (
        f"{totals.wall_s:.0f} s in attempts: {totals.model_s:.0f} s by the model,"
        f" {totals.endpoint_wait_s:.0f} s waiting to send a request again; {totals.retried} requests sent"
        " again before a reply"
    )
    if totals.misdated:
        lines["dates"] = f"{totals.misdated} attempts on a machine whose clock was wrong (--json: clock_ms)"
    return lines
