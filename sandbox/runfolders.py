"""Temporary folders of runs: removed at the end of the run, or at a later start where the program was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "gistpoint-run-"
_YOUNG_S = 60.0


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Make a folder that everyone may read, lock it for as long as it is in use, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.chmod(0o755)
        yield folder
    finally:
        _remove(folder)
        os.close(held)


def leftovers() -> tuple[Path, ...]:
    """Return the folders of runs whose program is gone, as their lock tells."""
    found = []
    for folder, held in _unlocked():
        os.close(held)
        found.append(folder)
    return tuple(found)


def remove_leftovers() -> int:
    """Remove the folders of runs whose program is gone, and return how many there were."""
    removed = 0
    for folder, held in _unlocked():
        _remove(folder)
        os.close(held)
        removed += 1
    return removed


def _unlocked() -> Iterator[tuple[Path, int]]:
    """Yield folders that nobody holds, locked by us, with the descriptor of the lock.

    Folders younger than a minute are left alone: they may be about to be locked.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        held = -1
        try:
            stat = folder.lstat()
            if stat.st_uid != os.geteuid() or time.time() - stat.st_mtime < _YOUNG_S:
                continue
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if held >= 0:
                os.close(held)
            continue
        yield folder, held


def _remove(folder: Path) -> None:
    """Remove a folder, also one from whose folders the tested code took permissions away."""
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for place, names, _ in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
