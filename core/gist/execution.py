"""Line execution: which executable lines of a gist ran."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gistpoint.core.code.parsing import parse
from gistpoint.core.gist.blocks import blocks_of
from gistpoint.core.gist.lines import LineKind, LogicalLine


@dataclass(frozen=True, slots=True)
class LineExecution:
    """One gist line, and whether it ran; lines that are not executable may have run too and count in no rate."""

    line: LogicalLine
    block: str
    ran: bool

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
        """Number of lines that count."""
        return sum(line.counts for line in self.lines)

    @property
    def executed(self) -> int:
        """Number of lines that count and ran."""
        return sum(line.counts and line.ran for line in self.lines)

    @property
    def rate(self) -> float | None:
        """Executed executable lines of all executable lines, 0-100; None where there are none."""
        return _percent(self.lines)

    @property
    def rate_without_test(self) -> float | None:
        """As `rate`, the lines of the test itself left out."""
        return _percent([line for line in self.lines if line.block not in self.test_blocks])


def _percent(lines: Iterable[LineExecution]) -> float | None:
    counted = [line.ran for line in lines if line.counts]
    return 100 * sum(counted) / len(counted) if counted else None


def line_execution(gist: str, executed: Collection[int], *, test: str = "") -> ExecutionReport:
    """Tell which logical lines of `gist` ran, from the physical lines that a tracer saw.

    A statement ran when an event fell on any line of its header, or of its body: some headers (`case _:`) compile to
    nothing. `executed` holds 1-based line numbers of exactly this text. Raises SyntaxError for a gist that does not
    parse.
    """
    seen = sorted(set(executed))
    found: list[LineExecution] = []
    for block in blocks_of(parse(gist)):
        for line in block.lines:
            place = bisect_left(seen, line.first)
            found.append(LineExecution(line, block.name, place < len(seen) and seen[place] <= line.end))
    found.sort(key=lambda one: one.line.first)
    return ExecutionReport(tuple(found), frozenset({test} - {""}))
