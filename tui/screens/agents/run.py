"""The screen for watching an agent's run: its figures, the attempts at work as tiles, and all jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.ports import TimeSource
from gistpoint.core.readable import duration
from gistpoint.core.text import plural
from gistpoint.sessions.agentruns.figures import RunFigures, totals_of
from gistpoint.sessions.agentruns.following import FollowedJob, RunFollower
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.tasks import TaskTitles
from gistpoint.tui import signs
from gistpoint.tui.agent_rows import COLUMNS, JobRow, job_sentence
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.agents.head import TALL, RunHead, head_lines
from gistpoint.tui.screens.agents.tiles import HEIGHT, AttemptTiles, places_after
from gistpoint.tui.widgets.charts import gauge
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

POLL_S, TICK_S = 0.5, 1.0
_GAUGE_WIDTH = 10
"""The width, in cells, of the gauge of ended jobs."""
_NOTE_LINES, _NOTE_LOSS = 3, 10
"""The number of lines about the job under the cursor, and of cells that a line may lose.

A line loses cells to its margins and to a word that does not fit.
"""
_FRAME_LINES = 2
"""The number of lines in a frame."""


class RunReading(NamedTuple):
    """The result of one reading of the journals."""

    jobs: Sequence[FollowedJob]
    titles: Sequence[str]
    """The titles of the jobs' tasks; empty if nothing has changed."""
    at_work: bool
    """Whether a process is working on the run."""
    totals: RunFigures | None
    """The figures of the run; None if nothing has changed."""


class JobTableView(Table[JobRow]):
    """The table of a run's jobs."""

    MARGIN, GAP = 1, 2

    def __init__(self) -> None:
        super().__init__(COLUMNS, key=lambda row: row.job.job.key, id="agent-jobs")


