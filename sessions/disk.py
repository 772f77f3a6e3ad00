"""Writing to files so that it lasts: whole lines or none, and on the disk when a power cut comes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sync_file = os.fsync if sys.platform == "darwin" else os.fdatasync
"""Writes the content of an open file to the disk."""


def append_whole(file: int, data: bytes, size: int) -> None:
    """Append all of it to an open file of `size` bytes, or nothing: a full disk must not leave half a line.

    Raises the OSError, after what was written was taken away again.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(file, view) :]
    except OSError:
        os.ftruncate(file, size)
        raise


def sync_folder(place: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
