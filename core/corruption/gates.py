"""The static gates, which drop changes that are not corruptions or are too visible before any test runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, dropwhile
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
    """A reason to drop a corruption before any test runs."""

    BEYOND_THE_MOST_LIKELY = "the function has too many, and others are more likely to be good"
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
    EXPLAINED = "a comment or an error message beside it tells what was meant"


def gate(
    target: Target, scope: NamesInReach | None = None, *, most_lines: int | None = MOST_CHANGED_LINES
) -> GateRefusal | None:
    """Return the first reason to drop a corruption; None if there is none.

    If the function's `scope` is given, the names of its module are known too, and names that the file no
    longer uses are found. With `most_lines` None, any number of lines may change.
    """
    return Gate(target.original, scope, most_lines=most_lines).check(target.corrupted)


# A corruption that a careful reader sees without thinking is dropped before a test runs, even at the cost of
# good candidates (decision 30); so is one whose missing part the rest of the function still mentions
# (decision 93).
class Gate:
    """The gates of one function; its original is examined once for all of its corruptions."""

    def __init__(
        self, original: str, scope: NamesInReach | None = None, *, most_lines: int | None = MOST_CHANGED_LINES
    ) -> None:
        self._scope = scope
        self._most_lines = most_lines
        self._known = scope.known if scope else BUILTINS
        self._longest = max(_longest(original), scope.longest if scope else 0, _LINE_LENGTH)
        self._around = scope.around if scope else ()
        self._before = _facts(original)

    def check(self, corrupted: str) -> GateRefusal | None:
        """Return the first reason to drop a corrupted text; None if there is none."""
        before = self._before
        if before is None:
            return GateRefusal.UNREADABLE
        # Checks of the text alone come first, and facts of the corrupted text's nodes last: most corruptions
        # are dropped before most facts are needed (decision 62).
        changed = hunks(before.text, corrupted)
        if self._most_lines is not None and _number_of_lines(changed) > self._most_lines:
            return GateRefusal.TOO_MANY_LINES
        # The limit is the file's own longest line, at least 79 columns: a solver can read the whole file and
        # knows its style.
        if _longest(corrupted) > self._longest:
            return GateRefusal.LONG_LINE
        after = _facts(corrupted)
        if after is None:
            return GateRefusal.DOES_NOT_PARSE
        refusal = (
            _header_refusal(before, after)
            or self._name_refusal(before, after)
            or _code_refusal(before, after)
        )
        if refusal is not None:
            return refusal
        reason, _ = next(self._shown(before, after, changed), (None, ""))
        return reason

    def unusable(self, corrupted: str) -> GateRefusal | None:
        """Return why code can't run or behaves like the original; None if neither is the case.

        Unlike `check`, this accepts anything that a reader may notice.
        """
        before, after = self._before, _facts(corrupted)
        if before is None:
            return GateRefusal.UNREADABLE
        if after is None:
            return GateRefusal.DOES_NOT_PARSE
        if same_tree(before.node, after.node):
            return GateRefusal.SAME_TREE
        unknown = self._name_refusal(before, after) is GateRefusal.UNKNOWN_NAME
        return GateRefusal.UNKNOWN_NAME if unknown else _code_refusal(before, after)

    def broken(self, corrupted: str) -> tuple[str, ...]:
        """Return the descriptions of the rules that reveal a corruption; `check` returns only one.

        Empty if the original or the text can't be read; only `check` reports that.
        """
        # In a model's text, any number of lines may change, and findings are reported, not refused.
        before, after = self._before, _facts(corrupted)
        if before is None or after is None:
            return ()
        reasons = [GateRefusal.LONG_LINE] if _longest(corrupted) > self._longest else []
        if _texts(before) != _texts(after):
            reasons.append(GateRefusal.COMMENTS)
        if (names := self._name_refusal(before, after)) is not None:
            reasons.append(names)
        found = self._shown(before, after, hunks(before.text, corrupted))
        shown = (f"{reason.value} ({what})" if what else reason.value for reason, what in found)
        return tuple(dict.fromkeys([*(reason.value for reason in reasons), *shown]))

    def _name_refusal(self, before: ScopeFacts, after: ScopeFacts) -> GateRefusal | None:
        if after.named - before.named - before.bound - after.bound - self._known:
            return GateRefusal.UNKNOWN_NAME
        return GateRefusal.NEW_STRING if after.strings - before.strings else None

    def _shown(
        self, before: ScopeFacts, after: ScopeFacts, changed: Hunks
    ) -> Iterator[tuple[GateRefusal, str]]:
        """Yield the reasons why a reader notices the change, each with its details or an empty string."""
        if unbound := after.unbound - before.unbound:
            yield GateRefusal.UNBOUND, ", ".join(sorted(unbound))
        if unused := (after.unused - before.unused).union(after.dead - before.dead):
            yield GateRefusal.UNUSED, ", ".join(sorted(unused))
        if after.unreachable > before.unreachable:
            yield GateRefusal.UNREACHABLE, ""
        yield from ((GateRefusal.ODD, what) for what in _odd(before, after))
        if orphans := self._orphans(before, after):
            yield GateRefusal.ORPHANED, ", ".join(orphans)
        if self._names_reveal(before, after):
            yield GateRefusal.NAMED, ""
        # This comes last, because it takes the longest to find.
        explained, noted = before.explained != after.explained, before.comments != after.comments
        if explained or noted or _is_explained(before, after, changed):
            yield GateRefusal.EXPLAINED, ""

    def _names_reveal(self, before: ScopeFacts, after: ScopeFacts) -> bool:
        """Return whether a name or the docstring shows what the original did."""
        for name in (before.node.name, *self._around):
            if given_away_by_name(name, before.identifiers, after.identifiers):
                return True
        return _own_names_reveal(before, after)

    def _orphans(self, before: ScopeFacts, after: ScopeFacts) -> list[str]:
        """Return the names that the function drops and that the file then uses nowhere else.

        Empty if the function's scope is unknown.
        """
        scope = self._scope
        if scope is None or not scope.uses:
            return []
        dropped = sorted((before.words - after.words).items())
        # The one remaining use is the definition or the import.
        unused = [name for name, number in dropped if scope.uses.get(name, 0) - number <= 1]
        return list(filter(scope.defines, unused))


def _number_of_lines(changed: Hunks) -> int:
    """Return how many lines changed: for each hunk, the larger number of removed or added lines."""
    return sum(max(end - start, new_end - new_start) for start, end, new_start, new_end in changed)


def _longest(text: str) -> int:
    return max(len(line) for line in text.split("\n"))


def _facts(text: str) -> ScopeFacts | None:
    try:
        return facts_of(text)
    except CodeError:
        return None


def _header_refusal(before: ScopeFacts, after: ScopeFacts) -> GateRefusal | None:
    if before.header != after.header:
        return GateRefusal.HEADER
    if before.docstring != after.docstring:
        return GateRefusal.DOCSTRING
    if same_tree(before.node, after.node):
        return GateRefusal.SAME_TREE
    return GateRefusal.COMMENTS if _texts(before) != _texts(after) else None


def _odd(before: ScopeFacts, after: ScopeFacts) -> Iterator[str]:
    """Yield the descriptions of the oddities that only the changed text has."""
    yield from after.oddities - before.oddities
    for what, rule in _ODD:
        found = rule(before, after)
        if isinstance(found, frozenset) and found:
            yield f"{what}: {', '.join(sorted(found))}"
        elif found:
            yield what


def _tests_other_value(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Return whether a branch stopped reading the value in its condition because one of the two changed."""
    (asked, read), (asked_now, read_now) = before.tested_and_read, after.tested_and_read
    if asked.total() == asked_now.total() and read.total() > read_now.total():
        return True
    return any(asked_now[value] >= asked[value] for value in read - read_now)


