"""The rates of a gist, with evidence: the shares of its lines that ran and that exist in the original."""

from __future__ import annotations

import ast
import io
import tokenize
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from gistpoint.core.code.parsing import parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.kinds.gist.lines import (
    BlockKind,
    GistLineKind,
    LineBlock,
    LogicalLine,
    any_within,
    blocks_of,
    bodies_in,
    column_of,
    is_placeholder,
)


@dataclass(frozen=True, slots=True)
class Share:
    """The number of lines that count, out of a total."""

    part: int
    whole: int

    @property
    def rate(self) -> float | None:
        """The percentage, 0-100; None for a total of 0."""
        if not self.whole:
            return None
        return 100 * self.part / self.whole


_Line = TypeVar("_Line", bound="LineExistence | LineExecution")


@dataclass(frozen=True, slots=True)
class RateReport(ABC, Generic[_Line]):
    """The lines of a gist in source order, and the shares of lines that hold.

    In a report on execution, a line holds if it ran; in a report on existence, if it exists in the original.
    """

    lines: tuple[_Line, ...]
    test_blocks: frozenset[str] = frozenset()

    @abstractmethod
    def _holds(self, line: _Line) -> tuple[bool, bool] | None:
        """Return whether a line holds, and whether it does in the paper's sense; None if it doesn't count."""

    @property
    def rate(self) -> float | None:
        """The percentage of the distinct lines that hold, 0-100; None if there are none."""
        return self.distinct.rate

    @property
    def rate_without_test(self) -> float | None:
        """The same as `rate`, without the lines of the test itself."""
        return self.distinct_without_test.rate

    @property
    def distinct(self) -> Share:
        """The lines that hold, with identical lines of one block counted once.

        A repeated line holds if any of its occurrences holds. Blocks with the same qualified name are one
        block, so a repeated line or function counts only once; identical lines of different blocks are
        counted separately.
        """
        return self._distinct(self.lines)

    @property
    def distinct_without_test(self) -> Share:
        """The same as `distinct`, without the lines of the test itself."""
        return self._distinct(self._without_test)

    @property
    def paper(self) -> Share:
        """The lines that hold in the paper's sense: repeated lines all count (Gistify, equations 2, 3)."""
        return self._as_in_paper(self.lines)

    @property
    def paper_without_test(self) -> Share:
        """The same as `paper`, without the lines of the test itself."""
        return self._as_in_paper(self._without_test)

    @property
    def _without_test(self) -> list[_Line]:
        return [line for line in self.lines if line.block not in self.test_blocks]

    def _distinct(self, lines: Iterable[_Line]) -> Share:
        # If identical lines counted each time, repeating a line would raise both rates (decision 44).
        held: dict[tuple[str, str], bool] = {}
        for one in lines:
            found = self._holds(one)
            if found is not None:
                key = one.block, one.line.text
                held[key] = held.get(key, False) or found[0]
        return Share(sum(held.values()), len(held))

    def _as_in_paper(self, lines: Iterable[_Line]) -> Share:
        held = [found[1] for found in map(self._holds, lines) if found is not None]
        return Share(sum(held), len(held))


# Line existence


ITSELF = "sys.modules[__name__]"
"""The expression for the gist's own module."""
_GLUE_IMPORTS = {"import sys", "import types", "from types import SimpleNamespace"}


def is_glue(text: str) -> bool:
    """Return whether a top-level line that does not exist in the original is glue.

    Glue is an import of `sys`, `types` or `SimpleNamespace`; a name bound to the gist itself
    (`pkg = sys.modules[__name__]`); a name bound to another name or to an attribute of one, as by an import
    with `as`; a namespace of such names only (`tokens = types.SimpleNamespace(Name=Name)`); and an assignment
    of any of these to an attribute of a name (`pkg.f = f`).
    """
    if text in _GLUE_IMPORTS:
        return True
    try:
        body = parse(text).body
    except SyntaxError:
        return False
    match body:
        case [ast.Assign(targets=targets, value=value)]:
            return all(map(_is_reference, targets)) and _is_binding(value)
        case _:
            return False


def _is_binding(value: ast.expr) -> bool:
    if ast.unparse(value) == ITSELF or _is_reference(value):
        return True
    if not isinstance(value, ast.Call) or value.args:
        return False
    # A namespace with anything else in it would be a fake, because it would invent content (decision 14).
    is_namespace = ast.unparse(value.func) in ("types.SimpleNamespace", "SimpleNamespace")
    return is_namespace and all(one.arg is not None and _is_binding(one.value) for one in value.keywords)


def _is_reference(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)


class ExistenceReason(StrEnum):
    """The reason why a line counts as existing or as missing."""

    IN_BLOCK = "is in the original block"
    IN_TOP_LEVEL = "is at the top level of the original"
    NOT_IN_BLOCK = "does not stand in the original block"
    NO_BLOCK = "the original has no block of this name"
    NOT_IN_TOP_LEVEL = "is at no top level of the original"
    GLUE = "glue that a flat file needs"

    @property
    def exists(self) -> bool:
        """Whether the line counts as existing."""
        return self in (ExistenceReason.IN_BLOCK, ExistenceReason.IN_TOP_LEVEL)


