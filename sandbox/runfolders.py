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


def remove_leftovers() -> int:
    """Remove the folders of runs whose program is gone, as their lock tells, and return how many there were.

    Folders younger than a minute are left alone: they may be about to be locked.
    """
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            stat = folder.lstat()
            if stat.st_uid != os.geteuid() or time.time() - stat.st_mtime < _YOUNG_S:
                continue
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
                removed += 1
            finally:
                os.close(held)
    return removed


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
