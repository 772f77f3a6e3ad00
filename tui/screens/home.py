"""The home screen: a list of tasks or of all attempts, details of the chosen one, and a filter.

It is drawn before the engine is imported: its rows and text come from `home_reader`, `home_rows` and
`home_detail`, which import the engine and are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Input

from gistpoint.core.errors import UserError
from gistpoint.core.query_grammar import QueryError
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.tables import Column, Row
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.line_list import LineList
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.splitter import Splits
from gistpoint.tui.widgets.table import Table

if TYPE_CHECKING:
    from gistpoint.sessions.services import Services
    from gistpoint.tui.home_reader import Details, HomeReader
    from gistpoint.tui.home_rows import AttemptEntry, HomeRows, TaskRow

_POLL_S = 5.0
"""Seconds between two checks of the attempts that are open in other programs."""
SIDE_BY_SIDE = 150
"""The width in cells from which the details are next to the list rather than below it.

In a narrower terminal, two columns would cut off titles and details although there are empty rows below them.
"""


class HomeTable(Table[Row]):
    """A list on the home screen. If the details are below the list, it is as high as its rows."""

    MARGIN, GAP = 1, 2


class TaskTable(HomeTable["TaskRow"]):
    """The table of tasks. It gets its columns with its first rows."""

    def __init__(self, columns: Sequence[Column[TaskRow]] = ()) -> None:
        super().__init__(columns, key=lambda row: row.key, id="tasks")


class AttemptTable(HomeTable["AttemptEntry"]):
    """The table of everybody's attempts."""

    def __init__(self, columns: Sequence[Column[AttemptEntry]]) -> None:
        super().__init__(columns, key=lambda row: row.key, id="attempts")


class Detail(LineList):
    """The details of the chosen task or attempt.

    Enter opens the attempt that a line describes; on any other line, it opens the chosen task or attempt.
    """

    def __init__(self) -> None:
        super().__init__(id="home-detail")

    def is_link(self, index: int) -> bool:
        """Return True: Enter opens something on every line."""
        return True

    def row_style(self, index: int) -> str:
        """Return the background of a line, which marks the cursor only while the list has the focus."""
        return super().row_style(index) if self.has_focus else ""

    @property
    def chosen(self) -> str:
        """The id of the attempt under the cursor; empty on any other line."""
        return self.lines[self.cursor].link if self.cursor < len(self.lines) else ""


