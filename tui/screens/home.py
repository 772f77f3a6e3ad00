"""Home: the stored tasks and attempts, their rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from gistpoint.core.attempts.identity import PERSON, REPLAY
from gistpoint.core.attempts.state import AttemptResult, Submission, solved_words
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptSummary
from gistpoint.sessions.tasks import BrokenTask
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.services import Services
from gistpoint.tui.tables import Column, QueryError, Row
from gistpoint.tui.view_models import duration, end_words, moment
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

_SIGNS = {AttemptResult.SOLVED: "✔ ", AttemptResult.TO_BE_READ: "? ", AttemptResult.NOT_SOLVED: ""}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task and the attempts of it that count, the newest first."""

    task: Task
    tried: tuple[AttemptSummary, ...]
    best: AttemptSummary | None

    @property
    def key(self) -> str:
        """The id of the task."""
        return self.task.id


@dataclass(frozen=True, slots=True)
class AttemptEntry:
    """An attempt, as seen at a time in milliseconds."""

    attempt: AttemptSummary
    now_ms: int

    @property
    def key(self) -> str:
        """The id of the attempt."""
        return self.attempt.attempt_id


@dataclass(frozen=True, slots=True)
class HomeRows:
    """Everything that the home screen shows."""

    tasks: tuple[TaskRow, ...]
    attempts: tuple[AttemptEntry, ...]
    unfinished: frozenset[str]
    """Ids of attempts that can be resumed."""
    problems: tuple[str, ...] = ()
    """Sentences on what could not be read."""
    solved: str = ""
    """How many attempts count as solved and how many are to be read, if there are any of these."""


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
        attempts=tuple(AttemptEntry(summary, services.clock.utc_ms()) for summary in summaries),
        unfinished=frozenset(
            s.attempt_id for s in summaries if not s.state.ended and not s.problem and s.actor == PERSON
        ),
        problems=tuple(problems),
        solved=solved_words(results) if AttemptResult.TO_BE_READ in results else "",
    )


def _task_row(task: Task, attempts: Sequence[AttemptSummary]) -> TaskRow:
    tried = tuple(summary for summary in attempts if summary.actor != REPLAY)
    return TaskRow(task, tried, max((s for s in tried if s.state.best is not None), key=_standing, default=None))


def _mode(row: TaskRow) -> str:
    mode = "several" if row.task.several else row.task.mode
    return f"{mode} (demo)" if row.task.demo else mode


def _best(row: TaskRow) -> str:
    return "–" if row.best is None else f"{_SIGNS[row.best.result]}{_score(row.best.state.best)}"


def _standing(summary: AttemptSummary) -> float:
    """Return the value of an attempt's best submission, lowered if its pass does not count."""
    best = summary.state.best
    unearned = best is not None and best.solved and summary.result is not AttemptResult.SOLVED
    return _worth(best) - (unearned * (1.5 if summary.result is AttemptResult.NOT_SOLVED else 0.5))


def _worth(submission: Submission | None) -> float:
    return -1 if submission is None else (submission.score or 0) + submission.solved


def _number(submission: Submission | None) -> float:
    return -1 if submission is None else submission.score or 0


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


def _used(summary: AttemptSummary) -> int:
    return summary.state.budgets.tool_uses - summary.state.remaining.tool_uses


