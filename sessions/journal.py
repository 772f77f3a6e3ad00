"""The journal of an attempt: one event per line, each with the hash of the previous line.

A journal is an append log (`core/logs`) whose lines form a chain. A last line torn by a crash is moved to
`journal.torn` when the attempt is opened for writing, and left in place when it is only read. A journal that
was changed or shortened is never written to again.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Protocol

from gistpoint.core.attempts.events import (
    SCHEMA_VERSION,
    AttemptStarted,
    EventData,
    JournalEvent,
    OtherEvent,
    event_data,
)
from gistpoint.core.errors import AttemptError, cause
from gistpoint.core.locations import LARGEST_RECORDS, opened_regular, read_regular
from gistpoint.core.logs import AppendLog, FileLock, LogKind, is_held, line_hash, sync_folder, take
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.heads import BrokenHeadError, Head, HeadFile, HeadOrigin, read_head, remove_head

JOURNAL = "journal.jsonl"
LOCK = "lock"
KIND = LogKind("gistpoint.journal", error=AttemptError)
GROUP_SECONDS = 1.0
"""The longest time for which events wait to be synced together."""


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The content of a journal."""

    events: tuple[JournalEvent, ...]
    head: str
    """The SHA-256 of the line of the last event; empty if there is no event."""
    whole: int
    """The number of bytes in whole lines."""
    torn: int
    """The number of bytes after the last whole line."""
    broken_at: int | None
    """The number of the first line that is not an event or does not continue the chain; None without one."""
    fault: str = ""
    """The reason why the journal can't be continued, as a sentence; empty if it is intact."""
    kept: Head | None = None
    """The head that is stored separately; None without a readable head, as for another machine's journal."""


def encode(event: JournalEvent) -> bytes:
    """Return the line of an event, with its newline."""
    line = {
        "seq": event.seq,
        "type": event.type,
        "utc_ms": event.utc_ms,
        "mono_ms": event.mono_ms,
        "prev": event.prev,
        "data": event.data.written(),
    }
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def read_journal(path: Path) -> JournalContent:
    """Return the content of a journal, compared with its stored head.

    Its events are those of the whole lines before the first line that is not an event. Raises `AttemptError`
    if the file is missing, can't be read or is too large.
    """
    try:
        kept, fault = read_head(path.parent), ""  # read before the journal, which may grow in the meantime
    except BrokenHeadError as error:
        kept, fault = None, str(error)
    try:
        data = read_regular(path)
    except FileNotFoundError:
        raise AttemptError(f"{path.name} is missing from {path.parent.name}.") from None
    except OSError as error:
        raise AttemptError(f"{path.name} of {path.parent.name} can't be read: {cause(error)}.") from error
    return journal_in(data, kept, fault)


def journal_in(data: bytes, kept: Head | None = None, fault: str = "") -> JournalContent:
    """Return the content of a journal's bytes, compared with the head `kept` for it if there is one.

    `fault` is an already known fault, such as a fault of the head.
    """
    whole = data.rfind(b"\n") + 1
    events: list[JournalEvent] = []
    head, broken_at, at_head, newer = "", None, "", ""
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        event = decoded(line)
        if number == 1:
            newer = _newer(line, event)
        continues = event is not None and event.prev == head and event.seq == number
        if broken_at is None and not continues:
            broken_at = number
            fault = (
                f"Its chain of hashes breaks at line {number}."
                if event
                else f"Line {number} is not an event."
            )
        if event is None:
            break
        head = line_hash(line)
        events.append(event)
        if kept is not None and number == kept.seq:
            at_head = head
    # A fault in the chain also explains a head that is not found, and its sentence names the line.
    if kept is not None and not fault:
        fault = _fault_at_head(kept, at_head, len(events))
    return JournalContent(tuple(events), head, whole, len(data) - whole, broken_at, newer or fault, kept)


def _fault_at_head(kept: Head, found: str, events: int) -> str:
    """Return how a journal contradicts its head; empty if they agree.

    `found` is the hash of the event that the head names, and `events` the number of events.
    """
    expected = kept.sha256 if kept.seq else ""
    if found == expected:
        return ""
    if events < kept.seq:
        return f"It was cut off: it ends with event {events}, but event {kept.seq} was stored."
    return f"It was rewritten: event {kept.seq} is not the one that was stored."


def _newer(first: bytes, event: JournalEvent | None) -> str:
    """Return a sentence if a newer gistpoint wrote the first line of a journal; otherwise empty."""
    try:
        KIND.check(first, JOURNAL)
    except AttemptError as error:
        return str(error)
    match event and event.data:
        case AttemptStarted(schema=schema) | OtherEvent(data={"schema": int(schema)}) if (
            schema > SCHEMA_VERSION
        ):
            known = f"this version of gistpoint knows version {SCHEMA_VERSION}"
            return f"Its events have format version {schema}, but {known}."
    return ""


