"""How lines of a gist are counted: each text once in its block, and beside it every line, as the paper counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """So many lines of so many."""

    part: int
    whole: int

    @property
    def rate(self) -> float | None:
        """In percent, 0-100; None of no lines."""
        return 100 * self.part / self.whole if self.whole else None


def of_all(lines: Iterable[bool]) -> Share:
    """Return how many of the lines hold, each as often as it stands."""
    held = list(lines)
    return Share(sum(held), len(held))


def of_distinct(lines: Iterable[tuple[str, str, bool]]) -> Share:
    """Return how many lines hold, given with block and normalised text: lines alike in one block are one.

    That one holds if one of them does. Blocks of one qualified name are one block, so that neither a line nor a
    function that is there many times over counts more than once; alike lines of different blocks stay apart.
    """
    held: dict[tuple[str, str], bool] = {}
    for block, text, holds in lines:
        held[block, text] = held.get((block, text), False) or holds
    return of_all(held.values())
