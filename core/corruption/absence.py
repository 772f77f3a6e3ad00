"""Values that visibly may be absent: a parameter with None or a marker as its default, a look-up, a match.

Code that uses one and never asks whether it is there gives itself away.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from gistpoint.core.corruption.subject import FunctionNode

_MARKER = re.compile(r"marker|missing|sentinel|unset|undefined|no_?default|no_?value|not_?given|empty$")
_MATCHING = frozenset({"match", "search", "fullmatch"})
_TAKING = frozenset(
    {"update", "extend", "join", "list", "dict", "set", "tuple", "sorted", "len", "iter", "int", "zip", "min", "max"}
)


def unguarded(function: FunctionNode, nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names of values that may be absent, are used as if they were there, and are never asked for."""
    given, absent = set(_optional(function)), {*_several(function), *_looked_up(nodes)}
    if not absent | given:
        return frozenset()
    used = {name for node in nodes for name in _used(node, function)}
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    asked = set(_asked(nodes))
    return frozenset((absent & used) - asked | (given & read) - (asked - _only_by_type(nodes)))


def _defaults(given: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    yield from zip([*given.posonlyargs, *given.args][::-1], given.defaults[::-1], strict=False)
    yield from zip(given.kwonlyargs, given.kw_defaults, strict=True)


def _optional(function: FunctionNode) -> Iterator[str]:
    """Yield the parameters that may be None, or an object that stands for nothing given."""
    given = function.args
    for item, value in _defaults(given):
        none = isinstance(value, ast.Constant) and value.value is None
        if none or (isinstance(value, ast.Name | ast.Attribute) and _MARKER.search(ast.unparse(value).lower())):
            yield item.arg
    named = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from (item.arg for item in named if item.annotation is not None and _is_optional(item.annotation))


def _several(function: FunctionNode) -> Iterator[str]:
    given = function.args
    if given.vararg is not None:
        yield given.vararg.arg


def _is_optional(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.BinOp):
        return any(
            isinstance(side, ast.Constant) and side.value is None for side in (annotation.left, annotation.right)
        )
    of = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(of, ast.Name | ast.Attribute) and ast.unparse(of).endswith("Optional")


def _looked_up(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        value = node.value
        if isinstance(value, ast.Constant) and value.value is None:
            yield node.targets[0].id
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            called = value.func.attr
            yield from [node.targets[0].id] * (called in _MATCHING or (called == "get" and len(value.args) == 1))


def _used(node: ast.AST, function: FunctionNode) -> Iterator[str]:
    """Yield the name whose value a node takes apart, goes through or hands to what needs one."""
    several = function.args.vararg.arg if function.args.vararg is not None else ""
    values: Sequence[ast.AST] = ()
    if isinstance(node, ast.Attribute | ast.Subscript):
        values = [node.value]
    elif isinstance(node, ast.For | ast.comprehension):
        values = [node.iter]
    elif isinstance(node, ast.BinOp):
        values = [node.left, node.right]
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        values = [*(node.args if name in _TAKING else ()), node.func]
    for value in values:
        if isinstance(value, ast.Name) and (value.id != several or isinstance(node, ast.Subscript)):
            yield value.id


def _with_none(node: ast.Compare) -> bool:
    return any(isinstance(item, ast.Constant) and item.value is None for item in (node.left, *node.comparators))


def _only_by_type(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names that conditions ask for their type alone."""
    tests = [node.test for node in nodes if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert)]
    typed = {
        id(item)
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass", "callable")
        for item in ast.walk(node)
    }
    named = [item for test in tests for item in ast.walk(test) if isinstance(item, ast.Name)]
    return frozenset(item.id for item in named) - {item.id for item in named if id(item) not in typed}


def _asked(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names in conditions, in `or` and `and`, in comparisons, and those that are guarded by a handler."""
    for node in nodes:
        parts: Sequence[ast.AST] = ()
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            parts = [node.test]
        elif isinstance(node, ast.comprehension):
            parts = node.ifs
        elif isinstance(node, ast.BoolOp) or (isinstance(node, ast.Compare) and _with_none(node)):
            parts = [node]
        elif isinstance(node, ast.Try):
            parts = node.body
        elif isinstance(node, ast.Match):
            parts = [node.subject]
        for part in parts:
            yield from (item.id for item in ast.walk(part) if isinstance(item, ast.Name))
