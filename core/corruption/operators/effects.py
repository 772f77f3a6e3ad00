"""What statements store to and mention: whether two of them can be exchanged without any effect."""

from __future__ import annotations

import ast


def meet(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether one statement may change what the other one mentions: then their order matters."""
    stored, also_stored = stores(one), stores(other)
    if stored & places(other) or also_stored & places(one):
        return True
    return bool(_owners(stored) & _handed(other) or _owners(also_stored) & _handed(one))


def places(node: ast.stmt) -> frozenset[str]:
    """Return the variables and attributes that a statement mentions."""
    found = (item for item in ast.walk(node) if isinstance(item, ast.Name | ast.Attribute))
    return frozenset(ast.unparse(item) for item in found) - {"self"}


def stores(node: ast.stmt) -> frozenset[str]:
    """Return the variables, attributes and collections that a statement changes, as far as it shows."""
    found: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Name | ast.Attribute) and not isinstance(item.ctx, ast.Load):
            found.add(ast.unparse(item))
        elif isinstance(item, ast.Subscript) and not isinstance(item.ctx, ast.Load):
            found.add(ast.unparse(item.value))
        elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            called = item.value.func
            found |= {ast.unparse(called.value)} if isinstance(called, ast.Attribute) else set()
    return frozenset(found) - {"self", "super()"}


def _owners(stored: frozenset[str]) -> frozenset[str]:
    """Return the objects whose attributes are among the places."""
    return frozenset(place.rpartition(".")[0] for place in stored if "." in place)


def _handed(node: ast.stmt) -> frozenset[str]:
    """Return the objects of which a statement calls a method, or which it gives to a call."""
    found: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            values = [item.func.value] if isinstance(item.func, ast.Attribute) else []
            found |= {ast.unparse(v) for v in (*values, *item.args) if isinstance(v, ast.Name | ast.Attribute)}
    return frozenset(found)
