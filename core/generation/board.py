"""What the workers of a campaign are trying now: each writes its line to a file of its own in the library's folder.

Nobody waits for anybody: a line that is not read is replaced by the next, a worker that died leaves its last one, which
is left out as soon as its candidate is decided elsewhere. Workers of a cluster share the folder as they share the rest.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import threading
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.generation.progress import TrialProgress
from gistpoint.core.logs import replace_file

_STALE_S = 86400.0


class _Line(msgspec.Struct):
    """The line of one worker."""

    key: str
    """Of the candidate."""
    written: float
    trial: TrialProgress


class TrialBoard:
    """The folder of one campaign's lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def post(self, key: str, trial: TrialProgress) -> None:
        """Replace this thread's line; a disk that is full or gone is no reason to fail."""
        own = f"{platform.node()}-{os.getpid()}-{threading.get_ident()}"
        place = self.folder / f"{sha256_of_text(own)[:16]}.json"
        with contextlib.suppress(OSError):
            replace_file(place, msgspec.json.encode(_Line(key, time.time(), trial)), durable=False)

    def trials(self, keys: Collection[str]) -> tuple[TrialProgress, ...]:
        """Return the lines about the candidates `keys`, the newest of each, named by the order of the workers."""
        newest: dict[str, tuple[str, _Line]] = {}
        for place in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError):
                line = msgspec.json.decode(place.read_bytes(), type=_Line)
                if line.key in keys and (line.key not in newest or newest[line.key][1].written < line.written):
                    newest[line.key] = (place.name, line)
        shown = sorted(newest.values(), key=lambda item: item[0])
        return tuple(replace(line.trial, worker=str(number)) for number, (_, line) in enumerate(shown, 1))

    def open(self) -> None:
        """Begin with no lines; lines that other campaigns left when they were killed go after a day."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for left in self.folder.parent.glob("*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _STALE_S:
                    shutil.rmtree(left)
        self.folder.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Remove all lines."""
        shutil.rmtree(self.folder, ignore_errors=True)
