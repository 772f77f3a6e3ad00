"""Functions that can be seen to do nothing: no effect, no result but one constant, a collection that nobody reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gistpoint.core.code.parsing import parse_expression

_FILLING = frozenset({"add", "append", "appendleft", "discard", "extend", "insert", "remove", "setdefault", "update"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def idle(function: Function) -> bool:
    """Return whether a function gives the same constant whenever it returns, and does nothing else.

    What it gets from calling itself is no result of its own.
    """
    nodes = list(_own(function))
    if any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Raise) or _acts(node) for node in nodes):
        return False
    values = {
        "None" if node.value is None else ast.unparse(node.value)
        for node in nodes
        if isinstance(node, ast.Return) and not _calls(node.value, function.name)
    }
    return len(values | ({"None"} if not values else set())) == 1 and all(_constant(value) for value in values)


def filled_only(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that are read for nothing but to put something in: `found.append(x)`."""
    loads: dict[str, int] = {}
    fills: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] = loads.get(node.id, 0) + 1
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.attr in _FILLING:
                fills[called.value.id] = fills.get(called.value.id, 0) + 1
    return frozenset(name for name, number in fills.items() if number == loads[name])


def never_filled(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that begin as an empty list, set or dict and are only read after that, but by no call."""
    begun: set[str] = set()
    named: dict[str, int] = {}
    plain: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            named[node.id] = named.get(node.id, 0) + 1
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_empty_collection(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            begun |= {target.id} if isinstance(target, ast.Name) else set()
        read = getattr(node, "value", None) if isinstance(node, ast.Return) else None
        for value in [read, *(node.comparators if isinstance(node, ast.Compare) else ())]:
            if isinstance(value, ast.Name):
                plain[value.id] = plain.get(value.id, 0) + 1
    return frozenset(name for name in begun if named[name] == 1 + plain.get(name, 0))


def is_empty_collection(value: ast.expr) -> bool:
    """Return whether a value is a list, set, tuple or dict with nothing in it."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("list", "set", "dict") and not value.args
    return not getattr(value, "elts", getattr(value, "keys", [value]))


def _own(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of the body, without those of functions inside."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _INNER):
            waiting += ast.iter_child_nodes(node)


def _acts(node: ast.AST) -> bool:
    """Whether a node stores where others see it, or is a call for its effect."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        return isinstance(node.ctx, ast.Store | ast.Del)
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)


def _calls(value: ast.expr | None, name: str) -> bool:
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    return name == (called.id if isinstance(called, ast.Name) else getattr(called, "attr", ""))


def _constant(text: str) -> bool:
    return isinstance(parse_expression(text), ast.Constant)
