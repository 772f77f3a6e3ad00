"""The reading of a list of runs in jobs: headers first, then whole runs, then content for queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.locations import Locations
from gistpoint.core.running import CancelToken
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.run_rows import RunRow, hides_outcome
from gistpoint.tui.screens.review.run_task import known_task, title_known
from gistpoint.tui.screens.review.settings import ReviewSettings

if TYPE_CHECKING:
    from gistpoint.core.queries import ContentTerm, RowQuery
    from gistpoint.sessions.annotations.reviews import ReviewBook
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.kept import KeptRun
    from gistpoint.sessions.runs.run_index import RunIndex

_BATCH_S = 0.1
_LARGEST_BATCH = 500
"""The maximum number of rows that are added at once; measuring more would delay the keyboard."""
_REST_S, _PAUSE_S = 0.002, 0.05


@dataclass(frozen=True, slots=True)
class RowBatch:
    """New or updated rows. `listed` is True after the headers of all runs have been read."""

    rows: Sequence[RunRow]
    listed: bool = True


def read_rows(
    job: Job,
    paths: Sequence[str],
    settings: ReviewSettings,
    on_batch: Callable[[RowBatch], object],
    is_second: Callable[[], bool],
) -> None:
    """Read a list of runs in a job: first all headers, then the runs in full, small ones first.

    `on_batch` is called with batches of rows on the UI thread. While `is_second` returns True, no run is read
    in full, because two reading threads slow each other down. Raises `CancelledError` if the job is
    cancelled.
    """
    every: list[RunRow] = []
    with _index(settings) as index:
        headers = (
            RunRow(listed, hides=settings.blind)
            for listed in list_runs(paths, cancel=job.cancel, with_unread=True, known=index)
        )
        for batch in _batches(headers, _BATCH_S):
            every += batch
            job.hand(on_batch, RowBatch(batch, listed=False))
            time.sleep(_REST_S)
        job.hand(on_batch, RowBatch(()))
        every.sort(key=lambda row: row.listed.size)
        _fill(job, every, _book(settings), settings, index, on_batch, is_second)


def read_again(
    job: Job, rows: Sequence[RunRow], settings: ReviewSettings, on_batch: Callable[[RowBatch], object]
) -> None:
    """Read again, in a job, the runs not yet read in full, and those annotated by the reviewer since then.

    `on_batch` is called with batches of rows on the UI thread. Raises `CancelledError` if the job is
    cancelled.
    """
    book = _book(settings)
    changed = [row for row in rows if _has_changed(row, book, settings.reviewer)]
    with _index(settings) as index:
        _fill(job, changed, book, settings, index, on_batch)


def find_content(
    job: Job,
    rows: Sequence[RunRow],
    query: RowQuery[RunRow],
    settings: ReviewSettings,
    on_found: Callable[[Mapping[tuple[str, bool, ContentTerm], bool]], object],
) -> None:
    """Determine, in a job, whether runs contain the content that a query asks for, if that decides a match.

    `on_found` is called on the UI thread with the findings since its last call. Raises `SearchError` if the
    search takes too long, and `CancelledError` if the job is cancelled.
    """
    from gistpoint.sessions.runs.run_queries import ContentFinder

    found: dict[tuple[str, bool, ContentTerm], bool] = {}

    def find(row: RunRow, term: ContentTerm) -> bool:
        answer = finder.find(row, term)
        found[row.name, row.hides, term] = answer
        return answer

    with _index(settings) as index:
        finder = ContentFinder(index, job.cancel)
        due = time.monotonic() + _BATCH_S
        for row in rows:
            if query.decide(row, query.find) is None:
                query.decide(row, find)
            if time.monotonic() > due:
                job.hand(on_found, found)
                found, due = {}, time.monotonic() + 2 * _BATCH_S
        job.hand(on_found, found)


def _index(settings: ReviewSettings) -> closing[RunIndex]:
    from gistpoint.sessions.runs.run_index import RunIndex

    return closing(RunIndex(settings.locations.cache))


def _book(settings: ReviewSettings) -> ReviewBook:
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.annotations.reviewer import ReviewStore

    return ReviewStore(settings.reviews, SystemTime()).book


def _has_changed(row: RunRow, book: ReviewBook, reviewer: str) -> bool:
    """Return whether a run was never read in full, or may have been annotated by the reviewer since then."""
    if row.review is None:
        return True
    known = book.runs_like(row.review.run)
    return book.review(row.review.run, reviewer) != row.review if row.review.run in known else bool(known)


def _fill(
    job: Job,
    rows: Iterable[RunRow],
    book: ReviewBook,
    settings: ReviewSettings,
    index: RunIndex,
    on_batch: Callable[[RowBatch], object],
    is_second: Callable[[], bool] = lambda: False,
) -> None:
    def rest(_: object) -> None:
        while is_second():
            job.cancel.check()
            time.sleep(_PAUSE_S)

    title = cache(partial(_title, locations=settings.locations))
    known = [row for row in rows if row.listed.header is not None]
    filled = (_filled(row, book, settings, index, job.cancel, title, rest) for row in known)
    # Each batch rearranges the whole list, which takes longer for longer lists.
    for batch in _batches(filled, 2 * _BATCH_S * (1 + len(known) // 1_000)):
        job.hand(on_batch, RowBatch(batch))


def _batches(rows: Iterable[RunRow], seconds: float) -> Iterator[list[RunRow]]:
    batch: list[RunRow] = []
    due = 0.0
    for row in rows:
        batch.append(row)
        if len(batch) >= _LARGEST_BATCH or time.monotonic() > due:
            yield batch
            batch, due = [], time.monotonic() + seconds
    yield batch


def _title(task: str, ended: bool, *, locations: Locations) -> str:
    return title_known(Run("", task=task, verdict="ended" if ended else ""), known_task(task, locations))


def _filled(
    row: RunRow,
    book: ReviewBook,
    settings: ReviewSettings,
    index: RunIndex,
    cancel: CancelToken,
    title: Callable[[str, bool], str],
    rest: Callable[[object], None],
) -> RunRow:
    from gistpoint.sessions.annotations.settling import first_key
    from gistpoint.sessions.runs.run_index import read_run

    try:
        rest(row)
        kept = read_run(row.listed, index, first_key, cancel=cancel, rest=rest)
        return _completed(row, kept, partial(open_run, row.name), book, settings, title)
    except CancelledError:
        raise
    except UserError as error:
        return replace(row, listed=replace(row.listed, problem=str(error)))


def row_reader(settings: ReviewSettings) -> Callable[[RunRow, RunDocument], RunRow]:
    """Return a function that completes the row of an open run with the current annotations."""
    from gistpoint.sessions.annotations.settling import first_key
    from gistpoint.sessions.runs.kept import kept_of

    book, title = _book(settings), cache(partial(_title, locations=settings.locations))

    def read(row: RunRow, document: RunDocument) -> RunRow:
        kept = kept_of(document, row.header, first_key)
        return _completed(row, kept, lambda: document, book, settings, title)

    return read


def _completed(
    row: RunRow,
    kept: KeptRun,
    reopened: Callable[[], RunDocument],
    book: ReviewBook,
    settings: ReviewSettings,
    title: Callable[[str, bool], str],
) -> RunRow:
    """Return the row of a run that was read to its end, with the reviewer's annotations."""
    from gistpoint.sessions.annotations.settling import key_of_kept, ruling_on
    from gistpoint.sessions.runs.cut_files import says_cut

    key = key_of_kept(kept, book, reopened)
    header, review = kept.settled(ruling_on(book, key)), book.review(key, settings.reviewer)
    header = replace(header, task=header.task or row.header.task)
    hides = hides_outcome(review, blind=settings.blind)
    listed = replace(row.listed, header=header)
    # The warning that the file was cut off is preferred, because it explains the others.
    warning = next(filter(says_cut, kept.warnings), next(iter(kept.warnings), ""))
    return RunRow(listed, review, hides, title(header.task, bool(header.verdict)), warning, kept)
