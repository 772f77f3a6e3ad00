"""Shares annotations while people make them: a thread sends, fetches, and reports what people are reading.

It reads and writes the files of annotations like any other process. Only the thread imports SQLAlchemy.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.ending import wait_briefly
from gistpoint.sessions.team.pusher import pause_s

if TYPE_CHECKING:
    from gistpoint.sessions.team.annotations import Annotations
    from gistpoint.sessions.team.opened import TeamStore
    from gistpoint.sessions.team.replication import Source

EVERY_S = 4.0


@dataclass(frozen=True, slots=True)
class LiveState:
    """The state of sharing: what others are reading, and how many operations were fetched."""

    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The other people who are reading, by run or task."""
    fetched: int = 0
    """The number of other people's operations that were fetched so far."""
    problem: str = ""
    """The reason why nothing is shared now, as a sentence; empty if sharing works."""


class LiveAnnotations:
    """Shares one person's annotations of one kind with a team while the program runs."""

    def __init__(self, locations: Locations, clock: TimeSource, folder: str, reviewer: str) -> None:
        """`folder` is `reviews` or `validations`; the first call to `reading` starts the thread."""
        self.state = LiveState()
        self._locations, self._clock, self._folder, self._reviewer = locations, clock, folder, reviewer
        self._subject = ""
        self._wake, self._stop = Event(), Event()
        self._thread: Thread | None = None
        self._store: TeamStore | None = None
        self._annotations: Annotations | None = None
        self._sent: set[str] = set()
        """The uuids of the operations that the store contains."""
        self._numbers: dict[Source, int] = {}
        """The number of operations of each person and machine that were seen in the store."""
        self._sizes: dict[str, int] = {}
        """The sizes of the files when they were last read."""

    def reading(self, subject: str) -> None:
        """Report to others the run or task that is being read, by its key or id; empty for none."""
        self._subject = subject
        self._wake.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="live annotations", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def close(self) -> None:
        """Stop the thread, after waiting briefly for its last round."""
        if self._thread is None:
            return
        self._subject = ""
        self._stop.set()
        self._wake.set()
        wait_briefly(self._thread.join)
        atexit.unregister(self.close)

    def _run(self) -> None:
        failures = 0
        while True:
            last = self._stop.is_set()
            self._wake.clear()
            try:
                self._round()
                failures = 0
            except Exception as error:  # a problem of the store must not stop the person's work
                failures += 1
                self._annotations = None  # the store may have been restored, so everything is compared again
                words = error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                self.state = LiveState({}, self.state.fetched, words)
            if last:
                break
            self._wake.wait(pause_s(failures) if failures else EVERY_S)
        if self._store is not None:
            self._store.close()

    def _round(self) -> None:
        """Report the current reading, send new operations, and fetch those of others.

        Raises `UserError` if the store can't be used or does not let the reviewer write.
        """
        from gistpoint.sessions.team.annotations import (
            annotation_stores,
            exchange,
            fetch_new,
            last_numbers,
            send,
        )
        from gistpoint.sessions.team.connecting import reaching, require_extra
        from gistpoint.sessions.team.opened import open_store
        from gistpoint.sessions.team.presence import readers, record_reading

        if self._store is None:
            require_extra()
            store = open_store(self._locations, self._clock, prompt=True)
            if not store.rights.works:
                store.close()
                raise TeamStoreError(
                    "You have only a reader's rights on the store: annotations stay on this machine."
                )
            self._store = store
        machine = self._store.machine
        with reaching(self._store.address), self._store.engine.begin() as connection:
            record_reading(connection, self._folder, self._reviewer, machine, self._subject)
            others = readers(connection, self._folder, self._reviewer, machine)
            if self._annotations is None:
                annotations = annotation_stores(self._locations, self._clock)[self._folder]
                stores = {self._folder: annotations}
                self._numbers = last_numbers(connection, stores)
                fetched = exchange(connection, stores, machine).fetched
                self._annotations, self._sizes = annotations, _sizes(annotations)
                self._sent = {operation.op for operation in annotations.book.operations}
            else:
                stores = {self._folder: self._annotations}
                mine = self._unsent(self._annotations)
                send(connection, stores, machine, ((self._folder, operation) for operation in mine))
                self._sent.update(operation.op for operation in mine)
                fetched = fetch_new(connection, stores, self._numbers)
                if fetched:
                    self._sent.update(operation.op for operation in self._annotations.book.operations)
        self.state = LiveState(others, self.state.fetched + fetched)

    def _unsent(self, annotations: Annotations) -> list[Any]:
        """Return the operations written here since the last round, by this program or another one."""
        sizes = _sizes(annotations)
        if sizes == self._sizes:
            return []
        self._sizes = sizes
        annotations.reload()
        return [operation for operation in annotations.book.operations if operation.op not in self._sent]


def _sizes(annotations: Annotations) -> dict[str, int]:
    folder = annotations.folder
    return {path.name: path.stat().st_size for path in folder.glob("*.jsonl")} if folder.is_dir() else {}
