"""The journal of an attempt: one event per line, each with the hash of the previous line, synced before it counts.

Only whole lines count. A last line that was torn by a crash is moved to `journal.torn` when the attempt is opened for
writing, and left in place when it is only read. A journal that was changed or cut back is never written to again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import Protocol

from gistpoint.core.attempts.events import EventData, JournalEvent, event_data
from gistpoint.core.errors import AttemptError
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.disk import append_whole, sync_file, sync_folder
from gistpoint.sessions.heads import BrokenHeadError, Head, HeadFile, read_head

JOURNAL = "journal.jsonl"
TORN = "journal.torn"
LOCK = "lock"
GROUP_SECONDS = 1.0
"""How long events that are synced in groups may wait for their sync."""
_LOOKS_S = (0.01, 0.03, 0.1)


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The content of a journal."""

    events: tuple[JournalEvent, ...]
    head: str
    """sha256 of the last whole line."""
    whole: int
    """Bytes of whole lines."""
    torn: int
    """Bytes after the last whole line."""
    broken_at: int | None
    """Number of the first line that is not an event, or whose hash of the previous line is wrong; None without one."""
    fault: str = ""
    """Why it can't be resumed, in a sentence; empty if it is intact."""
    kept: Head | None = None
    """The head that was stored separately; None for a journal from elsewhere."""


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


def line_hash(line: bytes) -> str:
    """Return the sha256 of a line without its newline."""
    return hashlib.sha256(line.rstrip(b"\n")).hexdigest()


def read_journal(path: Path) -> JournalContent:
    """Read a journal and compare it with its head; only whole lines, up to the first that is not an event.

    Raises `AttemptError` if there is no journal.
    """
    try:
        kept, fault = read_head(path.parent), ""  # before the journal, which may grow meanwhile
    except BrokenHeadError as error:
        kept, fault = None, str(error)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise AttemptError(f"{path.name} is missing from {path.parent.name}.") from None
    return journal_in(data, kept, fault)


def journal_in(data: bytes, kept: Head | None = None, fault: str = "") -> JournalContent:
    """Return the content of a journal's bytes, compared with the head that was kept of it if there is one."""
    whole = data.rfind(b"\n") + 1
    events: list[JournalEvent] = []
    head, broken_at, at_head = "", None, ""
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        event = decoded(line)
        if broken_at is None and (event is None or event.prev != head or event.seq != number):
            broken_at = number
            fault = f"Its chain of hashes breaks at line {number}." if event else f"Line {number} is no event."
        if event is None:
            break
        head = line_hash(line)
        events.append(event)
        if kept is not None and number == kept.seq:
            at_head = head
    if kept is not None and not fault and at_head != (kept.sha256 if kept.seq else ""):
        fault = (
            f"It was cut back: it ends with event {len(events)}, and event {kept.seq} was on the disk."
            if len(events) < kept.seq
            else f"It was rewritten: event {kept.seq} is not the one that was on the disk."
        )
    return JournalContent(tuple(events), head, whole, len(data) - whole, broken_at, fault, kept)


def decoded(line: bytes) -> JournalEvent | None:
    """Return the event of a line; None if the line is none."""
    try:
        value = json.loads(line)
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


class JournalListener(Protocol):
    """Is told of the attempts that this process writes, by the folder of each; every method returns at once.

    None of them may raise, but for `resuming`.
    """

    def resuming(self, folder: Path) -> None:
        """Take notice before an attempt is opened to go on with it. Raises `UserError` if that must not be."""

    def opened(self, folder: Path) -> None:
        """Take notice of an attempt that is open for writing now."""

    def wrote(self, folder: Path) -> None:
        """Take notice of a line that was written."""

    def closed(self, folder: Path) -> None:
        """Take notice of the end of writing."""