class RunWatchScreen(BaseScreen[None]):
    """A run with its attempts at work and all jobs. Enter opens an attempt; the run can't be changed."""

    CSS_PATH = "agents.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(KeyScope.WATCH),
        *bindings_of(KeyScope.WATCH_RUN),
    ]
    HELP_PAGE = "watch"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.WATCH, KeyScope.WATCH_RUN, KeyScope.TILES)

    table = query_one(JobTableView)
    tiles = query_one(AttemptTiles)
    header = query_one(HeaderBar)
    head = query_one(RunHead)
    note = query_one("#job-note", Plain)

    class AttemptRequested(Message):
        """A request to the app to watch an attempt."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    def __init__(self, follower: RunFollower, clock: TimeSource, titled: TaskTitles) -> None:
        super().__init__()
        self._follower, self._clock, self._titled = follower, clock, titled
        self._jobs = Jobs(self, "watch-run")
        self._read_before: tuple[Sequence[FollowedJob], bool] = ((), False)
        """The jobs of the last reading, and whether a process was at work."""
        self._found: dict[FollowedJob, JobRow] = {}
        """The row of each job in the last reading, used again while the job is unchanged."""
        self._rows: dict[str, JobRow] = {}
        self._places: list[str] = []
        """The keys of the jobs in the tiles."""
        self._tiled = True
        """Whether tiles are shown if there are any."""
        self._at_work = False
        self._progress = ""
        self._last_utc_ms = 0
        """The time of the last event in any attempt."""
        self._shown = False
        """Whether anything was read yet."""
        self._note_text = ""

    def compose(self) -> ComposeResult:
        """Lay out the figures, the attempts at work, the jobs and the keys."""
        yield HeaderBar(self._follower.run.name)
        yield RunHead()
        tiles = framed(AttemptTiles(self._spent_ms, id="agent-tiles"), "At work")
        tiles.display = False
        yield tiles
        yield framed(JobTableView(), "Jobs")
        note = Plain("", id="job-note")
        note.display = False
        yield note
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the journals at once, and then periodically."""
        self.set_focus(self.table)
        self._jobs.repeat(POLL_S, lambda job: self._read(), self._show)
        self.set_interval(TICK_S, self._tick)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the head, the note and the tiles for the new size."""
        self.head.fit()
        self._show_note()
        self._fit_tiles(event.size.width, event.size.height)

    # Reading

    def _read(self) -> RunReading:
        jobs = self._follower.poll()
        at_work = self._follower.run.worked_on
        before, self._read_before = self._read_before, (jobs, at_work)
        same = before[1] is at_work and len(before[0]) == len(jobs)
        if self._shown and same and all(old is new for old, new in zip(before[0], jobs, strict=True)):
            return RunReading(jobs, (), at_work, None)
        titles = [self._titled(followed.job.job.task) for followed in jobs]
        return RunReading(jobs, titles, at_work, totals_of([followed.figures for followed in jobs]))

    def _show(self, found: RunReading) -> None:
        if found.totals is None:
            return
        self._shown = True
        known, self._found = self._found, {}
        at_work_changed = found.at_work is not self._at_work
        self._at_work = found.at_work
        for number, (followed, title) in enumerate(zip(found.jobs, found.titles, strict=True), start=1):
            row = known.get(followed)
            if row is None or at_work_changed:
                row = JobRow(number, followed.job, followed.shown, live=found.at_work, title=title)
            self._found[followed] = row
        rows = list(self._found.values())
        self._rows = {row.job.job.key: row for row in rows}
        self._show_table(rows)
        self._show_tiles(rows)
        self._show_head(rows, found.totals)
        self._show_note()

    # Drawing

    def _show_table(self, rows: Sequence[JobRow]) -> None:
        if len(rows) == len(self.table.records):
            self.table.update_records(rows)
        else:
            self.table.show(rows)
        framed(self.table, f"Jobs ({len(rows)})")

    def _show_tiles(self, rows: Sequence[JobRow]) -> None:
        at_work = [row.job.job.key for row in rows if row.at_work]
        self._places = [str(key) for key in places_after(self._places, at_work)]
        first = not self.tiles.rows and bool(self._places)
        self.tiles.show([self._rows[key] for key in self._places])
        framed(self.tiles, f"At work ({len(at_work)})")
        self._fit_tiles(*self.size)
        if first and self._tiled and self.focused in (None, self.table):
            self.set_focus(self.tiles)

    def _fit_tiles(self, width: int, height: int) -> None:
        """Show whole rows of tiles in at most half of the height, but at least one row."""
        tiles = self.tiles
        tiles.display = self._tiled and bool(tiles.rows)
        needed = tiles.lines_for(len(tiles.rows), max(1, width - _FRAME_LINES))
        most = max(HEIGHT, (height // 2 - _FRAME_LINES) // HEIGHT * HEIGHT)
        lines = min(needed, most) + _FRAME_LINES
        if tiles.styles.height is None or tiles.styles.height.value != lines:
            tiles.styles.height = lines

    def _show_head(self, rows: Sequence[JobRow], totals: RunFigures) -> None:
        """Show the progress in the header, and the condition, rates and counts below."""
        self.head.show(head_lines(self._follower.run.settings, totals, rows))
        ended = sum(row.job.status is JobStatus.ENDED for row in rows)
        self._progress = (
            f"{gauge(ended, len(rows), _GAUGE_WIDTH)} {ended} of {plural(len(rows), 'job')} ended"
        )
        self._last_utc_ms = max((row.shown.clock.utc_ms or 0 for row in rows), default=0)
        self._show_clock()

    def _show_clock(self) -> None:
        state = f"{signs.HERE} at work" if self._at_work else f"{signs.PAUSED} no process at work"
        now = self._clock.utc_ms() if self._at_work else self._last_utc_ms
        elapsed = duration(now - self._follower.run.document.created_utc_ms) if now else ""
        self.header.show(
            words=state, fields=[HeaderField("", self._progress), HeaderField("elapsed", elapsed)]
        )

    def _spent_ms(self, row: JobRow) -> int:
        """Return the duration of an attempt in ms, up to now if it is still running."""
        clock = row.shown.clock
        if row.at_work:
            clock = clock.at(self._clock.mono_ms(), self._clock.utc_ms())
        return sum(clock.of(activity) for activity in ClockActivity)

    def _tick(self) -> None:
        """Draw the times again."""
        if self._at_work and self.app.screen is self:
            self.tiles.tick()
            self._show_clock()

    @on(RecordList.Moved)
    def _show_note(self) -> None:
        """Show the state of the job under the cursor, if any job of the run has halted or has a message."""
        needed = any(row.halted or row.job.message for row in self._rows.values())
        if self.note.display is not needed:
            self.note.display = needed
        row = self.table.chosen
        width, height = self.size
        lines = _NOTE_LINES if height >= TALL else _NOTE_LINES - 1
        room = lines * (width - _NOTE_LOSS)
        words = "" if row is None or not needed else job_sentence(row, self._follower.run.name, room)
        if self.note.styles.height is None or self.note.styles.height.value != lines:
            self.note.styles.height = lines
        if words != self._note_text:
            self._note_text = words
            self.note.update(words)

    # Keys and clicks

    @on(RecordList.Chosen)
    def row_chosen(self) -> None:
        """Watch the attempt under the cursor of the table."""
        if self.table.chosen is not None:
            self._open(self.table.chosen)

    @on(AttemptTiles.Chosen)
    def tile_chosen(self, message: AttemptTiles.Chosen) -> None:
        """Watch the attempt of a tile."""
        self._open(message.row)

    def _open(self, row: JobRow) -> None:
        if row.job.attempt:
            self.post_message(self.AttemptRequested(row.job.attempt))
        else:
            self.app.notify(row.job.message or "This job has no attempt yet.")

    def action_tiles(self) -> None:
        """Hide the tiles, or show them again."""
        self._tiled = not self._tiled
        self._fit_tiles(*self.size)
        self.set_focus(self.tiles if self.tiles.display else self.table)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the tiles only while there are some."""
        return action != "tiles" or bool(self._places)

    def action_leave(self) -> None:
        """Close the screen. The run continues."""
        self.dismiss(None)
