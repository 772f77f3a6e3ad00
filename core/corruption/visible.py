"""What gives a corruption away to whoever reads the function: things that nobody writes on purpose."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise

from gistpoint.core.code.compare import same_tree

_SAME_IS_FINE = (ast.Constant, ast.UnaryOp)
_VALUES = (ast.Name, ast.Attribute, ast.Compare, ast.Subscript, ast.BinOp)


def oddities(node: ast.AST) -> Counter[str]:
    """Count what stands out in code: a value compared with itself, a branch that does nothing, a test made twice."""
    found: Counter[str] = Counter()
    for item in ast.walk(node):
        found.update(_of_node(item))
    return found


def _of_node(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        if any(_same(*pair) for pair in pairwise(operands)):
            yield "compared with itself"
    elif isinstance(node, ast.BoolOp):
        yield from _repeated(node.values, "condition repeated")
    elif isinstance(node, ast.BinOp):
        if _same(node.left, node.right) and not isinstance(node.op, ast.Mult | ast.Add):
            yield "operand repeated"
        if isinstance(node.right, ast.Constant) and node.right.value == 0 and isinstance(node.op, ast.Add | ast.Sub):
            yield "nothing added"
    elif isinstance(node, ast.IfExp):
        yield from _repeated([node.body, node.orelse], "same value either way")
        yield from _constant(node.test)
    elif isinstance(node, ast.Call):
        yield from _repeated(node.args, "argument repeated")
        yield from _nested_twice(node)
    elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        yield from _repeated(node.elts, "element repeated")
    elif isinstance(node, ast.Slice):
        yield from _repeated([item for item in (node.lower, node.upper) if item], "bound repeated")
    elif isinstance(node, ast.stmt):
        yield from _of_statement(node)


def _of_statement(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        if any(_same_place(target, node.value) for target in node.targets):
            yield "assigned to itself"
    elif isinstance(node, ast.If):
        yield from _of_cases(node)
    elif isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
        yield from _constant(node.test)
    elif isinstance(node, ast.Expr) and isinstance(node.value, _VALUES):
        yield "statement without effect"
    elif isinstance(node, ast.Try):
        yield from _of_handlers(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and any(_equal(*pair) for pair in pairwise(block)):
            yield "statement repeated"


def _of_cases(node: ast.If) -> Iterator[str]:
    yield from _constant(node.test)
    if node.orelse and len(node.body) == len(node.orelse) and all(map(_equal, node.body, node.orelse)):
        yield "same branches"
    tests, inner = [node.test], node.orelse
    while len(inner) == 1 and isinstance(inner[0], ast.If):
        tests.append(inner[0].test)
        inner = inner[0].orelse
    yield from _repeated(tests, "case repeated")


def _of_handlers(node: ast.Try) -> Iterator[str]:
    kinds = [item for handler in node.handlers if handler.type for item in _kinds(handler.type)]
    yield from _repeated(kinds, "exception repeated")
    if any(isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in kinds[:-1]):
        yield "handler out of reach"


def _kinds(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _constant(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.Constant | ast.Tuple | ast.Lambda | ast.List | ast.Dict):
        yield "condition constant"


def _repeated(nodes: list[ast.expr], what: str) -> Iterator[str]:
    if any(_same(*pair) for pair in combinations(nodes, 2)):
        yield what


def _nested_twice(node: ast.Call) -> Iterator[str]:
    """Yield where the same method is called twice in a row, as in `x.lower().lower()`, or `list(list(x))`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if len(node.args) == 1 else None
    if (
        isinstance(inner, ast.Call)
        and _name(inner.func) == _name(node.func)
        and not inner.args[1:]
        and not node.keywords
    ) and (isinstance(node.func, ast.Name) or not (node.args or inner.args)):
        yield "call repeated"


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ast.dump(node)


def _same(first: ast.AST, second: ast.AST) -> bool:
    return not isinstance(first, _SAME_IS_FINE) and _equal(first, second)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    return type(first) is type(second) and same_tree(first, second)


def _same_place(target: ast.expr, value: ast.expr) -> bool:
    return _equal(target, value)
