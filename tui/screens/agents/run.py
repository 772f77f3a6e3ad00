"""The screen that watches an agent's run: a table of its jobs, redrawn as their journals grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.message import Message

from gistpoint.core.attempts.results import by_tests_words
from gistpoint.core.attempts.state import AttemptResult, attempt_result, solved_words
from gistpoint.core.kinds.confirming import standing
from gistpoint.core.text import visible_line
from gistpoint.sessions.agentruns.following import FollowedJob, RunFollower
from gistpoint.sessions.agentruns.rates import bounds
from gistpoint.sessions.agentruns.store import JobStatus
from gistpoint.sessions.tasks import TaskTitles
from gistpoint.tui import signs
from gistpoint.tui.agent_rows import COLUMNS, JobRow
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.charts import gauge
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

POLL_S = 0.5
Watched: TypeAlias = tuple[Sequence[FollowedJob], Sequence[str], bool]
"""The jobs of a run with the titles of their tasks, and whether a process is working on it."""
_GAUGE = 10
"""The width, in cells, of the gauge of ended jobs."""


class JobTableView(Table[JobRow]):
    """The table of a run's jobs."""

    MARGIN, GAP = 1, 2

    def __init__(self) -> None:
        super().__init__(COLUMNS, key=lambda row: row.job.job.key, id="agent-jobs")


class RunWatchScreen(BaseScreen[None]):
    """The table of a run's jobs. Enter opens an attempt; the screen can't change the run."""

    CSS_PATH = "agents.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.WATCH)]
    HELP_PAGE = "watch"
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.WATCH,)

    table = query_one(JobTableView)
    header = query_one(HeaderBar)

    class AttemptAsked(Message):
        """A request to the app to watch an attempt."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    def __init__(self, follower: RunFollower, titled: TaskTitles) -> None:
        super().__init__()
        self._follower, self._titled = follower, titled
        self._jobs = Jobs(self, "watch-run")

    def compose(self) -> ComposeResult:
        """Lay out header, table and keys."""
        yield HeaderBar(self._follower.run.name)
        yield framed(JobTableView(), "Jobs")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the journals at once, and then periodically."""
        self.table.focus()
        self._jobs.repeat(POLL_S, lambda job: self._read(), self._show)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _read(self) -> Watched:
        jobs = self._follower.poll()
        titles = [self._titled(followed.job.job.task) for followed in jobs]
        return jobs, titles, self._follower.run.worked_on

    def _show(self, found: Watched) -> None:
        jobs, titles, at_work = found
        rows = [
            JobRow(number, followed.job, followed.state, live=at_work, title=title)
            for number, (followed, title) in enumerate(zip(jobs, titles, strict=True), start=1)
        ]
        if len(rows) == len(self.table.records):
            self.table.renew(rows)
        else:
            self.table.show(rows)
        self._show_progress(rows, at_work=at_work)

    def _show_progress(self, rows: Sequence[JobRow], *, at_work: bool) -> None:
        """Show the progress: the run and its counts in the header, the results of its jobs in the frame."""
        counts = Counter(row.job.status for row in rows)
        done, model = counts[JobStatus.ENDED], visible_line(self._follower.run.settings.model_and_api)
        self.header.show(
            words=f"{model}   {signs.HERE + ' at work' if at_work else signs.PAUSED + ' no process at work'}",
            fields=[HeaderField("", f"{gauge(done, len(rows), _GAUGE)} {done} of {len(rows)} jobs ended")],
        )
        parts = [_results(rows, at_work=at_work), *_counts(rows)]
        framed(self.table, f"Jobs ({len(rows)})", " · ".join(["Enter watches one", *parts]))

    @on(RecordList.Chosen)
    def open_attempt(self) -> None:
        """Watch the attempt under the cursor."""
        row = self.table.chosen
        if row is None or not row.job.attempt:
            self.app.notify(
                "This job has no attempt yet." if row is None or not row.job.message else row.job.message
            )
            return
        self.post_message(self.AttemptAsked(row.job.attempt))

    def action_leave(self) -> None:
        """Close the screen. The run continues."""
        self.dismiss(None)


def _results(rows: Sequence[JobRow], *, at_work: bool) -> str:
    """Return how many jobs are solved, with bounds if outcomes are missing and nobody is working on them."""
    alone = [row.state for row in rows if row.state.ended and not row.state.mixed]
    results = [attempt_result(state) for state in alone]
    refused = sum(row.job.status is JobStatus.ENDED and not row.job.attempt for row in rows)
    missing = bounds(results.count(AttemptResult.SOLVED), len(alone), len(rows) - refused - len(alone))
    others = missing.short_words if missing is not None and not at_work else ""
    return "; ".join(filter(None, [solved_words(results), others, by_tests_words(map(standing, alone))]))


def _counts(rows: Sequence[JobRow]) -> list[str]:
    """Return the numbers of jobs that are in no rate, and the cost, in words."""
    statuses = Counter(row.job.status for row in rows)
    numbers = {
        "mixed": sum(row.state.ended and row.state.mixed for row in rows),
        "halted": statuses[JobStatus.HALTED],
        "excluded": statuses[JobStatus.EXCLUDED],
    }
    costs = [cost for row in rows if (cost := row.state.spent.usage.cost_usd) is not None]
    return [
        *(f"{number} {name}" for name, number in numbers.items() if number),
        *([f"${sum(costs):.4f}"] if costs else []),
    ]
