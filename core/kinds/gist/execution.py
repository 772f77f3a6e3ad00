"""Line execution: which statements of a gist ran, measured on a text with one statement a line."""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.lines import (
    LineKind,
    LogicalLine,
    Share,
    blocks_of,
    is_placeholder,
    is_text_only,
    of_all,
    of_distinct,
    physical_lines,
)

_Place = tuple[int, int]


def unfolded(source: str) -> str:
    """Return `source` with each statement on a line of its own; the text itself where that is so already.

    The syntax tree stays the same, and so does every line on which one statement stands. A body that holds nothing
    (`pass`, `...`, a string) stays beside its header. Raises SyntaxError for a text that does not parse.
    """
    tree, lines = parse(source), physical_lines(source)
    bodies = [body for body in _bodies(tree) if any(_is_beside(one, lines) and not _holds_nothing(one) for one in body)]
    if not bodies:
        return source
    starts = _logical_starts(lines)
    for row, column, margin in sorted(_splits(bodies, lines, starts), reverse=True):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}\n{margin}{line[column:]}"
    text = "\n".join(lines) + "\n"
    return text if _is_same(tree, text) else source


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                yield body


def _is_beside(statement: ast.stmt, lines: list[str]) -> bool:
    """Whether something stands before a statement on its line."""
    row, column = _place(statement, lines)
    return bool(lines[row - 1][:column].strip())


def _holds_nothing(statement: ast.stmt) -> bool:
    return is_text_only(statement) or is_placeholder(statement)


def _place(statement: ast.stmt, lines: list[str]) -> _Place:
    """Return line and column of a statement; a syntax tree counts columns in bytes."""
    encoded = lines[statement.lineno - 1].encode("utf-8", "surrogatepass")
    return statement.lineno, len(encoded[: statement.col_offset].decode("utf-8", "surrogatepass"))


def _logical_starts(lines: list[str]) -> dict[_Place, _Place]:
    """Return for the place of each token that of the first token of its logical line."""
    starts: dict[_Place, _Place] = {}
    first: _Place | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type == tokenize.NEWLINE:
                first = None
            elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                first = first or token.start
                starts[token.start] = first
    except (tokenize.TokenError, SyntaxError):
        return {}
    return starts


def _splits(
    bodies: list[list[ast.stmt]], lines: list[str], starts: dict[_Place, _Place]
) -> Iterator[tuple[int, int, str]]:
    """Yield line, column and margin of each statement that does not begin its logical line."""
    for body in bodies:
        places = [_place(statement, lines) for statement in body]
        for place in places:
            row, column = starts.get(place, place)
            if (row, column) != place:
                below_header = starts.get(places[0], places[0]) != places[0]
                yield *place, lines[row - 1][:column] + " " * below_header


def _is_same(tree: ast.Module, text: str) -> bool:
    try:
        return ast.dump(parse(text)) == ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError):
        return False


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
