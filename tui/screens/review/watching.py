"""Feeds the list of runs from files that are watched: new failures first, then the latest changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from gistpoint.core.readable import time_of_day
from gistpoint.core.text import plural
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun
from gistpoint.sessions.runs.watching import FolderWatch, News, WatchedRun, WatchState, news_first
from gistpoint.tui import signs
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.review.run_rows import ENDED, RunRow, hides_outcome
from gistpoint.tui.screens.review.settings import ReviewSettings

RowReader = Callable[[ReviewSettings], Callable[[RunRow, RunDocument], RunRow]]
"""A function that returns a reader of rows, which adds the annotations that exist when the reader is made."""
_POLL_S = 1.0
"""Seconds between two checks of the files."""
_STATES = {
    WatchState.WRITING: f"{signs.FORWARD} writing",
    WatchState.QUIET: f"{signs.IDLE} quiet",
    WatchState.ENDED: ENDED,
    WatchState.FAILED: f"{signs.BAD} failed",
}


@dataclass(frozen=True, slots=True)
class WatchedRows:
    """All rows in their order, and the file names of the runs that have failed since the previous rows.

    Failures that a blind review hides are left out.
    """

    rows: Sequence[RunRow]
    complete: bool
    """Whether all files that existed at the beginning have been read."""
    writing: int
    failed: Sequence[str]
    read: Collection[str] = frozenset()
    """The names of the runs that were read since the previous rows: facts read from them earlier are old."""
    left_out: int = 0
    """The number of files that are not watched."""

    @property
    def words(self) -> str:
        """The word `watching`, and the numbers of runs being written and of files left out, if any."""
        writing = f"{self.writing:,} being written" if self.writing else ""
        left_out = f"{plural(self.left_out, 'file')} left out" if self.left_out else ""
        return ", ".join(filter(None, ["watching", writing, left_out]))

    @property
    def failure_words(self) -> str:
        """A message about the new failures; empty if there are none."""
        if not self.failed:
            return ""
        more = f" and {plural(len(self.failed) - 1, 'other run')}" if len(self.failed) > 1 else ""
        return f"Failed: {self.failed[0]}{more}"


class ListWatch:
    """Watches the files of a list of runs. The results of reading are used only in the jobs' thread."""

    def __init__(self, paths: Sequence[str], settings: ReviewSettings, row_reader: RowReader) -> None:
        self._settings, self._row_reader = settings, row_reader
        self._watch = FolderWatch(paths, header_of=self._header)
        self._rows: dict[str, RunRow] = {}
        """The rows as they were last read, with the reviewer's annotations, by name."""
        self._read: Callable[[RunRow, RunDocument], RunRow] | None = None
        """A function that adds annotations to rows; made at most once in each check, None before that."""
        self._shown = (False, 0)
        """Whether everything has been read, and the number of files left out, as they were last shown."""
        self._just_read: set[str] = set()
        """The runs that were read since the rows were last shown, by name."""
        self._requests: deque[Sequence[str]] = deque()
        """The requests for the next check, each with the names of the runs to be read again."""

    def begin(self, jobs: Jobs, take: Callable[[WatchedRows], object]) -> None:
        """Begin to watch. `take` is called on the UI thread whenever something has changed."""
        jobs.repeat(_POLL_S, self._poll, lambda rows: rows is not None and take(rows))

    def use(self, settings: ReviewSettings) -> None:
        """Use other settings, such as those of a blind review, in the rows of the next check."""
        self._settings = settings
        self._requests.append(())

    def read_again(self, names: Sequence[str]) -> None:
        """Read runs again as soon as their costs allow, because they may have been annotated."""
        self._requests.append(names)

    def _poll(self, job: Job) -> WatchedRows | None:
        self._read = None
        watch = self._watch
        has_requests = bool(self._requests)
        while self._requests:
            watch.read_again(self._requests.popleft())
        reports = watch.look(cancel=job.cancel)
        shown, self._shown = self._shown, (watch.complete, watch.left_out)
        read, self._just_read = self._just_read, set()
        if not (reports or has_requests or read) and shown == self._shown:
            return None
        named = {news: {report.run.listed.name for report in reports if report.news is news} for news in News}
        for name in named[News.GONE]:
            self._rows.pop(name, None)
        return self._all_rows(named[News.FAILED], read)

    def _all_rows(self, failed: Collection[str], read: Collection[str]) -> WatchedRows:
        """Return all rows in their order; of the runs, those in `failed` have just failed."""
        watch = self._watch
        rows = [
            self._row(run) for run in news_first(watch.runs.values(), by_outcome=not self._settings.blind)
        ]
        names = [PurePath(row.name).name for row in rows if row.name in failed and not row.hides]
        writing = sum(run.state is WatchState.WRITING for run in watch.runs.values())
        return WatchedRows(rows, watch.complete, writing, names, read, watch.left_out)

    def _row(self, run: WatchedRun) -> RunRow:
        row = self._rows.get(run.listed.name, RunRow(run.listed))
        hides = hides_outcome(row.review, blind=self._settings.blind)
        at = "" if run.failed_at is None else f" {time_of_day(round(1000 * run.failed_at))[:5]}"
        now = _STATES[run.state] + at
        return replace(row, listed=run.listed, hides=hides, warning=run.warning, now=now)

    def _header(self, listed: ListedRun, document: RunDocument) -> Run:
        """Return a run's header with the reviewers' decision, and remember the reviewer's annotations."""
        if self._read is None:
            self._read = self._row_reader(self._settings)
        self._just_read.add(listed.name)
        row = self._read(RunRow(listed), document)
        self._rows[listed.name] = replace(row, listed=replace(listed, header=None))
        return row.header
