"""A conflict: two copies of what may never differ do, so both stay as they are until somebody has looked."""

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
    """The sha256 of what is here; empty if that is damaged."""
    there: str = ""
    """The sha256 of what the store has."""
    words: str = ""
    """What is wrong, if it is not that the two differ."""

    def __str__(self) -> str:
        place = f"{self.what}, line {self.seq}" if self.seq else self.what
        if self.words:
            return f"{place}: {self.words}"
        return (
            f"{place}: the file here has {self.here[:12]}, the store has {self.there[:12]}. "
            "Neither was changed: somebody has to look."
        )
