"""The lines and tokens that a corruption changes in a function, and their places."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gistpoint.core.corruption.appearance.naturalness import PlacedToken, tokens_of
from gistpoint.core.corruption.facts import ScopeFacts
from gistpoint.core.corruption.flow import blocks_of


@dataclass(frozen=True, slots=True)
class ReplacedLines:
    """Replaced lines of the original and of the corrupted text, counted from 1; one range may be empty."""

    before: range
    after: range


@dataclass(frozen=True)
class Version:
    """One version of a function: its facts, its tokens and the place of each statement."""

    facts: ScopeFacts

    @cached_property
    def lines(self) -> list[str]:
        """The lines of its text."""
        return self.facts.text.split("\n")

    @cached_property
    def tokens(self) -> tuple[PlacedToken, ...]:
        """The tokens of its code."""
        return tokens_of(self.facts.text)

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """The numbers of the lines with code, counted from 1, without signature and docstring."""
        first, end = self.body
        return frozenset(
            token.line for token in self.tokens if first <= token.line <= end and token.text[0] != "<"
        )

    @cached_property
    def body(self) -> tuple[int, int]:
        """The first and the last line of the body, without the docstring unless that is all of it."""
        body = self.facts.node.body
        first = body[1 if self.facts.docstring is not None and len(body) > 1 else 0]
        return first.lineno, self.facts.node.end_lineno or first.lineno

    @cached_property
    def blocks(self) -> tuple[tuple[ast.AST, list[ast.stmt]], ...]:
        """Each non-empty list of statements, paired with the node that contains it."""
        return tuple((node, block) for node in self.facts.nodes for block in blocks_of(node) if block)

    @cached_property
    def depths(self) -> dict[ast.stmt, int]:
        """The nesting depth of each statement: 0 for the statements of the function itself."""
        found: dict[ast.stmt, int] = {}
        waiting: list[tuple[list[ast.stmt], int]] = [(self.facts.node.body, 0)]
        while waiting:
            block, depth = waiting.pop()
            for statement in block:
                found[statement] = depth
                waiting += [(inner, depth + 1) for inner in _inner(statement)]
        return found

    def statements(self, lines: frozenset[int]) -> list[ast.stmt]:
        """Return the simple statements and the headers of compound ones that have a line in `lines`."""
        return [
            statement
            for statement in self.depths
            if not lines.isdisjoint(range(statement.lineno, _end(statement) + 1))
        ]


def _inner(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    yield from blocks_of(statement)
    for handler in getattr(statement, "handlers", getattr(statement, "cases", [])):
        yield from blocks_of(handler)


def _end(statement: ast.stmt) -> int:
    """Return the last line of a simple statement, or of the header of a compound one."""
    inner = [block[0].lineno for block in _inner(statement) if block]
    end = statement.end_lineno or statement.lineno
    return max(statement.lineno, min(inner) - 1) if inner else end


@dataclass(frozen=True)
class Change:
    """Two versions of a function and their differences."""

    before: Version
    after: Version

    @cached_property
    def hunks(self) -> tuple[ReplacedLines, ...]:
        """The replaced lines, in order."""
        matcher = difflib.SequenceMatcher(None, self.before.lines, self.after.lines, autojunk=False)
        return tuple(
            ReplacedLines(range(i1 + 1, i2 + 1), range(j1 + 1, j2 + 1))
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
            if tag != "equal"
        )

    @cached_property
    def gone(self) -> frozenset[int]:
        """The lines of the original that are replaced."""
        return frozenset(line for hunk in self.hunks for line in hunk.before)

    @cached_property
    def new(self) -> frozenset[int]:
        """The lines of the corrupted text that replace them."""
        return frozenset(line for hunk in self.hunks for line in hunk.after)

    @cached_property
    def seen(self) -> frozenset[int]:
        """The lines of the corrupted text that show the change.

        They are the new lines and, where lines were deleted, the code lines before and after the deletion.
        """
        gaps = [hunk.after.start for hunk in self.hunks if not hunk.after]
        around = {line for gap in gaps for line in (gap - 1, gap)}
        return self.new | (around & self.after.code_lines)

    @cached_property
    def tokens(self) -> tuple[Counter[str], Counter[str]]:
        """The tokens that the changed lines lose and the tokens that they gain, with their counts."""
        lost, added = Counter[str](), Counter[str]()
        for hunk in self.hunks:
            old = [token.text for token in self.before.tokens if token.line in hunk.before]
            new = [token.text for token in self.after.tokens if token.line in hunk.after]
            matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes():
                if tag != "equal":
                    lost.update(old[i1:i2])
                    added.update(new[j1:j2])
        return lost, added

    @cached_property
    def lost(self) -> Counter[str]:
        """The tokens that occur less often in the changed lines than before; moved tokens don't count."""
        lost, added = self.tokens
        return lost - added

    @cached_property
    def added(self) -> Counter[str]:
        """The tokens that occur more often in the changed lines than before."""
        lost, added = self.tokens
        return added - lost


def similarity(one: Sequence[str], two: Sequence[str]) -> float:
    """Return the similarity of two sequences of tokens, from 0 to 1; 0 if one is empty."""
    if not one or not two:
        return 0.0
    return difflib.SequenceMatcher(None, one, two, autojunk=False).ratio()
