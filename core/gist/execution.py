"""Line execution: which executable lines of a gist ran."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gistpoint.core.code.parsing import parse
from gistpoint.core.gist.blocks import blocks_of
from gistpoint.core.gist.lines import LineKind, LogicalLine
from gistpoint.core.gist.rates import Share, of_all, of_distinct
from gistpoint.core.gist.unfolded import unfolded


@dataclass(frozen=True, slots=True)
class LineExecution:
    """One gist line, and whether it ran; lines that are not executable may have run too and count in no rate."""

    line: LogicalLine
    block: str
    ran: bool
    beside_one_that_ran: bool = False
    """Whether it ran or shares a physical line with one that did: a tracer of the text as it stands sees no more."""

    @property
    def counts(self) -> bool:
        """Whether the line counts in the rate."""
        return self.line.kind is LineKind.EXECUTABLE


@dataclass(frozen=True, slots=True)
class ExecutionReport:
    """All lines of a gist in source order."""

    lines: tuple[LineExecution, ...]
    test_blocks: frozenset[str] = frozenset()

    @property
    def executable(self) -> int:
        """Number of executable lines, lines alike in one block counted once."""
        return _distinct(self.lines).whole

    @property
    def executed(self) -> int:
        """Number of those that ran."""
        return _distinct(self.lines).part

    @property
    def rate(self) -> float | None:
        """Executed executable lines of all executable lines, 0-100; None if there are none."""
        return _distinct(self.lines).rate

    @property
    def rate_without_test(self) -> float | None:
        """As `rate`, the lines of the test itself left out."""
        return _distinct(_without(self.lines, self.test_blocks)).rate

    @property
    def paper(self) -> Share:
        """Executed of executable lines as the paper counts them (Gistify, equation 2).

        Every line counts as often as it stands, and lines that share a physical line share its fate.
        """
        return _as_in_paper(self.lines)

    @property
    def paper_without_test(self) -> Share:
        """As `paper`, the lines of the test itself left out."""
        return _as_in_paper(_without(self.lines, self.test_blocks))


def _distinct(lines: Sequence[LineExecution]) -> Share:
    return of_distinct((line.block, line.line.text, line.ran) for line in lines if line.counts)


def _as_in_paper(lines: Sequence[LineExecution]) -> Share:
    return of_all(line.beside_one_that_ran for line in lines if line.counts)


def _without(lines: Sequence[LineExecution], blocks: Collection[str]) -> list[LineExecution]:
    return [line for line in lines if line.block not in blocks]


def line_execution(gist: str, executed: Collection[int], *, test: str = "") -> ExecutionReport:
    """Tell which logical lines of `gist` ran, from the physical lines that a tracer saw.

    `executed` holds 1-based line numbers of `unfolded(gist)`, which is what has to be run. A statement ran when an
    event fell on any line of its header, or of its body: some headers (`case _:`) compile to nothing. Raises
    SyntaxError for a gist that does not parse.
    """
    measured, seen = unfolded(gist), sorted(set(executed))
    own = list(_lines(gist))
    there = own if measured is gist else list(_lines(measured))
    ran = [_within(seen, place.first, place.end) for _, place in there]
    covered = sorted(
        {number for (_, line), did in zip(own, ran, strict=True) if did for number in range(line.first, line.last + 1)}
    )
    found = [
        LineExecution(line, block, did, _within(covered, line.first, line.end))
        for (block, line), did in zip(own, ran, strict=True)
    ]
    found.sort(key=lambda one: one.line.first)
    return ExecutionReport(tuple(found), frozenset({test} - {""}))


def _lines(source: str) -> Iterator[tuple[str, LogicalLine]]:
    for block in blocks_of(parse(source)):
        for line in block.lines:
            yield block.name, line


def _within(numbers: Sequence[int], first: int, last: int) -> bool:
    """Whether one of the sorted `numbers` lies from `first` to `last`."""
    place = bisect_left(numbers, first)
    return place < len(numbers) and numbers[place] <= last