def decoded(line: bytes) -> JournalEvent | None:
    """Return the event in a line; None if the line is not an event."""
    try:
        value = _value_in(line)
        return JournalEvent(
            seq=int(value["seq"]),
            type=str(value["type"]),
            utc_ms=int(value["utc_ms"]),
            mono_ms=int(value["mono_ms"]),
            data=event_data(str(value["type"]), dict(value["data"])),
            prev=str(value["prev"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _value_in(line: bytes) -> Any:
    """Return the JSON value in a line, as `json.loads` does but faster: a study may have 100,000 lines."""
    if line.startswith(b'{"'):  # gistpoint writes only such lines, and they must be UTF-8
        text = line.decode("utf-8", "surrogatepass")
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    return json.loads(line)


_DECODER = json.JSONDecoder()


class JournalListener(Protocol):
    """A listener to the attempts that this process writes, identified by their folders.

    Every method returns at once, and only `resuming` may raise.
    """

    def resuming(self, folder: Path) -> None:
        """Called before an attempt is resumed. Raises `AttemptError` if that is not allowed."""

    def opened(self, folder: Path) -> None:
        """Called after an attempt was opened for writing."""

    def wrote(self, folder: Path) -> None:
        """Called after a line was written."""

    def closed(self, folder: Path) -> None:
        """Called after the journal was closed."""


class JournalWriter:
    """Appends events to a journal that no other process has open; a `core.ports.Recorder`."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Open or create the journal in `folder`.

        Raises `AttemptError` if another process has it open, if it was changed or shortened, or if a newer
        gistpoint wrote it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / JOURNAL
        self._clock = clock
        self._lock = Lock()
        self._timer: Timer | None = None
        self._closed = False
        self._listener: JournalListener | None = None
        self.events: tuple[JournalEvent, ...] = ()
        """The events that the journal contained when it was opened."""
        self._head, self._seq = "", 0
        is_new = not self.path.exists()
        try:
            self._open(folder)
        except OSError:
            if is_new:
                self._remove_empty(folder)
            raise

    def _open(self, folder: Path) -> None:
        with ExitStack() as opened:
            lock = opened.enter_context(_take_lock(folder))
            since = self._load() if self.path.exists() else 1
            self._log = opened.enter_context(AppendLog(self.path, KIND, lock))
            self._log.set_torn_aside()
            self._log.sync()
            for place in (folder, folder.parent):
                sync_folder(place)
            self._kept = HeadFile(folder, Head(self._seq, self._head, since))
            opened.pop_all()

    def append(self, data: EventData) -> JournalEvent:
        """Write an event and return it; a durable one is on disk on return, others within a second."""
        with self._lock:
            event = JournalEvent(
                self._seq + 1, data.type, self._clock.utc_ms(), self._clock.mono_ms(), data, self._head
            )
            line = encode(event)
            self._log.append(line, durable=False)
            self._head, self._seq = line_hash(line), event.seq
            if data.durable:
                # In this order, a journal may be ahead of its head but never behind it (decision 51).
                self._log.sync()
                self._kept.move(self._seq, self._head)
            if self._timer is None:
                self._timer = Timer(GROUP_SECONDS, self._sync_group)
                self._timer.daemon = True
                self._timer.start()
        if self._listener is not None:
            self._listener.wrote(self.path.parent)
        return event

    def set_listener(self, listener: JournalListener) -> None:
        """Notify a listener from now on, beginning with the fact that the attempt is open."""
        self._listener = listener
        listener.opened(self.path.parent)

    @property
    def head(self) -> str:
        """The hash of the last line, which exports contain."""
        return self._head

    def close(self) -> None:
        """Sync the remaining events and close the journal."""
        with self._lock:
            if self._closed:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._sync_all()
            self._closed = True
            self._kept.close()
            self._log.close()
        if self._listener is not None:
            self._listener.closed(self.path.parent)

    def discard(self) -> None:
        """Close the journal, and delete its folder if nothing was written."""
        try:
            self.close()
        finally:
            if self._seq == 0:
                self._remove_empty(self.path.parent)

    def _remove_empty(self, folder: Path) -> None:
        """Delete the folder of an attempt without events.

        A full disk can leave such a folder behind, and nobody could ever end such an attempt.
        """
        with suppress(FileNotFoundError):
            if self.path.stat().st_size:
                return
        remove_head(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def _sync_group(self) -> None:
        with self._lock:
            self._timer = None
            if not self._closed:
                self._sync_all()

    def _sync_all(self) -> None:
        self._log.sync()
        self._kept.move(self._seq, self._head)
        self._kept.sync()

    def _load(self) -> int:
        """Load the existing content, and return the number of the first event written while there was a head.

        Raises `AttemptError` if the journal is damaged.
        """
        content, attempt = read_journal(self.path), self.path.parent.name
        if content.fault:
            raise AttemptError(
                f"The attempt {attempt} can be read, but not resumed. {content.fault}",
                hint=(
                    f"`gistpoint attempt show {attempt}` and `gistpoint review {attempt}` show its contents."
                ),
            )
        self.events = content.events
        self._head, self._seq = content.head, len(content.events)
        # A head that this machine did not sign proves nothing about earlier events (decision 120).
        if content.kept is None or content.kept.origin is not HeadOrigin.HERE:
            return self._seq + 1
        return content.kept.since


def is_open(folder: Path) -> bool:
    """Return whether a process, including this one, has the attempt in `folder` open for writing."""
    return is_held(folder / LOCK)


def first_event(path: Path) -> JournalEvent | None:
    """Return the first event of a journal; None if the event is missing or can't be read."""
    with suppress(OSError), opened_regular(path) as file:
        return decoded(file.readline(LARGEST_RECORDS))
    return None


def _take_lock(folder: Path) -> FileLock:
    lock = take(folder / LOCK)
    if lock is None:
        raise AttemptError(
            f"The attempt {folder.name} is open in another window or process.",
            hint="Close it there, or look at it here with `gistpoint attempt show`.",
        )
    return lock