TASK_COLUMNS: tuple[Column[TaskRow], ...] = (
    Column("Task", lambda r: r.task.short_id),
    Column("Mode", _mode),
    Column("Tests", lambda r: str(r.task.suite.tests), lambda r: r.task.suite.tests),
    Column("Suite", lambda r: f"{r.task.suite.seconds:.1f} s", lambda r: r.task.suite.seconds),
    Column(
        "Budget",
        lambda r: f"{r.task.budgets.tool_uses}/{r.task.budgets.submissions}",
        lambda r: r.task.budgets.tool_uses,
    ),
    Column("Attempts", lambda r: str(len(r.tried)), lambda r: len(r.tried)),
    Column(
        "Best",
        _best,
        lambda r: _number(r.best.state.best) if r.best is not None else -1,
        sort=lambda r: _standing(r.best) if r.best is not None else -1,
    ),
    Column("Last", lambda r: _result(r.tried[0]) if r.tried else "never tried"),
)
_WHO = 20
"""Characters of a model's name in the table."""
ATTEMPT_COLUMNS: tuple[Column[AttemptEntry], ...] = (
    Column(
        "Started", lambda r: moment(r.attempt.started_utc_ms, now_ms=r.now_ms), sort=lambda r: r.attempt.started_utc_ms
    ),
    Column("Task", lambda r: r.attempt.task_id[:8]),
    Column("Who", lambda r: r.attempt.participant or (r.attempt.state.header.model or r.attempt.actor)[:_WHO]),
    Column("Role", lambda r: r.attempt.role),
    Column("Result", lambda r: _result(r.attempt)),
    Column(
        "Best",
        lambda r: _score(r.attempt.state.best),
        lambda r: _number(r.attempt.state.best),
        sort=lambda r: _worth(r.attempt.state.best),
    ),
    Column("Working", lambda r: duration(r.attempt.state.clock.active), lambda r: r.attempt.state.clock.active / 1000),
    Column(
        "Last",
        lambda r: _score(r.attempt.state.last),
        lambda r: _number(r.attempt.state.last),
        sort=lambda r: _worth(r.attempt.state.last),
    ),
    Column("Uses", lambda r: f"{_used(r.attempt)}/{r.attempt.state.budgets.tool_uses}", lambda r: _used(r.attempt)),
    Column("Mode", lambda r: r.attempt.mode),
    Column("Actor", lambda r: r.attempt.actor),
    Column("Attempt", lambda r: r.attempt.attempt_id),
)
"""The most important first: a narrow terminal shows as many as fit."""


NO_TASKS = """There is no task yet. From the shell:

    gistpoint demo                              solve a small task that comes with the program
    gistpoint task new more-itertools==11.2.1   make a task from a published library
    gistpoint task new ./folder                 make one from a folder of yours

Then press . here."""
NO_ATTEMPTS = "No attempt was made yet: choose a task above and press Enter."


class HomeTable(Table[Row]):
    """A table of the home screen: of any width, as high as its rows."""

    MARGIN, GAP, SIDEWAYS, STRIPED = 1, 2, True, True


class TaskTable(HomeTable[TaskRow]):
    """The tasks."""

    def __init__(self) -> None:
        super().__init__(TASK_COLUMNS, key=lambda row: row.key, id="tasks")


class AttemptTable(HomeTable[AttemptEntry]):
    """The attempts."""

    def __init__(self) -> None:
        super().__init__(ATTEMPT_COLUMNS, key=lambda row: row.key, id="attempts")


