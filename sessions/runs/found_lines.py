"""Collects the lines that a search has found, each once, however many matches it contains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gistpoint.core.text import plural
from gistpoint.sessions.records.model import TextScope

if TYPE_CHECKING:
    from gistpoint.sessions.runs.searching import Hit

PART_WORDS = {scope: scope.value for scope in TextScope} | {TextScope.ALSO: "also recorded"}
"""The words for the parts of a step: their stored names, unless these are unclear."""


class FoundLine(NamedTuple):
    """A line with matches."""

    first: Hit
    spans: tuple[tuple[int, int], ...]
    """The start and end of each match in `first.line`, as far as it is quoted."""
    at: int
    """The number of matches before the first one of this line."""

    @property
    def quoted(self) -> str:
        """The line as far as it is quoted, with an ellipsis where it continues."""
        before, after = self.first.cut
        return f"{'…' if before else ''}{self.first.line}{'…' if after else ''}"

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """The start and end of each match in `quoted`."""
        return tuple((start + self.first.cut[0], end + self.first.cut[0]) for start, end in self.spans)

    @property
    def part(self) -> str:
        """The part of the step that contains the line, in words."""
        return PART_WORDS[self.first.scope]


class FoundLines:
    """Collects the lines of a search from its matches, which are in order, run by run and step by step."""

    def __init__(self) -> None:
        self.lines: list[FoundLine] = []
        self.taken = 0
        """The number of lines that `take` has removed."""
        self.places = 0
        """The number of matches so far, including those in lines that were left out."""
        self._step: tuple[str, int | None] | None = None
        self._in_step: set[str] = set()
        """The lines of the current step, which the part "also recorded" repeats in many formats."""
        self._is_left_out = False

    def add(self, hits: Iterable[Hit]) -> None:
        """Add further matches, in their order."""
        for hit in hits:
            self._take(hit)
            self.places += 1

    def take(self, *, with_last: bool) -> list[FoundLine]:
        """Remove and return the lines; without the last one if further matches in it may be added."""
        ready = self.lines[: len(self.lines) - (not with_last)]
        del self.lines[: len(ready)]
        self.taken += len(ready)
        return ready

    def _take(self, hit: Hit) -> None:
        if hit.again and (self.lines or self._is_left_out):
            if not self._is_left_out:
                line = self.lines[-1]
                self.lines[-1] = FoundLine(line.first, line.spans + _span(hit, line.first), line.at)
            return
        if self._step != (hit.run, hit.step):
            self._step, self._in_step = (hit.run, hit.step), set()
        text = hit.line.strip()
        repeats = hit.scope is TextScope.ALSO and any(text.endswith(known) for known in self._in_step)
        self._is_left_out = repeats
        if not repeats:
            self._in_step.add(text)
            self.lines.append(FoundLine(hit, _span(hit, hit), self.places))


def _span(hit: Hit, first: Hit) -> tuple[tuple[int, int], ...]:
    """Return the start and end of a match in the quoted line of `first`; empty if it is beyond the line."""
    start = first.column + hit.start - first.start
    end = min(start + hit.end - hit.start, len(first.line))
    return ((start, end),) if start < end else ()


def counted_words(lines: int, places: int) -> str:
    """Return how many lines and places were found: `3 lines`, or `3 lines (5 places)`."""
    return plural(lines, "line") + (f" ({plural(places, 'place')})" if places != lines else "")
