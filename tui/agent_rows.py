"""The rows of a run's jobs, for screens, the progress display and printed lists, and the text of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.readable import duration
from gistpoint.core.text import plural, shortened
from gistpoint.sessions.agentruns.jobs import HANDED_OVER, JobState, JobStatus
from gistpoint.sessions.agentruns.shown_attempts import NOT_BEGUN, PassedTests, ShownAttempt
from gistpoint.tui import signs
from gistpoint.tui.tables import Column
from gistpoint.tui.view_models import END_WORDS, TO_BE_READ, typed_form
from gistpoint.tui.widgets.charts import gauge

_GAUGE_WIDTH = 6
"""The width, in cells, of the gauge of passed tests in the table."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job, its number in the run, and a snapshot of its attempt."""

    number: int
    job: JobState
    shown: ShownAttempt = NOT_BEGUN
    live: bool = False
    """Whether a process is working on the run."""
    title: str = ""
    """The title of the task, for the user who runs the model."""
    sent: bool = False
    """Whether a worker of a cluster has the job."""

    @property
    def begun(self) -> bool:
        """Whether the attempt of the job has begun."""
        return self.shown.begun

    @property
    def at_work(self) -> bool:
        """Whether the job's attempt is in progress."""
        return self.live and self.job.status is JobStatus.BEGUN and self.shown.ending is None

    @property
    def halted(self) -> bool:
        """Whether the job has halted for a reason other than a person taking over its attempt."""
        return self.job.status is JobStatus.HALTED and self.job.problem != HANDED_OVER


def _budgets(row: JobRow) -> str:
    if not row.begun:
        return ""
    left = row.shown.remaining
    return f"{left.tool_uses}" if row.shown.hands_in_once else f"{left.tool_uses}/{left.submissions}"


def _tokens(row: JobRow) -> float:
    return float(row.shown.usage.tokens)


def cost_words(shown: ShownAttempt) -> str:
    """Return the cost of an attempt's replies in US dollars; empty if it is unknown."""
    cost = shown.usage.cost_usd
    return "" if cost is None else f"${cost:.4f}"


def _tests(row: JobRow) -> str:
    tests = row.shown.tests
    return f"{tests_gauge(tests, _GAUGE_WIDTH)} {tests.passed}/{tests.of}" if tests is not None else ""


