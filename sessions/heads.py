"""The heads of journals, which reveal whether a journal was shortened or changed (decision 51).

A head records the last event of a journal in a separate file. It is written after the event, so a journal may
contain later events than its head, but never fewer. A journal from another machine has no head until its
attempt is resumed on this one; the head then also records the first event that was written here.

A head has a tag that can be computed only with the key of this machine. The key is outside the data folder,
together with a copy of the head of each of the user's attempts. A program that can write only to the data
folder can neither create a head, nor restore an older one, nor remove it. Decision 120 defines which heads
count.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from gistpoint.core.locations import Locations, read_regular
from gistpoint.core.logs import naming, sync_folder
from gistpoint.core.machine_key import key_for_writing, key_id, own_key

HEADS = "heads"
"""The folder, next to the folders of the attempts, that contains their heads."""
ELSEWHERE = "elsewhere"
"""The folder, next to those of the attempts, with an empty file for each attempt from another machine."""
COPIES = "last"
"""The folder in `Locations.proofs` that contains the copies of heads."""
_FORMAT = {"format": "gistpoint.head", "version": 1}
_BYTES = 256
"""The fixed size of a head: less than a sector, so that a new head replaces the old one atomically."""
_TAG_CHARACTERS = 32
"""The number of hexadecimal digits of a tag, 128 bits: a longer one might not fit into the sector."""


class HeadOrigin(StrEnum):
    """The writer of a head, judged by its tag."""

    HERE = "this machine"
    UNSIGNED = "unsigned"
    """An earlier version, or a machine that could not store a key; anybody can create such a head."""
    OTHER = "another machine"
    """A machine with another key, so the tag proves nothing on this one."""


@dataclass(frozen=True, slots=True)
class Head:
    """The number and hash of the last event known to be on disk; `seq` is 0 if there is no event."""

    seq: int
    sha256: str
    """The hash of the event's line, as computed by `journal.line_hash`."""
    since: int = 1
    """The number of the first event that was written while the journal had a head."""
    origin: HeadOrigin = HeadOrigin.HERE


def from_elsewhere(root: Path) -> frozenset[str]:
    """Return the ids of the attempts in `root` that come from other machines and were not continued here.

    Empty if the folder that lists them can't be read.
    """
    with contextlib.suppress(OSError):
        return frozenset(path.name for path in (root / ELSEWHERE).iterdir())
    return frozenset()


class BrokenHeadError(ValueError):
    """A head's file can't be read, or was changed by somebody without the key."""


def head_path(folder: Path) -> Path:
    """Return the path of the head for the attempt in `folder`."""
    return folder.parent / HEADS / folder.name


def read_head(folder: Path) -> Head | None:
    """Return the head of the attempt in `folder`; None if it has none.

    The copy outside the data folder is preferred, unless the head in the data folder is this machine's and at
    least as late. Raises `BrokenHeadError` if one of them can't be read, or has a wrong tag of this machine.
    """
    own = _read(head_path(folder), folder.name)
    place = _copy_path(folder)
    copy = _read(place, folder.name) if place is not None else None
    if copy is None or own is None:
        return copy or own
    return own if own.origin is HeadOrigin.HERE and own.seq >= copy.seq else copy


def has_head(folder: Path) -> bool:
    """Return whether the attempt in `folder` has a head or a copy of one."""
    return any(path.exists() for path in _head_paths(folder))


def remove_head(folder: Path) -> None:
    """Delete the head of the attempt in `folder`, and its copy."""
    for path in _head_paths(folder):
        path.unlink(missing_ok=True)


def move_head(folder: Path, to: Path) -> None:
    """Rename the head of an attempt and its copy, after its folder was renamed to a branch's."""
    for path, target in zip(_head_paths(folder), _head_paths(to), strict=True):
        if path.exists():
            path.rename(target)


