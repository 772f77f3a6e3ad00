"""Watches files of runs while programs write them, for runs that are new, changed, failed, ended or gone.

Each look compares sizes and times, and reads only what has changed, for a limited time. Only each run's
header without long texts is kept in memory; a few large files that are growing also stay open. Decision 176
defines when a run has changed, ended or failed.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.folders import run_files
from gistpoint.sessions.records.model import UNSOLVED, Run, StepKind
from gistpoint.sessions.runs.cut_files import says_cut
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun, files_of, list_runs, may_be_run, open_run

QUIET_S = 60.0
"""Seconds without a change after which a run without a recorded end counts as quiet."""
_SETTLED_S = 1.0
"""Seconds without a change after which a file is read, so that a record is not read while it is written."""
_MOST_WAITED_S = 5.0
"""Seconds after which a file that keeps changing is read all the same; a slow one waits longer."""
_COST = 10
"""A file that took one second to read is read again after this many seconds at the earliest."""
_KEPT_OPEN = 4
"""The number of growing files that are kept open, so that only what was appended is read."""
_WORTH_KEEPING = 4_000_000
"""The size in bytes from which a growing file is kept open."""
_ERROR = re.compile(r"error|exception|fail|crash|panic|traceback", re.IGNORECASE)


class WatchState(StrEnum):
    """The status of a watched run."""

    WRITING = "writing"
    """It has no recorded end, and its file has changed recently."""
    QUIET = "quiet"
    """It has no recorded end, and its file has not changed for some time."""
    ENDED = "ended"
    FAILED = "failed"


class News(StrEnum):
    """A kind of news about a run, found by a look at its file."""

    NEW = "new"
    GREW = "grew"
    ENDED = "ended"
    FAILED = "failed"
    QUIET = "quiet"
    GONE = "gone"
    UNREAD = "not read"
    """The file is not a run or can't be read, and has not changed for some time."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run as it was last read; times are seconds since the epoch.

    The header is without long texts. If the file can't be read as a run, `listed` has the problem.
    """

    listed: ListedRun
    state: WatchState
    changed_at: float
    """The time when the file was last written to."""
    failed_at: float | None = None
    """The time when the run was found to have failed; None unless it failed while it was watched."""
    warning: str = ""
    """The first problem with the file, other than an end that is still being written; empty if none."""


class Report(NamedTuple):
    """A piece of news with the run that it is about."""

    news: News
    run: WatchedRun


class _Stamp(NamedTuple):
    size: int
    mtime_ns: int
    ctime_ns: int
    """The time when the file was last changed in any way, which no program can set back."""
    inode: int


@dataclass(slots=True)
class _File:
    """A watched file: its last known state, and when it has to be read."""

    stamp: _Stamp
    seen_at: float
    """The time when the stamp was first seen, on the clock of the watch."""
    due_since: float | None
    """The time of the oldest change that has not been read yet; None if everything was read."""
    read_at: float = float("-inf")
    cost_s: float = 0.0
    not_before: float = float("-inf")
    """The time until which a half-written file is left alone, unless it changes."""
    names: tuple[str, ...] = ()
    """The runs in the file."""


HeaderOf = Callable[[ListedRun, RunDocument], Run]
"""Returns the header of a run that was read to its end, such as one with the verdict of reviewers."""


class FolderWatch:
    """Watches the runs in files and folders. One thread calls `look` again and again."""

    def __init__(
        self,
        paths: Iterable[str | Path],
        *,
        header_of: HeaderOf = lambda _listed, document: document.header,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` returns seconds since the epoch, `clock` seconds that never go back."""
        self._paths = [Path(path) for path in paths]
        self._header_of, self._now, self._clock = header_of, now, clock
        self._files: dict[Path, _File] = {}
        self.runs: dict[str, WatchedRun] = {}
        """The runs by name, as they were last read."""
        self._open: OrderedDict[str, RunDocument] = OrderedDict()
        self._compare_at = float("-inf")
        """The time of the next comparison of files; comparing a large folder less often saves time."""
        self.left_out = 0
        """The number of files that are not watched, because a folder contains too many."""
        self.complete = False
        """Whether all files that existed at the start have been read."""

    @property
    def waiting(self) -> int:
        """The number of changed files that are still to be read, without half-written ones left alone."""
        clock = self._clock()
        return sum(
            found.due_since is not None and found.not_before <= clock for found in self._files.values()
        )

    def look(self, *, limit_s: float = 1.0, cancel: CancelToken = NEVER) -> list[Report]:
        """Return the news since the last look, reading changed files for about `limit_s` seconds.

        Runs that exist at the first look are all reported as `NEW`, whatever their states. Raises
        `CancelledError` if cancelled.
        """
        reports: list[Report] = []
        if self._clock() >= self._compare_at:
            begun = self._clock()
            reports = self._compare(cancel)
            self._compare_at = self._clock() + _COST * (self._clock() - begun)
        until = self._clock() + limit_s
        due = [(found.due_since, path) for path, found in self._files.items() if self._is_ready(found)]
        for _, path in sorted(due, key=lambda item: (item[0] or 0.0, str(item[1]))):
            cancel.check()
            reports += self._read(path, cancel)
            if self._clock() > until:
                break
        reports += self._grown_quiet()
        self.complete = self.complete or not self.waiting
        return reports

    def read_again(self, names: Iterable[str]) -> None:
        """Read runs again at the next look, although their files may not have changed."""
        wanted = set(names)
        for file in self._files.values():
            if not wanted.isdisjoint(file.names):
                file.due_since = self._clock()

    # Changed files

    def _compare(self, cancel: CancelToken) -> list[Report]:
        """Record which files appeared or changed since the last look; return reports on vanished ones."""
        clock = self._clock()
        found: set[Path] = set()
        left_out: list[int] = []
        for given in self._paths:
            for path in files_of(given, left_out.append):
                cancel.check()
                stamp = _stamp(path)
                if stamp is None:
                    continue
                found.add(path)
                known = self._files.get(path)
                if known is None:
                    self._files[path] = _File(stamp, clock, clock)
                elif known.stamp != stamp:
                    known.stamp, known.seen_at, known.not_before = stamp, clock, clock
                    known.due_since = clock if known.due_since is None else known.due_since
        self.left_out = sum(left_out)
        gone = [path for path in self._files if path not in found]
        return [report for path in gone for report in self._vanished(self._files.pop(path))]

    def _vanished(self, file: _File) -> list[Report]:
        self._close(file)
        return [Report(News.GONE, self.runs.pop(name)) for name in file.names if name in self.runs]

    def _close(self, file: _File) -> None:
        for name in file.names:
            self._open.pop(name, None)

    def _is_ready(self, file: _File) -> bool:
        """Return whether to read a changed file now: it has stopped changing, or has waited long enough."""
        if file.due_since is None:
            return False
        clock = self._clock()
        if clock < max(file.not_before, file.read_at + file.cost_s * _COST):
            return False
        is_old = self._now() - file.stamp.mtime_ns / 1e9 > _SETTLED_S
        return is_old or clock - file.seen_at >= _SETTLED_S or clock - file.due_since >= _MOST_WAITED_S

    # Reading

    def _read(self, path: Path, cancel: CancelToken) -> list[Report]:
        """Read the runs of a changed file, and return the reports on them."""
        file = self._files[path]
        begun = self._clock()
        file.due_since = None
        reports: list[Report] = []
        names: list[str] = []
        for listed in list_runs([path], cancel=cancel):
            if listed.header is None and not may_be_run(listed, path):
                continue
            names.append(listed.name)
            reports += self._taken(self._watched(listed, file, cancel), file)
        for name in set(file.names) - set(names):
            self._open.pop(name, None)
            if name in self.runs:
                reports.append(Report(News.GONE, self.runs.pop(name)))
        file.names, file.read_at = tuple(names), self._clock()
        file.cost_s = file.read_at - begun
        return reports

    def _watched(self, listed: ListedRun, file: _File, cancel: CancelToken) -> WatchedRun:
        changed_at = file.stamp.mtime_ns / 1e9
        is_recent = self._now() - changed_at < QUIET_S
        unread = WatchedRun(listed, WatchState.WRITING if is_recent else WatchState.QUIET, changed_at)
        if listed.header is None:
            return unread
        try:
            document = self._document(listed, file, cancel)
            header = self._header_of(listed, document)
            ends_in_error = _ends_in_error(document)
        except CancelledError:
            raise
        except (UserError, OSError) as error:
            return replace(unread, listed=replace(listed, header=None, problem=str(error)))
        cut = any(map(says_cut, document.warnings))
        state = _watch_state(header, is_recent=is_recent, is_cut=cut, ends_in_error=ends_in_error)
        warnings = [text for text in document.warnings if not (is_recent and says_cut(text))]
        header = replace(header, task=header.task or listed.header.task)
        return WatchedRun(
            replace(listed, header=_short(header)), state, changed_at, warning=next(iter(warnings), "")
        )

    def _document(self, listed: ListedRun, file: _File, cancel: CancelToken) -> RunDocument:
        """Return a run, read to its end; of a growing file that is kept open, only the new part is read."""
        document = self._open.pop(listed.name, None)
        if document is None or not (document.changed and document.grow()):
            document = open_run(listed.name, known=listed.format)
        document.build(cancel=cancel)
        if file.stamp.size >= _WORTH_KEEPING:
            self._open[listed.name] = document
            while len(self._open) > _KEPT_OPEN:
                self._open.popitem(last=False)
        return document

    # News

    def _taken(self, run: WatchedRun, file: _File) -> list[Report]:
        """Store a run and return the news about it; do neither if its file may be half-written."""
        name, before = run.listed.name, self.runs.get(run.listed.name)
        is_unread = run.listed.header is None
        # A file that has just been created may have no record yet, or only a part of one.
        if is_unread and run.state is WatchState.WRITING:
            # The file may be half-written: it is read when it changes, or when it has been quiet for a time.
            file.due_since = self._clock()
            file.not_before = self._clock() + QUIET_S - (self._now() - run.changed_at)
            return []
        if run.state is WatchState.FAILED and self.complete:
            was_failed = before is not None and before.state is WatchState.FAILED
            run = replace(run, failed_at=before.failed_at if before and was_failed else self._now())
        self.runs[name] = run
        return [Report(self._news(run, before), run)] if run != before else []

    def _news(self, run: WatchedRun, before: WatchedRun | None) -> News:
        if run.listed.header is None:
            return News.UNREAD
        if before is None and not self.complete:
            return News.NEW
        before_state = None if before is None else before.state
        if run.state is not before_state and run.state in _NEWS:
            return _NEWS[run.state]
        return News.NEW if before is None else News.GREW

    def _grown_quiet(self) -> list[Report]:
        """Return reports on runs that have not changed for some time, and schedule them to be read again.

        Their last record may be an error, or may have stayed incomplete.
        """
        reports: list[Report] = []
        for name, run in self.runs.items():
            if run.state is WatchState.WRITING and self._now() - run.changed_at >= QUIET_S:
                self.runs[name] = run = replace(run, state=WatchState.QUIET)
                reports.append(Report(News.QUIET, run))
        if reports:
            self.read_again(report.run.listed.name for report in reports)
        return reports