class JournalWriter:
    """Appends events to a journal that no other process has open for writing; a `core.ports.Recorder`."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Open or create the journal in `folder`.

        Raises `AttemptError` if another process holds it, or if it was changed or cut back.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / JOURNAL
        self._clock = clock
        self._lock = Lock()
        self._timer: Timer | None = None
        self._holder = _held(folder)
        self._listener: JournalListener | None = None
        self.events: tuple[JournalEvent, ...] = ()
        """The events in the journal when it was opened."""
        self._head, self._seq = "", 0
        self._file = -1
        try:
            since = self._recover(folder) if self.path.exists() else 1
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._size = os.fstat(self._file).st_size
            sync_file(self._file)
            for place in (folder, folder.parent):
                sync_folder(place)
            self._kept = HeadFile(folder, Head(self._seq, self._head, since))
        except BaseException:
            if self._file >= 0:
                os.close(self._file)
            os.close(self._holder)
            raise

    def append(self, data: EventData) -> JournalEvent:
        """Write one event; one that is durable is on the disk on return, others within a second."""
        with self._lock:
            event = JournalEvent(
                self._seq + 1, data.type, self._clock.utc_ms(), self._clock.mono_ms(), data, self._head
            )
            line = encode(event)
            self._write(line)
            self._head, self._seq = line_hash(line), event.seq
            if data.durable:
                sync_file(self._file)
                self._kept.move(self._seq, self._head)
            if self._timer is None:
                self._timer = Timer(GROUP_SECONDS, self._sync_group)
                self._timer.daemon = True
                self._timer.start()
        if self._listener is not None:
            self._listener.wrote(self.path.parent)
        return event

    def tell(self, listener: JournalListener) -> None:
        """Tell a listener of the journal from now on."""
        self._listener = listener
        listener.opened(self.path.parent)

    @property
    def head(self) -> str:
        """The hash of the last line; exports print it."""
        return self._head

    def close(self) -> None:
        """Sync the remaining events and close the journal."""
        with self._lock:
            if self._file < 0:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._sync_all()
            os.close(self._file)
            self._kept.close()
            os.close(self._holder)
            self._file = -1
        if self._listener is not None:
            self._listener.closed(self.path.parent)

    def discard(self) -> None:
        """Close a journal to which nothing was written, and remove it."""
        self.close()
        if self._seq == 0:
            self._kept.remove()
            shutil.rmtree(self.path.parent)

    def _write(self, line: bytes) -> None:
        """Write a whole line or none of it: a full disk must not leave half a line before the next one."""
        append_whole(self._file, line, self._size)
        self._size += len(line)

    def _sync_group(self) -> None:
        with self._lock:
            self._timer = None
            if self._file >= 0:
                self._sync_all()

    def _sync_all(self) -> None:
        sync_file(self._file)
        self._kept.move(self._seq, self._head)
        self._kept.sync()

    def _recover(self, folder: Path) -> int:
        """Load the existing content; return the first event that was written while a head was kept."""
        content = read_journal(self.path)
        if content.fault:
            raise AttemptError(
                f"The attempt {folder.name} can be read, but not resumed. {content.fault}",
                hint=f"`gistpoint attempt show {folder.name}` and `gistpoint review {folder.name}` show what there is.",
            )
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
        self._head, self._seq = content.head, len(content.events)
        return content.kept.since if content.kept is not None else self._seq + 1


def is_open(folder: Path) -> bool:
    """Whether a process, this one included, has the attempt in `folder` open for writing."""
    try:
        holder = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(holder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(holder)
    return False


def first_event(path: Path) -> JournalEvent | None:
    """Return the first event of a journal, None if there is none."""
    with suppress(OSError), path.open("rb") as file:
        return decoded(file.readline())
    return None


def _held(folder: Path) -> int:
    holder = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    for wait in (*_LOOKS_S, None):
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if wait is not None:
                time.sleep(wait)  # another process may only have checked whether the attempt is open
                continue
            os.close(holder)
            raise AttemptError(
                f"The attempt {folder.name} is open in another window or process.",
                hint="Close it there, or look at it here with `gistpoint attempt show`.",
            ) from None
        break
    return holder