class HomeScreen(Screen[None]):
    """Two tables, a filter, and the actions on a row."""

    CSS_PATH = "home.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.HOME)]
    HELP_PAGE = "home"
    AUTO_FOCUS = "TaskTable"
    """Not the filter, which is hidden: a key pressed while the screen opens must not land in it."""
    SCOPES = (KeyScope.HOME,)

    tasks = query_one(TaskTable)
    attempts = query_one(AttemptTable)
    words = query_one("#filter", Input)

    class StartAsked(Message):
        """Asks to attempt a task."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    class OpenAsked(Message):
        """Asks to resume an attempt, or to show it if it has ended."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    class ReviewAsked(Message):
        """Asks to show the record of an attempt step by step."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._jobs = Jobs(self, "home")
        self._unfinished: frozenset[str] = frozenset()
        self._solved = ""

    def compose(self) -> ComposeResult:
        """Lay out filter, tables and footer."""
        yield Plain("gistpoint", id="home-title")
        yield Input(placeholder="Show only rows with these words, tests>20, mode:gist, -solved (Esc: all)", id="filter")
        with Vertical(id="home-tables"):
            yield Plain("Tasks", id="tasks-title", classes="home-heading")
            yield TaskTable()
            yield Plain(NO_TASKS, id="no-tasks", classes="home-empty")
            yield Plain("Attempts", id="attempts-title", classes="home-heading")
            yield AttemptTable()
            yield Plain(NO_ATTEMPTS, id="no-attempts", classes="home-empty")
        yield Plain("", id="home-problems")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read tasks and attempts, without blocking the keyboard."""
        self.words.display = False
        self.query_one("#no-tasks").display = False
        self.query_one("#no-attempts").display = False
        self.tasks.focus()

    def on_screen_resume(self) -> None:
        """Read again whenever the screen is shown again."""
        self.action_reload()

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _failed(self, error: Exception) -> None:
        self.query_one("#home-tables").loading = False
        if not isinstance(error, UserError):
            raise error
        show_error(self.app, error)

    def _show(self, rows: HomeRows) -> None:
        self.query_one("#home-tables").loading = False
        self._unfinished, self._solved = rows.unfinished, rows.solved
        self.tasks.show(rows.tasks)
        self.attempts.show(rows.attempts)
        self.query_one("#no-tasks").display = not rows.tasks
        self.tasks.display = bool(rows.tasks)
        self.query_one("#no-attempts").display = bool(rows.tasks) and not rows.attempts
        self.attempts.display = bool(rows.attempts)
        problems = [f"! {problem}" for problem in rows.problems[:2]]
        if len(rows.problems) > len(problems):
            problems.append(f"! and {len(rows.problems) - len(problems)} more that can't be read")
        self.query_one("#home-problems", Plain).update("\n".join(problems))
        if self.focused is None or not self.focused.display:
            (self.tasks if rows.tasks or not rows.attempts else self.attempts).focus()

    @on(Table.Arranged)
    def count(self, event: Table.Arranged) -> None:
        """Show how many rows match the filter."""
        table = event.table
        name = "Tasks" if table is self.tasks else "Attempts"
        total = len(table.records)
        number = f"{len(table.rows)} of {total}" if len(table.rows) != total else str(total)
        solved = f", {self._solved}" if self._solved and table is self.attempts else ""
        self.query_one(f"#{table.id}-title", Plain).update(f"{name} ({number}{solved})")

    @on(Input.Changed, "#filter")
    def narrow(self, event: Input.Changed) -> None:
        """Filter both tables as the query is typed; a table without the query's column shows no row."""
        failed: list[QueryError] = []
        for table in (self.tasks, self.attempts):
            try:
                table.narrow(event.value)
            except QueryError as error:
                table.show_none()
                failed.append(error)
        self.query_one("#home-title", Plain).update(failed[-1].message if len(failed) == 2 else "gistpoint")

    @on(Input.Submitted, "#filter")
    def leave_filter(self) -> None:
        """Go to the remaining rows."""
        (self.tasks if self.tasks.rows else self.attempts).focus()

    def key_escape(self) -> None:
        """Drop the filter."""
        self.words.value = ""
        self.words.display = False
        self.tasks.focus()

    @on(RecordList.Chosen)
    def choose(self, event: RecordList.Chosen) -> None:
        """Open the row."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Start the chosen task, or resume or show the chosen attempt."""
        if self._table() is self.attempts:
            if self.attempts.chosen is not None:
                self.post_message(self.OpenAsked(self.attempts.chosen.key))
        else:
            self.action_start()

    def action_start(self) -> None:
        """Start an attempt of the chosen task."""
        if self.tasks.chosen is not None and self.tasks.display:
            self.post_message(self.StartAsked(self.tasks.chosen.key))
        else:
            self.app.bell()

    def action_resume(self) -> None:
        """Resume the chosen attempt; on a task, the newest that has not ended."""
        chosen = self.attempts.chosen.key if self.attempts.chosen is not None else None
        if self._table() is self.tasks and self._unfinished:
            chosen = max(self._unfinished)
        if chosen is not None and chosen in self._unfinished:
            self.post_message(self.OpenAsked(chosen))
        else:
            self.app.notify("There is no attempt here that has not ended.")

    def action_review(self) -> None:
        """Show the record of the chosen attempt, if it has ended."""
        row = self.attempts.chosen if self.attempts.display else None
        if row is None or row.key in self._unfinished:
            self.app.notify("Choose an attempt that has ended: its record can be read then.")
        else:
            self.post_message(self.ReviewAsked(row.key))

    def action_filter(self) -> None:
        """Put the focus into the filter."""
        self.words.display = True
        self.words.focus()

    def action_sort(self) -> None:
        """Sort the table that has the focus by its next column."""
        self._table().sort_next()

    def action_reverse(self) -> None:
        """Reverse the order of that table."""
        self._table().turn_round()

    def action_tables(self) -> None:
        """Go to the other table."""
        other = self.tasks if self._table() is self.attempts else self.attempts
        if other.display:
            other.focus()

    def action_reload(self) -> None:
        """Reload everything."""
        if not self.tasks.records and not self.attempts.records:
            self.query_one("#home-tables").loading = True
        self._jobs.do(lambda _: load_rows(self._services), self._show, failed=self._failed, key="home")

    def _table(self) -> TaskTable | AttemptTable:
        return self.attempts if self.focused is self.attempts else self.tasks
