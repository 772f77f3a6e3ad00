"""The rows of the home screen: tasks and attempts as cells, with what they are sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gistpoint.core.attempts.identity import PERSON, REPLAY
from gistpoint.core.attempts.state import AttemptResult, Submission, solved_words
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptSummary
from gistpoint.sessions.tasks import BrokenTask
from gistpoint.tui.services import Services
from gistpoint.tui.view_models import duration, end_words, moment

_SIGNS = {AttemptResult.SOLVED: "✔ ", AttemptResult.TO_BE_READ: "? ", AttemptResult.NOT_SOLVED: ""}
TASK_COLUMNS = ("Task", "Mode", "Tests", "Suite", "Budget", "Attempts", "Best", "Last")
ATTEMPT_COLUMNS = (
    "Started", "Task", "Who", "Role", "Result", "Best", "Working", "Last", "Uses", "Mode", "Actor", "Attempt",
)  # fmt: skip
"""Those that matter most first: a narrow terminal shows no more of them than it has room for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its key, its cells as text, and a sort key per cell."""

    key: str
    cells: tuple[str, ...]
    order: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class HomeRows:
    """Everything that the home screen shows."""

    tasks: tuple[Row, ...]
    attempts: tuple[Row, ...]
    unfinished: frozenset[str]
    """Ids of attempts that can be resumed."""
    problems: tuple[str, ...] = ()
    """What could not be read, in sentences."""
    solved: str = ""
    """How many attempts count as solved and how many are to be read, where there are any of these."""


def load_rows(services: Services) -> HomeRows:
    """Read tasks and attempts from the disk; may take a while with many of them."""
    summaries = list(services.attempts.summaries())
    found = list(services.tasks.tasks())
    tasks = {task.id: task for task in found if isinstance(task, Task)}
    problems = [f"{item.folder.name}: {item.problem}" for item in found if isinstance(item, BrokenTask)]
    results = [summary.result for summary in summaries if summary.state.ended]
    problems += [f"Attempt {s.attempt_id}: {s.problem}" for s in summaries if s.problem]
    return HomeRows(
        tasks=tuple(_task_row(task, [s for s in summaries if s.task_id == task.id]) for task in tasks.values()),
        attempts=tuple(_attempt_row(summary, services.clock.utc_ms()) for summary in summaries),
        unfinished=frozenset(
            s.attempt_id for s in summaries if not s.state.ended and not s.problem and s.actor == PERSON
        ),
        problems=tuple(problems),
        solved=solved_words(results) if AttemptResult.TO_BE_READ in results else "",
    )


def arranged(rows: Iterable[Row], words: str, column: int | None, *, reverse: bool = False) -> list[Row]:
    """Return the rows that hold all words, sorted by a column; in their own order where it is None."""
    wanted = words.lower().split()
    kept = [row for row in rows if all(any(word in cell.lower() for cell in row.cells) for word in wanted)]
    if column is None:
        return kept[::-1] if reverse else kept
    return sorted(kept, key=lambda row: row.order[column], reverse=reverse)


def _row(key: str, cells: Sequence[tuple[str, float]]) -> Row:
    return Row(key, tuple(text for text, _ in cells), tuple((number, text.lower()) for text, number in cells))


def _task_row(task: Task, attempts: list[AttemptSummary]) -> Row:
    mode = "several" if task.several else task.mode.value
    tried = [summary for summary in attempts if summary.actor != REPLAY]
    last = _result(tried[0]) if tried else "never tried"
    best = max((s for s in tried if s.state.best is not None), key=_standing, default=None)
    return _row(
        task.id,
        [
            (task.short_id, 0),
            (f"{mode} (demo)" if task.demo else mode, 0),
            (str(task.suite.tests), task.suite.tests),
            (f"{task.suite.seconds:.1f} s", task.suite.seconds),
            (f"{task.budgets.tool_uses}/{task.budgets.submissions}", task.budgets.tool_uses),
            (str(len(tried)), len(tried)),
            (f"{_SIGNS[best.result]}{_score(best.state.best)}", _standing(best)) if best is not None else ("–", -1),
            (last, 0),
        ],
    )


def _attempt_row(summary: AttemptSummary, now_ms: int) -> Row:
    state = summary.state
    used = state.budgets.tool_uses - state.remaining.tool_uses
    return _row(
        summary.attempt_id,
        [
            (moment(summary.started_utc_ms, now_ms=now_ms), summary.started_utc_ms),
            (summary.task_id[:8], 0),
            (summary.participant or summary.actor, 0),
            (summary.role, 0),
            (_result(summary), 0),
            (_score(state.best), _worth(state.best)),
            (duration(state.clock.active), state.clock.active),
            (_score(state.last), _worth(state.last)),
            (f"{used}/{state.budgets.tool_uses}", used),
            (summary.mode, 0),
            (summary.actor, 0),
            (summary.attempt_id, 0),
        ],
    )


def _standing(summary: AttemptSummary) -> float:
    """Return what an attempt's best submission is worth, as far as it counts."""
    best = summary.state.best
    unearned = best is not None and best.solved and summary.result is not AttemptResult.SOLVED
    return _worth(best) - (unearned * (1.5 if summary.result is AttemptResult.NOT_SOLVED else 0.5))


def _worth(submission: Submission | None) -> float:
    return -1 if submission is None else (submission.score or 0) + submission.solved


def _score(submission: Submission | None) -> str:
    return "–" if submission is None else f"{submission.score or 0:.3f}"


def _result(summary: AttemptSummary) -> str:
    if summary.problem:
        return "! damaged"
    ending = summary.state.ending
    if ending is not None:
        return end_words(ending, summary.result)
    if summary.open:
        return "▶ open elsewhere"
    return "‖ paused" if summary.state.pause is not None else "… unfinished"
