"""Faults in control flow: a lost case or guard, and `break` for `continue`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.code.nodes import inside
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import elif_of, is_elif, margin, shifted
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import LEAVING, NAMED, elements, is_guard, texts_of
from gistpoint.core.corruption.subject import CorruptionTarget

_OTHER = {ast.Break: "continue", ast.Continue: "break"}


def lost_case(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out a guard, such as an early return, one of several branches, or a `case`."""
    for block in subject.blocks:
        for node in filter(is_guard, block.statements[:-1]):
            yield from deleted(subject, node)
    for choice in subject.of(ast.If):
        yield from _lost_branch(subject, choice)
    for match in subject.of(ast.Match):
        yield from _lost_pattern(subject, match)


def _lost_branch(subject: CorruptionTarget, choice: ast.If) -> Iterator[Edits]:
    following = elif_of(subject, choice)
    if following is None:
        return
    yield lines_dropped(subject, subject.span(following)[0], subject.span(following.body[-1])[1])
    if not is_elif(subject, choice):
        # The `elif` after the first branch becomes the `if`; the first branch's lines are removed (decision
        # 93).
        start, second = subject.span(choice)[0], subject.span(following)[0]
        yield (TextEdit(start, second + len("el"), ""),)


def lines_dropped(subject: CorruptionTarget, start: int, end: int) -> Edits:
    """Return the edit that removes the whole lines between two offsets, with one line ending."""
    first, last = subject.line_start(start), subject.text.find("\n", end)
    if last < 0:
        return (TextEdit(first - 1, len(subject.text), ""),)
    return (TextEdit(first, last + 1, ""),)


def _lost_pattern(subject: CorruptionTarget, match: ast.Match) -> Iterator[Edits]:
    # Neither of two cases is left out, because a `match` with a single case would remain.
    if len(match.cases) <= 2:
        return
    for case in match.cases[:-1]:
        first = _line_of_case(subject, case)
        end = subject.text.find("\n", subject.span(case.body[-1])[1])
        if first is not None and end > 0:
            yield (TextEdit(first, end + 1, ""),)


def _line_of_case(subject: CorruptionTarget, case: ast.match_case) -> int | None:
    """Return the offset of the line with a branch's `case`; None if the branch is not on separate lines."""
    place = subject.document.offset(case.pattern.lineno, case.pattern.col_offset)
    start = subject.line_start(place)
    header, body = subject.text[start:place].split()[:1], subject.line_start(subject.span(case.body[0])[0])
    return start if header == ["case"] and start < body else None


@at_each(ast.If)
def lost_guard(subject: CorruptionTarget, choice: ast.If) -> Iterator[Edits]:
    """Yield edits that replace an `if` of a single statement with that statement."""
    match choice:
        case ast.If(body=[done], orelse=[]) if not is_elif(subject, choice):
            yield from _unguarded(subject, choice, done)


def _unguarded(subject: CorruptionTarget, choice: ast.If, done: ast.stmt) -> Iterator[Edits]:
    inner = subject.lines(done)
    if inner is None or isinstance(done, LEAVING):
        return
    text = shifted(subject.cut(inner), margin(subject, done), margin(subject, choice))
    if text and not _replaces(choice.test, done):
        yield (TextEdit(subject.line_start(subject.span(choice)[0]), inner[1], text),)


def _replaces(test: ast.expr, done: ast.stmt) -> bool:
    """Return whether a statement, run unconditionally, would overwrite the value that its condition tests."""
    match done:
        case ast.Assign(targets=targets):
            stored = {ast.unparse(item) for target in targets for item in elements(target)}
            return not stored.isdisjoint(texts_of(inside(NAMED, test)))
    return False


@at_each(ast.Break, ast.Continue)
def break_continue(subject: CorruptionTarget, node: ast.stmt) -> Iterator[Edits]:
    """Yield edits that exchange `break` and `continue`."""
    yield subject.replaced(node, _OTHER[type(node)])


def deleted(subject: CorruptionTarget, statement: ast.stmt) -> Iterator[Edits]:
    """Yield the edit that removes a statement's lines; none if other code shares its lines.

    If blank lines before and after the statement would then be adjacent, one of them is also removed.
    """
    lines = subject.lines(statement)
    if lines is None:
        return
    start, end = lines
    if end == len(subject.text):
        yield (TextEdit(start - 1, end, ""),)
        return
    blank_before = subject.text[:start].endswith(("\n\n", ":\n"))
    blank_after = subject.text.startswith("\n\n", end)
    yield (TextEdit(start, end + (2 if blank_before and blank_after else 1), ""),)


# Lost cases make good corruptions; of lost guards around one line, only 1 in 9 was good, so they come last
# (decision 93).
OPERATORS = (
    Operator("lost case", 0.45, lost_case),
    Operator("lost guard", 0.03, lost_guard),
    Operator("break for continue", 0.03, break_continue),
)
