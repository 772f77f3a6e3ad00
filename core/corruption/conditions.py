"""The conditions of a function, and whether its only one has been turned round: then the whole function is."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.NotIn: ast.In,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
}


def conditions(nodes: Iterable[ast.AST]) -> tuple[ast.expr, ...]:
    """Return what branches, loops, conditional expressions and filters of comprehensions ask."""
    found: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            found.append(node.test)
        elif isinstance(node, ast.comprehension):
            found += node.ifs
    return tuple(found)


def turned(before: tuple[ast.expr, ...], after: tuple[ast.expr, ...]) -> bool:
    """Return whether the only condition asks for the opposite."""
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
