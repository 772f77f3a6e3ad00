"""The screen with a participant's tasks: the state of each, and the effect of Enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import solver_title
from gistpoint.core.readable import duration
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words
from gistpoint.tui.view_models import end_words
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A task assigned to a participant, and their attempt at it, if there is one."""

    number: int
    """The position in the assignment, counted from 1."""
    task: Task
    attempt: AttemptSummary | None

    @property
    def ended(self) -> bool:
        """Whether there is an attempt at the task that has ended."""
        return self.attempt is not None and self.attempt.state.ended

    @property
    def state(self) -> str:
        """The state of the task, in a few words, for the table."""
        if self.attempt is None:
            return f"{signs.EMPTY} not begun"
        if self.attempt.problem:
            return "! can't be read"
        ending = self.attempt.state.ending
        if ending is None:
            return "… begun"
        result = self.attempt.result
        return f"{signs.GOOD} done" if result is AttemptResult.SOLVED else end_words(ending.reason, result)

    @property
    def words(self) -> str:
        """The task's title, followed by the effect of Enter, or by advice if the saved work can't be read."""
        return f"{solver_title(self.task)}\n\n{self._next}"

    @property
    def _next(self) -> str:
        if self.attempt is None:
            budgets, kind = self.task.budgets, kind_of(self.task).blank
            tries = "" if kind.hands_in_once else f" and {_count(budgets.submissions, 'submission')}"
            limit = (
                f", and {duration(budgets.time_limit_s * 1000)} of working time"
                if budgets.time_limit_s
                else ""
            )
            return (
                "Enter begins it: the clock starts, and you see the task. You have"
                f" {_count(budgets.tool_uses, kind.unit)}{tries}{limit}.\n\nF10 pauses. You may close the"
                " window at any time: everything is saved, and the same link brings you back."
            )
        if self.attempt.problem:
            return "Your saved work can't be read. Please inform the person who gave you the link."
        spent = duration(self.attempt.state.clock.active)
        if self.ended:
            return f"It ended after {spent} of working time. Enter shows the result."
        return f"You left it after {spent} of working time. Enter continues where you were."


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


ASSIGNED_COLUMNS: tuple[Column[AssignedTask], ...] = (
    Column("", lambda row: str(row.number), lambda row: row.number, rank=1),
    Column("Task", lambda row: solver_title(row.task), rank=2, least=16),
    Column("Kind", lambda row: mode_words(row.task)),
    Column("State", lambda row: row.state, rank=3, least=12),
    Column(
        "Working", lambda row: duration(row.attempt.state.clock.active) if row.attempt else "–", right=True
    ),
)


class AssignedTable(Table[AssignedTask]):
    """The tasks, in the order of the assignment."""

    MARGIN, GAP = 1, 2

    def __init__(self) -> None:
        super().__init__(ASSIGNED_COLUMNS, key=lambda row: row.task.id, id="assigned")


class AssignedScreen(BaseScreen[None]):
    """The screen with a table of tasks, and a description of the one under the cursor."""

    CSS_PATH = "assigned.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.ASSIGNED)]
    HELP_PAGE = "assigned"
    SCOPES = (KeyScope.ASSIGNED,)
    AUTO_FOCUS = "AssignedTable"

    table = query_one(AssignedTable)
    words = query_one("#assigned-words", Plain)

    class TaskRequested(Message):
        """A request to the app to open a task: to begin it, to continue it, or to show its result."""

        def __init__(self, row: AssignedTask) -> None:
            super().__init__()
            self.row = row

    class Shown(Message):
        """A request to the app to load the tasks again, because the screen is on top again."""

    def __init__(self, code: str) -> None:
        """`code` is the participant's pseudonymous code."""
        super().__init__()
        self._code = code

    def compose(self) -> ComposeResult:
        """Lay out the tasks and the description."""
        yield HeaderBar("gistpoint", "your tasks", [HeaderField("you are", self._code)])
        yield AssignedTable()
        yield Plain("One moment …", id="assigned-words")
        yield KeyBar()

    def on_mount(self) -> None:
        """Frame the table, which has no rows yet."""
        framed(self.table, "Tasks")

    def on_screen_resume(self) -> None:
        """Ask the app to load the tasks again."""
        self.post_message(self.Shown())

    def show(self, rows: Sequence[AssignedTask]) -> None:
        """Show the tasks, with the cursor on the first one without an ended attempt."""
        first = next((row.task.id for row in rows if not row.ended), None)
        self.table.show(rows, at=first)
        framed(self.table, "Tasks", f"{sum(row.ended for row in rows)} of {len(rows)} done")
        self._show_words()

    def show_text(self, words: str) -> None:
        """Replace the description below the table with text."""
        self.words.update(words)

    @on(RecordList.Moved)
    def _show_words(self) -> None:
        if self.table.chosen is not None:
            self.show_text(self.table.chosen.words)

    @on(RecordList.Chosen)
    def choose(self, event: RecordList.Chosen) -> None:
        """Ask the app to open the task under the cursor."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Ask the app to open the task under the cursor."""
        if self.table.chosen is not None:
            self.post_message(self.TaskRequested(self.table.chosen))
