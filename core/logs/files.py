"""Durable files: logs with one record per line, and files that are replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident

from gistpoint.core.errors import UserError
from gistpoint.core.locations import open_regular, read_regular
from gistpoint.core.logs.locks import APPENDING, FileLock
from gistpoint.core.unfinished import mark


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path of a file to system errors that name none, such as those of writing and syncing."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


sync_file = os.fsync if sys.platform == "darwin" else os.fdatasync
"""Syncs the content of an open file to disk."""
_STEP = 65_536
"""The number of bytes read at once of a first line, which identifies the file, or of a torn last line."""


def sync_folder(place: Path) -> None:
    """Sync the names in a folder to disk."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_whole(file: int, data: bytes, size: int) -> None:
    """Append `data` to an open file of `size` bytes, all or nothing, so that no half line is left.

    Raises `OSError`, after removing what was written.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(file, view) :]
    except OSError:
        os.ftruncate(file, size)
        raise


def replace_file(path: Path, data: bytes, *, durable: bool = True, mode: int = 0o666) -> None:
    """Replace a file atomically; if `durable`, the new one is synced to disk on return.

    Concurrent readers see either the old file or the new one. Raises `OSError` if it can't be written.
    """
    with naming(path):
        part = _hidden_copy(path, data, mode, durable=durable)
        try:
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)


def create_file(path: Path, data: bytes) -> None:
    """Write a file unless it exists, synced to disk on return: the first of two processes wins."""
    with naming(path):
        part = _hidden_copy(path, data, 0o600, durable=True)
        try:
            path.hardlink_to(part)
            sync_folder(path.parent)
        except FileExistsError:
            pass
        finally:
            part.unlink()


def _hidden_copy(path: Path, data: bytes, mode: int, *, durable: bool) -> Path:
    """Write a hidden file next to `path`, synced to disk if `durable`, and return its path.

    No other process or thread uses that path.
    """
    part = path.with_name(f".{path.name[:200]}.{mark()}-{get_ident()}.part")
    try:
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                sync_file(file.fileno())
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename = str(path)  # the user knows nothing of the hidden copy
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return part


def line_hash(line: bytes) -> str:
    """Return the hexadecimal sha256 of a line without its newline; a chained log links its lines with it."""
    return hashlib.sha256(line.rstrip(b"\n")).hexdigest()


@dataclass(frozen=True, slots=True)
class LogKind:
    """The kind of a log's records, with the version that this program writes."""

    name: str
    version: int = 1
    header: bytes = b""
    """The first line of a new log; empty for a kind whose version is recorded elsewhere."""
    error: type[UserError] = UserError
    """The error for a log that can't be used."""

    def check(self, first: bytes, where: str) -> None:
        """Raise the kind's error if a newer program wrote the first line of the log at `where`."""
        try:
            header = json.loads(first) if b'"version"' in first else None
        except (ValueError, RecursionError):
            return
        if not isinstance(header, dict) or header.get("format") != self.name:
            return
        version = header.get("version")
        if type(version) is not int or version > self.version:
            raise self.error(
                f"{where} is version {version!r:.20} of {self.name}, but this version of gistpoint knows"
                f" version {self.version}.",
                hint="Install a newer gistpoint.",
            )


@dataclass(frozen=True, slots=True)
class LogContent:
    """The lines of a log without newlines, including the header, and the text after the last newline.

    A record without its newline was never acknowledged and does not count.
    """

    lines: tuple[bytes, ...]
    torn: bytes = b""

    @classmethod
    def of(cls, data: bytes) -> LogContent:
        """Return the content of a log from its bytes."""
        *lines, torn = data.split(b"\n")
        return cls(tuple(lines), torn)


def read_log(path: Path, kind: LogKind) -> LogContent:
    """Return the content of a log.

    Raises the kind's error for a newer version, and `OSError` if the file can't be read or is a link.
    """
    content = LogContent.of(read_regular(path, links=False))
    kind.check(content.lines[0] if content.lines else b"", path.name)
    return content


def torn_path(path: Path) -> Path:
    """Return the path of the file for lines torn off a log."""
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.torn")


class AppendLog(AbstractContextManager["AppendLog"]):
    """A log open for appending; nobody else writes to it until it is closed."""

    def __init__(self, path: Path, kind: LogKind, lock: FileLock) -> None:
        """Open or create a log; `lock`, on the log or on a file that represents it, is held until `close`.

        Raises `OSError` if the log can't be opened, and the kind's error for a log of a newer version, to
        which nothing is written.
        """
        self.path, self._kind, self._lock, self._file = path, kind, lock, -1
        try:
            self._file = lock.file if lock.place == path else open_regular(path, APPENDING, links=False)
            kind.check(os.pread(self._file, _STEP, 0).partition(b"\n")[0], path.name)
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> LogContent:
        """Return the current content."""
        with os.fdopen(self._file, "rb", closefd=False) as file:
            file.seek(0)
            return LogContent.of(file.read())

    def append(self, lines: bytes, *, durable: bool = True) -> None:
        """Append lines, all or nothing; if `durable`, they are synced to disk on return.

        A torn last line is set aside first. A new log gets its header first, and its name is always synced.
        Raises `OSError` if the lines can't be written.
        """
        with naming(self.path):
            size = self.set_torn_aside()
            append_whole(self._file, lines if size else self._kind.header + lines, size)
            if durable:
                self.sync()
            if not size:
                sync_folder(self.path.parent)

    def last_line(self) -> bytes:
        """Return the last whole line without its newline, or the header's for a new log."""
        end = self.set_torn_aside()
        if not end:
            return self._kind.header.rstrip(b"\n")
        start, tail = end - 1, b""
        while start and b"\n" not in tail:
            step = min(start, _STEP)
            start -= step
            tail = os.pread(self._file, step, start) + tail
        return tail.rpartition(b"\n")[2]

    def remove_if_empty(self) -> None:
        """Delete the file if nothing could be written to it; the log must not be used afterwards."""
        if not os.fstat(self._file).st_size:
            self.path.unlink(missing_ok=True)

    def sync(self) -> None:
        """Sync appended lines to disk."""
        with naming(self.path):
            sync_file(self._file)

    def set_torn_aside(self) -> int:
        """Move text after the last newline to the file of torn lines; return the remaining size in bytes.

        That text was never acknowledged, so it does not count, but it is kept (decision 109).
        """
        size = os.fstat(self._file).st_size
        if not size or os.pread(self._file, 1, size - 1) == b"\n":
            return size
        start, tail = size, b""
        while start and b"\n" not in tail:
            step = min(start, _STEP)
            start -= step
            tail = os.pread(self._file, step, start) + tail
        whole = start + tail.rfind(b"\n") + 1
        aside = open_regular(torn_path(self.path), APPENDING, links=False)
        try:
            append_whole(aside, tail[whole - start :] + b"\n", os.fstat(aside).st_size)
            sync_file(aside)
        finally:
            os.close(aside)
        sync_folder(self.path.parent)  # the copy must be synced before the original is cut
        os.ftruncate(self._file, whole)
        return whole

    def close(self) -> None:
        """Close the log and release the lock; further calls do nothing."""
        if self._file not in (-1, self._lock.file):
            os.close(self._file)
        self._file = -1
        self._lock.release()
