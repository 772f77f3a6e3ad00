"""Home: the tasks that there are and the attempts that were made."""

from __future__ import annotations

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Input
from textual.worker import Worker, WorkerState

from gistpoint.core.errors import UserError
from gistpoint.tui.home_rows import ATTEMPT_COLUMNS, TASK_COLUMNS, HomeRows, load_rows
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.screens.home_table import HomeTable
from gistpoint.tui.services import Services
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain

NO_TASKS = """There is no task yet. From the shell:

    gistpoint demo                              solve a small task that comes with the program
    gistpoint task new more-itertools==11.2.1   make a task from a published library
    gistpoint task new ./folder                 make one from a folder of yours

Then press F5 here."""
NO_ATTEMPTS = "No attempt was made yet: choose a task above and press n."


class HomeScreen(Screen[None]):
    """Two tables, a filter, and what can be done with a row."""

    CSS_PATH = "home.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.HOME)]
    HELP_PAGE = "home"
    SCOPES = (Scope.HOME,)

    tasks = query_one("#tasks", HomeTable)
    attempts = query_one("#attempts", HomeTable)
    words = query_one("#filter", Input)

    class StartAsked(Message):
        """A task is to be attempted."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    class OpenAsked(Message):
        """An attempt is to be resumed, or looked at where it has ended."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    class ReviewAsked(Message):
        """The record of an attempt is to be read step by step."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._unfinished: frozenset[str] = frozenset()
        self._solved = ""

    def compose(self) -> ComposeResult:
        """Lay out filter, tables and footer."""
        yield Plain("gistpoint", id="home-title")
        yield Input(placeholder="Show only rows that hold these words (Esc: all)", id="filter")
        with Vertical(id="home-tables"):
            yield Plain("Tasks", id="tasks-title", classes="home-heading")
            yield HomeTable(TASK_COLUMNS, id="tasks")
            yield Plain(NO_TASKS, id="no-tasks", classes="home-empty")
            yield Plain("Attempts", id="attempts-title", classes="home-heading")
            yield HomeTable(ATTEMPT_COLUMNS, id="attempts")
            yield Plain(NO_ATTEMPTS, id="no-attempts", classes="home-empty")
        yield Plain("", id="home-problems")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read what there is, without keeping the keyboard waiting."""
        self.words.display = False
        self.query_one("#no-tasks").display = False
        self.query_one("#no-attempts").display = False
        self.tasks.focus()

    def on_screen_resume(self) -> None:
        """Read again whenever the screen comes back into sight."""
        self.action_reload()

    @work(thread=True, exclusive=True, group="home", exit_on_error=False)
    def _load(self) -> HomeRows:
        return load_rows(self._services)

    @on(Worker.StateChanged)
    def loaded(self, event: Worker.StateChanged) -> None:
        """Show what was read, or what went wrong."""
        if event.worker.group != "home":
            return
        if event.state is WorkerState.SUCCESS and isinstance(event.worker.result, HomeRows):
            self._show(event.worker.result)
        elif event.state is WorkerState.ERROR and event.worker.error is not None:
            self.query_one("#home-tables").loading = False
            if not isinstance(event.worker.error, UserError):
                raise event.worker.error
            show_error(self.app, event.worker.error)

    def _show(self, rows: HomeRows) -> None:
        self.query_one("#home-tables").loading = False
        self._unfinished, self._solved = rows.unfinished, rows.solved
        self.tasks.show_rows(rows.tasks)
        self.attempts.show_rows(rows.attempts)
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

    @on(HomeTable.Arranged)
    def count(self, event: HomeTable.Arranged) -> None:
        """Say how many rows are in sight."""
        table = event.table
        name = "Tasks" if table is self.tasks else "Attempts"
        number = f"{table.in_sight} of {table.total}" if table.in_sight != table.total else str(table.total)
        solved = f", {self._solved}" if self._solved and table is self.attempts else ""
        self.query_one(f"#{table.id}-title", Plain).update(f"{name} ({number}{solved})")

    @on(Input.Changed, "#filter")
    def narrow(self, event: Input.Changed) -> None:
        """Filter both tables as the words are typed."""
        self.tasks.filter(event.value)
        self.attempts.filter(event.value)

    @on(Input.Submitted, "#filter")
    def leave_filter(self) -> None:
        """Go to the rows that are left."""
        (self.tasks if self.tasks.in_sight else self.attempts).focus()

    def key_escape(self) -> None:
        """Drop the filter."""
        self.words.value = ""
        self.words.display = False
        self.tasks.focus()

    @on(DataTable.RowSelected)
    def choose(self, event: DataTable.RowSelected) -> None:
        """Enter or a click opens a row."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Start the chosen task, or resume or show the chosen attempt."""
        if self._table() is self.attempts:
            if self.attempts.chosen is not None:
                self.post_message(self.OpenAsked(self.attempts.chosen))
        else:
            self.action_start()

    def action_start(self) -> None:
        """Start an attempt of the chosen task."""
        if self.tasks.chosen is not None and self.tasks.display:
            self.post_message(self.StartAsked(self.tasks.chosen))
        else:
            self.app.bell()

    def action_resume(self) -> None:
        """Go on with the chosen attempt; from the tasks, with the newest that has not ended."""
        chosen = self.attempts.chosen
        if self._table() is self.tasks and self._unfinished:
            chosen = max(self._unfinished)
        if chosen is not None and chosen in self._unfinished:
            self.post_message(self.OpenAsked(chosen))
        else:
            self.app.notify("There is no attempt here that has not ended.")

    def action_review(self) -> None:
        """Read the record of the chosen attempt that has ended."""
        chosen = self.attempts.chosen if self.attempts.display else None
        if chosen is None or chosen in self._unfinished:
            self.app.notify("Choose an attempt that has ended: its record can be read then.")
        else:
            self.post_message(self.ReviewAsked(chosen))

    def action_filter(self) -> None:
        """Let words be typed."""
        self.words.display = True
        self.words.focus()

    def action_sort(self) -> None:
        """Sort the table that has the focus by its next column."""
        self._table().sort_next()

    def action_reverse(self) -> None:
        """Turn the order of that table round."""
        self._table().reverse_order()

    def action_tables(self) -> None:
        """Go to the other table."""
        other = self.tasks if self._table() is self.attempts else self.attempts
        if other.display:
            other.focus()

    def action_reload(self) -> None:
        """Read everything again."""
        if not self.tasks.total and not self.attempts.total:
            self.query_one("#home-tables").loading = True
        self._load()

    def _table(self) -> HomeTable:
        return self.attempts if self.focused is self.attempts else self.tasks
