"""The display of a run while it is carried out: a live table, or a line for each job that ends or halts."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rich.cells import cell_len

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.readable import duration
from gistpoint.core.running import time_left
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.runner import JobReport
from gistpoint.sessions.agentruns.shown_attempts import shown_attempt
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.tasks import TaskTitles
from gistpoint.tui import signs
from gistpoint.tui.agent_rows import COLUMNS, JobRow, state_words
from gistpoint.tui.commands.output import drawn_on
from gistpoint.tui.tables import Laid, informative_columns, widths_in

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_DRAW_S = 0.25
_GAP, _EDGE = 3, 2
"""The number of cells between two columns, and at the edges of the table."""


class JobDisplay(Protocol):
    """A display of a run while it is carried out."""

    def __enter__(self) -> JobDisplay: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def changed(self, report: JobReport) -> None:
        """Report a change of a job; called in the job's thread."""
        ...

    def report(self, sentence: str) -> None:
        """Show a sentence about the whole run."""
        ...

    def draw(self, states: Mapping[str, AttemptState], sent: Collection[str] = ()) -> None:
        """Draw the states of the attempts, by the keys of their jobs; called on the main thread.

        `sent` are the keys of the jobs that a cluster's workers have.
        """
        ...


class JobLines:
    """A display of a run that prints a line to standard error for each job that has ended or halted."""

    def __init__(self, run: AgentRun, titled: TaskTitles, *, quiet: bool = False) -> None:
        """`titled` returns the title of a task by its id.

        With `quiet`, nothing is printed, because another program reads the output.
        """
        self._quiet, self._titled = quiet, titled
        self._numbers = {key: number for number, key in enumerate(run.jobs, start=1)}
        self._lock = Lock()
        self._reported: dict[str, JobStatus] = {}

    def __enter__(self) -> JobLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def changed(self, report: JobReport) -> None:
        """Print the line of a job that has ended or halted, once."""
        job = report.job
        if self._quiet or job.status not in (JobStatus.ENDED, JobStatus.HALTED):
            return
        with self._lock:
            if self._reported.get(job.job.key) is job.status:
                return
            self._reported[job.job.key] = job.status
            title = self._titled(job.job.task)
            shown = shown_attempt(report.state or AttemptState())
            row = JobRow(self._numbers[job.job.key], job, shown, title=title)
            print(
                f"{datetime.now():%H:%M:%S} {visible_line(_line(row, len(self._numbers)))}",
                file=sys.stderr,
                flush=True,
            )

    def report(self, sentence: str) -> None:
        """Print a sentence to standard error."""
        print(f"gistpoint: {visible_line(sentence)}", file=sys.stderr, flush=True)

    def draw(self, states: Mapping[str, AttemptState], sent: Collection[str] = ()) -> None:
        """Do nothing: lines are printed as jobs end."""


def _line(row: JobRow, jobs: int) -> str:
    """Return the line for a job that has ended or halted."""
    shown, usage, job = row.shown, row.shown.usage, row.job.job
    words = [
        f"job {row.number} of {jobs}, {row.title or job.task[:12]}, repeat {job.repeat}: {state_words(row)}"
    ]
    if row.begun:
        words += [
            plural(shown.turns, "turn"),
            plural(shown.calls, "call"),
            plural(usage.tokens, "token"),
        ]
    if usage.cost_usd is not None:
        words.append(f"${usage.cost_usd:.4f}")
    return ", ".join([*words, *filter(None, [row.job.attempt, row.job.message])])


class JobTable:
    """A table of jobs on the terminal, running ones first, with counts; drawn several times a second."""

    def __init__(self, run: AgentRun, titled: TaskTitles) -> None:
        """`titled` returns the title of a task by its id."""
        self._run, self._titled = run, titled
        self._live: Live | None = None
        self._drawn_at = 0.0
        self._began = time.monotonic()
        self._ended_before = sum(state.status is JobStatus.ENDED for state in run.jobs.values())

    def __enter__(self) -> JobTable:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(file=drawn_on(sys.stdout)), auto_refresh=False, transient=True)
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def changed(self, report: JobReport) -> None:
        """Do nothing: the next drawing shows the change."""

    def report(self, sentence: str) -> None:
        """Print a sentence above the table."""
        if self._live is not None:
            self._live.console.print(f"gistpoint: {visible_line(sentence)}", markup=False, highlight=False)

    def draw(self, states: Mapping[str, AttemptState], sent: Collection[str] = ()) -> None:
        """Draw the table, unless it was drawn less than a quarter of a second ago."""
        now = time.monotonic()
        if self._live is None or now - self._drawn_at < _DRAW_S:
            return
        self._drawn_at = now
        self._live.update(self._table(states, *self._live.console.size, sent), refresh=True)

    def _times(self, ended: int, jobs: int) -> str:
        """Return the elapsed time in words, with an estimate of the remaining time if there is one."""
        passed = time.monotonic() - self._began
        left = time_left(passed, ended - self._ended_before, jobs - ended)
        words = f", about {duration(1000 * left)} left" if left else ""
        return f"{duration(1000 * passed)}{words}."

    def _table(
        self, states: Mapping[str, AttemptState], width: int, height: int, sent: Collection[str] = ()
    ) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        jobs = list(self._run.jobs.values())
        rows = [
            JobRow(
                number,
                job,
                shown_attempt(states.get(job.job.key) or AttemptState()),
                live=job.status is JobStatus.BEGUN,
                sent=job.job.key in sent,
                title=self._titled(job.job.task),
            )
            for number, job in enumerate(jobs, start=1)
        ]
        ended = sum(job.status is JobStatus.ENDED for job in jobs)
        solved = sum(state_words(row).startswith(signs.GOOD) and not row.shown.mixed for row in rows)
        table = Table(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            title=(
                f"{ended} of {len(jobs)} ended, {solved} solved since this start."
                f" {self._times(ended, len(jobs))}"
                " Ctrl+C stops; finished work is kept."
            ),
            title_justify="left",
        )
        rows.sort(key=_urgency)
        rows = rows[: max(1, height - 6)]
        columns = _laid_out(rows, width)
        for column, cells in columns:
            table.add_column(
                column.name,
                justify="right" if column.right else "left",
                no_wrap=True,
                overflow="ellipsis",
                width=cells,
            )
        for row in rows:
            table.add_row(*(Text(visible_line(column.shown(row))) for column, _ in columns))
        return table


def _laid_out(rows: Sequence[JobRow], width: int) -> list[Laid[JobRow]]:
    """Return the columns that fit into `width` cells, with their widths, chosen as on the watch screen."""
    cells = [[column.shown(row) for row in rows] for column in COLUMNS]
    shown = informative_columns(COLUMNS, cells)
    columns = [
        (column, max(column.width, len(column.name), *(cell_len(visible_line(text)) for text in texts), 1))
        for column, texts in zip(COLUMNS, cells, strict=True)
        if column in shown
    ]
    return widths_in(columns, width - _EDGE, _GAP)


def _urgency(row: JobRow) -> int:
    """Return the sort key of a job in a table that is too small for all jobs; running jobs come first."""
    order = (JobStatus.BEGUN, JobStatus.HALTED, JobStatus.ENDED, JobStatus.EXCLUDED, JobStatus.QUEUED)
    return -1 if row.sent else order.index(row.job.status)
