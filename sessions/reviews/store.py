"""The reviews in a folder: one append-only JSONL of operations for each reviewer."""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.reviews.operations import FORMAT, Operation, decode, encode
from gistpoint.sessions.reviews.state import ReviewBook
from gistpoint.sessions.sidefiles.store import Codec, ReadOperations, SideFileStore, read_side_file


class ReviewError(UserError):
    """A review can't be read or written as asked."""


CODEC = Codec(FORMAT.header, encode, decode, "review", ReviewError)


def read_operations(path: Path) -> ReadOperations[Operation]:
    """Read a file of operations. Raises `ReviewError` where the file can't be read."""
    return read_side_file(path, CODEC)


class ReviewStore(SideFileStore[Operation, ReviewBook]):
    """Those of every reviewer are read, each operation is added to its reviewer's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read what is there; the folder is made when something is written."""
        super().__init__(folder, clock, CODEC, ReviewBook)
