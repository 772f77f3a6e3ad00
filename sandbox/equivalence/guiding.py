"""Chooses the inputs that are worth varying again, by the lines that they reach (decision 180).

Recorded calls and boundaries of the source are varied without knowing what the inputs do. Inputs that reach
what the repair changed, or that take a way through the function that few others take, are where versions that
agree on everything so far may still differ.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gistpoint.sandbox.equivalence.encoded import Encoded
from gistpoint.sandbox.equivalence.simplifying import size

Lines = frozenset[int]


@dataclass(frozen=True, slots=True)
class ReachedInput:
    """The arguments of a call, and the lines of the function's file that it reached in both versions."""

    values: Sequence[Encoded]
    original: Lines
    repair: Lines


def changed_lines(original: str, repair: str) -> tuple[Lines, Lines]:
    """Return the 1-based lines in which two sources differ, in the original and in the repair.

    Where one of them has no line of its own, as where lines are deleted, it is the line before and the next.
    """
    found: tuple[set[int], set[int]] = (set(), set())
    matcher = difflib.SequenceMatcher(None, original.splitlines(), repair.splitlines(), autojunk=False)
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        if tag == "equal":
            continue
        for lines, begin, end in ((found[0], first, last), (found[1], other_first, other_last)):
            lines.update(range(begin + 1, end + 1) if end > begin else (begin, begin + 1))
    return frozenset(found[0]), frozenset(found[1])


def worth_varying(
    reached: Sequence[ReachedInput], changed: tuple[Lines, Lines], most: int
) -> list[Sequence[Encoded]]:
    """Return the arguments of at most `most` inputs, the smallest of each way through the function.

    Ways that reach more of the changed lines come first, then those that fewer inputs take.
    """
    ways: dict[tuple[Lines, Lines], Sequence[Encoded]] = {}
    taken: Counter[tuple[Lines, Lines]] = Counter()
    for item in reached:
        way = item.original, item.repair
        taken[way] += 1
        if way not in ways or size(item.values) < size(ways[way]):
            ways[way] = item.values

    def rank(way: tuple[Lines, Lines]) -> tuple[int, int]:
        original, repair = way
        return -len(original & changed[0]) - len(repair & changed[1]), taken[way]

    return [ways[way] for way in sorted(ways, key=rank)[:most]]
