"""Conflicts: copies that should not differ but do. Both are left unchanged until somebody decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflict between this machine's files and the store."""

    what: str
    """The item that differs, such as `attempt 01J…`, `task 3f…` or `reviews: operation 7c…`."""
    seq: int = 0
    """The line of an attempt's journal; 0 for other items."""
    here: str = ""
    """The SHA-256 of this machine's copy; empty if the copy is damaged."""
    there: str = ""
    """The SHA-256 of the store's copy."""
    words: str = ""
    """The fault in words, if it is something other than a difference between the copies."""

    def __str__(self) -> str:
        place = f"{self.what}, line {self.seq}" if self.seq else self.what
        if self.words:
            return f"{place}: {self.words}"
        return (
            f"{place}: the file here has {self.here[:12]}, but the store has {self.there[:12]}."
            " Neither was changed: somebody must decide."
        )
