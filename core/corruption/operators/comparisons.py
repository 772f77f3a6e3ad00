"""Faults in comparisons: at the boundary, and None confused with falsy values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.code.nodes import inside
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import NAMED, TESTING, defaults_of, name_of
from gistpoint.core.corruption.subject import CorruptionTarget

# Reversed and negated operators are not included: readers see them at once (decision 93).
_BOUNDARY: Mapping[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_FLAG = re.compile(r"_*(is|has|was|can|should|needs?|allow|enable|use)_")
_MAY_BE_ABSENT = re.compile(r"None|Optional|Any")
_TRUTH = (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Assert)


@at_each(ast.Compare)
def boundary(subject: CorruptionTarget, node: ast.Compare) -> Iterator[Edits]:
    """Yield edits that replace `<` with `<=` and the like, which is wrong only if both sides are equal."""
    operands = [node.left, *node.comparators]
    for place, kind in enumerate(node.ops):
        text = _BOUNDARY.get(type(kind))
        span = subject.between(operands[place], operands[place + 1])
        if text and span:
            yield (TextEdit(*span, text),)


# Testing the truthiness instead of comparing with None is a weaker idiom that is also common (decision 93).
@at_each(ast.Compare)
def sentinel(subject: CorruptionTarget, node: ast.Compare) -> Iterator[Edits]:
    """Yield edits that replace `x is None` with `not x`, and `x is not None` with `x`.

    The result is wrong for 0 and empty values.
    """
    match node:
        case ast.Compare(left=value, ops=[kind], comparators=[ast.Constant(value=None)]):
            if _in_condition(subject, node) and not _is_chosen(subject, node, value):
                yield from _by_truth(subject, node, kind)


def _by_truth(subject: CorruptionTarget, node: ast.Compare, kind: ast.cmpop) -> Iterator[Edits]:
    operand = subject.cut(subject.operand(node.left))
    if isinstance(kind, ast.IsNot):
        yield subject.replaced(node, operand)
    # After a `not` or a minus, a second `not` would be noticed.
    elif isinstance(kind, ast.Is) and subject.nearest(node, ast.UnaryOp) is None:
        yield subject.replaced(node, f"not {operand}")


def _is_chosen(subject: CorruptionTarget, node: ast.Compare, value: ast.expr) -> bool:
    """Return whether a conditional expression returns the value it tests: `x if x is not None else y`."""
    match subject.parent(node):
        case ast.IfExp(body=body, orelse=orelse):
            return ast.unparse(value) in map(ast.unparse, (body, orelse))
    return False


def none_alone(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that replace `not x` with `x is None`, and `x` with `x is not None`.

    The result is wrong for 0 and empty values.
    """
    for test in _tested(subject):
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=value):
                asked = "is None"
            case value:
                asked = "is not None"
        if isinstance(value, NAMED) and not _is_flag(subject, value):
            yield subject.replaced(test, f"{subject.source(value)} {asked}")


def _is_flag(subject: CorruptionTarget, value: ast.expr) -> bool:
    """Return whether a value is clearly a flag, by its name, its annotation or its assigned values."""
    name, given = name_of(value), subject.node.args
    collected = {item.arg for item in (given.vararg, given.kwarg) if item is not None}
    if _FLAG.match(name) or name in collected:
        return True
    if not _MAY_BE_ABSENT.search(_annotation_of(given, name)):
        return True
    defaults = [default for item, default in defaults_of(given) if item.arg == name]
    return any(map(_is_truth, [*_assigned_to(subject, value), *filter(None, defaults)]))


def _annotation_of(given: ast.arguments, name: str) -> str:
    """Return the annotation of a parameter; `Any` if it has none, or if no parameter has this name."""
    for item in inside(ast.arg, given):
        if item.arg == name and item.annotation:
            return ast.unparse(item.annotation)
    return "Any"


def _assigned_to(subject: CorruptionTarget, place: ast.expr) -> Iterator[ast.expr]:
    """Yield the values that are assigned to a variable or an attribute."""
    text = ast.unparse(place)
    for node in subject.of(ast.Assign):
        if text in map(ast.unparse, node.targets):
            yield node.value


def _is_truth(value: ast.expr) -> bool:
    match value:
        case ast.Compare() | ast.Constant(value=bool()):
            return True
    return False


def _in_condition(subject: CorruptionTarget, node: ast.expr) -> bool:
    parent = subject.parent(node)
    if not isinstance(parent, _TRUTH):
        return False
    # The two values of a conditional expression are not conditions.
    return node not in (getattr(parent, "body", None), getattr(parent, "orelse", None))


def _tested(subject: CorruptionTarget) -> Iterator[ast.expr]:
    """Yield the expressions whose truth is tested, with the operands of `and` and `or` separately."""
    for node in subject.of(TESTING):
        waiting = [node.test]
        while waiting:
            test = waiting.pop(0)
            if isinstance(test, ast.BoolOp):
                waiting += test.values
            else:
                yield test


OPERATORS = (
    Operator("boundary", 0.03, boundary, in_rewritten=True),
    Operator("sentinel", 0.02, none_alone),
    Operator("sentinel", 0.05, sentinel, in_rewritten=True),
)
