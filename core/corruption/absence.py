"""Finds values that may be absent: parameters whose default is None or a marker, lookups, and matches.

Code that uses such a value without testing it gives a corruption away.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from gistpoint.core.code.nodes import inside, only
from gistpoint.core.corruption.shapes import (
    NAMED,
    TESTING,
    FunctionNode,
    defaults_of,
    is_call_to,
    is_none,
    name_of,
    names_in,
    names_read,
)

_MARKER = re.compile(r"marker|missing|sentinel|unset|undefined|no_?default|no_?value|not_?given|empty$")
_ASKING: tuple[type[ast.If | ast.While | ast.IfExp | ast.Assert], ...] = (*TESTING, ast.Assert)
_MATCHING = frozenset({"match", "search", "fullmatch"})
_TAKING = frozenset(
    {
        "update",
        "extend",
        "join",
        "list",
        "dict",
        "set",
        "tuple",
        "sorted",
        "len",
        "iter",
        "int",
        "zip",
        "min",
        "max",
    }
)


def unguarded(function: FunctionNode, nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names of values that may be absent and are used, but never tested for absence."""
    given, absent = set(_optional(function)), {_variadic_name(function), *_looked_up(nodes)}
    used = {name for node in nodes for name in _used_names(node, _variadic_name(function))}
    asked = names_in(*(part for node in nodes for part in _tested_parts(node)))
    # A value from a lookup counts only where an absent value would fail (see `_used_names`), a parameter
    # wherever it is read. A test of a parameter's type does not count: `isinstance(x, str)` does not rule out
    # other absent values.
    missed = (given & set(names_read(nodes))) - (asked - _only_by_type(nodes))
    return frozenset((absent & used) - asked | missed)


def _optional(function: FunctionNode) -> Iterator[str]:
    """Yield the parameters that may be None, or a marker object for a missing argument."""
    given = function.args
    for item, value in defaults_of(given):
        if is_none(value) or _is_marker(value):
            yield item.arg
    named = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    yield from (item.arg for item in named if _is_optional(item.annotation))


def _is_marker(value: ast.expr | None) -> bool:
    """Return whether a default is named like an object that marks a missing value."""
    return isinstance(value, NAMED) and bool(_MARKER.search(ast.unparse(value).lower()))


def _variadic_name(function: FunctionNode) -> str:
    """Return the name of the parameter that is written as `*args`; empty if there is none."""
    return function.args.vararg.arg if function.args.vararg is not None else ""


def _is_optional(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return is_none(left) or is_none(right)
        case ast.Subscript(value=ast.Name() | ast.Attribute() as of) | (ast.Name() | ast.Attribute() as of):
            return ast.unparse(of).endswith("Optional")
    return False


def _looked_up(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the variables to which None, a match or the result of `get` without a default is assigned."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Constant(value=None)):
                yield name
            case ast.Assign(
                targets=[ast.Name(id=name), *_], value=ast.Call(func=ast.Attribute(attr=called), args=args)
            ):
                gets_without_default = called == "get" and len(args) == 1
                if gets_without_default or called in _MATCHING:
                    yield name


def _used_names(node: ast.AST, several: str) -> Iterator[str]:
    """Yield the names that a node calls, iterates over, uses as an operand, or reads an item or attribute of.

    The names passed to calls that need a value are included. `several` is the name of `*args`: it is only
    yielded if one of its items is read.
    """
    values: Sequence[ast.AST] = ()
    match node:
        case ast.Subscript(value=value):
            values, several = [value], ""
        case (
            ast.Attribute(value=value)
            | ast.For(iter=value)
            | ast.AsyncFor(iter=value)
            | ast.comprehension(iter=value)
        ):
            values = [value]
        case ast.BinOp(left=left, right=right):
            values = [left, right]
        case ast.Call(func=called, args=args):
            values = [*args, called] if name_of(called) in _TAKING else [called]
    # `*args` is never absent, but it may be empty: only reading an item of it needs a test.
    yield from (value.id for value in only(ast.Name, values) if value.id != several)


def _with_none(node: ast.Compare) -> bool:
    return any(map(is_none, (node.left, *node.comparators)))


def _only_by_type(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Return the names that conditions test only for their type."""
    checks = [node for node in nodes if is_call_to(node, "isinstance", "issubclass", "callable")]
    in_checks = set(map(id, inside(ast.Name, *checks)))
    tests = [node.test for node in only(_ASKING, nodes)]
    by_type, otherwise = set[str](), set[str]()
    for name in inside(ast.Name, *tests):
        (by_type if id(name) in in_checks else otherwise).add(name.id)
    return frozenset(by_type - otherwise)


def _tested_parts(node: ast.AST) -> Sequence[ast.AST]:
    """Return the parts of a node that test values.

    These are conditions, boolean operations, comparisons with None, the subject of a `match`, and the body of
    a `try`.
    """
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
        case ast.BoolOp():
            return [node]
        case ast.Compare() if _with_none(node):
            return [node]
        case ast.Try(body=body) | ast.TryStar(body=body):
            return body
        case ast.Match(subject=subject):
            return [subject]
    return ()
