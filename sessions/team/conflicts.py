"""A conflict: two copies that must never differ do, so both are left unchanged until somebody has looked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """A difference between this machine's files and the store."""

    what: str
    """What differs: `attempt 01J…`, `task 3f…`, `review 7c…`."""
    seq: int = 0
    """The line of an attempt's journal; 0 for anything else."""
    here: str = ""
    """The sha256 of the copy here; empty if it is damaged."""
    there: str = ""
    """The sha256 of the store's copy."""
    words: str = ""
    """The fault, if it is not a difference of the two."""

    def __str__(self) -> str:
        place = f"{self.what}, line {self.seq}" if self.seq else self.what
        if self.words:
            return f"{place}: {self.words}"
        return (
            f"{place}: the file here has {self.here[:12]}, the store has {self.there[:12]}. "
            "Neither was changed: somebody has to look."
        )