def _unlike_others(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Return whether a changed statement still has an unchanged twin elsewhere in the function.

    A call that loses a keyword counts too, if another call to the same function still has the keyword.
    """
    if any(after.options[name] for name in before.options - after.options):
        return True
    if before.twins.total() < after.twins.total():
        return False
    return any(before.twins[text] > 1 and after.twins[text] for text in before.twins - after.twins)


def _is_explained(before: ScopeFacts, after: ScopeFacts, changed: Hunks) -> bool:
    fresh = after.text.split("\n")
    new = [line for _, _, first, last in changed for line in fresh[first:last]]
    return comment_explains(
        before.text.split("\n"), before.remarks, [(first, last) for first, last, _, _ in changed], new
    )


def _one_result(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Return whether several statements that returned different constants all return the same one."""
    (constants_before, _), (constants, number) = before.results, after.results
    return len(constants_before) > 1 and len(constants) == 1 and number > 1


_ODD: tuple[tuple[str, Callable[[ScopeFacts, ScopeFacts], bool | frozenset[str]]], ...] = (
    ("one of several like neighbours differs", lambda before, after: before.rows.broken_by(after.rows)),
    ("needless brackets", lambda before, after: after.bracketed > before.bracketed),
    ("it returns a constant and does nothing else", lambda before, after: after.idle and not before.idle),
    ("a condition tests another value than is read", _tests_other_value),
    ("all returns give the same constant", _one_result),
    ("the only condition is negated", lambda before, after: _is_negated(before.conditions, after.conditions)),
    (
        "it keeps the value that it starts with",
        lambda before, after: (after.constant_places - before.constant_places) & after.bound,
    ),
    ("used although it may be absent", lambda before, after: after.unguarded - before.unguarded),
    ("one of several like statements differs", _unlike_others),
    (
        "a result is no longer converted to the annotated type",
        lambda before, after: before.converted > after.converted,
    ),
)
"""The oddities with the rules that find them; a rule may also return the names of values."""


def _own_names_reveal(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Return whether the function's name, its variables or its docstring reveal the original."""
    name = before.node.name
    of_operator = denied(name, after.nodes) > denied(name, before.nodes)
    other_comparison = comparison_alone(before.node) != comparison_alone(after.node)
    if of_operator or other_comparison or given_away_by_variable(before.nodes, after.nodes):
        return True
    return _still_mentioned(before, after) or _still_written(before, after)


def _still_mentioned(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Return whether the name, the docstring or the comments contain a word that the code no longer has."""
    return of_one_stem(_long_words(before.spelled - after.spelled), _long_words(before.described))


def _long_words(texts: Iterable[str]) -> list[str]:
    return [word for word in texts if len(word) >= _LEAST_WORD]


def _still_written(before: ScopeFacts, after: ScopeFacts) -> bool:
    """Return whether a string or name that the code loses is part of another string or of the docstring."""
    others = (*after.texts, before.docstring or "")
    lost = [text for text in before.texts if text not in after.strings and len(text) > 1]
    if any(text in other for text in lost for other in others):
        return True
    known_names = [before.identifiers.keys() | before.strings, after.identifiers.keys() | after.strings]
    return given_away_by_docstring(before.docstring, *known_names)


def _texts(facts: ScopeFacts) -> list[str]:
    return [comment for comment, _ in facts.comments]


def _code_refusal(before: ScopeFacts, after: ScopeFacts) -> GateRefusal | None:
    if before.code is None:
        return None  # Python refuses the original too, so a refusal says nothing about the corruption
    if after.code is None:
        return GateRefusal.DOES_NOT_PARSE
    return GateRefusal.SAME_CODE if same_code(before.code, after.code) else None


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.NotIn: ast.In,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
}


def _is_negated(before: tuple[ast.expr, ...], after: tuple[ast.expr, ...]) -> bool:
    """Return whether the only condition is negated, so that the whole function does the opposite."""
    if len(before) != 1 or len(after) != 1:
        return False
    (was, sign), (now, other) = _without_negation(before[0]), _without_negation(after[0])
    return was == now and sign != other


def _without_negation(test: ast.expr) -> tuple[str, bool]:
    """Return a condition without `not` and opposite operators, and whether the two mean the same."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            text, sign = _without_negation(operand)
            return text, not sign
        case ast.Compare(left=left, ops=[kind], comparators=others) if type(kind) in _OPPOSITE:
            return ast.unparse(ast.Compare(left, [_OPPOSITE[type(kind)]()], others)), False
    return ast.unparse(test), True


# Comments that reveal the original: those that mention a change below them in the same paragraph or block


_FAR = 8
"""The maximum number of lines between a comment and the code that it may describe."""
_LEAST = 4
_NAME = re.compile(r"[^\W\d]\w*")
_COMMON = frozenset(
    {"self", "return", "none", "true", "false", "else", "elif", "with", "from", "import", "this", "that"}
)


def comment_explains(
    lines: Sequence[str],
    remarks: Iterable[tuple[int, str]],
    hunks: Iterable[tuple[int, int]],
    fresh: Sequence[str],
) -> bool:
    """Return whether a comment reveals what the changed lines did.

    `remarks` are the comments with their lines; `hunks` are the changed lines of the original, as start and
    end, counted from 0; `fresh` are the new lines. A comment reveals it if it is right below the changed
    header of its block, or if it shares a word with the changed lines and is on a separate line, either
    among them or above them without a dedent or a new paragraph in between.
    """
    noted = list(remarks)
    if not noted:
        return False
    rows = {row for row, _ in noted}
    for start, end in hunks:
        changes_header = end > start and lines[end - 1].rstrip().endswith(":")
        if changes_header and end in rows:
            return True
        code = map(_without_comment, (*lines[start:end], *fresh))
        code_words = list(chain.from_iterable(map(_rare_words, code)))
        for row, comment in noted:
            is_near = start - _FAR <= row < max(end, start + 1)
            if not is_near or not _reaches(lines, row, max(start, row + 1)):
                continue
            if of_one_stem(_rare_words(comment), code_words):
                return True
    return False


def _rare_words(text: str) -> list[str]:
    """Return the words of the names in code that are long enough and not common in code."""
    found = chain.from_iterable(map(words, _NAME.findall(text)))
    return [word for word in found if len(word) >= _LEAST and word not in _COMMON]


def _without_comment(line: str) -> str:
    return line.partition("#")[0]


def _reaches(lines: Sequence[str], row: int, place: int) -> bool:
    """Return whether code at a line is in the paragraph or the block that a comment precedes."""
    column = _margin(lines[row])
    if lines[row].lstrip()[:1] != "#":
        return False
    between = lines[row + 1 : place + 1]
    if any(_margin(line) < column for line in filter(str.strip, between)):
        return False
    # After a blank line, only deeper code belongs to the comment: a block that it precedes, not a new
    # paragraph.
    after_blank = dropwhile(str.strip, between)
    return not any(_margin(line) <= column for line in filter(str.strip, after_blank))


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
