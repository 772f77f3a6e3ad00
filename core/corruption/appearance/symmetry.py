"""Symmetry of code: statements that resemble others, and lines that also occur elsewhere in the library."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from gistpoint.core.corruption.appearance.changes import Change, Version, similarity
from gistpoint.core.corruption.appearance.naturalness import PlacedToken

_ALIKE = 0.6
"""The minimum similarity at which a reader sees two lines as a pair."""
_SAME = 0.97
_LEAST = 4
"""The minimum number of tokens in a line that is compared."""
_MOST_LINES = 60
"""The maximum number of a function's lines that a changed line is compared with."""

Line = tuple[str, ...]


def lines_of(tokens: Iterable[PlacedToken]) -> dict[int, Line]:
    """Return the tokens of each line of code, by its number."""
    found: dict[int, list[str]] = {}
    for token in tokens:
        if token.text not in ("<end>", "<in>", "<out>"):
            found.setdefault(token.line, []).append(token.text)
    return {line: tuple(texts) for line, texts in found.items()}


def pair_broken(change: Change) -> tuple[float, float]:
    """Return how much less a changed line resembles its most similar line, and whether it repeats any line.

    The first is 0 if no line was similar before. The second is 1, or 0 if no line is repeated now.
    """
    before, after = lines_of(change.before.tokens), lines_of(change.after.tokens)
    kept = _long_lines(before, (number for number in before if number not in change.gone))
    kept = sorted(kept[-_MOST_LINES:], key=len)
    broken = repeated = 0.0
    for hunk in change.hunks:
        likeness_before = _closest(_long_lines(before, hunk.before), kept)
        likeness = _closest(_long_lines(after, hunk.after), kept)
        if likeness_before >= _ALIKE:
            broken = max(broken, likeness_before - likeness)
        repeated = max(repeated, float(likeness >= _SAME > likeness_before))
    return broken, repeated


def _long_lines(lines: Mapping[int, Line], numbers: Iterable[int]) -> list[Line]:
    """Return the lines with these numbers that are long enough to be compared."""
    found = (lines.get(number, ()) for number in numbers)
    return [line for line in found if len(line) >= _LEAST]


def _closest(lines: Sequence[Line], others: Sequence[Line]) -> float:
    """Return the similarity of the most similar pair of a line and another line; 0 without a pair."""
    found = 0.0
    for line, other in product(lines, others):
        # The similarity can't exceed a bound set by the lengths, so most pairs need no comparison.
        most_possible = 2 * min(len(line), len(other)) / (len(line) + len(other))
        if most_possible > found:
            found = max(found, similarity(line, other))
    return found


class LineCounts:
    """The number of times that each line of code occurs in a library.

    Layout and comments don't count; lines of fewer than four tokens are left out.
    """

    def __init__(self, texts: Iterable[Iterable[PlacedToken]]) -> None:
        self._counts: Counter[Line] = Counter()
        for tokens in texts:
            self._counts.update(line for line in lines_of(tokens).values() if len(line) >= _LEAST)

    def unlike_elsewhere(self, change: Change) -> float:
        """Return how much more often the replaced lines occur elsewhere in the library than the new ones.

        It is log2(1 + occurrences) for the most frequent replaced line, minus the same for the new lines.
        """
        own = Counter(lines_of(change.before.tokens).values())
        old, new = self._usual(change.before, change.gone, own), self._usual(change.after, change.new, own)
        return old - new

    def _usual(self, version: Version, lines: frozenset[int], own: Counter[Line]) -> float:
        found = lines_of(version.tokens)
        counts = [max(self._counts[found[line]] - own[found[line]], 0) for line in lines if line in found]
        return max((math.log2(1 + count) for count in counts), default=0.0)
