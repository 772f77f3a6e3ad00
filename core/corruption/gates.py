"""The static gates: they drop changes that are not corruptions, or are seen at once, before any test runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.edits import hunks
from gistpoint.core.corruption.facts import ScopeFacts, facts_of, same_code
from gistpoint.core.corruption.naming import (
    comparison_alone,
    denied,
    given_away_by_docstring,
    given_away_by_name,
    given_away_by_variable,
    of_one_stem,
    words,
)
from gistpoint.core.corruption.subject import BUILTINS, NamesInReach
from gistpoint.core.tasks.model import Target

MOST_CHANGED_LINES = 8
_LINE_LENGTH = 79
Hunks: TypeAlias = list[tuple[int, int, int, int]]
_LEAST_WORD = 4


class GateRefusal(StrEnum):
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


def gate(
    target: Target, scope: NamesInReach | None = None, *, most_lines: int | None = MOST_CHANGED_LINES
) -> GateRefusal | None:
    """Return the first reason to drop a corruption, None if there is none.

    With the function's `scope`, names of its module are also known, and names that the file no longer uses are found.
    `TOLD` comes last, so if it is ignored there is no other reason.
    `most_lines` None lets any number of lines change.
    """
    return Gate(target.original, scope, most_lines=most_lines).check(target.corrupted)


class Gate:
    """The gates of one function, whose original is examined once for all of its corruptions."""

    def __init__(
        self, original: str, scope: NamesInReach | None = None, *, most_lines: int | None = MOST_CHANGED_LINES
    ) -> None:
        self._scope = scope
        self._most_lines = most_lines
        self._longest = max(_longest(original), scope.longest if scope else 0, _LINE_LENGTH)
        self._around = scope.around if scope else ()
        self._before = _facts(original)

    def check(self, corrupted: str) -> GateRefusal | None:
        """Return the first reason to drop a corrupted text, None if there is none."""
        before = self._before
        if before is None:
            return GateRefusal.UNREADABLE
        changed = hunks(before.text, corrupted)
        if self._most_lines is not None and sum(max(b - a, d - c) for a, b, c, d in changed) > self._most_lines:
            return GateRefusal.TOO_MANY_LINES
        if _longest(corrupted) > self._longest:
            return GateRefusal.LONG_LINE
        after = _facts(corrupted)
        if after is None:
            return GateRefusal.DOES_NOT_PARSE
        refusal = _kept(before, after) or self._names(before, after) or _code(before, after)
        return refusal or next((reason for reason, _ in self._shown(before, after, changed)), None)

    def broken(self, corrupted: str) -> tuple[str, ...]:
        """Return in words all rules by which a reader notices a text, where `check` returns the first reason alone."""
        before, after = self._before, _facts(corrupted)
        if before is None or after is None:
            return ()
        reasons = [GateRefusal.LONG_LINE] if _longest(corrupted) > self._longest else []
        if _texts(before) != _texts(after):
            reasons.append(GateRefusal.COMMENTS)
        if (names := self._names(before, after)) is not None:
            reasons.append(names)
        found = self._shown(before, after, hunks(before.text, corrupted))
        shown = (f"{reason.value} ({what})" if what else reason.value for reason, what in found)
        return tuple(dict.fromkeys([*(reason.value for reason in reasons), *shown]))

    def _names(self, before: ScopeFacts, after: ScopeFacts) -> GateRefusal | None:
        known = self._scope.known if self._scope else BUILTINS
        if after.named - before.named - before.bound - after.bound - known:
            return GateRefusal.UNKNOWN_NAME
        return GateRefusal.NEW_STRING if after.strings - before.strings else None

    def _shown(self, before: ScopeFacts, after: ScopeFacts, changed: Hunks) -> Iterator[tuple[GateRefusal, str]]:
        """Yield what a reader notices, with what exactly it is, if that has a name."""
        if unbound := after.unbound - before.unbound:
            yield GateRefusal.UNBOUND, ", ".join(sorted(unbound))
        if unused := (after.unused - before.unused).union(after.dead - before.dead):
            yield GateRefusal.UNUSED, ", ".join(sorted(unused))
        if after.unreachable > before.unreachable:
            yield GateRefusal.UNREACHABLE, ""
        for what in _odd(before, after):
            yield GateRefusal.ODD, what
        if orphans := self._orphans(before, after):
            yield GateRefusal.ORPHANED, ", ".join(orphans)
        if _named(before, after) or any(
            given_away_by_name(name, before.identifiers, after.identifiers) for name in self._around
        ):
            yield GateRefusal.NAMED, ""
        told_beside = before.explained != after.explained or before.comments != after.comments
        if told_beside or _told(before, after, changed):
            yield GateRefusal.TOLD, ""

    def _orphans(self, before: ScopeFacts, after: ScopeFacts) -> list[str]:
        """Return the names that the function drops and that are then used nowhere else in the file."""
        scope = self._scope
        if scope is None or not scope.uses:
            return []
        dropped = sorted((before.words - after.words).items())
        return [name for name, number in dropped if scope.uses.get(name, 0) - number <= 1 and scope.defines(name)]


def _longest(text: str) -> int:
    return max(len(line) for line in text.split("\n"))


def _facts(text: str) -> ScopeFacts | None:
    try:
        return facts_of(text)
    except CodeError:
        return None


def _kept(before: ScopeFacts, after: ScopeFacts) -> GateRefusal | None:
    if before.header != after.header:
        return GateRefusal.HEADER
    if before.docstring != after.docstring:
        return GateRefusal.DOCSTRING
    if same_tree(before.node, after.node):
        return GateRefusal.SAME_TREE
    return GateRefusal.COMMENTS if _texts(before) != _texts(after) else None


def _odd(before: ScopeFacts, after: ScopeFacts) -> Iterator[str]:
    """Yield what is odd in the text after the change and was not before."""
    yield from after.oddities - before.oddities
    if before.rows.broken_by(after.rows):
        yield "one of several like neighbours differs"
    if after.bracketed > before.bracketed:
        yield "needless brackets"
    if after.idle and not before.idle:
        yield "it returns a constant and does nothing else"
    if _unheeded(before, after):
        yield "a condition tests another value than is read"
    if _one_result(before, after):
        yield "all returns give the same constant"
    if _turned(before.conditions, after.conditions):
        yield "the only condition is negated"
    if kept := (after.constant_places - before.constant_places) & after.bound:
        yield f"it keeps the value that it starts with: {', '.join(sorted(kept))}"
    if absent := after.unguarded - before.unguarded:
        yield f"used although it may be absent: {', '.join(sorted(absent))}"
    if _unlike_others(before, after):
        yield "one of several like statements differs"
    if before.converted > after.converted:
        yield "a result is no longer converted to the annotated type"


def _unheeded(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Whether a condition tests a value that is no longer read after it, or a different value than is read."""
    (asked, read), (asked_now, read_now) = before.heeded, after.heeded
    if asked.total() == asked_now.total() and read.total() > read_now.total():
        return True
    return any(asked_now[value] >= asked[value] for value in read - read_now)


