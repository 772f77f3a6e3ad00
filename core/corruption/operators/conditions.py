"""Faults in conditions: a part dropped, `and` for `or`, inverted, its branches exchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import Edit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import Subject


def part_dropped(subject: Subject) -> Iterator[Edits]:
    """One part of `a and b` or `a or b` left out."""
    for node in subject.of(ast.BoolOp):
        spans = [subject.operand(value) for value in node.values]
        for place, (start, end) in enumerate(spans):
            edit = Edit(start, spans[1][0], "") if place == 0 else Edit(spans[place - 1][1], end, "")
            yield (edit,)


def and_or(subject: Subject) -> Iterator[Edits]:
    """`or` for `and`, and back."""
    for node in subject.of(ast.BoolOp):
        text = "or" if isinstance(node.op, ast.And) else "and"
        spans = [subject.between(*pair) for pair in zip(node.values, node.values[1:], strict=False)]
        if len(spans) == 1 and spans[0]:
            yield (Edit(*spans[0], text),)


def inverted(subject: Subject) -> Iterator[Edits]:
    """A condition that is no comparison, negated."""
    for node in subject.nodes:
        if not isinstance(node, ast.If | ast.While | ast.IfExp | ast.comprehension):
            continue
        for test in node.ifs if isinstance(node, ast.comprehension) else [node.test]:
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                start, end = subject.operand(test.operand)
                yield (Edit(subject.span(test)[0], start, ""), Edit(end, end, "")) if start < end else ()
            elif isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                start = subject.span(test)[0]
                yield (Edit(start, start, "not "),)


def branches_exchanged(subject: Subject) -> Iterator[Edits]:
    """The two sides of a conditional expression, or of an `if` of two short branches, exchanged."""
    for node in subject.of(ast.IfExp):
        yield _exchanged(subject, subject.operand(node.body), subject.operand(node.orelse))
    for choice in subject.of(ast.If):
        if len(choice.body) == 1 and len(choice.orelse) == 1 and not isinstance(choice.orelse[0], ast.If):
            spans = subject.lines(choice.body[0]), subject.lines(choice.orelse[0])
            if spans[0] and spans[1]:
                yield _exchanged(subject, spans[0], spans[1])


def filter_dropped(subject: Subject) -> Iterator[Edits]:
    """The condition of a comprehension left out."""
    for node in subject.of(ast.comprehension):
        if len(node.ifs) == 1:
            end = subject.span(node.ifs[0])[1]
            before = subject.operand(node.iter)[1]
            yield (Edit(before, end, ""),)


def _exchanged(subject: Subject, first: tuple[int, int], second: tuple[int, int]) -> Edits:
    return Edit(*first, subject.text[slice(*second)]), Edit(*second, subject.text[slice(*first)])


OPERATORS = (
    Operator("weakened condition", 0.14, part_dropped),
    Operator("weakened condition", 0.15, filter_dropped),
    Operator("and for or", 0.17, and_or),
    Operator("inverted condition", 0.25, inverted),
    Operator("exchanged branches", 0.25, branches_exchanged),
)
