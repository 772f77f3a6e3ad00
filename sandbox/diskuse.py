"""How much disk a run holds, for isolation that can't give it a file system of its own size."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.sandbox.backends.base import Stop
from gistpoint.sandbox.memory import descendants

_BLOCK = 512  # the unit of st_blocks, whatever the file system's own is
_LEAST_PAUSE_S = 0.25
_SHARE = 10
"""A look may take a tenth of the time at most."""


@dataclass
class DiskWatch:
    """Tells whether a folder, and the removed files that the processes below `pid` hold open, became too large."""

    folder: Path
    pid: int
    limit: int
    """Bytes."""
    most_files: int = 200_000
    _next: float = 0.0
    _free_before: int = field(default=0)

    def __post_init__(self) -> None:
        self._free_before = _free(self.folder)

    def exceeded(self) -> bool:
        """Look, unless the last look was a moment ago."""
        began = time.monotonic()
        if began < self._next:
            return False
        used, files, hidden = _held(self.folder)
        used += _removed_but_open(self.pid, self.folder)
        if hidden:  # a folder that the run closed to us too: then by what is missing on the disk
            used += max(0, self._free_before - _free(self.folder) - used)
        now = time.monotonic()
        self._next = now + max(_LEAST_PAUSE_S, _SHARE * (now - began))
        return used > self.limit or files > self.most_files

    def reason(self) -> Stop | None:
        """Return why the run is to be stopped, if it is."""
        return Stop.TOO_MUCH_DISK if self.exceeded() else None


def _held(folder: Path) -> tuple[int, int, bool]:
    """Return the bytes and the files below `folder`, and whether some of it can't be read."""
    used = files = 0
    hidden = False
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        files += 1
                        used += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            hidden = True
    return used, files, hidden


def _removed_but_open(pid: int, folder: Path) -> int:
    device, seen, used = folder.stat().st_dev, set[int](), 0
    for process in descendants(pid):
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    if found.st_dev == device and found.st_nlink == 0 and found.st_ino not in seen:
                        seen.add(found.st_ino)
                        used += found.st_blocks * _BLOCK
    return used


def _free(folder: Path) -> int:
    told = os.statvfs(folder)
    return told.f_bfree * told.f_frsize