def _unlike_others(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Whether a statement changes that stands elsewhere in the function too, and stays there."""
    if any(after.options[name] for name in before.options - after.options):
        return True
    if before.twins.total() < after.twins.total():
        return False
    return any(before.twins[text] > 1 and after.twins[text] for text in before.twins - after.twins)


def _told(before: ScopeFacts, after: ScopeFacts, changed: Hunks) -> bool:
    fresh = after.text.split("\n")
    new = [line for _, _, first, last in changed for line in fresh[first:last]]
    return told(before.text.split("\n"), before.remarks, [(first, last) for first, last, _, _ in changed], new)


def _one_result(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Whether several statements that returned different constants all return the same one."""
    (were, _), (are, number) = before.results, after.results
    return len(were) > 1 and len(are) == 1 and number > 1


def _named(before: ScopeFacts, after: ScopeFacts) -> bool:
    name = before.node.name
    if given_away_by_name(name, before.identifiers, after.identifiers):
        return True
    if comparison_alone(before.node) != comparison_alone(after.node):
        return True
    if given_away_by_variable(before.nodes, after.nodes):
        return True
    if denied(name, after.nodes) > denied(name, before.nodes):
        return True
    gone = {word for word in before.spoken - after.spoken if len(word) >= _LEAST_WORD}
    if of_one_stem(gone, (word for word in before.said if len(word) >= _LEAST_WORD)):
        return True
    left = [text for text in after.strings if isinstance(text, str)]
    lost = [text for text in before.strings - after.strings if isinstance(text, str) and len(text) > 1]
    if any(text in other for text in lost for other in (*left, before.docstring or "")):
        return True
    spoken = [before.identifiers.keys() | before.strings, after.identifiers.keys() | after.strings]
    return given_away_by_docstring(before.docstring, *spoken)


def _texts(facts: ScopeFacts) -> list[str]:
    return [comment for comment, _ in facts.comments]


def _code(before: ScopeFacts, after: ScopeFacts) -> GateRefusal | None:
    if after.code is None:
        return GateRefusal.DOES_NOT_PARSE if before.code is not None else None
    return GateRefusal.SAME_CODE if before.code is not None and same_code(before.code, after.code) else None


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.NotIn: ast.In,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
}


