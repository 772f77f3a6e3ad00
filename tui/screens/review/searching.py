"""Searches a run, or all of a list, in a thread; hits arrive in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.parts import Scope
from gistpoint.sessions.runs.searching import Hit, Query, search_document

KEPT = 20_000
"""Hits that are kept to go to; more are only counted."""
_BATCH_S = 0.1


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched, and where; `runs` are names of runs, empty for the one that is open."""

    pattern: str
    regex: bool = False
    scopes: tuple[Scope, ...] = tuple(Scope)
    runs: tuple[str, ...] = ()


class HitsFound(Message):
    """More hits of a search, or its end."""

    def __init__(self, wanted: Wanted, hits: list[Hit], count: int, *, finished: bool) -> None:
        super().__init__()
        self.wanted = wanted
        self.hits = hits
        self.count = count
        self.finished = finished


class SearchFailed(Message):
    """The search can't go on; anything but a `UserError` is a bug."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Searcher:
    """One search at a time; a new one ends the one before."""

    def __init__(self, owner: MessagePump) -> None:
        self._owner = owner
        self._cancel = CancelToken()

    def search(self, wanted: Wanted, document: RunDocument | None) -> None:
        """Begin."""
        self.stop()
        self._cancel = CancelToken()
        cancel = self._cancel
        threading.Thread(target=lambda: self._work(wanted, document, cancel), name="search", daemon=True).start()

    def stop(self) -> None:
        """End the search under way."""
        self._cancel.cancel()

    def _work(self, wanted: Wanted, document: RunDocument | None, cancel: CancelToken) -> None:
        try:
            query = Query(wanted.pattern, regex=wanted.regex, scopes=wanted.scopes)
            batch: list[Hit] = []
            count, told = 0, time.monotonic()
            for hit in self._hits(wanted, query, document, cancel):
                cancel.check()
                count += 1
                if count <= KEPT:
                    batch.append(hit)
                if count == 1 or time.monotonic() - told > _BATCH_S:
                    self._tell(HitsFound(wanted, batch, count, finished=False), cancel)
                    batch, told = [], time.monotonic()
                    time.sleep(0.001)
            self._tell(HitsFound(wanted, batch, count, finished=True), cancel)
        except CancelledError:
            return
        except Exception as error:
            if not cancel.cancelled:
                self._owner.post_message(SearchFailed(error))

    def _tell(self, message: Message, cancel: CancelToken) -> None:
        if not cancel.cancelled:
            self._owner.post_message(message)

    def _hits(self, wanted: Wanted, query: Query, document: RunDocument | None, cancel: CancelToken) -> Iterator[Hit]:
        if not wanted.runs:
            if document is not None:
                yield from search_document(document, query, cancel=cancel)
            return
        yield from hits_in_all(wanted.runs, query, cancel)


def hits_in_all(runs: Sequence[str], query: Query, cancel: CancelToken) -> Iterator[Hit]:
    """Yield the hits of runs by name; those that can't be read are passed over."""
    from gistpoint.sessions.runs.opening import open_run

    for name in runs:
        cancel.check()
        try:
            yield from search_document(open_run(name), query, cancel=cancel)
        except CancelledError:
            raise
        except UserError:
            continue
