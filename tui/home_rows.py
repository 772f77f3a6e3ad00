"""The rows and columns of the home screen: tasks with the user's own attempts, and all attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.attempts.results import AttemptResult
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.locations import Locations
from gistpoint.core.readable import duration, when
from gistpoint.sessions.attempt_summary import ListedAttempt, ListedScore
from gistpoint.sessions.task_documents import ListedTask
from gistpoint.tui import signs
from gistpoint.tui.attempt_charts import score_cell
from gistpoint.tui.tables import Column
from gistpoint.tui.view_models import end_words, used_of

SOLVED, TO_READ, PAUSED, OPEN, FAILED, DAMAGED, NEW = (
    signs.GOOD,
    "?",
    signs.PAUSED,
    signs.FORWARD,
    signs.BAD,
    "!",
    "·",
)
"""The symbols for attempts and tasks, which differ in shape."""
STYLES: Mapping[str, str] = {
    SOLVED: "$text-success",
    TO_READ: "$text-warning",
    PAUSED: "$text-warning",
    OPEN: "$text-warning",
    FAILED: "$text-error",
    DAMAGED: "$text-error",
    NEW: "$foreground 60%",
}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task with the user's own attempts, newest first. A played recording is not one of them."""

    task: ListedTask
    title: str
    mine: tuple[ListedAttempt, ...] = ()
    others: int = 0
    """The number of other attempts: of models, of other participants, and played ones."""
    shipped: bool = False
    """Whether the task belongs to the demo, whose attempts never count."""
    best: ListedAttempt | None = None
    cells: dict[str, str] = field(default_factory=dict, compare=False)
    """The text of each cell by the name of its column and, under `name?`, the text for queries.

    It is made when it is first needed (decision 219).
    """

    @property
    def key(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def last(self) -> ListedAttempt | None:
        """The newest of the user's attempts; None if there is none."""
        return self.mine[0] if self.mine else None

    @property
    def charted(self) -> ListedAttempt | None:
        """The newest of the user's attempts with a submission; None if there is none."""
        return next((attempt for attempt in self.mine if attempt.last_score is not None), None)

    @property
    def unfinished(self) -> ListedAttempt | None:
        """The newest of the user's attempts that can be resumed; None if there is none."""
        return next((attempt for attempt in self.mine if can_resume(attempt)), None)

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def opens(self) -> str:
        """The id of the attempt that Enter opens; empty if Enter begins one."""
        return "" if self.last is None else self.last.attempt_id

    @property
    def readable(self) -> tuple[ListedAttempt, ...]:
        """The user's attempts that can't be resumed, so only their records can be opened; newest first."""
        return tuple(attempt for attempt in self.mine if not can_resume(attempt))

    @property
    def sign(self) -> str:
        """The symbol for the best result or state of the user's attempts; `NEW` if there are none."""
        found = {sign_of(attempt) for attempt in self.mine}
        return next((sign for sign in (SOLVED, TO_READ, OPEN, PAUSED, FAILED, DAMAGED) if sign in found), NEW)


class AttemptEntry(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An attempt of anybody, with the time, in milliseconds, at which the row was made."""

    attempt: ListedAttempt
    now_ms: int
    title: str
    """The title of the task."""
    task: ListedTask | None = None
    """The task; None if it no longer exists."""
    mine: bool = False
    """Whether the attempt is by the person at the keyboard."""
    cells: dict[str, str] = msgspec.field(default_factory=dict)
    """As in `TaskRow`. Structs take a tenth of the time of dataclasses, and there may be 100,000."""

    @property
    def key(self) -> str:
        """The id of the attempt."""
        return self.attempt.attempt_id

    @property
    def opens(self) -> str:
        """The id of the attempt, which Enter opens."""
        return self.key

    @property
    def task_id(self) -> str:
        """The id of the task; empty if it no longer exists."""
        return "" if self.task is None else self.task.id

    @property
    def unfinished(self) -> ListedAttempt | None:
        """The attempt if it can be resumed; otherwise None."""
        return self.attempt if can_resume(self.attempt) else None

    @property
    def readable(self) -> tuple[ListedAttempt, ...]:
        """The attempt if its record may be opened, since it can't be resumed; otherwise empty."""
        return () if can_resume(self.attempt) else (self.attempt,)


@dataclass(frozen=True, slots=True)
class HomeRows:
    """The content of the home screen."""

    tasks: tuple[TaskRow, ...] = ()
    attempts: tuple[AttemptEntry, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences on what could not be read."""
    words: str = ""
    """A label with the number of tasks and the number of solved tasks; empty if there are no tasks."""
    solved: str = ""
    """A label for the attempts that count as solved; empty if it would only repeat the tests' verdicts."""
    complete: bool = True
    """Whether all attempts have been loaded."""
    toured: bool = False
    """Whether the tour was ever started."""


def tour_marker(locations: Locations) -> Path:
    """Return the path of the file that exists once the tour was started."""
    return locations.data / "toured"


def remember_tour(locations: Locations) -> None:
    """Record that the tour was started, so that home need not suggest it any more."""
    locations.data.mkdir(parents=True, exist_ok=True)
    tour_marker(locations).touch()


# Text of rows


def can_resume(attempt: ListedAttempt) -> bool:
    """Return whether a person can resume an attempt."""
    return not attempt.end and not attempt.problem and attempt.begun_by == PERSON


def sign_of(attempt: ListedAttempt) -> str:
    """Return the symbol for the state of an attempt."""
    if attempt.problem:
        return DAMAGED
    if attempt.withheld and attempt.end:
        return NEW
    if not attempt.end:
        return OPEN if attempt.open else PAUSED
    known = {AttemptResult.SOLVED: SOLVED, AttemptResult.TO_BE_READ: TO_READ}
    return known.get(attempt.result, FAILED)


def standing_words(attempt: ListedAttempt) -> str:
    """Return the state of an attempt as a label that begins with its symbol."""
    return (
        f"{_standing_words(attempt)}, branch of {attempt.branch}"
        if attempt.branch
        else _standing_words(attempt)
    )


def _standing_words(attempt: ListedAttempt) -> str:
    if attempt.problem:
        return "! damaged"
    if attempt.end and attempt.withheld:
        return f"{NEW} {attempt.end}"
    if attempt.end:
        return end_words(attempt.end, attempt.result)
    return (
        f"{signs.FORWARD} open elsewhere"
        if attempt.open
        else f"{signs.PAUSED} paused"
        if attempt.paused
        else f"{signs.PAUSED} unfinished"
    )


def used_words(attempt: ListedAttempt) -> str:
    """Return the used part of an attempt's budget of calls, in words."""
    return used_of(attempt.used, attempt.tool_uses)


def unit_of(task: ListedTask) -> str:
    """Return the unit of a task's budget for calls, in the singular."""
    return blank_state(task.mode).unit


def budget_words(task: ListedTask) -> str:
    """Return the budgets of a task in words, with its time limit if it has one."""
    budgets, state = task.budgets, blank_state(task.mode)
    words = f"{budgets.tool_uses} {state.unit}s"
    if not state.hands_in_once:
        words += f", {budgets.submissions} submission{'' if budgets.submissions == 1 else 's'}"
    return (
        f"{words}, {duration(budgets.time_limit_s * 1000)} of working time" if budgets.time_limit_s else words
    )


def rank_of(attempt: ListedAttempt) -> float:
    """Return a number by which attempts are ranked.

    It is the best score, with 1 added for a pass, and lowered if the pass doesn't count; -1 without a
    submission.
    """
    best = attempt.best_score
    unearned = best is not None and best.solved and attempt.result is not AttemptResult.SOLVED
    return _worth(best) - (unearned * (1.5 if attempt.result is AttemptResult.NOT_SOLVED else 0.5))


def _worth(score: ListedScore | None) -> float:
    return -1 if score is None else (score.score or 0) + score.solved


def _number(score: ListedScore | None) -> float:
    return -1 if score is None else score.score or 0


def _best(row: TaskRow) -> str:
    return "–" if row.best is None else score_cell(row.best.best_score)


def _last(row: TaskRow) -> str:
    if row.last is None:
        return ""
    return f"{sign_of(row.last)} {score_cell(row.last.last_score)}"


def _result(attempt: ListedAttempt) -> str:
    words = _standing_words(attempt)[2:]
    words = "used up" if words.endswith("used up") else words
    return f"{words}, branch" if attempt.branch else words


AnyRow = TypeVar("AnyRow", TaskRow, AttemptEntry)


def _column(
    name: str,
    shown: Callable[[AnyRow], str],
    value: Any = None,
    *,
    text: Callable[[AnyRow], str] | None = None,
    **more: Any,
) -> Column[AnyRow]:
    """Return a column whose text is made once for each row."""

    def made_once(key: str, make: Callable[[AnyRow], str]) -> Callable[[AnyRow], str]:
        def cell(row: AnyRow) -> str:
            found = row.cells.get(key)
            if found is None:
                found = row.cells[key] = make(row)
            return found

        return cell

    return Column(
        name, made_once(name, shown), value, text=made_once(f"{name}?", text) if text else None, **more
    )


def who(entry: AttemptEntry) -> str:
    """Return who made an attempt: you, the participant, the model, or the kind of actor."""
    attempt = entry.attempt
    return "you" if entry.mine else attempt.participant or attempt.model or attempt.begun_by


TASK_COLUMNS: tuple[Column[TaskRow], ...] = (
    _column(
        "",
        lambda r: r.sign,
        width=1,
        style=lambda r: STYLES[r.sign],
        rank=1,
        text=lambda r: "",
        words={
            "solved": lambda r: r.sign == SOLVED,
            "unfinished": lambda r: r.unfinished is not None,
            "new": lambda r: not r.mine,
        },
    ),
    _column("Task", lambda r: r.title, rank=2, least=16, text=lambda r: _searched(r.task, r.title)),
    _column("Mode", lambda r: r.task.shown_mode, rank=6, style=lambda r: "$foreground 60%"),
    _column(
        "Best",
        _best,
        lambda r: _number(r.best.best_score) if r.best is not None else -1,
        sort=lambda r: rank_of(r.best) if r.best is not None else -1,
        rank=3,
        right=True,
    ),
    _column(
        "Last",
        _last,
        lambda r: _number(r.last.last_score) if r.last is not None else -1,
        rank=4,
        style=lambda r: STYLES[sign_of(r.last)] if r.last is not None else "",
        text=lambda r: standing_words(r.last) if r.last is not None else "never tried",
    ),
    _column(
        "Time",
        lambda r: duration(r.last.active_ms) if r.last is not None else "–",
        lambda r: r.last.active_ms / 1000 if r.last is not None else 0,
        rank=5,
        right=True,
    ),
    _column("Tests", lambda r: str(r.task.tests), lambda r: r.task.tests, right=True),
    _column("Suite", lambda r: f"{r.task.seconds:.1f} s", lambda r: r.task.seconds, right=True),
    _column("Budget", lambda r: budget_words(r.task), lambda r: r.task.budgets.tool_uses),
    _column("Attempts", lambda r: str(len(r.mine)), lambda r: len(r.mine), right=True),
)
"""The columns for tasks."""


def _searched(task: ListedTask, title: str) -> str:
    """Return the text in which a filter searches for a task, as in `searched_words`."""
    return f"{title} {task.name} {task.id}"


def _attempt_words(entry: AttemptEntry) -> str:
    """Return the text in which a filter searches for an attempt."""
    about = entry.attempt.task_id if entry.task is None else _searched(entry.task, entry.title)
    return f"{about} {entry.key}"


ATTEMPT_COLUMNS: tuple[Column[AttemptEntry], ...] = (
    _column(
        "",
        lambda r: sign_of(r.attempt),
        width=1,
        rank=1,
        style=lambda r: STYLES[sign_of(r.attempt)],
        text=lambda r: "",
        words={
            "solved": lambda r: sign_of(r.attempt) == SOLVED,
            "unfinished": lambda r: can_resume(r.attempt),
        },
    ),
    _column(
        "Started",
        lambda r: when(r.attempt.started_utc_ms, r.now_ms),
        sort=lambda r: r.attempt.started_utc_ms,
        rank=2,
    ),
    _column("Task", lambda r: r.title, text=lambda r: _attempt_words(r), rank=3, least=16),
    _column("Who", who, rank=4, least=12),
    _column(
        "Best",
        lambda r: score_cell(r.attempt.best_score),
        lambda r: _number(r.attempt.best_score),
        sort=lambda r: _worth(r.attempt.best_score),
        right=True,
        rank=5,
    ),
    _column(
        "Time",
        lambda r: duration(r.attempt.active_ms),
        lambda r: r.attempt.active_ms / 1000,
        right=True,
        rank=6,
    ),
    _column(
        "Result",
        lambda r: _result(r.attempt),
        style=lambda r: STYLES[sign_of(r.attempt)],
        text=lambda r: standing_words(r.attempt),
        rank=7,
        least=12,
    ),
    _column("Role", lambda r: r.attempt.role),
    _column(
        "Last",
        lambda r: score_cell(r.attempt.last_score),
        lambda r: _number(r.attempt.last_score),
        sort=lambda r: _worth(r.attempt.last_score),
        right=True,
    ),
    _column(
        "Used",
        lambda r: used_words(r.attempt),
        lambda r: r.attempt.used,
    ),
    _column("Mode", lambda r: r.attempt.mode if r.task is None else r.task.shown_mode),
    _column("Actor", lambda r: r.attempt.begun_by),
)
"""The columns for attempts, most important first."""
