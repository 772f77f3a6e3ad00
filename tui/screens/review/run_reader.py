"""Reads a list of runs in a thread: headers first, then what only the whole of a run tells."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.sessions.runs.opening import Listed, list_runs
from gistpoint.tui.screens.review.run_rows import RunRow
from gistpoint.tui.screens.review.settings import ReviewSettings

if TYPE_CHECKING:
    from gistpoint.sessions.reviews.state import ReviewBook

_BATCH_S = 0.1
_REST_S = 0.002


class RunsListed(Message):
    """More runs of the list; `finished` when all headers are there."""

    def __init__(self, rows: list[RunRow], *, finished: bool) -> None:
        super().__init__()
        self.rows = rows
        self.finished = finished


class RunsFilled(Message):
    """More is known of runs that are listed."""

    def __init__(self, rows: list[RunRow]) -> None:
        super().__init__()
        self.rows = rows


class ListingFailed(Message):
    """The list can't be read; anything but a `UserError` is a bug."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class RunListReader:
    """One reading of the list."""

    def __init__(self, owner: MessagePump, paths: Sequence[str], settings: ReviewSettings) -> None:
        self._owner, self._paths, self._settings = owner, paths, settings
        self._cancel = CancelToken()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._work, name="run list", daemon=True).start()

    def stop(self) -> None:
        """End."""
        self._cancel.cancel()

    def _work(self) -> None:
        try:
            rows = self._list()
            self._fill(rows)
        except CancelledError:
            return
        except Exception as error:
            self._owner.post_message(ListingFailed(error))

    def _list(self) -> list[RunRow]:
        every: list[RunRow] = []
        batch: list[RunRow] = []
        told = 0.0
        for listed in list_runs(self._paths, cancel=self._cancel):
            batch.append(RunRow(listed, hides=self._settings.blind))
            if time.monotonic() - told > _BATCH_S:
                told = time.monotonic()
                self._owner.post_message(RunsListed(batch, finished=False))
                every += batch
                batch = []
                time.sleep(_REST_S)
        self._owner.post_message(RunsListed(batch, finished=True))
        return every + batch

    def _fill(self, rows: list[RunRow]) -> None:
        """Read each run to its end, small ones first, for what its header does not tell."""
        from gistpoint.core.attempts.clock import SystemTime
        from gistpoint.sessions.reviews.reviewing import ReviewStore

        book = ReviewStore(self._settings.locations.reviews, SystemTime()).book
        batch: list[RunRow] = []
        told = time.monotonic()
        for row in sorted(rows, key=lambda row: row.listed.size):
            if row.listed.header is None:
                continue
            batch.append(self._filled(row, book))
            if time.monotonic() - told > 2 * _BATCH_S:
                self._owner.post_message(RunsFilled(batch))
                batch, told = [], time.monotonic()
        if batch:
            self._owner.post_message(RunsFilled(batch))

    def _filled(self, row: RunRow, book: ReviewBook) -> RunRow:
        from gistpoint.sessions.reviews.keys import run_key
        from gistpoint.sessions.reviews.settling import settle
        from gistpoint.sessions.runs.opening import open_run

        try:
            document = open_run(row.name)
            document.build(cancel=self._cancel)
            settle(document, book)
            header = document.header
            review = book.review(run_key(document), self._settings.reviewer)
        except UserError as error:
            if isinstance(error, CancelledError):
                raise
            return replace(row, listed=replace(row.listed, problem=str(error)))
        known = row.header
        header = replace(header, task=header.task or known.task)
        counts: dict[str, int] = {}
        for label in review.labels:
            counts[label.label] = counts.get(label.label, 0) + 1
        labels = tuple(f"{name}×{count}" if count > 1 else name for name, count in sorted(counts.items()))
        said = review.verdict.verdict.value.replace("_", " ") if review.verdict is not None else ""
        hides = review.hides_outcome or (self._settings.blind and review.verdict is None)
        listed = Listed(row.name, row.listed.size, header, row.listed.problem)
        return RunRow(listed, labels, said, hides)
