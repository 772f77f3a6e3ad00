"""Determines from its end whether a file was cut off, regardless of its format and its number of runs."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.sessions.records.archives import Archive, Blob, FileBlob, RunFileError, opened
from gistpoint.sessions.records.scanning import CutOffError, Scanner, UnreadableError

CUT_OFF = "The file ends within a JSON value: it was cut off, or is still being written."
_WHOLE = 64 << 20
"""The size in bytes up to which a single JSON value is followed to its end."""
_QUICK = 1 << 20
"""The size in bytes below which a value is first checked by a faster parser."""
_TAIL = 1 << 20
"""The number of bytes at the end in which the beginning of the last line is searched for."""


def says_cut(warning: str) -> bool:
    """Return whether a warning reports that the file was cut off."""
    return warning.startswith("The file ends") or "cut off" in warning


def is_cut(path: Path) -> bool:
    """Return whether a file with JSON ends before its last value is complete.

    The readers report this if it happens in the records that they read. If a run is one of several in its
    file, or if the file was cut in a part that no record needs, only the end of the file shows it. False for
    an archive, and for a file that can't be read or doesn't contain JSON.
    """
    try:
        stat = path.stat()
        return _is_cut(str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
    except (OSError, RunFileError, ValueError):
        return False


@lru_cache(maxsize=64)  # a file may hold thousands of runs, each of which is checked
def _is_cut(path: str, *_state: int) -> bool:
    blob = opened(FileBlob(Path(path))) if Path(path).is_file() else None
    if blob is None or isinstance(blob, Archive):
        return False
    if not blob.read(0, 512).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return False
    if blob.size <= _WHOLE:
        return _ends_within_value(blob, 0) or _ends_within_value(blob, _last_line(blob))
    ending = blob.read(max(0, blob.size - 512), 512).rstrip(b" \t\r\n\0")
    return not ending.endswith((b"}", b"]"))


def _last_line(blob: Blob) -> int:
    """Return the offset of the last non-empty line; the file's size if the line's beginning is not found."""
    first = max(0, blob.size - _TAIL)
    tail = blob.read(first, _TAIL).rstrip(b" \t\r\n\0")
    line = tail.rfind(b"\n")
    return first + line + 1 if line >= 0 else blob.size


def _is_value(text: bytes) -> bool:
    """Return whether the text, or its first line, is a whole JSON value. Checks quickly; False if unsure."""
    if len(text) >= _QUICK:
        return False
    for whole in (text, text.partition(b"\n")[0]):
        with suppress(msgspec.MsgspecError, RecursionError):
            msgspec.json.decode(whole, type=decodable(msgspec.Raw))
            return True
    return False


def _ends_within_value(blob: Blob, start: int) -> bool:
    """Return whether the blob ends within the object or list at an offset; False for any other value."""
    if _is_value(blob.read(start, _QUICK)):
        return False
    scanner = Scanner(blob, start)
    try:
        if scanner.peek() not in ("{", "["):
            return False
        scanner.skip()
    except CutOffError:
        return True
    except UnreadableError:
        return False
    return False
