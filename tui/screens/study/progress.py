"""The screen with a study's progress for its organiser: people, tasks, and remaining needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gistpoint.core.study.declaration import Study
from gistpoint.core.study.progress import StudyProgress, TaskCoverage
from gistpoint.core.tasks.names import word_name
from gistpoint.core.text import shortened
from gistpoint.sessions.studies.monitoring import MonitoredStudy
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.study_progress import (
    alert_words,
    columns,
    head_words,
    need_words,
    pace_words,
    people_rows,
    row_words,
    work_words,
)
from gistpoint.tui.widgets.charts import Bar, bars
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain, plain_line
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

SHOWN, SHOWN_LOW = 5, 2
"""The maximum number of people at work, and of alerts, that are listed: in general, and on a low screen."""
_FRAME_WIDTH = 4
"""The width, in cells, of the frame and its padding."""
_CHART_WIDTH = 50
"""The width, in cells, of the chart of people."""
POLL_S = 5.0
"""Seconds between two readings of the folder, into which participants on other machines write."""
Found: TypeAlias = tuple[MonitoredStudy, str]
"""The progress with its alerts, and a label for the state of the study."""
TALL = 30
"""The height, in lines, from which more people at work and more alerts are listed."""


class CoverageTable(Table[TaskCoverage]):
    """The table of tasks, with the number of attempts under each condition."""

    MARGIN, GAP = 1, 2

    def __init__(self, study: Study, *, hidden: bool) -> None:
        super().__init__(columns(study, hidden=hidden), key=lambda row: row.task, id="study-tasks")


class ProgressScreen(BaseScreen[None]):
    """The screen with the progress of a study. Enter lists the attempts of a task."""

    CSS_PATH = "study.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.WATCH)]
    HELP_PAGE = "progress"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.WATCH,)

    def __init__(self, study: Study, read: Callable[[], Found], command: str, *, hidden: bool) -> None:
        """`read` reads the study's folder. `command` is the folder as written in commands.

        `hidden` hides outcomes.
        """
        super().__init__()
        self._study, self._read, self._command, self._hidden = study, read, command, hidden
        self._jobs = Jobs(self, "study-progress")
        self._progress: StudyProgress | None = None

    def compose(self) -> ComposeResult:
        """Lay out the people, the tasks, and the needs."""
        yield HeaderBar("Progress", self._study.id)
        yield framed(Plain("Reading the study …", id="study-people"), "People")
        yield framed(
            CoverageTable(self._study, hidden=self._hidden), "Tasks", "Enter lists the attempts of one"
        )
        yield Plain("", id="study-need")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the folder at once, and then periodically."""
        self.query_one(CoverageTable).focus()
        self._jobs.repeat(POLL_S, lambda job: self._read(), self._show)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _show(self, found: Found) -> None:
        watched, state = found
        self._progress = watched.progress
        table = self.query_one(CoverageTable)
        if [row.task for row in table.records] == [row.task for row in self._progress.tasks]:
            table.update_records(self._progress.tasks)
        else:
            table.show(self._progress.tasks)
        framed(table, f"Tasks ({len(table.records)})", "Enter lists the attempts of one")
        self.query_one(HeaderBar).show(words=state)
        self.query_one("#study-people", Plain).update(self._about_people(watched))
        words = need_words(self._progress)
        commands = (
            f"to judge attempts: gistpoint review {self._command}\n"
            "to settle or export them: gistpoint study correct, exclude, include, export"
        )
        self.query_one("#study-need", Plain).update(f"{words}\n{commands}")

    def _about_people(self, watched: MonitoredStudy) -> Content:
        """Return the people, in one line on a low screen, and the alerts, pace and work, cut to the width."""
        found, tall = watched.progress, self.size.height >= TALL
        most = SHOWN if tall else SHOWN_LOW
        alerts = alert_words(watched.alerts)
        if len(alerts) > most:
            more = f"! {len(alerts) - most + 1} more: `gistpoint study progress {self._command} --json`"
            alerts = [*alerts[: most - 1], more]
        lines = pace_words(found)
        lines += [f"at work  {work_words(one)}" for one in found.at_work[:most]]
        if len(found.at_work) > most:
            lines.append(
                f"and {len(found.at_work) - most} more: `gistpoint study progress {self._command} --json`"
            )
        shown = [Bar(name, number, str(number)) for name, number in people_rows(found.people)]
        people = bars(shown, _CHART_WIDTH) if tall else plain_line(head_words(found.people))
        width = max(20, self.size.width - _FRAME_WIDTH)
        warned = [plain_line(shortened(line, width)).stylize("bold $text-error") for line in alerts]
        return Content("\n").join([people, *warned, *(plain_line(shortened(line, width)) for line in lines)])

    @on(RecordList.Chosen)
    def list_attempts(self) -> None:
        """List the attempts at the task under the cursor."""
        chosen = self.query_one(CoverageTable).chosen
        if chosen is None or self._progress is None:  # no row before the study has been read
            return
        rows = [row for row in self._progress.rows if row.task == chosen.task]
        listed = [(row.attempt, row_words(row, hidden=self._hidden)) for row in rows]
        if listed:
            self.app.push_screen(PickDialog(f"Attempts at {word_name(chosen.task)}", listed))
        else:
            self.app.notify("There are no attempts at this task yet.")

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)
