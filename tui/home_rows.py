"""The rows and columns of the home screen: tasks with the user's own attempts, and all attempts."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.attempts.results import by_tests_words
from gistpoint.core.attempts.state import AttemptResult, Standing, Submission, solved_words
from gistpoint.core.kinds.confirming import standing
from gistpoint.core.kinds.folder import target_names
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.kinds.titles import answer_title, author_title, searched_words
from gistpoint.core.locations import Locations
from gistpoint.core.readable import duration, when
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.services import Services, is_our_demo
from gistpoint.sessions.tasks import BrokenTask
from gistpoint.tui import signs
from gistpoint.tui.attempt_charts import score_cell
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words
from gistpoint.tui.view_models import end_words, used_words

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
_FIRST_S, _OFTEN_S = 0.1, 2.0
"""Seconds until loaded rows are shown for the first time, and between later updates."""
_COST = 5
"""The least ratio of the time between two updates to the time that an update takes."""
_MANY = 500
"""The number of new attempts from which garbage collection would noticeably delay the keyboard."""
_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class HomeRow:
    """A row of a list on the home screen.

    The text of its cells is made once: for a task before the row is shown, and for an attempt, which is
    listed only on request, after all rows have been loaded or when it is first needed.
    """

    cells: dict[str, str] = field(default_factory=dict, compare=False, kw_only=True)
    """The text of each cell by the name of its column and, under `name?`, the text for queries."""


@dataclass(frozen=True, slots=True)
class TaskRow(HomeRow):
    """A task with the user's own attempts, newest first. A played recording is not one of them."""

    task: Task
    title: str
    mine: tuple[AttemptSummary, ...] = ()
    others: int = 0
    """The number of other attempts: of models, of other participants, and played ones."""
    shipped: bool = False
    """Whether the task belongs to the demo, whose attempts never count."""
    best: AttemptSummary | None = None

    @property
    def key(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def last(self) -> AttemptSummary | None:
        """The newest of the user's attempts; None if there is none."""
        return self.mine[0] if self.mine else None

    @property
    def unfinished(self) -> AttemptSummary | None:
        """The newest of the user's attempts that can be resumed; None if there is none."""
        return next((summary for summary in self.mine if can_go_on(summary)), None)

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def opens(self) -> str:
        """The id of the attempt that Enter opens; empty if Enter begins one."""
        return "" if self.last is None else self.last.attempt_id

    @property
    def readable(self) -> tuple[AttemptSummary, ...]:
        """The user's attempts that can't be resumed, so only their records can be opened; newest first."""
        return tuple(summary for summary in self.mine if not can_go_on(summary))

    @property
    def sign(self) -> str:
        """The symbol for the best result or state of the user's attempts; `NEW` if there are none."""
        found = {sign_of(summary) for summary in self.mine}
        return next((sign for sign in (SOLVED, TO_READ, OPEN, PAUSED, FAILED, DAMAGED) if sign in found), NEW)


@dataclass(frozen=True, slots=True)
class AttemptEntry(HomeRow):
    """An attempt of anybody, with the time, in milliseconds, at which the row was made."""

    attempt: AttemptSummary
    now_ms: int
    title: str
    """The title of the task."""
    task: Task | None = None
    """The task; None if it no longer exists."""
    mine: bool = False
    """Whether the attempt is by the person at the keyboard."""

    @property
    def key(self) -> str:
        """The id of the attempt."""
        return self.attempt.attempt_id

    opens = key

    @property
    def task_id(self) -> str:
        """The id of the task; empty if it no longer exists."""
        return "" if self.task is None else self.task.id

    @property
    def unfinished(self) -> AttemptSummary | None:
        """The attempt if it can be resumed; otherwise None."""
        return self.attempt if can_go_on(self.attempt) else None

    @property
    def readable(self) -> tuple[AttemptSummary, ...]:
        """The attempt if its record may be opened, since it can't be resumed; otherwise empty."""
        return () if can_go_on(self.attempt) else (self.attempt,)


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


def load_rows(services: Services) -> HomeRows:
    """Return all tasks and attempts, read from disk."""
    return HomeReader(services).read()


def _toured(locations: Locations) -> Path:
    return locations.data / "toured"


def remember_tour(locations: Locations) -> None:
    """Record that the tour was started, so that home need not suggest it any more."""
    locations.data.mkdir(parents=True, exist_ok=True)
    _toured(locations).touch()


def _solved(summaries: Iterable[AttemptSummary]) -> str:
    """Return how many attempts count as solved; empty if this does not differ from the tests' verdicts."""
    known = [summary for summary in summaries if summary.state.ended and not summary.withheld]
    results = [summary.result for summary in known]
    standings = [None if summary.problem else standing(summary.state) for summary in known]
    only_tests = {None, Standing.NOT_ASKED, Standing.EXEMPT}
    if AttemptResult.TO_BE_READ not in results and only_tests.issuperset(standings):
        return ""
    return "; ".join(filter(None, [solved_words(results), by_tests_words(standings)]))


def _words(count: int, rows: Sequence[TaskRow]) -> str:
    if not count:
        return ""
    solved = sum(row.sign == SOLVED for row in rows)
    return f"{count} task{'' if count == 1 else 's'}{f', {solved} solved' if solved else ''}"


_FUNCTIONS: dict[str, tuple[str, ...]] = {}
"""The functions of tasks that the user has attempted to the end, by the task's id.

An id identifies the content, so entries never change.
"""


class HomeReader:
    """A loader of tasks and attempts, used in one thread at a time. Unchanged rows stay the same objects."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._problems: list[str] = []
        self._tasks: dict[str, Task] = {}
        self._titles: dict[str, str] = {}
        self._summaries: dict[str, AttemptSummary] = {}
        """The attempts by their ids, newest first."""
        self._tried: dict[str, dict[str, AttemptSummary]] = {}
        """The attempts at each task, by their ids."""
        self._rows: dict[str, tuple[list[AttemptSummary], TaskRow]] = {}
        """The row of each task, with the attempts from which it was made."""
        self._entries: dict[str, AttemptEntry] = {}
        self._frozen = 0
        """The number of attempts that garbage collection skips."""
        self._hour = 0
        """The hour in which rows were made: labels such as "today" expire."""

    def read(
        self, given: Callable[[HomeRows], object] | None = None, check: Callable[[], object] = lambda: None
    ) -> HomeRows:
        """Load and return all rows. With thousands of attempts that were never loaded, this takes a while.

        `given` is called with the first tasks, then every few seconds with the rows loaded so far, and with
        all rows before the cells of the attempts are made. `check` is called before those of each attempt,
        and may end the loading with an error.
        """
        self._problems, self._tasks, self._summaries = [], {}, {}
        self._tried = defaultdict(dict)
        due = monotonic() + _FIRST_S

        def give(*, at_once: bool = False) -> None:
            nonlocal due
            if given is not None and (at_once or monotonic() > due):
                begun = monotonic()
                given(self._shown(complete=False))
                due = monotonic() + max(_OFTEN_S, _COST * (monotonic() - begun))

        for item in self._services.tasks.tasks():
            if isinstance(item, BrokenTask):
                self._problems.append(f"{item.folder.name}: {item.problem}")
                continue
            self._tasks[item.id] = item
            self._titles.setdefault(item.id, author_title(item))
            give()
        give(at_once=True)
        for summary in self._services.attempts.outlines():
            self._add(summary)
            give()
            if len(self._summaries) > self._frozen + _MANY:
                self._frozen = len(self._summaries)
                # Otherwise, the collector would scan all attempts repeatedly, and delay the keyboard
                # (decision 101).
                gc.freeze()
        rows = self._shown(complete=True)
        # Nobody sees the cells of attempts yet (decision 186).
        if given is not None:
            given(rows)
        for entry in rows.attempts:
            check()
            _filled(entry, ATTEMPT_COLUMNS)
        return rows

    def read_again(self, attempt_ids: Sequence[str]) -> HomeRows | None:
        """Load some attempts again, and return all rows; None if nothing has changed."""
        found = self._services.attempts.outlines_of(attempt_ids)
        changed = [summary for summary in found if self._summaries.get(summary.attempt_id) is not summary]
        for summary in changed:
            self._add(summary)
        return self._shown(complete=True) if changed else None

    def _add(self, summary: AttemptSummary) -> None:
        """Add an attempt. If it is the user's own and has ended, its task's title shows the function."""
        self._summaries[summary.attempt_id] = summary
        self._tried[summary.task_id][summary.attempt_id] = summary
        task = self._tasks.get(summary.task_id)
        if task is not None and summary.state.ended and self._is_mine(summary):
            if task.id not in _FUNCTIONS:
                _FUNCTIONS[task.id] = target_names(task)
            self._titles[task.id] = answer_title(task, _FUNCTIONS[task.id])

    def _shown(self, *, complete: bool) -> HomeRows:
        """Return the rows as far as they are loaded."""
        now_ms = self._services.clock.utc_ms()
        if now_ms // _HOUR_MS != self._hour:
            self._hour = now_ms // _HOUR_MS
            self._entries.clear()
        tasks = tuple(map(self._row, self._tasks.values()))
        summaries = self._summaries.values()
        attempts = tuple(self._entry(summary, now_ms) for summary in summaries)
        damaged = tuple(f"Attempt {s.attempt_id}: {s.problem}" for s in summaries if s.problem)
        return HomeRows(
            tasks,
            attempts,
            (*self._problems, *damaged),
            _words(len(tasks), tasks),
            _solved(summaries) if complete else "",
            complete=complete,
            toured=_toured(self._services.locations).exists(),
        )

    def _is_mine(self, summary: AttemptSummary) -> bool:
        return summary.is_of(self._services.enrolment.participant or "")

    def _row(self, task: Task) -> TaskRow:
        """Return the row of a task, made again only if it has changed."""
        tried, title = list(self._tried[task.id].values()), self._titles[task.id]
        known, row = self._rows.get(task.id, ([], None))
        same = len(known) == len(tried) and all(map(is_, known, tried))
        if row is not None and row.task is task and row.title == title and same:
            return row
        mine = tuple(summary for summary in tried if self._is_mine(summary))
        best = max((s for s in mine if s.state.best is not None), key=_standing, default=None)
        shipped = is_our_demo(task, self._services.locations)
        row = _filled(TaskRow(task, title, mine, len(tried) - len(mine), shipped, best), TASK_COLUMNS)
        self._rows[task.id] = (tried, row)
        return row

    def _entry(self, summary: AttemptSummary, now_ms: int) -> AttemptEntry:
        """Return the row of an attempt, made again only if it has changed."""
        task = self._tasks.get(summary.task_id)
        title = summary.task_id[:12] if task is None else self._titles[task.id]
        known = self._entries.get(summary.attempt_id)
        if known is not None and known.attempt is summary and known.title == title and known.task is task:
            return known
        entry = AttemptEntry(summary, now_ms, title, task, self._is_mine(summary))
        self._entries[summary.attempt_id] = entry
        return entry


# Text of rows


def can_go_on(summary: AttemptSummary) -> bool:
    """Return whether a person can resume an attempt."""
    return not summary.state.ended and not summary.problem and summary.actor == PERSON


def sign_of(summary: AttemptSummary) -> str:
    """Return the symbol for the state of an attempt."""
    if summary.problem:
        return DAMAGED
    if summary.withheld and summary.state.ended:
        return NEW
    if not summary.state.ended:
        return OPEN if summary.open else PAUSED
    known = {AttemptResult.SOLVED: SOLVED, AttemptResult.TO_BE_READ: TO_READ}
    return known.get(summary.result, FAILED)


def standing_words(summary: AttemptSummary) -> str:
    """Return the state of an attempt as a label that begins with its symbol."""
    return (
        f"{_standing_words(summary)}, branch of {summary.branch}"
        if summary.branch
        else _standing_words(summary)
    )


def _standing_words(summary: AttemptSummary) -> str:
    if summary.problem:
        return "! damaged"
    ending = summary.state.ending
    if ending is not None and summary.withheld:
        return f"{NEW} {ending.reason}"
    if ending is not None:
        return end_words(ending, summary.result)
    return (
        f"{signs.FORWARD} open elsewhere"
        if summary.open
        else f"{signs.PAUSED} paused"
        if summary.state.pause is not None
        else f"{signs.PAUSED} unfinished"
    )


def unit_of(task: Task) -> str:
    """Return the unit of a task's budget for calls, in the singular."""
    return blank_state(task.mode).unit


def budget_words(task: Task) -> str:
    """Return the budgets of a task in words, with its time limit if it has one."""
    budgets, state = task.budgets, blank_state(task.mode)
    words = f"{budgets.tool_uses} {state.unit}s"
    if not state.hands_in_once:
        words += f", {budgets.submissions} submission{'' if budgets.submissions == 1 else 's'}"
    return (
        f"{words}, {duration(budgets.time_limit_s * 1000)} of working time" if budgets.time_limit_s else words
    )


def _standing(summary: AttemptSummary) -> float:
    """Return a number by which attempts are ranked.

    It is the best score, with 1 added for a pass, and lowered if the pass doesn't count; -1 without a
    submission.
    """
    best = summary.state.best
    unearned = best is not None and best.solved and summary.result is not AttemptResult.SOLVED
    return _worth(best) - (unearned * (1.5 if summary.result is AttemptResult.NOT_SOLVED else 0.5))


def _worth(submission: Submission | None) -> float:
    return -1 if submission is None else (submission.score or 0) + submission.solved


def _number(submission: Submission | None) -> float:
    return -1 if submission is None else submission.score or 0


def _best(row: TaskRow) -> str:
    return "–" if row.best is None else score_cell(row.best.state.best)


def _last(row: TaskRow) -> str:
    if row.last is None:
        return ""
    return f"{sign_of(row.last)} {score_cell(row.last.state.last)}"


def _result(summary: AttemptSummary) -> str:
    words = _standing_words(summary)[2:]
    words = "used up" if words.endswith("used up") else words
    return f"{words}, branch" if summary.branch else words


AnyRow = TypeVar("AnyRow", bound=HomeRow)


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


def _filled(row: AnyRow, columns: Sequence[Column[AnyRow]]) -> AnyRow:
    for column in columns:
        column.shown(row)
        if column.text is not None:
            column.text(row)
    return row


def who(entry: AttemptEntry) -> str:
    """Return who made an attempt: you, the participant, the model, or the kind of actor."""
    summary = entry.attempt
    return "you" if entry.mine else summary.participant or summary.state.header.model or summary.actor


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
    _column("Task", lambda r: r.title, rank=2, least=16, text=lambda r: searched_words(r.task, r.title)),
    _column("Mode", lambda r: mode_words(r.task), rank=6, style=lambda r: "$foreground 60%"),
    _column(
        "Best",
        _best,
        lambda r: _number(r.best.state.best) if r.best is not None else -1,
        sort=lambda r: _standing(r.best) if r.best is not None else -1,
        rank=3,
        right=True,
    ),
    _column(
        "Last",
        _last,
        lambda r: _number(r.last.state.last) if r.last is not None else -1,
        rank=4,
        style=lambda r: STYLES[sign_of(r.last)] if r.last is not None else "",
        text=lambda r: standing_words(r.last) if r.last is not None else "never tried",
    ),
    _column(
        "Time",
        lambda r: duration(r.last.state.clock.active) if r.last is not None else "–",
        lambda r: r.last.state.clock.active / 1000 if r.last is not None else 0,
        rank=5,
        right=True,
    ),
    _column("Tests", lambda r: str(r.task.suite.tests), lambda r: r.task.suite.tests, right=True),
    _column("Suite", lambda r: f"{r.task.suite.seconds:.1f} s", lambda r: r.task.suite.seconds, right=True),
    _column("Budget", lambda r: budget_words(r.task), lambda r: r.task.budgets.tool_uses),
    _column("Attempts", lambda r: str(len(r.mine)), lambda r: len(r.mine), right=True),
)
"""The columns for tasks."""


def _attempt_words(entry: AttemptEntry) -> str:
    """Return the text in which a filter searches for an attempt."""
    about = entry.attempt.task_id if entry.task is None else searched_words(entry.task, entry.title)
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
            "unfinished": lambda r: can_go_on(r.attempt),
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
        lambda r: score_cell(r.attempt.state.best),
        lambda r: _number(r.attempt.state.best),
        sort=lambda r: _worth(r.attempt.state.best),
        right=True,
        rank=5,
    ),
    _column(
        "Time",
        lambda r: duration(r.attempt.state.clock.active),
        lambda r: r.attempt.state.clock.active / 1000,
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
        lambda r: score_cell(r.attempt.state.last),
        lambda r: _number(r.attempt.state.last),
        sort=lambda r: _worth(r.attempt.state.last),
        right=True,
    ),
    _column(
        "Used",
        lambda r: used_words(r.attempt.state),
        lambda r: r.attempt.state.budgets.tool_uses - r.attempt.state.remaining.tool_uses,
    ),
    _column("Mode", lambda r: r.attempt.mode if r.task is None else mode_words(r.task)),
    _column("Actor", lambda r: r.attempt.actor),
)
"""The columns for attempts, most important first."""
