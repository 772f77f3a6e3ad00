"""Folders that are restored after each of many runs in the same place."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator

_MOST = 96 << 20
TYPE_CHECKING = False
if TYPE_CHECKING:
    _Print = tuple[int, int, int, int]


class TooLargeError(Exception):
    """The folders are too large to be kept in memory."""


def _fingerprint(found: os.stat_result) -> _Print:
    return found.st_mode, found.st_ino, found.st_size, found.st_ctime_ns


class Pristine:
    """A copy of everything below some folders; making it raises `TooLargeError` if that exceeds 96 MiB."""

    def __init__(self, *folders: str) -> None:
        self.folders = folders
        self.contents: dict[str, bytes | str | None] = {}
        self.prints: dict[str, _Print] = {}
        size = 0
        for path, found in self._walk():
            size += found.st_size
            if size > _MOST:
                raise TooLargeError
            self.contents[path] = _read(path, found)
            self.prints[path] = _fingerprint(found)

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        waiting = list(self.folders)
        while waiting:
            folder = waiting.pop()
            try:
                entries = list(os.scandir(folder))
            except PermissionError:
                # A run may have made one of its folders inaccessible.
                os.chmod(folder, 0o700)
                entries = list(os.scandir(folder))
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                yield entry.path, found
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(entry.path)

    def restore(self) -> None:
        """Remove additions, as far as possible, and undo changes and removals."""
        seen = {}
        for path, found in self._walk():
            seen[path] = found
        for path in sorted(seen.keys() - self.contents.keys()):
            _remove(path)
        changed = [p for p in self.contents if p not in seen or not self._unchanged(p, seen[p])]
        # Sorted, so that a folder comes before its entries.
        for path in sorted(changed):
            self._write(path)

    def _unchanged(self, path: str, found: os.stat_result) -> bool:
        known = self.prints[path]
        if stat.S_ISDIR(known[0]):  # its times change with its content
            return known[0] == found.st_mode
        return known == _fingerprint(found)

    def _write(self, path: str) -> None:
        content, mode = self.contents[path], self.prints[path][0]
        if not stat.S_ISDIR(mode) or not os.path.isdir(path) or os.path.islink(path):
            _remove(path)
        if isinstance(content, str):
            os.symlink(content, path)
        elif isinstance(content, bytes):
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, stat.S_IMODE(mode))
        elif stat.S_ISDIR(mode):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, stat.S_IMODE(mode))
        with contextlib.suppress(FileNotFoundError):
            self.prints[path] = _fingerprint(os.lstat(path))


def _read(path: str, found: os.stat_result) -> bytes | str | None:
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            return file.read()
    return None


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
