"""Builds folders once, for their first user, and never changes them afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from glob import escape
from pathlib import Path

from gistpoint.core.logs import take
from gistpoint.core.running import NEVER, CancelToken

_TICK_S = 0.05


def build_once(folder: Path, build: Callable[[Path], None], cancel: CancelToken = NEVER) -> Path:
    """Return `folder`, after making it with `build` if it does not exist.

    `build` makes a temporary folder next to `folder`, which is then moved into place. Other threads and
    processes that request the folder in the meantime wait. A build that raises an error leaves nothing
    behind. Everybody can read the result, since another user may run the code, and nobody can write to it.
    Raises `CancelledError` if stopped while waiting.
    """
    lock = _lock_of(folder)
    if folder.is_dir():
        with contextlib.suppress(OSError):  # a cache of another user
            os.utime(lock)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(lock, cancel):
        # Another process may have built the folder while this process waited for the lock.
        if folder.is_dir():
            return folder
        for left in folder.parent.glob(f".{escape(folder.name)}-*"):
            remove_frozen(left)  # whoever made it was killed, or this process would not have the lock
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            built = temporary / "built"
            build(built)
            _freeze(built)
            # The top is frozen after the move, because only root can rename a folder that is not writable.
            built.chmod(0o755)
            built.rename(folder)
            folder.chmod(0o555)
        finally:
            remove_frozen(temporary)
    return folder


def last_used(folder: Path) -> float:
    """Return when a folder was last requested from `build_once`, or changed, in seconds since 1970."""
    found = 0.0
    for path in (folder, _lock_of(folder)):
        with contextlib.suppress(OSError):
            found = max(found, path.lstat().st_mtime)
    return found


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + ".lock")


def remove_frozen(folder: Path) -> None:
    """Remove a folder as far as possible, even if folders in it are not writable; ignore errors."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(place, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _freeze(folder: Path) -> None:
    # Links are skipped, because chmod would follow them to files outside of the folder.
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(0o555 if path.stat().st_mode & 0o100 else 0o444)
        for name in folders:
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(0o555)


@contextlib.contextmanager
def _locked(path: Path, cancel: CancelToken) -> Iterator[None]:
    while (lock := take(path)) is None:
        cancel.check()
        time.sleep(_TICK_S)
    with lock:
        yield