def tests_gauge(tests: PassedTests, width: int) -> str:
    """Return a bar of `width` cells for passed tests, which is full only if all have passed."""
    return gauge(tests.passed * width // tests.of, width, width)


def _time(row: JobRow) -> str:
    """Return the time spent on an attempt; empty before it begins and while it is in progress.

    A running time would need a redraw every second.
    """
    return duration(row.shown.spent_ms()) if row.begun and not row.at_work else ""


def _primary(row: JobRow) -> str:
    return "$primary"


_UNBOUNDED = 10_000
_LONGEST_PROBLEM = 40


def state_words(row: JobRow) -> str:
    """Return the state of a job in a few words."""
    shown = row.shown
    if shown.ending is not None:
        return _ending_words(shown) + (", mixed" if shown.mixed else "")
    if row.job.over:
        return _decided_words(row.job)
    if row.sent:
        return "on the cluster"
    if shown.has_person:
        return "! taken over by a person"
    if row.job.problem == HANDED_OVER and row.begun:
        return "given back"
    if row.job.status is JobStatus.HALTED:
        return f"! halted: {row.job.problem}"
    if row.job.status is JobStatus.QUEUED:
        return "queued"
    if not row.live:
        return "left"
    if shown.paused:
        return "waiting for the endpoint" if shown.waits else "paused"
    return "tool running" if shown.pending else "model working"


def _decided_words(job: JobState) -> str:
    """Return the state of a job that was excluded or has ended, if its journal records no end."""
    if job.status is JobStatus.EXCLUDED:
        return f"– excluded: {job.obstacle}"
    return f"– {job.problem} earlier" if job.attempt else f"– {job.problem}"


def job_sentence(row: JobRow, run: str, room: int = _UNBOUNDED) -> str:
    """Return a sentence on the result of a job or on the next step, for the user who watches the run.

    If the sentence on a halted job is longer than `room` characters, it names only one command, and the
    middle of the job's message is left out.
    """
    status, shown = row.job.status, row.shown
    if row.halted:
        first = f"Job {row.number} has halted ({row.job.problem[:_LONGEST_PROBLEM]}). "
        last = f" `gistpoint agent resume {run}` tries again."
        message = row.job.message or _NO_MESSAGE
        either = f"{first}{message}{last[:-1]}, `gistpoint agent settle {run}` decides."
        if len(either) <= room:
            return either
        left = max(_LONGEST_PROBLEM, room - len(first) - len(last))
        return f"{first}{shortened(message, left)}{last}"
    if shown.ending is not None:
        words = [END_WORDS.get(shown.ending.reason, shown.ending.reason)]
        if shown.ending.code:
            words[0] += f" ({shown.ending.code.replace('_', ' ')})"
        words += [shown.tests.words] if shown.tests is not None else [shown.score] if shown.score else []
        words += [plural(shown.turns, "turn"), plural(shown.calls, "call")]
        return f"Job {row.number}: {', '.join(words)}. `gistpoint review {row.job.attempt[:12]}` opens it."
    if status is JobStatus.EXCLUDED:
        undo = f"`gistpoint agent settle {run} --undo` takes that back."
        return f"Job {row.number} is excluded ({row.job.obstacle}). {undo}"
    if status is JobStatus.ENDED:
        return f"Job {row.number} can't be attempted ({row.job.problem}). {row.job.message}".rstrip()
    if status is JobStatus.QUEUED:
        return f"Job {row.number} waits for a free place." if row.live else f"Job {row.number} has not begun."
    if not row.live and not shown.has_person:
        return f"Job {row.number} was interrupted. `gistpoint agent resume {run}` continues it."
    return f"Job {row.number}: {state_words(row).removeprefix('! ')}. Enter watches it."


_NO_MESSAGE = "No reason was recorded."


# Tiles


def budget_words(shown: ShownAttempt) -> list[str]:
    """Return the turn and the remaining budgets in words, in forms of decreasing length."""
    left, whole = shown.remaining, shown.budgets
    turn = f"turn {shown.turns}"
    uses = f"{left.tool_uses} of {plural(whole.tool_uses, shown.unit)}"
    if shown.hands_in_once:
        return [f"{turn} · {uses} left", f"{turn} · left {left.tool_uses}"]
    submissions = f"{left.submissions} of {plural(whole.submissions, 'submission')}"
    short = f"{plural(left.tool_uses, shown.unit)}, {plural(left.submissions, 'submission')} left"
    return [
        f"{turn} · {uses} and {submissions} left",
        f"{turn} · {short}",
        f"{turn} · left {left.tool_uses}/{left.submissions}",
    ]


def call_line(shown: ShownAttempt) -> str:
    """Return the last call as it could be typed, after a sign for running, refused or answered.

    Returns "no call yet" if there is none.
    """
    call = shown.last
    if call is None:
        return "no call yet"
    mark = "…" if shown.pending else signs.BAD if call.refused else signs.LEADS
    bounded = {name: _short(value) for name, value in call.arguments.items()}
    return f"{mark} {typed_form(replace(call, arguments=bounded))}"


def _short(value: object) -> str:
    return value[:_LONGEST] if isinstance(value, str) else str(value)[:_LONGEST]


_LONGEST = 300
"""The maximum number of an argument's characters in a line; no terminal is wider."""


def result_bar(shown: ShownAttempt, width: int) -> tuple[str, str]:
    """Return a bar for the tests of the last submission, and a label; together they fill `width` cells.

    The bar is empty if no tests were counted.
    """
    if shown.tests is not None:
        words = f" {shown.tests.words}"
        return tests_gauge(shown.tests, max(0, width - len(words))), words
    if not shown.submissions:
        return "", "no submission yet"
    return "", shown.score if shown.status == "finished" else shown.status.replace("_", " ")


def _ending_words(state: ShownAttempt) -> str:
    match state.result:
        case AttemptResult.SOLVED:
            return f"{signs.GOOD} solved"
        case AttemptResult.TO_BE_READ:
            return TO_BE_READ
    ending = state.ending
    return (
        "" if ending is None else f"{signs.BAD} {ending.reason}" + (f": {ending.code}" if ending.code else "")
    )


_STYLES: Mapping[str, str] = {
    signs.GOOD: "$text-success",
    signs.BAD: "$text-error",
    "?": "$text-warning",
    "!": "$text-warning",
}


def state_style(row: JobRow) -> str:
    """Return the style of a job's state, which depends on its first sign; empty if there is no sign."""
    return _STYLES.get(state_words(row)[:1], "")


def _number(text: str) -> str:
    return "" if text == "0" else text


COLUMNS: tuple[Column[JobRow], ...] = (
    Column("job", lambda r: str(r.number), lambda r: r.number, width=3, right=True, rank=1),
    Column("task", lambda r: r.title or r.job.job.task[:12], rank=2, least=16),
    Column("no", lambda r: str(r.job.job.repeat), lambda r: r.job.job.repeat, width=2, right=True, rank=4),
    Column("state", state_words, width=24, style=state_style, rank=3, least=16),
    Column(
        "turn",
        lambda r: _number(str(r.shown.turns)),
        lambda r: r.shown.turns,
        width=4,
        right=True,
        rank=8,
    ),
    Column("tool", lambda r: r.shown.tool, width=19, least=10),
    Column(
        "tests", _tests, lambda r: r.shown.tests.passed if r.shown.tests else None, style=_primary, rank=5
    ),
    Column("left", _budgets, lambda r: r.shown.remaining.tool_uses, width=6, right=True, rank=6),
    Column("tokens", lambda r: _number(f"{_tokens(r):,.0f}"), _tokens, width=8, right=True),
    Column(
        "cost", lambda r: cost_words(r.shown), lambda r: r.shown.usage.cost_usd or 0.0, right=True, rank=7
    ),
    Column("time", _time, lambda r: r.shown.spent_ms() / 1000, right=True),
    Column("attempt", lambda r: r.job.attempt, least=12),
)
"""The columns. `left` shows the remaining budgets: tool uses and submissions, or steps."""