@dataclass(frozen=True, slots=True)
class OriginalLine:
    """The location of a line in the original."""

    path: str
    block: str
    line: int


@dataclass(frozen=True, slots=True)
class LineExistence:
    """One line of a gist, and the line of the original that it was matched with."""

    line: LogicalLine
    block: str
    reason: ExistenceReason
    original: OriginalLine | None = None
    """The same line if it exists; otherwise the first line of the block it was compared with, if any."""

    @property
    def exists(self) -> bool:
        """Whether the line counts as existing."""
        return self.reason.exists


@dataclass(frozen=True, slots=True)
class ExistenceReport(RateReport[LineExistence]):
    """The lines of a gist, and the share that exists in the original; all lines count."""

    def _holds(self, line: LineExistence) -> tuple[bool, bool]:
        return line.exists, line.exists

    @property
    def counted(self) -> int:
        """The number of lines, with identical lines of one block counted once."""
        return self.distinct.whole

    @property
    def existing(self) -> int:
        """The number of counted lines that exist."""
        return self.distinct.part

    @property
    def glue(self) -> tuple[LineExistence, ...]:
        """The lines that are glue, which count as not existing."""
        return tuple(line for line in self.lines if line.reason is ExistenceReason.GLUE)

    def at(self, number: int) -> list[LineExistence]:
        """Return the logical lines on a physical line, in source order."""
        return [one for one in self.lines if one.line.first <= number <= one.line.last]


