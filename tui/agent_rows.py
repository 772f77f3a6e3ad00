"""The table of a run's jobs, with the same columns on the watch screen, during the run and in print."""

from __future__ import annotations

from dataclasses import dataclass, field

from gistpoint.core.attempts.events import PauseReason
from gistpoint.core.attempts.state import NOT_STARTED, AttemptResult, AttemptState, attempt_result
from gistpoint.sessions.agentruns.control import has_person
from gistpoint.sessions.agentruns.store import HANDED_OVER, JobState, JobStatus
from gistpoint.tui import signs
from gistpoint.tui.tables import Column
from gistpoint.tui.view_models import TO_BE_READ


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its number in the run, and the state of its attempt as far as it is known."""

    number: int
    job: JobState
    state: AttemptState = field(default_factory=AttemptState)
    live: bool = False
    """Whether a process is working on the run."""
    title: str = ""
    """The title of the task, for the person who runs the model."""
    sent: bool = False
    """Whether a worker of a cluster has the job."""

    @property
    def begun(self) -> bool:
        """Whether the job has an attempt."""
        return self.state.header is not NOT_STARTED


def _tool(row: JobRow) -> str:
    calls = row.state.calls
    return calls[-1].tool if calls else ""


def _budgets(row: JobRow) -> str:
    if not row.begun:
        return ""
    left = row.state.remaining
    return f"{left.tool_uses}" if row.state.of_kind.hands_in_once else f"{left.tool_uses}/{left.submissions}"


def _tokens(row: JobRow) -> float:
    return float(row.state.spent.usage.tokens)


def _cost(row: JobRow) -> str:
    cost = row.state.spent.usage.cost_usd
    return "" if cost is None else f"${cost:.4f}"


def doing(row: JobRow) -> str:
    """Return the state of a job in a few words."""
    state = row.state
    if state.ending is not None:
        return _ended(state) + (", mixed" if state.mixed else "")
    if row.job.over:
        return _over(row.job)
    if row.sent:
        return "on the cluster"
    if has_person(state):
        return "! taken over by a person"
    if row.job.problem == HANDED_OVER and row.begun:
        return "given back"
    if row.job.status is JobStatus.HALTED:
        return f"! halted: {row.job.problem}"
    if row.job.status is JobStatus.QUEUED:
        return "queued"
    if not row.live:
        return "left"
    if state.pause is not None:
        waits = state.pause.reason == PauseReason.ENDPOINT_WAIT
        return "waiting for the endpoint" if waits else "paused"
    return "tool running" if state.pending is not None else "model working"


def _over(job: JobState) -> str:
    """Return the state of a job that is not continued, without an end in the journal that was read."""
    if job.status is JobStatus.EXCLUDED:
        return f"– excluded: {job.obstacle}"
    return f"– {job.problem} earlier" if job.attempt else f"– {job.problem}"


def _ended(state: AttemptState) -> str:
    match attempt_result(state):
        case AttemptResult.SOLVED:
            return f"{signs.GOOD} solved"
        case AttemptResult.TO_BE_READ:
            return TO_BE_READ
    ending = state.ending
    return (
        "" if ending is None else f"{signs.BAD} {ending.reason}" + (f": {ending.code}" if ending.code else "")
    )


def _style(row: JobRow) -> str:
    words = doing(row)
    return {
        signs.GOOD: "$text-success",
        signs.BAD: "$text-error",
        "?": "$text-warning",
        "!": "$text-warning",
    }.get(words[0], "")


def _number(text: str) -> str:
    return "" if text == "0" else text


COLUMNS: tuple[Column[JobRow], ...] = (
    Column("job", lambda r: str(r.number), lambda r: r.number, width=3, right=True, rank=1),
    Column("task", lambda r: r.title or r.job.job.task[:12], rank=2, least=16),
    Column("no", lambda r: str(r.job.job.repeat), lambda r: r.job.job.repeat, width=3, right=True),
    Column("state", doing, width=24, style=_style, rank=3, least=16),
    Column(
        "turn",
        lambda r: _number(str(len(r.state.turns))),
        lambda r: len(r.state.turns),
        width=4,
        right=True,
        rank=5,
    ),
    Column("tool", _tool, width=19, rank=6, least=10),
    Column("left", _budgets, lambda r: r.state.remaining.tool_uses, width=6, right=True, rank=4),
    Column("tokens", lambda r: _number(f"{_tokens(r):,.0f}"), _tokens, width=8, right=True, rank=7),
    Column("cost", _cost, lambda r: r.state.spent.usage.cost_usd or 0.0, right=True),
    Column("attempt", lambda r: r.job.attempt, least=12),
)
"""The columns. `left` shows the remaining budgets: tool uses and submissions, or steps."""
