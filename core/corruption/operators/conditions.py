"""Faults in conditions: a part dropped, `and` for `or`, inverted, its branches exchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget


def demand_dropped(subject: CorruptionTarget) -> Iterator[Edits]:
    """One part of `a and b` left out."""
    return _part_dropped(subject, ast.And)


def alternative_dropped(subject: CorruptionTarget) -> Iterator[Edits]:
    """One part of `a or b` left out."""
    return _part_dropped(subject, ast.Or)


def _part_dropped(subject: CorruptionTarget, kind: type[ast.boolop]) -> Iterator[Edits]:
    for node in subject.of(ast.BoolOp):
        if not isinstance(node.op, kind):
            continue
        spans = [subject.operand(value) for value in node.values]
        if len(spans) == 2:
            if not isinstance(node.values[1], ast.Constant):
                yield from bare(subject, node, node.values[0])
                if not _indexed(node.values[0], node.values[1]):
                    yield from bare(subject, node, node.values[1])
            continue
        for place, (start, end) in enumerate(spans):
            edit = TextEdit(start, spans[1][0], "") if place == 0 else TextEdit(spans[place - 1][1], end, "")
            yield (edit,)


def _indexed(value: ast.expr, by: ast.expr) -> bool:
    """Whether a condition takes an item of a value that another one finds not empty."""
    text = ast.unparse(value)
    return any(isinstance(item, ast.Subscript) and ast.unparse(item.value) == text for item in ast.walk(by))


def bare(subject: CorruptionTarget, node: ast.expr, part: ast.expr) -> Iterator[Edits]:
    """Yield the edit that reduces an expression to one part, without parentheses that are no longer needed."""
    (start, end), (low, high), whole = subject.span(part), subject.operand(part), subject.operand(node)
    if (low, high) != (start, end) and ("\n" in subject.text[low:high] or isinstance(subject.parent(node), ast.expr)):
        return
    if whole != subject.span(node) and not isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        whole = subject.span(node)
    if "\n" in subject.text[whole[0] : whole[1]] and whole != subject.span(node):
        whole = subject.span(node)
    yield tuple(edit for edit in (TextEdit(whole[0], start, ""), TextEdit(end, whole[1], "")) if edit.start < edit.end)


def and_or(subject: CorruptionTarget) -> Iterator[Edits]:
    """`or` for `and`, and back."""
    for node in subject.of(ast.BoolOp):
        text = "or" if isinstance(node.op, ast.And) else "and"
        spans = [subject.between(*pair) for pair in zip(node.values, node.values[1:], strict=False)]
        if len(spans) == 1 and spans[0]:
            yield (TextEdit(*spans[0], text),)


def filter_dropped(subject: CorruptionTarget) -> Iterator[Edits]:
    """The condition of a comprehension left out."""
    for node in subject.of(ast.comprehension):
        if len(node.ifs) == 1:
            end = subject.span(node.ifs[0])[1]
            before = subject.operand(node.iter)[1]
            yield (TextEdit(before, end, ""),)


OPERATORS = (
    Operator("lost alternative", 0.25, alternative_dropped),
    Operator("weakened condition", 0.05, demand_dropped, in_rewritten=True),
    Operator("weakened condition", 0.1, filter_dropped, in_rewritten=True),
    Operator("and for or", 0.02, and_or),
)
