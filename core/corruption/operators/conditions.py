"""Faults in conditions: a part left out, or `and` and `or` exchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.code.nodes import inside
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import part_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import is_all_of, texts_of
from gistpoint.core.corruption.subject import CorruptionTarget

_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def demand_dropped(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out one part of `a and b`."""
    return _part_dropped(subject, ast.And)


def alternative_dropped(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out one part of `a or b`."""
    return _part_dropped(subject, ast.Or)


def _part_dropped(subject: CorruptionTarget, kind: type[ast.boolop]) -> Iterator[Edits]:
    for node in subject.of(ast.BoolOp):
        match node:
            case ast.BoolOp(op=sign, values=[one, other]) if isinstance(sign, kind):
                yield from _one_of_two(subject, node, one, other)
            case ast.BoolOp(op=sign, values=values) if isinstance(sign, kind):
                spans = list(map(subject.operand, values))
                yield from (part_dropped(spans, place) for place in range(len(spans)))


def _one_of_two(
    subject: CorruptionTarget, node: ast.BoolOp, one: ast.expr, other: ast.expr
) -> Iterator[Edits]:
    if isinstance(other, ast.Constant):
        return
    yield from bare(subject, node, one)
    # `a and a[0]` without its first part would fail for the first empty value.
    if not _indexed(one, other):
        yield from bare(subject, node, other)


def _indexed(value: ast.expr, by: ast.expr) -> bool:
    """Return whether one condition reads an item of a value that another condition finds not empty."""
    return ast.unparse(value) in texts_of(item.value for item in inside(ast.Subscript, by))


def bare(subject: CorruptionTarget, node: ast.expr, part: ast.expr) -> Iterator[Edits]:
    """Yield the edit that reduces an expression to one part, without unnecessary parentheses.

    Nothing is yielded if the part has parentheses that it would still need.
    """
    span, enclosed, whole = subject.span(part), subject.operand(part), subject.operand(node)
    needs_brackets = "\n" in subject.cut(enclosed) or isinstance(subject.parent(node), ast.expr)
    if enclosed != span and needs_brackets:
        return
    # Parentheses around the whole may join lines, so they are removed only if they enclose a single line and
    # the part needs none.
    if not isinstance(part, _TIGHT) or "\n" in subject.cut(whole):
        whole = subject.span(node)
    edits = TextEdit(whole[0], span[0], ""), TextEdit(span[1], whole[1], "")
    yield tuple(edit for edit in edits if edit.start < edit.end)


@at_each(ast.BoolOp)
def and_or(subject: CorruptionTarget, node: ast.BoolOp) -> Iterator[Edits]:
    """Yield the edit that exchanges `and` and `or` between two operands; none for more than two."""
    match node.values:
        case [one, other]:
            span = subject.between(one, other)
            if span:
                yield (TextEdit(*span, "or" if is_all_of(node) else "and"),)


@at_each(ast.comprehension)
def filter_dropped(subject: CorruptionTarget, node: ast.comprehension) -> Iterator[Edits]:
    """Yield edits that leave out the condition of a comprehension."""
    if len(node.ifs) == 1:
        yield (TextEdit(subject.operand(node.iter)[1], subject.span(node.ifs[0])[1], ""),)


# A part of `a and b` is left out only if nothing else is found, so the prior is low (decision 93).
OPERATORS = (
    Operator("lost alternative", 0.25, alternative_dropped),
    Operator("weakened condition", 0.05, demand_dropped, in_rewritten=True),
    Operator("weakened condition", 0.1, filter_dropped, in_rewritten=True),
    Operator("and for or", 0.02, and_or),
)
