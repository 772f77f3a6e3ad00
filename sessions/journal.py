"""The journal of an attempt: one event a line, each with the hash of the line before, on the disk before it counts.

Only whole lines count. A last line that was torn by a crash is moved to `journal.torn` when the attempt is opened for
writing, and left alone when it is only read.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from gistpoint.core.attempts.events import Event
from gistpoint.core.errors import AttemptError
from gistpoint.core.ports import TimeSource

JOURNAL = "journal.jsonl"
TORN = "journal.torn"
LOCK = "lock"
GROUP_SECONDS = 1.0
"""How long events that are synced in groups may wait for their sync."""
_sync = os.fsync if sys.platform == "darwin" else os.fdatasync


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What a journal holds."""

    events: tuple[Event, ...]
    head: str
    """sha256 of the last whole line."""
    whole: int
    """Bytes of whole lines."""
    torn: int
    """Bytes behind the last whole line."""
    broken_at: int | None
    """Number of the first line whose chain of hashes does not hold, 1-based; None where all of it holds."""


def encode(event: Event) -> bytes:
    """Return the line of an event, with its newline."""
    line = {
        "seq": event.seq,
        "type": event.type,
        "utc_ms": event.utc_ms,
        "mono_ms": event.mono_ms,
        "prev": event.prev,
        "data": event.data,
    }
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def line_hash(line: bytes) -> str:
    """Return the sha256 of a line without its newline."""
    return hashlib.sha256(line.rstrip(b"\n")).hexdigest()


def read_journal(path: Path) -> JournalContent:
    """Read a journal, whole lines only. Raises `AttemptError` where a whole line is no event."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise AttemptError(f"{path.name} is missing from {path.parent.name}.") from None
    whole = data.rfind(b"\n") + 1
    events: list[Event] = []
    head, broken_at = "", None
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        event = _decoded(line, path, number)
        if broken_at is None and (event.prev != head or event.seq != number):
            broken_at = number
        head = line_hash(line)
        events.append(event)
    return JournalContent(tuple(events), head, whole, len(data) - whole, broken_at)


def _decoded(line: bytes, path: Path, number: int) -> Event:
    try:
        value = json.loads(line)
        return Event(
            seq=int(value["seq"]),
            type=str(value["type"]),
            utc_ms=int(value["utc_ms"]),
            mono_ms=int(value["mono_ms"]),
            data=dict(value["data"]),
            prev=str(value["prev"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise AttemptError(
            f"{path.name}, line {number}: not an event ({error}).",
            hint="The journal was changed by something else; restore it from a copy.",
        ) from error


class JournalWriter:
    """Appends events to a journal that this process alone holds; a `core.ports.Recorder`."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Open or begin the journal in `folder`. Raises `AttemptError` where another process holds it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / JOURNAL
        self._clock = clock
        self._lock = Lock()
        self._timer: Timer | None = None
        self._holder = _held(folder)
        self.events: tuple[Event, ...] = ()
        """What the journal held when it was opened."""
        self._head, self._seq = "", 0
        try:
            if self.path.exists():
                self._recover(folder)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except BaseException:
            os.close(self._holder)
            raise
        self._size = os.fstat(self._file).st_size
        _sync_folder(folder)

    def append(self, type: str, data: Mapping[str, Any], *, durable: bool = True) -> Event:
        """Write one event; with `durable` it is on the disk on return, else within a second."""
        with self._lock:
            event = Event(self._seq + 1, type, self._clock.utc_ms(), self._clock.mono_ms(), data, self._head)
            line = encode(event)
            self._write(line)
            self._head, self._seq = line_hash(line), event.seq
            if durable:
                _sync(self._file)
            elif self._timer is None:
                self._timer = Timer(GROUP_SECONDS, self._sync_group)
                self._timer.daemon = True
                self._timer.start()
        return event

    @property
    def head(self) -> str:
        """The hash of the last line: exports print it."""
        return self._head

    def close(self) -> None:
        """Sync what is left and let go of the journal."""
        with self._lock:
            if self._file < 0:
                return
            if self._timer is not None:
                self._timer.cancel()
            _sync(self._file)
            os.close(self._file)
            os.close(self._holder)
            self._file = -1

    def _write(self, line: bytes) -> None:
        """Write a whole line or none of it: a full disk must not leave half a line in front of the next one."""
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(line)

    def _sync_group(self) -> None:
        with self._lock:
            self._timer = None
            if self._file >= 0:
                _sync(self._file)

    def _recover(self, folder: Path) -> None:
        content = read_journal(self.path)
        if content.torn:
            with self.path.open("rb") as file:
                file.seek(content.whole)
                torn = file.read()
            with (folder / TORN).open("ab") as file:
                file.write(torn + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.truncate(self.path, content.whole)
        self.events = content.events
        self._head, self._seq = content.head, content.events[-1].seq if content.events else 0


def _held(folder: Path) -> int:
    holder = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(holder)
        raise AttemptError(
            f"The attempt {folder.name} is open in another process.",
            hint="Close it there, or look at it here with `gistpoint attempt show`.",
        ) from None
    return holder


def _sync_folder(folder: Path) -> None:
    for place in (folder, folder.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
