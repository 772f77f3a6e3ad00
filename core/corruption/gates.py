"""The static gates: what is no corruption, or one that a reader sees at once, is dropped before any test runs."""

from __future__ import annotations

from enum import StrEnum

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.conditions import turned
from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.facts import Facts, facts_of, same_code
from gistpoint.core.corruption.named import comparison_alone, denied, told_by_docstring, told_by_name, told_by_variable
from gistpoint.core.corruption.subject import BUILTINS, Scope
from gistpoint.core.tasks.model import Target

MOST_CHANGED_LINES = 3
_LINE_LENGTH = 79


class Dropped(StrEnum):
    """Why a corruption is dropped before any test runs."""

    UNREADABLE = "the function can't be read by itself"
    REPEATED = "another operator gives the same text"
    DOES_NOT_PARSE = "it does not parse or compile"
    HEADER = "signature or decorators change"
    DOCSTRING = "the docstring changes"
    COMMENTS = "a comment changes"
    SAME_TREE = "the syntax tree is the same"
    SAME_CODE = "it compiles to the same code"
    UNKNOWN_NAME = "it reads a name that is not known there"
    NEW_STRING = "it brings a string that was not there"
    TOO_MANY_LINES = "it changes too many lines"
    LONG_LINE = "a line is longer than any of the file"
    UNBOUND = "a variable can be read before it is bound"
    UNUSED = "a variable or parameter is no longer used"
    ORPHANED = "an import or a definition of the file is no longer used"
    UNREACHABLE = "a statement can't be reached"
    ODD = "it shows at a glance"
    NAMED = "the function's name or docstring tells what was meant"
    TOLD = "a comment or an error message beside it tells what was meant"


def gate(target: Target, scope: Scope | None = None, *, most_lines: int | None = MOST_CHANGED_LINES) -> Dropped | None:
    """Return the first reason to drop a corruption, None where there is none.

    With the function's `scope`, names of its module are known too, and what the file no longer uses is found.
    `TOLD` comes last: a caller that takes it as no reason has heard that there is no other.
    `most_lines` None lets any number of lines change.
    """
    return Gate(target.original, scope, most_lines=most_lines).check(target.corrupted)


class Gate:
    """The gates of one function, whose original is looked at once for all of its corruptions."""

    def __init__(
        self, original: str, scope: Scope | None = None, *, most_lines: int | None = MOST_CHANGED_LINES
    ) -> None:
        self._scope = scope
        self._most_lines = most_lines
        self._longest = max(_longest(original), scope.longest if scope else 0, _LINE_LENGTH)
        self._before = _facts(original)

    def check(self, corrupted: str) -> Dropped | None:
        """Return the first reason to drop the function as it is corrupted, None where there is none."""
        before = self._before
        if before is None:
            return Dropped.UNREADABLE
        if self._most_lines is not None and changed_lines(before.text, corrupted) > self._most_lines:
            return Dropped.TOO_MANY_LINES
        if _longest(corrupted) > self._longest:
            return Dropped.LONG_LINE
        after = _facts(corrupted)
        if after is None:
            return Dropped.DOES_NOT_PARSE
        return _kept(before, after) or self._names(before, after) or _code(before, after) or self._shown(before, after)

    def _names(self, before: Facts, after: Facts) -> Dropped | None:
        known = self._scope.known if self._scope else BUILTINS
        if after.named - before.named - before.bound - known:
            return Dropped.UNKNOWN_NAME
        return Dropped.NEW_STRING if after.strings - before.strings else None

    def _shown(self, before: Facts, after: Facts) -> Dropped | None:
        if after.unbound - before.unbound:
            return Dropped.UNBOUND
        if after.unused - before.unused:
            return Dropped.UNUSED
        if after.unreachable > before.unreachable:
            return Dropped.UNREACHABLE
        if after.oddities - before.oddities or before.rows.broken_by(after.rows) or after.bracketed > before.bracketed:
            return Dropped.ODD
        if (after.idle and not before.idle) or _unheeded(before, after) or _one_result(before, after):
            return Dropped.ODD
        if turned(before.conditions, after.conditions):
            return Dropped.ODD
        if self._orphans(before, after):
            return Dropped.ORPHANED
        if _named(before, after):
            return Dropped.NAMED
        return Dropped.TOLD if before.told != after.told or before.comments != after.comments else None

    def _orphans(self, before: Facts, after: Facts) -> bool:
        """Whether a name that the function drops stands nowhere else in the file but where it is defined."""
        scope = self._scope
        if scope is None or not scope.uses:
            return False
        return any(
            scope.uses.get(name, 0) - number <= 1 and scope.defines(name)
            for name, number in (before.words - after.words).items()
        )


def _longest(text: str) -> int:
    return max(len(line) for line in text.split("\n"))


def _facts(text: str) -> Facts | None:
    try:
        return facts_of(text)
    except CodeError:
        return None


def _kept(before: Facts, after: Facts) -> Dropped | None:
    if before.header != after.header:
        return Dropped.HEADER
    if before.docstring != after.docstring:
        return Dropped.DOCSTRING
    if same_tree(before.node, after.node):
        return Dropped.SAME_TREE
    return Dropped.COMMENTS if _texts(before) != _texts(after) else None


def _unheeded(before: Facts, after: Facts) -> bool:
    """Whether a condition asks for a value that is read behind it no more, or for another one than is read."""
    (asked, read), (asked_now, read_now) = before.heeded, after.heeded
    if asked.total() == asked_now.total() and read.total() > read_now.total():
        return True
    return any(asked_now[value] >= asked[value] for value in read - read_now)


def _one_result(before: Facts, after: Facts) -> bool:
    """Whether several statements that returned different constants all return the same one."""
    (were, _), (are, number) = before.results, after.results
    return len(were) > 1 and len(are) == 1 and number > 1


def _named(before: Facts, after: Facts) -> bool:
    name = before.node.name
    if told_by_name(name, before.identifiers, after.identifiers):
        return True
    if comparison_alone(before.node) != comparison_alone(after.node):
        return True
    if told_by_variable(before.nodes, after.nodes):
        return True
    if denied(name, after.nodes) > denied(name, before.nodes):
        return True
    spoken = [before.identifiers.keys() | before.strings, after.identifiers.keys() | after.strings]
    return told_by_docstring(before.docstring, *spoken)


def _texts(facts: Facts) -> list[str]:
    return [comment for comment, _ in facts.comments]


def _code(before: Facts, after: Facts) -> Dropped | None:
    if after.code is None:
        return Dropped.DOES_NOT_PARSE if before.code is not None else None
    return Dropped.SAME_CODE if before.code is not None and same_code(before.code, after.code) else None