_NEWS = {WatchState.FAILED: News.FAILED, WatchState.ENDED: News.ENDED, WatchState.QUIET: News.QUIET}


def _watch_state(header: Run, *, is_recent: bool, is_cut: bool, ends_in_error: bool) -> WatchState:
    """Return the status of a run. With an incomplete last record, it has not ended, unless it is quiet."""
    is_inferred = "exit_status" in header.derived
    recorded = header.exit_status if not (is_recent and is_inferred) else ""
    if is_recent and is_cut:
        return WatchState.WRITING
    if header.verdict == UNSOLVED or (not header.verdict and _ERROR.search(recorded)):
        return WatchState.FAILED
    if header.verdict or recorded:
        return WatchState.ENDED
    if is_recent:
        return WatchState.WRITING
    return WatchState.FAILED if ends_in_error else WatchState.QUIET


def _ends_in_error(document: RunDocument) -> bool:
    """Return whether the last step of a run is an error of the program or its provider."""
    count = document.step_count
    return count > 0 and document.step(count - 1).kind is StepKind.ERROR


def _short(header: Run) -> Run:
    """Return a header without its long texts: there may be thousands of runs."""
    return replace(header, prompt="", submission="", links=(), extra={}, warnings=(), also=(), not_shown=())


def _stamp(path: Path) -> _Stamp | None:
    """Return the size, the times and the identity of a file, or of a folder's files; None if it is gone."""
    try:
        if not path.is_dir():
            found = path.stat()
            return _Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        stats = [(path / part.name).stat() for part in run_files(path)]
    except OSError:
        return None
    latest = max((stat.st_mtime_ns for stat in stats), default=0)
    changed = max((stat.st_ctime_ns for stat in stats), default=0)
    return _Stamp(sum(stat.st_size for stat in stats), latest, changed, len(stats))


def news_first(runs: Iterable[WatchedRun], *, by_outcome: bool = True) -> Sequence[WatchedRun]:
    """Return runs in the order of a list, latest first: new failures by their times, then others by changes.

    Without `by_outcome`, the order does not show which runs have failed.
    """
    return sorted(
        runs, key=lambda run: (-(run.failed_at or 0.0) * by_outcome, -run.changed_at, run.listed.name)
    )