class Originals:
    """The blocks of a codebase by kind and qualified name; files that do not parse are only listed."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.unparsed: list[str] = []
        self._blocks: dict[tuple[BlockKind, str], list[LineBlock]] = {}
        self._top_level: dict[str, OriginalLine] | None = None
        for path in sorted(sources):
            try:
                tree = parse(sources[path])
            except (SyntaxError, ValueError):
                self.unparsed.append(path)
                continue
            for block in blocks_of(tree, path):
                self._blocks.setdefault((block.kind, block.name), []).append(block)

    def candidates(self, block: LineBlock) -> list[LineBlock]:
        """Return the original blocks of the same kind and qualified name."""
        return self._blocks.get((block.kind, block.name), [])

    def texts_of(self, name: str) -> Iterator[str]:
        """Yield the lines of all original blocks with a qualified name, which is empty for the top level."""
        for (_, known), blocks in self._blocks.items():
            if known == name:
                yield from (line.text for block in blocks for line in block.lines)

    @property
    def top_level(self) -> Mapping[str, OriginalLine]:
        """The normalised top-level lines of the whole codebase, each with one of its places."""
        if self._top_level is None:
            self._top_level = {}
            for block in self._blocks.get((BlockKind.TOP_LEVEL, ""), []):
                for line in block.lines:
                    self._top_level.setdefault(line.text, OriginalLine(block.path, "", line.first))
        return self._top_level


def line_existence(gist: str, originals: Originals, *, test: str = "") -> ExistenceReport:
    """Return which lines of `gist` exist in the codebase, block by block (Gistify, appendix A.1).

    `test` is the qualified name of the test, so that its lines can be left out. Raises SyntaxError for a gist
    that does not parse.
    """
    lines: list[LineExistence] = []
    for block in blocks_of(parse(gist)):
        if block.kind is BlockKind.TOP_LEVEL:
            lines.extend(_top_level(block, originals))
        else:
            lines.extend(_in_block(block, originals))
    lines.sort(key=lambda found: found.line.first)
    return ExistenceReport(tuple(lines), frozenset({test} - {""}))


def existence_of(text: str, originals: Originals, test: str) -> ExistenceReport | None:
    """Return which lines of a gist exist; None if the gist does not parse."""
    try:
        return line_existence(text, originals, test=test)
    except (SyntaxError, ValueError):
        return None


def _top_level(block: LineBlock, originals: Originals) -> Iterable[LineExistence]:
    for line in block.lines:
        original = originals.top_level.get(line.text)
        if original is not None:
            yield LineExistence(line, "", ExistenceReason.IN_TOP_LEVEL, original)
        else:
            reason = ExistenceReason.GLUE if is_glue(line.text) else ExistenceReason.NOT_IN_TOP_LEVEL
            yield LineExistence(line, "", reason)


def _in_block(block: LineBlock, originals: Originals) -> Iterable[LineExistence]:
    best: LineBlock | None = None
    places: dict[str, int] = {}
    best_count = -1
    # Of several originals with one name, the one with the most matching lines counts (decision 12).
    for candidate in originals.candidates(block):
        found = {line.text: line.first for line in reversed(candidate.lines)}
        count = sum(line.text in found for line in block.lines)
        if count > best_count:
            best = candidate
            places = found
            best_count = count
    for line in block.lines:
        if best is None:
            yield LineExistence(line, block.name, ExistenceReason.NO_BLOCK)
        elif line.text in places:
            original = OriginalLine(best.path, best.name, places[line.text])
            yield LineExistence(line, block.name, ExistenceReason.IN_BLOCK, original)
        else:
            original = OriginalLine(best.path, best.name, best.first)
            yield LineExistence(line, block.name, ExistenceReason.NOT_IN_BLOCK, original)


# Line execution, measured on code with one statement per line

_Place = tuple[int, int]


def unfolded(source: str) -> str:
    """Return `source` with each statement on its own line; unchanged if that is impossible.

    The syntax tree is unchanged, and so is every line with a single statement. A body without content
    (`pass`, `...`, a string) stays on the line of its header. Raises SyntaxError for code that does not
    parse.
    """
    tree = parse(source)
    lines = physical_lines(source)
    bodies = [body for body in bodies_in(tree) if _is_folded(body, lines)]
    if not bodies:
        return source
    starts = _logical_starts(lines)
    # Breaks are inserted from the end, so that earlier positions stay valid.
    for row, column, margin in sorted(_splits(bodies, lines, starts), reverse=True):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}\n{margin}{line[column:]}"
    text = "\n".join(lines) + "\n"
    # The tree must be unchanged, because measurements on a different program would mean nothing (decision
    # 44).
    if _is_same(tree, text):
        return text
    return source


def _follows_code(statement: ast.stmt, lines: list[str]) -> bool:
    """Return whether other code precedes a statement on its line."""
    row, column = _place_of_statement(statement, lines)
    return bool(lines[row - 1][:column].strip())


def _place_of_statement(statement: ast.stmt, lines: list[str]) -> _Place:
    """Return the line and column of a statement."""
    return statement.lineno, column_of(lines[statement.lineno - 1], statement.col_offset)


def _logical_starts(lines: list[str]) -> dict[_Place, _Place]:
    """Return, by each token's position, the position of the first token of its logical line.

    Empty if the lines can't be tokenised.
    """
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


def _is_folded(body: list[ast.stmt], lines: list[str]) -> bool:
    """Return whether a statement in a body, other than a placeholder, follows other code on its line."""
    return any(_follows_code(one, lines) for one in body if not is_placeholder(one))


def _splits(
    bodies: list[list[ast.stmt]], lines: list[str], starts: dict[_Place, _Place]
) -> Iterator[tuple[int, int, str]]:
    """Yield the line, the column and the margin of each statement that does not begin its logical line."""
    for body in bodies:
        places = [_place_of_statement(statement, lines) for statement in body]
        below_header = starts.get(places[0], places[0]) != places[0]
        for place in places:
            row, column = starts.get(place, place)
            if (row, column) != place:
                yield *place, lines[row - 1][:column] + " " * below_header


def _is_same(tree: ast.Module, text: str) -> bool:
    try:
        return ast.dump(parse(text)) == ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class LineExecution:
    """One line of a gist, and whether it ran; a line that is not executable does not count in the rate."""

    line: LogicalLine
    block: str
    ran: bool
    shares_executed_line: bool = False
    """Whether a tracer of the raw text would see it run because a line on the same physical line ran."""

    @property
    def counts(self) -> bool:
        """Whether the line counts in the rate."""
        return self.line.kind is GistLineKind.EXECUTABLE


@dataclass(frozen=True, slots=True)
class ExecutionReport(RateReport[LineExecution]):
    """The lines of a gist, and the share of executable lines that ran."""

    def _holds(self, line: LineExecution) -> tuple[bool, bool] | None:
        if line.counts:
            return (line.ran, line.shares_executed_line)
        return None

    @property
    def executable(self) -> int:
        """The number of executable lines, with identical lines of one block counted once."""
        return self.distinct.whole

    @property
    def executed(self) -> int:
        """The number of executable lines that ran, with identical lines of one block counted once."""
        return self.distinct.part


def line_execution(gist: str, executed: Collection[int], *, test: str = "") -> ExecutionReport:
    """Return which logical lines of `gist` ran, from the physical lines that a tracer saw.

    `executed` contains line numbers, counted from 1, of `unfolded(gist)`, which is the text to be run. A
    statement ran if an event was on any line of its header or its body: some headers (`case _:`) have no
    compiled code. Raises SyntaxError for a gist that does not parse.
    """
    measured = unfolded(gist)
    seen = sorted(set(executed))
    own = list(_lines(gist))
    # Both versions have the same lines in the same order: only line breaks differ.
    there = own if measured is gist else list(_lines(measured))
    ran = [any_within(seen, place.first, place.end) for _, place in there]
    touched = set[int]()
    for (_, line), did in zip(own, ran, strict=True):
        if did:
            touched.update(range(line.first, line.last + 1))
    # The paper's tracer sees the unchanged text, in which lines that share a physical line run together.
    covered = sorted(touched)
    found = [
        LineExecution(line, block, did, any_within(covered, line.first, line.end))
        for (block, line), did in zip(own, ran, strict=True)
    ]
    found.sort(key=lambda one: one.line.first)
    return ExecutionReport(tuple(found), frozenset({test} - {""}))


def _lines(source: str) -> Iterator[tuple[str, LogicalLine]]:
    for block in blocks_of(parse(source)):
        for line in block.lines:
            yield block.name, line
