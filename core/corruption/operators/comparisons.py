"""Faults in comparisons: at the boundary, in the direction, negated, None confused with falsy values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_BOUNDARY: Mapping[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_DIRECTION: Mapping[type[ast.cmpop], str] = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}
_NEGATION: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_FLAG = re.compile(r"_*(is|has|was|can|should|needs?|allow|enable|use)_")
_TRUTH = (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Assert)


def _exchanged(subject: CorruptionTarget, table: Mapping[type[ast.cmpop], str]) -> Iterator[Edits]:
    for node in subject.of(ast.Compare):
        operands = [node.left, *node.comparators]
        for place, kind in enumerate(node.ops):
            text = table.get(type(kind))
            span = subject.between(operands[place], operands[place + 1]) if text else None
            if text and span:
                yield (TextEdit(*span, text),)


def boundary(subject: CorruptionTarget) -> Iterator[Edits]:
    """`<` for `<=` and the like: wrong only if both sides are equal."""
    yield from _exchanged(subject, _BOUNDARY)


def sentinel(subject: CorruptionTarget) -> Iterator[Edits]:
    """`not x` for `x is None` and `x` for `x is not None`: wrong for 0 and empty values."""
    for node in subject.of(ast.Compare):
        if len(node.ops) != 1 or not _is_none(node.comparators[0]) or not _in_condition(subject, node):
            continue
        parent = subject.parent(node)
        if isinstance(parent, ast.IfExp) and ast.unparse(node.left) in map(ast.unparse, (parent.body, parent.orelse)):
            continue
        operand = subject.text[slice(*subject.operand(node.left))]
        if isinstance(node.ops[0], ast.IsNot):
            yield subject.replaced(node, operand)
        elif isinstance(node.ops[0], ast.Is) and not any(isinstance(up, ast.UnaryOp) for up in subject.around(node)):
            yield subject.replaced(node, f"not {operand}")


def none_alone(subject: CorruptionTarget) -> Iterator[Edits]:
    """`x is None` for `not x` and `x is not None` for `x`: wrong for 0 and empty values."""
    for test in _tested(subject):
        value = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
        if not _is_plain(value) or _is_flag(subject, value):
            continue
        if value is not test:
            yield subject.replaced(test, f"{subject.source(value)} is None")
        else:
            yield subject.replaced(test, f"{subject.source(test)} is not None")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def _is_flag(subject: CorruptionTarget, value: ast.expr) -> bool:
    """Whether a value is clearly true or false: by its name, or by what the function assigns or gives it."""
    name = value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")
    if _FLAG.match(name):
        return True
    given = subject.node.args
    if name in {item.arg for item in (given.vararg, given.kwarg) if item is not None}:
        return True
    kinds = {
        item.arg: ast.unparse(item.annotation)
        for item in ast.walk(given)
        if isinstance(item, ast.arg) and item.annotation
    }
    if name in kinds and not re.search(r"None|Optional|Any", kinds[name]):
        return True
    names = [item.arg for item in [*given.posonlyargs, *given.args]][::-1]
    defaults = dict(zip(names, given.defaults[::-1], strict=False))
    defaults |= {item.arg: value for item, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    values = [defaults[name]] if name in defaults else []
    text = ast.unparse(value)
    values += [node.value for node in subject.of(ast.Assign) if any(ast.unparse(t) == text for t in node.targets)]
    return any(
        isinstance(item, ast.Compare) or (isinstance(item, ast.Constant) and isinstance(item.value, bool))
        for item in values
    )


def _in_condition(subject: CorruptionTarget, node: ast.expr) -> bool:
    parent = subject.parent(node)
    return isinstance(parent, _TRUTH) and node not in (getattr(parent, "body", None), getattr(parent, "orelse", None))


def _tested(subject: CorruptionTarget) -> Iterator[ast.expr]:
    """Yield the expressions whose truth decides something, the parts of `and` and `or` separately."""
    for node in subject.nodes:
        waiting = [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else []
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