class HeadFile:
    """The head of one attempt and its copy, open for writing in the process that writes the journal."""

    def __init__(self, folder: Path, head: Head) -> None:
        """Write `head` to disk. Raises `UserError` if the key of this machine is damaged."""
        path, copy = head_path(folder), _copy_path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._folder, self._since, self._key = folder, head.since, key_for_writing()
        self._files = [os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)]
        if copy is not None and self._key is not None:
            with contextlib.suppress(OSError):  # without a copy, the tag alone protects the head
                copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._files.append(os.open(copy, os.O_WRONLY | os.O_CREAT, 0o600))
        self._write(head.seq, head.sha256)
        self.sync()
        for place in (path.parent, path.parent.parent):
            sync_folder(place)

    def move(self, seq: int, sha256: str) -> None:
        """Set the head to a later event, which must be on disk; `sync` writes the head itself to disk.

        If this fails, the earlier head remains, which is still valid.
        """
        with contextlib.suppress(OSError):  # an older head is still valid, and the event is safe
            self._write(seq, sha256)

    def sync(self) -> None:
        """Write the head to disk."""
        with naming(head_path(self._folder)):
            for file in self._files:
                os.fsync(file)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)

    def remove(self) -> None:
        """Delete the head and its copy."""
        remove_head(self._folder)

    def _write(self, seq: int, sha256: str) -> None:
        value = {**_FORMAT, "since": self._since, "seq": seq, "sha256": sha256}
        if self._key is not None:
            head = Head(seq, sha256, self._since)
            value |= {"key": key_id(self._key), "tag": _tag(self._key, self._folder.name, head)}
        line = json.dumps(value).ljust(_BYTES - 1).encode("ascii") + b"\n"
        for file in self._files:
            os.pwrite(file, line, 0)


def _head_paths(folder: Path) -> list[Path]:
    """Return the paths of the head for the attempt in `folder` and of its copy, if there is to be one."""
    copy = _copy_path(folder)
    return [head_path(folder)] if copy is None else [head_path(folder), copy]


def _copy_path(folder: Path) -> Path | None:
    """Return the path of a head's copy; None for attempts outside the user's folder, such as a worker's."""
    locations = Locations.of_user()
    if folder.parent != locations.attempts and folder.parent.resolve() != locations.attempts.resolve():
        return None
    return locations.proofs / COPIES / folder.name


def _read(path: Path, attempt: str) -> Head | None:
    try:
        text = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BrokenHeadError(f"The stored head of {attempt} can't be read.") from error
    if not text.strip(b"\0 \n"):
        return None  # power was lost between creating and writing the file
    try:
        value = json.loads(text)
        if {name: value[name] for name in _FORMAT} != _FORMAT:
            raise BrokenHeadError(f"The stored head of {attempt} has another version.")
        head = Head(int(value["seq"]), str(value["sha256"]), int(value["since"]))
        key_named, tag = str(value.get("key", "")), str(value.get("tag", ""))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BrokenHeadError(f"The stored head of {attempt} can't be read.") from error
    return replace(head, origin=_origin(attempt, head, key_named, tag))


def _origin(attempt: str, head: Head, key_named: str, tag: str) -> HeadOrigin:
    """Return the writer of a head. Raises `BrokenHeadError` for this machine's key with a wrong tag."""
    if not key_named and not tag:
        return HeadOrigin.UNSIGNED
    key = own_key()
    if key is None or key_named != key_id(key):
        return HeadOrigin.OTHER
    if not hmac.compare_digest(tag.encode(), _tag(key, attempt, head).encode()):
        raise BrokenHeadError(
            f"The stored head of {attempt} was changed: it does not have the tag of this machine."
        )
    return HeadOrigin.HERE


def _tag(key: bytes, attempt: str, head: Head) -> str:
    """Return the tag of a head; a branch uses its attempt's id, because a journal becomes one only later."""
    text = json.dumps([_FORMAT["format"], attempt.partition("~")[0], head.since, head.seq, head.sha256])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:_TAG_CHARACTERS]