class HomeScreen(BaseScreen[None]):
    """The screen with a list in one frame and the details of the chosen row in another."""

    CSS_PATH = "home.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.HOME)]
    HELP_PAGE = "home"
    MOST_KEYS = 6
    AUTO_FOCUS = "TaskTable"
    SCOPES = (KeyScope.HOME,)

    tasks = query_one(TaskTable)
    detail = query_one(Detail)
    header = query_one(HeaderBar)

    class StartRequested(Message):
        """A request to the app for a new attempt at a task."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    class OpenRequested(Message):
        """A request to the app to resume an attempt, or to show its result if it has ended."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    class ReviewRequested(Message):
        """A request to the app to show the record of an attempt step by step."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    class TourRequested(Message):
        """A request to the app for the tour."""

    def __init__(self, services: Callable[[], Services]) -> None:
        """`services` returns the services.

        It may have to create them first, which takes time, so it is first called in a thread.
        """
        super().__init__()
        self._services = services
        self._jobs = Jobs(self, "home")
        self._query = ""
        self._query_error: QueryError | None = None
        """The error in the filter's query; None if the query is valid."""
        self._isolation: HeaderField | None = None
        self._reader: HomeReader | None = None
        self._readers = Jobs(self, "home details")
        self._detailed: tuple[TaskRow | AttemptEntry, Details] | None = None
        """The row whose details were loaded last, with them."""
        self._described = ""
        """The key of the row whose details are shown."""
        self.rows: HomeRows | None = None
        """The rows loaded last; None until the first ones are loaded."""

    def compose(self) -> ComposeResult:
        """Lay out header, list, details and footer."""
        yield HeaderBar("gistpoint")
        yield Splits(
            framed(TaskTable(), "Tasks …"),
            framed(Detail()),
            vertical=self.app.size.width < SIDE_BY_SIDE,
            id="home-panes",
        )
        yield KeyBar()

    def on_mount(self) -> None:
        """Start checking the attempts that are open in other programs."""
        self.set_interval(_POLL_S, self._poll)

    def on_screen_resume(self) -> None:
        """Reload whenever the screen is on top again, after it has been drawn."""
        self.call_after_refresh(self.action_reload)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()
        self._readers.stop()

    def on_resize(self, event: events.Resize) -> None:
        """Put the details next to the list, or below it in a narrow terminal."""
        self.query_one(Splits).turn(vertical=event.size.width < SIDE_BY_SIDE)
        self.call_after_refresh(self._describe)

    # Loading rows

    def _poll(self) -> None:
        """Reload the attempts that are open in other programs, and show the state of the store."""
        rows, reader = self.rows, self._reader
        if rows is None or reader is None or not rows.complete or not self.is_current:
            return
        self.header.show(fields=self._fields())  # draws nothing if the fields are unchanged
        opened = [entry.key for entry in rows.attempts if entry.attempt.open]
        if opened:
            self._jobs.do(lambda _: reader.read_again(opened), self._show_changed, key="again")

    def _show_changed(self, rows: HomeRows | None) -> None:
        if rows is not None:
            self._show(rows)

    def action_reload(self) -> None:
        """Load all rows again, and determine the isolation if it is not known yet."""

        def read(job: Job) -> HomeRows:
            from gistpoint.tui.home_reader import HomeReader

            if self._reader is None:
                self._reader = HomeReader(self._services())

            def on_rows(rows: HomeRows) -> None:
                job.cancel.check()
                job.hand(self._show_first, rows)

            unread = self.rows is None or not self.rows.complete
            return self._reader.read(on_rows if unread else None, job.cancel.check)

        self._jobs.do(read, self._show, failed=self._failed, key="home")
        if self._isolation is None:
            self._jobs.do(lambda _: self._services().isolation(), self._show_isolation, key="isolation")

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        show_error(self.app, error)

    def _show_first(self, rows: HomeRows) -> None:
        """Show the tasks while attempts are still being loaded, unless all rows are already shown."""
        if rows.tasks and (self.rows is None or not self.rows.complete):
            self._show(rows)

    def _show(self, rows: HomeRows) -> None:
        from gistpoint.tui.home_rows import TASK_COLUMNS

        if self.rows is None:
            self.tasks.columns = TASK_COLUMNS
        self.header.show(fields=self._fields())
        self.rows = rows
        self.tasks.show(rows.tasks)
        for table in self.query(AttemptTable):
            table.show(rows.attempts)
        self._show_problems(rows.problems)
        self.header.show(words=rows.words)

    def _show_problems(self, problems: tuple[str, ...]) -> None:
        lines = [f"! {problem}" for problem in problems[:2]]
        if len(problems) > len(lines):
            lines.append(f"! and {len(problems) - len(lines)} more that can't be read")
        shown = self.query("#home-problems")
        if shown:
            shown.first(Plain).update("\n".join(lines))
            shown.first().display = bool(lines)
        elif lines:
            self.mount(Plain("\n".join(lines), id="home-problems"), before=self.query_one(KeyBar))

    def _show_isolation(self, found: tuple[str, bool] | None) -> None:
        if found is not None:
            name, isolated = found
            value, style = (
                (f"{name} {signs.GOOD}", "$text-success")
                if isolated
                else (f"{name} {signs.WARNING}", "$text-warning")
            )
            self._isolation = HeaderField("isolation", value, style)
            self.header.show(fields=self._fields())

    def _fields(self) -> list[HeaderField]:
        services = self._services()
        fields = [self._isolation] if self._isolation else []
        if services.enrolment.participant:
            fields.append(HeaderField("participant", services.enrolment.participant))
        if services.mirror is not None and (words := str(services.mirror.state)):
            style = "bold" if services.mirror.state.is_healthy else "$text-warning"
            fields.append(HeaderField("store", words, style))
        return fields

    # The two lists

    @property
    def _table(self) -> TaskTable | AttemptTable:
        """The visible list."""
        return next((table for table in self.query(AttemptTable) if table.display), self.tasks)

    def action_list(self, name: str) -> None:
        """Show the list of tasks or of attempts, and focus it."""
        panes = self.query_one(Splits)
        if self.rows is None:
            self.app.bell()
            return
        if name == "attempts" and not self.query(AttemptTable):
            from gistpoint.tui.home_rows import ATTEMPT_COLUMNS

            table = AttemptTable(ATTEMPT_COLUMNS)
            panes.mount(framed(table, "Attempts …"), before=self.detail)
            table.show(self.rows.attempts)
        for listed in self.query(HomeTable):
            listed.display = listed.id == name
        panes.fit()
        if self._query:
            self._narrow(self._query)
        self._update_frame(self._table)
        self._table.focus()
        self.refresh_bindings()
        self.call_after_refresh(self._describe)

    @on(Table.Arranged)
    def arranged(self, event: Table.Arranged) -> None:
        """Show the number of rows and their order in the frame, or the error in the query."""
        if event.table is self._table:
            if self._query_error is None:
                self._update_frame(event.table)
            else:
                framed(event.table, self._query_error.message, self._query_error.hint)
            self._describe()

    def _update_frame(self, table: Table[Any]) -> None:
        rows = self.rows
        if rows is None:
            return
        attempts = isinstance(table, AttemptTable)
        total, shown = len(table.records), len(table.rows)
        solved = f", {rows.solved}" if rows.solved and attempts else ""
        count = f"{total}" if shown == total else f"{shown} of {total}"
        count = f"({count}{solved})" if rows.complete else f"({count} …)"
        order = (
            ""
            if table.column is None
            else f"by {table.column.name or 'state'}{' ' + signs.DESCENDING if table.reverse else ''}"
        )
        order = order or ("turned round" if table.reverse else "s sorts")
        framed(table, f"{'Attempts' if attempts else 'Tasks'} {count}", f"{order} · / filters")

    @on(RecordList.Moved)
    def moved(self, event: RecordList.Moved) -> None:
        """Show the details of the row under the cursor."""
        if event.records is self._table:
            self._describe()

    def _describe(self) -> None:
        """Show the details of the row under the cursor, or why there is none."""
        if self.rows is None or not self.is_mounted:
            return
        from gistpoint.tui.home_reader import Details
        from gistpoint.tui.screens.home_detail import described

        table, width = self._table, max(30, self.detail.room)
        chosen, details = table.chosen, Details()
        if chosen is not None:
            if self._detailed is None or self._detailed[0] is not chosen:
                self._load_details(chosen)
                return
            details = self._detailed[1]
        now_ms, filtered = self._services().clock.utc_ms(), bool(table.records)
        description = described(self.rows, chosen, details, now_ms, width, filtered=filtered)
        framed(self.detail, description.title, description.note)
        key = chosen.key if chosen is not None else ""
        self.detail.show(description.lines, keep_place=key == self._described)
        self._described = key

    def _load_details(self, row: TaskRow | AttemptEntry) -> None:
        """Load the details of a row in a thread, and show them; until then, the former ones stay."""

        def read(_: Job) -> Details:
            from gistpoint.tui.home_reader import details_of

            return details_of(self._services(), row)

        def show(details: Details) -> None:
            self._detailed = row, details
            if self._table.chosen is row:
                self._describe()

        self._readers.do(read, show, key="details")

    # The filter

    def action_filter(self) -> None:
        """Show the filter's field and focus it."""
        if not self.query("#filter"):
            hint = "words, tests>20, mode:gist, best>=0.5, -solved   Enter keeps it, Esc shows all"
            self.mount(
                Input(self._query, placeholder=hint, id="filter", compact=True), before=self.query_one(KeyBar)
            )
        words = self.query_one("#filter", Input)
        words.display = True
        words.focus()

    @on(Input.Changed, "#filter")
    def narrow(self, event: Input.Changed) -> None:
        """Filter the list while the query is typed."""
        self._query = event.value
        self._narrow(event.value)

    def _narrow(self, query: str) -> None:
        table, self._query_error = self._table, None
        try:
            table.narrow(query)
        except QueryError as error:
            self._query_error = error
            table.show_none()

    @on(Input.Submitted, "#filter")
    def leave_filter(self) -> None:
        """Focus the list."""
        self._table.focus()

    def key_escape(self) -> None:
        """Clear and hide the filter, and focus the list."""
        for words in self.query("#filter").results(Input):
            words.value = ""
            words.display = False
        self._table.focus()

    # Actions on a row

    @on(RecordList.Chosen)
    def choose(self, event: RecordList.Chosen) -> None:
        """Ask the app to start the task, to resume the attempt, or to show its result."""
        event.stop()
        if event.records is self.detail and self.detail.chosen:
            self.post_message(self.OpenRequested(self.detail.chosen))
            return
        # another list may have become visible since the key was pressed
        table = event.records if isinstance(event.records, TaskTable | AttemptTable) else self._table
        chosen = table.chosen
        if chosen is not None:
            self.post_message(
                self.OpenRequested(chosen.opens) if chosen.opens else self.StartRequested(chosen.task_id)
            )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the key for a list only while that list is hidden."""
        if action == "list" and self.is_mounted:
            return parameters != (self._table.id,)
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        """Close the program."""
        self.app.exit()

    def action_start(self) -> None:
        """Ask for a new attempt at the chosen task."""
        chosen = self._table.chosen
        if chosen is None or not chosen.task_id:
            self.app.bell()
        else:
            self.post_message(self.StartRequested(chosen.task_id))

    def action_resume(self) -> None:
        """Resume the chosen attempt, or the newest unfinished one of the chosen task or of all tasks."""
        chosen = self._table.chosen
        summary = chosen.unfinished if chosen is not None else None
        if summary is None and self._table is self.tasks and self.rows is not None:
            found = (row.unfinished for row in self.rows.tasks)
            summary = max(filter(None, found), key=lambda summary: summary.started_utc_ms, default=None)
        if summary is None:
            self.app.notify("There is no unfinished attempt here.")
        else:
            self.post_message(self.OpenRequested(summary.attempt_id))

    def next_untried(self, task_id: str) -> str:
        """Return the id of the next untried task after `task_id`, wrapping around; empty if there is none.

        There is none before the tasks are listed: an attempt can end while home is still being opened.
        """
        records = [row for table in self.query(TaskTable) for row in table.records]
        ids = [row.task_id for row in records]
        untried = {row.task_id for row in records if row.last is None} - {task_id}
        start = ids.index(task_id) + 1 if task_id in ids else 0
        return next((id for id in [*ids[start:], *ids[:start]] if id in untried), "")

    def action_review(self) -> None:
        """Show the record of the chosen attempt, or of the chosen task's newest attempt that has ended."""
        chosen = self._table.chosen
        wanted = self.detail.chosen if self.detail.has_focus else ""
        ended = (
            summary
            for summary in (chosen.readable if chosen is not None else ())
            if wanted in ("", summary.attempt_id)
        )
        summary = next(ended, None)
        if summary is None:
            self.app.notify("Choose an attempt that has ended: only such a record can be read.")
        else:
            self.post_message(self.ReviewRequested(summary.attempt_id))

    def action_copy_id(self) -> None:
        """Copy the id of the chosen task or attempt."""
        chosen = self._table.chosen
        id = (self.detail.has_focus and self.detail.chosen) or (chosen.key if chosen is not None else "")
        if id:
            self.app.copy_to_clipboard(id)
            self.app.notify(f"{id[:26]} is on the clipboard.")

    def action_tour(self) -> None:
        """Ask for the tour."""
        self.post_message(self.TourRequested())

    def action_sort(self) -> None:
        """Sort the list by its next column."""
        self._table.sort_next()

    def action_reverse(self) -> None:
        """Reverse the order of the list."""
        self._table.reverse_order()