def _turned(before: tuple[ast.expr, ...], after: tuple[ast.expr, ...]) -> bool:
    """Whether the only condition is negated: then the whole function does the opposite."""
    if len(before) != 1 or len(after) != 1:
        return False
    (was, sign), (now, other) = _signed(before[0]), _signed(after[0])
    return was == now and sign != other


def _signed(test: ast.expr) -> tuple[str, bool]:
    """Return a condition without its negation, and whether it had none."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        text, sign = _signed(test.operand)
        return text, not sign
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        kind = _OPPOSITE[type(test.ops[0])]()
        return ast.unparse(ast.Compare(test.left, [kind], test.comparators)), False
    return ast.unparse(test), True


# Comments that tell what was meant: those above a change in the same paragraph or block that mention it


_FAR = 8
"""Most lines from a comment to the code that it can be about."""
_LEAST = 4
_NAME = re.compile(r"[^\W\d]\w*")
_COMMON = frozenset(
    {"self", "return", "none", "true", "false", "else", "elif", "with", "from", "import", "this", "that"}
)


def told(
    lines: Sequence[str], remarks: Iterable[tuple[int, str]], hunks: Iterable[tuple[int, int]], fresh: Sequence[str]
) -> bool:
    """Return whether a comment tells what the changed lines did.

    `remarks` are the comments with their lines, `hunks` the changed lines of the original, from one to before
    another, all counted from 0; `fresh` are the new lines. A comment tells if it stands right below a changed header
    of its block, or above the change without a dedent or a new paragraph between, and has a word in common with it.
    """
    noted = list(remarks)
    if not noted:
        return False
    for start, end in hunks:
        changed = [*lines[start:end], *fresh]
        if any(row == end and lines[end - 1].rstrip().endswith(":") for row, _ in noted if end > start):
            return True
        own = [word for line in changed for name in _NAME.findall(_without_comment(line)) for word in words(name)]
        own = [word for word in own if len(word) >= _LEAST and word not in _COMMON]
        for row, comment in noted:
            if start - _FAR <= row < max(end, start + 1) and _reaches(lines, row, max(start, row + 1)):
                said = [word for name in _NAME.findall(comment) for word in words(name)]
                if of_one_stem((word for word in said if len(word) >= _LEAST and word not in _COMMON), own):
                    return True
    return False


def _without_comment(line: str) -> str:
    return line.partition("#")[0]


def _reaches(lines: Sequence[str], row: int, place: int) -> bool:
    """Whether code at a line is in the paragraph or in a block that a comment heads."""
    column = _margin(lines[row])
    if lines[row].lstrip()[:1] != "#":
        return False
    between = lines[row + 1 : place + 1]
    if any(line.strip() and _margin(line) < column for line in between):
        return False
    blank = [number for number, line in enumerate(between) if not line.strip()]
    return not any(_margin(line) <= column for number in blank for line in between[number + 1 :] if line.strip())


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
