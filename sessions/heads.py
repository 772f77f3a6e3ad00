"""The heads of journals: the last event of each, stored in a file of its own to detect a shortened or changed journal.

A head is written after its event, so a journal may have later events than its head, but never fewer. A journal from
elsewhere has no head until its attempt is resumed on this machine; the head then names the first event since.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.logs import sync_folder

HEADS = "heads"
"""The folder, next to those of the attempts, with a file for each."""
ELSEWHERE = "elsewhere"
"""The folder, next to those of the attempts, with an empty file for each that was only fetched from other machines."""
_FORMAT = {"format": "gistpoint.head", "version": 1}
_BYTES = 256
"""The fixed size of a head, within one sector, so that a new one replaces the old one atomically."""


@dataclass(frozen=True, slots=True)
class Head:
    """Number and hash of a journal's last event that is known to be on the disk; `seq` is 0 if there is no event."""

    seq: int
    sha256: str
    """The hash of the event's line, as computed by `journal.line_hash`."""
    since: int = 1
    """The number of the first event that was written while the journal had a head."""


def from_elsewhere(root: Path) -> frozenset[str]:
    """Return the attempts below a folder that other machines made and that nobody went on with here."""
    with contextlib.suppress(OSError):
        return frozenset(path.name for path in (root / ELSEWHERE).iterdir())
    return frozenset()


class BrokenHeadError(ValueError):
    """The file of a head can't be read."""


def head_path(folder: Path) -> Path:
    """Return the path of the head of the attempt in `folder`."""
    return folder.parent / HEADS / folder.name


def read_head(folder: Path) -> Head | None:
    """Return the head of the attempt in `folder`, None if it has none. Raises `BrokenHeadError`."""
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
    """The head of one attempt, open for writing in the process that writes its journal."""

    def __init__(self, folder: Path, head: Head) -> None:
        """Write `head` to the disk."""
        path = head_path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._since = path, head.since
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        self._write(head.seq, head.sha256)
        self.sync()
        for place in (path.parent, path.parent.parent):
            sync_folder(place)

    def move(self, seq: int, sha256: str) -> None:
        """Change the head to a later event, which must be on the disk; `sync` writes the head to the disk."""
        with contextlib.suppress(OSError):  # an older head is still valid, and the event is safe
            self._write(seq, sha256)

    def sync(self) -> None:
        """Write the head to the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def remove(self) -> None:
        """Remove the head."""
        self._path.unlink(missing_ok=True)

    def _write(self, seq: int, sha256: str) -> None:
        line = json.dumps({**_FORMAT, "since": self._since, "seq": seq, "sha256": sha256})
        os.pwrite(self._file, line.ljust(_BYTES - 1).encode("ascii") + b"\n", 0)
