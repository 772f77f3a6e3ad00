"""The heads of journals, kept outside of them: a journal that was cut back or rewritten no longer has its head.

A head names the last event of an attempt that is on the disk. It is written after that event, so a journal may be ahead
of its head and is never behind it. A journal that came from elsewhere has none; once an attempt goes on here, its head
says from which event on one was kept.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

HEADS = "heads"
"""The folder beside those of the attempts that holds a file for each."""
_FORMAT = {"format": "gistpoint.head", "version": 1}
_BYTES = 256
"""Every head takes as much, within one sector, so that a new one replaces the old one whole."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a journal that is on the disk; `seq` 0 is a journal without an event."""

    seq: int
    sha256: str
    """Of the event's line, as `journal.line_hash` takes it."""
    since: int = 1
    """The first event that was written while a head was kept."""


class BrokenHeadError(ValueError):
    """A head can't be read."""


def head_path(folder: Path) -> Path:
    """Return where the head of the attempt in `folder` is kept."""
    return folder.parent / HEADS / folder.name


def read_head(folder: Path) -> Head | None:
    """Return the head of the attempt in `folder`, None where none is kept. Raises `BrokenHeadError`."""
    try:
        text = head_path(folder).read_bytes()
    except FileNotFoundError:
        return None
    if not text.strip(b"\0 \n"):
        return None  # a power cut between the file and its first content
    try:
        value = json.loads(text)
        if {name: value[name] for name in _FORMAT} != _FORMAT:
            raise BrokenHeadError(f"{folder.name}: the head is of another version.")
        return Head(int(value["seq"]), str(value["sha256"]), int(value["since"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BrokenHeadError(f"The head kept of {folder.name} can't be read.") from error


class HeadFile:
    """The head of one attempt, by the one process that writes its journal."""

    def __init__(self, folder: Path, head: Head) -> None:
        """Begin with `head`, which is on the disk on return."""
        path = head_path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._since = path, head.since
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        self._write(head.seq, head.sha256)
        self.sync()
        for place in (path.parent, path.parent.parent):
            sync_folder(place)

    def move(self, seq: int, sha256: str) -> None:
        """Name a later event, which is on the disk; `sync` takes the head there."""
        with contextlib.suppress(OSError):  # a head that stays behind is a sound one, and the event is safe
            self._write(seq, sha256)

    def sync(self) -> None:
        """Have the head on the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def remove(self) -> None:
        """Forget the head."""
        self._path.unlink(missing_ok=True)

    def _write(self, seq: int, sha256: str) -> None:
        line = json.dumps({**_FORMAT, "since": self._since, "seq": seq, "sha256": sha256})
        os.pwrite(self._file, line.ljust(_BYTES - 1).encode("ascii") + b"\n", 0)


def sync_folder(place: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
