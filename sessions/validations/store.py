"""The validations in a folder: one append-only JSONL of operations for each validator."""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.sidefiles.store import Codec, SideFileStore
from gistpoint.sessions.validations.operations import FORMAT, Operation, decode, encode
from gistpoint.sessions.validations.state import ValidationBook


class ValidationError(UserError):
    """A validation can't be read or written as asked."""


CODEC = Codec(FORMAT.header, encode, decode, "validation", ValidationError)


class ValidationStore(SideFileStore[Operation, ValidationBook]):
    """Those of every validator are read, each operation is added to its validator's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read what is there; the folder is made when something is written."""
        super().__init__(folder, clock, CODEC, ValidationBook)
