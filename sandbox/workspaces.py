"""Folders of runs: locked while in use, removed afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gistpoint.core.logs import NoLocksError, is_held, take, wait_for

_PREFIX = "gistpoint-run-"
_YOUNG_S = 60.0


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Create a folder that everyone may read, lock it while it is in use, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    with wait_for(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)):
        try:
            folder.chmod(0o755)
            yield folder
        finally:
            _remove(folder)


def leftovers() -> tuple[Path, ...]:
    """Return the folders of runs whose program is gone, according to their locks."""
    return tuple(_unlocked())


def remove_leftovers() -> int:
    """Remove the folders of runs whose program is gone, and return how many there were."""
    removed = 0
    for folder in _unlocked():
        _remove(folder)
        removed += 1
    return removed


def _unlocked() -> Iterator[Path]:
    """Yield unlocked folders, each locked until the next one is asked for.

    Folders younger than a minute are skipped: they may be about to be locked.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, NoLocksError):
            stat = folder.lstat()
            if stat.st_uid != os.geteuid() or time.time() - stat.st_mtime < _YOUNG_S or is_held(folder):
                continue
            lock = take(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
            if lock is not None:
                with lock:
                    yield folder


def _remove(folder: Path) -> None:
    """Remove a folder, even if the tested code removed permissions from folders in it."""
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for place, names, _ in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
