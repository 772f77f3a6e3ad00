"""Line existence: which lines of a gist stand in the original, with the evidence for each."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.lines import Block, BlockKind, LogicalLine, Share, blocks_of, of_all, of_distinct

ITSELF = "sys.modules[__name__]"
"""The gist, as it is reached from within."""
_GLUE_IMPORTS = {"import sys", "import types", "from types import SimpleNamespace"}


def is_glue(text: str) -> bool:
    """Whether a top-level line that does not stand in the original is glue.

    Glue is `import sys` and `import types`; a name bound to the gist itself (`pkg = sys.modules[__name__]`); a name
    bound to another name or to an attribute of one, as an import with `as` would do; a namespace made of such
    names only (`tokens = types.SimpleNamespace(Name=Name)`); and an attribute of a name bound to a name.
    """
    if text in _GLUE_IMPORTS:
        return True
    try:
        body = parse(text).body
    except SyntaxError:
        return False
    if len(body) != 1 or not isinstance(body[0], ast.Assign):
        return False
    assign = body[0]
    return all(_is_reference(target) for target in assign.targets) and _is_binding(assign.value)


def _is_binding(value: ast.expr) -> bool:
    if ast.unparse(value) == ITSELF or _is_reference(value):
        return True
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) in ("types.SimpleNamespace", "SimpleNamespace")):
        return False
    return not value.args and all(k.arg is not None and _is_binding(k.value) for k in value.keywords)


def _is_reference(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)


class ExistenceReason(StrEnum):
    """Why a line counts as existing, or not."""

    IN_BLOCK = "stands in the original block"
    IN_TOP_LEVEL = "stands at the top level of the original"
    NOT_IN_BLOCK = "does not stand in the original block"
    NO_BLOCK = "the original has no block of this name"
    NOT_IN_TOP_LEVEL = "stands at no top level of the original"
    GLUE = "glue that a flat file needs"


@dataclass(frozen=True, slots=True)
class OriginalLine:
    """Where a line stands in the original."""

    path: str
    block: str
    line: int


@dataclass(frozen=True, slots=True)
class LineExistence:
    """One gist line and what it was matched to."""

    line: LogicalLine
    block: str
    reason: ExistenceReason
    original: OriginalLine | None = None
    """The line itself where it exists; else the first line of the block it was compared with, if there is one."""

    @property
    def exists(self) -> bool:
        """Whether it counts as existing."""
        return self.reason in (ExistenceReason.IN_BLOCK, ExistenceReason.IN_TOP_LEVEL)


@dataclass(frozen=True, slots=True)
class ExistenceReport:
    """All lines of a gist in source order."""

    lines: tuple[LineExistence, ...]
    test_blocks: frozenset[str] = frozenset()

    @property
    def counted(self) -> int:
        """Number of lines, lines alike in one block counted once."""
        return _distinct(self.lines).whole

    @property
    def existing(self) -> int:
        """Number of those that exist."""
        return _distinct(self.lines).part

    @property
    def glue(self) -> tuple[LineExistence, ...]:
        """The lines that are glue; they count as not existing."""
        return tuple(line for line in self.lines if line.reason is ExistenceReason.GLUE)

    @property
    def rate(self) -> float | None:
        """Existing lines of all lines, 0-100; None for a gist without lines."""
        return _distinct(self.lines).rate

    @property
    def rate_without_test(self) -> float | None:
        """As `rate`, the lines of the test itself left out."""
        return _distinct(self._without_test).rate

    @property
    def paper(self) -> Share:
        """Existing lines of all lines, each as often as it stands (Gistify, equation 3)."""
        return of_all(line.exists for line in self.lines)

    @property
    def paper_without_test(self) -> Share:
        """As `paper`, the lines of the test itself left out."""
        return of_all(line.exists for line in self._without_test)

    @property
    def _without_test(self) -> list[LineExistence]:
        return [line for line in self.lines if line.block not in self.test_blocks]


def _distinct(lines: Iterable[LineExistence]) -> Share:
    return of_distinct((line.block, line.line.text, line.exists) for line in lines)


class Originals:
    """The blocks of a codebase by kind and qualified name; files that do not parse are left out and named."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.unparsed: list[str] = []
        self._blocks: dict[tuple[BlockKind, str], list[Block]] = {}
        self._top_level: dict[str, OriginalLine] | None = None
        for path in sorted(sources):
            try:
                tree = parse(sources[path])
            except (SyntaxError, ValueError, RecursionError):
                self.unparsed.append(path)
                continue
            for block in blocks_of(tree, path):
                self._blocks.setdefault((block.kind, block.name), []).append(block)

    def candidates(self, block: Block) -> list[Block]:
        """Return the original blocks of the same kind, name and place in the hierarchy of classes."""
        return self._blocks.get((block.kind, block.name), [])

    @property
    def top_level(self) -> Mapping[str, OriginalLine]:
        """The normalised top-level lines of the whole codebase, each with one place where it stands."""
        if self._top_level is None:
            self._top_level = {}
            for block in self._blocks.get((BlockKind.TOP_LEVEL, ""), []):
                for line in block.lines:
                    self._top_level.setdefault(line.text, OriginalLine(block.path, "", line.first))
        return self._top_level


def line_existence(gist: str, originals: Originals, *, test: str = "") -> ExistenceReport:
    """Compare `gist` with the codebase, block by block (Gistify, appendix A.1).

    `test` is the qualified name of the test, to tell its lines apart. Raises SyntaxError for a gist that does not
    parse.
    """
    lines: list[LineExistence] = []
    for block in blocks_of(parse(gist)):
        lines.extend(_top_level(block, originals) if block.kind is BlockKind.TOP_LEVEL else _in_block(block, originals))
    lines.sort(key=lambda found: found.line.first)
    return ExistenceReport(tuple(lines), frozenset({test} - {""}))


def _top_level(block: Block, originals: Originals) -> Iterable[LineExistence]:
    for line in block.lines:
        original = originals.top_level.get(line.text)
        if original is not None:
            yield LineExistence(line, "", ExistenceReason.IN_TOP_LEVEL, original)
        else:
            reason = ExistenceReason.GLUE if is_glue(line.text) else ExistenceReason.NOT_IN_TOP_LEVEL
            yield LineExistence(line, "", reason)


def _in_block(block: Block, originals: Originals) -> Iterable[LineExistence]:
    best: Block | None = None
    places: dict[str, int] = {}
    best_count = -1
    for candidate in originals.candidates(block):
        found = {line.text: line.first for line in reversed(candidate.lines)}
        count = sum(line.text in found for line in block.lines)
        if count > best_count:
            best, places, best_count = candidate, found, count
    for line in block.lines:
        if best is None:
            yield LineExistence(line, block.name, ExistenceReason.NO_BLOCK)
        elif line.text in places:
            original = OriginalLine(best.path, best.name, places[line.text])
            yield LineExistence(line, block.name, ExistenceReason.IN_BLOCK, original)
        else:
            original = OriginalLine(best.path, best.name, best.first)
            yield LineExistence(line, block.name, ExistenceReason.NOT_IN_BLOCK, original)
