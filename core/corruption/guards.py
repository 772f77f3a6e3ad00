"""Guards turned against what they guard: an attribute read of a value that was just found to be None or empty."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def turned_guards(node: ast.AST) -> int:
    """Return how often a node uses a value where its own condition says that there is none."""
    if isinstance(node, ast.BoolOp):
        return _in_operation(node)
    if isinstance(node, ast.If | ast.While):
        count = sum(_used(node.body, value) for value in _absent(node.test))
        return count + sum(_used(node.orelse, value) for value in _present(node.test))
    if isinstance(node, ast.IfExp):
        count = sum(_given_back(node.body, value) for value in _absent(node.test))
        return count + sum(_given_back(node.orelse, value) for value in _present(node.test))
    return 0


def _given_back(branch: ast.expr, value: str) -> bool:
    return ast.unparse(branch) == value or _used([branch], value)


def turned_returns(block: list[ast.stmt]) -> int:
    """Return how often a block goes on to use a value after it has left for the case that there is one."""
    count = 0
    for place, node in enumerate(block):
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVING):
            count += sum(_used(block[place + 1 :], value) for value in _present(node.test))
    return count


def _in_operation(node: ast.BoolOp) -> int:
    count = 0
    for place, value in enumerate(node.values[:-1]):
        found = _absent(value) if isinstance(node.op, ast.And) else _present(value)
        count += sum(_used(node.values[place + 1 :], item) for item in found)
    return count


def _absent(test: ast.expr) -> Iterator[str]:
    """Yield the values that are None or empty where a condition holds."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and _is_none(test.comparators[0]):
        yield from _plain(test.left)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _present(test.operand)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _absent(value)


def _present(test: ast.expr) -> Iterator[str]:
    """Yield the values that are None or empty where a condition does not hold."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and _is_none(test.comparators[0]):
        yield from _plain(test.left)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _absent(test.operand)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        for value in test.values:
            yield from _present(value)
    else:
        yield from _plain(test)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _plain(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        yield ast.unparse(node)


def _needed(node: ast.AST) -> list[ast.expr]:
    """Return the parts of a node that can't be None or would be idle if they were empty."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        return [node.value] if isinstance(node.ctx, ast.Load) else []
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return [node.iter] if isinstance(node, ast.For | ast.comprehension) else []


def _used(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads an attribute or an item of a value that it does not bind itself."""
    used = False
    for node in (item for root in nodes for item in ast.walk(root)):
        stored = isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)
        if stored and ast.unparse(node) in (value, value.partition(".")[0]):
            return False
        used = used or any(ast.unparse(part) == value for part in _needed(node))
    return used
