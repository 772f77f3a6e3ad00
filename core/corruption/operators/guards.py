"""Faults in guards: cases in the wrong order, or one guard too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.code.nodes import inside
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import elif_of, lines_of, margin, step_of
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import NAMED, is_guard, texts_of
from gistpoint.core.corruption.subject import CorruptionTarget


def case_order(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that exchange two neighbouring cases: branches of an `if` with `elif`, or two guards."""
    for choice in subject.of(ast.If):
        following = elif_of(subject, choice)
        if following is not None:
            yield from _exchanged(subject, choice, following)
    for first, second in subject.neighbours():
        if is_guard(first) and is_guard(second):
            yield from _exchanged(subject, first, second)


def _exchanged(subject: CorruptionTarget, first: ast.If, second: ast.If) -> Iterator[Edits]:
    one, two = lines_of(subject, first.body), lines_of(subject, second.body)
    if one is None or two is None or _are_exclusive(first.test, second.test):
        return
    asked, also_asked = subject.operand(first.test), subject.operand(second.test)
    if "\n" in subject.cut(asked) + subject.cut(also_asked):
        return
    places = (asked, also_asked), (also_asked, asked), (one, two), (two, one)
    yield tuple(TextEdit(*here, subject.cut(there)) for here, there in places)


def _are_exclusive(first: ast.expr, second: ast.expr) -> bool:
    """Return whether two conditions compare the same value by `==`, `!=`, `is` or `is not`."""
    match first, second:
        case (
            ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.NotEq() | ast.IsNot()]),
            ast.Compare(left=right, ops=[ast.Eq() | ast.Is() | ast.NotEq() | ast.IsNot()]),
        ):
            return ast.unparse(left) == ast.unparse(right)
    return False


@at_each(ast.For)
def added_guard(subject: CorruptionTarget, loop: ast.For) -> Iterator[Edits]:
    """Yield edits that skip empty values and 0 at the start of a loop's body."""
    match loop:
        case ast.For(
            target=ast.Name(id=name) | ast.Tuple(elts=[*_, ast.Name(id=name)]),
            body=[first, _, *_],
        ) if not name.startswith("_"):
            if not (isinstance(first, ast.If) and name in texts_of(inside(NAMED, first.test)) - {"self"}):
                yield from _guarded(subject, name, first)


def _guarded(subject: CorruptionTarget, name: str, first: ast.stmt) -> Iterator[Edits]:
    start, space = subject.span(first)[0], margin(subject, first)
    if space:
        guard = f"if not {name}:\n{space}{step_of(subject)}continue\n{space}"
        yield (TextEdit(start, start, guard),)


OPERATORS = (
    Operator("case order", 0.05, case_order),
    Operator("added guard", 0.05, added_guard),
)
