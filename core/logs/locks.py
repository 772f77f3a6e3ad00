"""Locks between processes, on an open file or folder, released when the process ends."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.locations import open_regular

APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT
_PAUSES_S = (0.01, 0.03, 0.1)
"""The seconds between tries to take a lock, because `is_held` in another process holds it for a moment."""


class NoLocksError(UserError):
    """The file system does not support locks."""


class FileLock(AbstractContextManager["FileLock"]):
    """A lock on a file or folder, which lasts until it is released or garbage-collected."""

    def __init__(self, place: Path | int) -> None:
        """Open a file, creating it if missing, or take over an open descriptor.

        A link is not followed: in a shared folder it could lead to any of the user's files.
        """
        self.place, self.file = place, -1
        self.is_new = isinstance(place, Path) and not place.exists()
        self.file = open_regular(place, APPENDING, links=False) if isinstance(place, Path) else place

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Close the file; further calls do nothing."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def wait_for(place: Path | int, *, shared: bool = False) -> FileLock:
    """Return the lock on a file, or on an open descriptor, after waiting for other holders.

    A `shared` lock can have several holders. Raises `NoLocksError` if the file system has no locks, and
    `OSError` if the file can't be opened.
    """
    while True:
        lock = FileLock(place)
        _lock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        if not _is_deleted(lock):
            return lock
        # Its last holder deleted the file: what is written to it now would be lost.
        lock.release()


def _is_deleted(lock: FileLock) -> bool:
    return isinstance(lock.place, Path) and os.fstat(lock.file).st_nlink == 0


def take(place: Path | int) -> FileLock | None:
    """Return the lock on a file, or on an open descriptor; None if it is still held after a moment.

    Raises `NoLocksError` if the file system has no locks, and `OSError` if the file can't be opened.
    """
    lock = FileLock(place)
    for pause in (*_PAUSES_S, 0.0):
        if _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return lock
        time.sleep(pause)
    lock.release()
    return None


def is_held(path: Path | str) -> bool:
    """Return whether a process, including this one, holds a file's exclusive lock.

    False if the file can't be opened, and True if it is unknown because the file system has no locks. Lists
    ask it for each of thousands of attempts, so it makes three system calls and no objects.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe in its place must not block
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # held, or unknown and so not free
        return True
    else:
        return False
    finally:
        os.close(file)


def _remove_empty(lock: FileLock) -> None:
    """Delete the file that was made for a lock: without locks, nobody writes anything into it."""
    with suppress(OSError):
        if isinstance(lock.place, Path) and lock.is_new and not os.fstat(lock.file).st_size:
            lock.place.unlink()


def _lock(lock: FileLock, how: int) -> bool:
    """Lock an open file; return False if it is held and `how` does not wait.

    After any error, the file is closed. Raises `NoLocksError` if it can't be locked.
    """
    try:
        fcntl.flock(lock.file, how)
    except BlockingIOError:
        return False
    except OSError as error:
        _remove_empty(lock)
        lock.release()
        raise NoLocksError(
            f"{lock.place if isinstance(lock.place, Path) else 'A folder'} can't be locked:"
            f" {error.strerror}.",
            hint="Keep gistpoint's data on a file system that locks files.",
        ) from error
    except BaseException:
        lock.release()
        raise
    return True
