"""Shapes of syntax trees that operators, gates and features share."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard, TypeVar

from gistpoint.core.code.nodes import inside

Node = TypeVar("Node", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Assigning = ast.Assign | ast.AugAssign | ast.AnnAssign

LEAVING: tuple[type[ast.stmt], ...] = (ast.Return, ast.Raise, ast.Continue, ast.Break)
"""Types of statements after which the rest of the block does not run."""
LOOPS: tuple[type[ast.For | ast.AsyncFor | ast.While], ...] = (ast.For, ast.AsyncFor, ast.While)
SIMPLE: tuple[type[ast.stmt], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)
"""Types of simple statements, which don't leave their block."""
TESTING: tuple[type[ast.If | ast.While | ast.IfExp], ...] = (ast.If, ast.While, ast.IfExp)
SHARING: tuple[type[ast.Global | ast.Nonlocal], ...] = (ast.Global, ast.Nonlocal)
"""Types of statements that declare names of another scope."""
NAMED: tuple[type[ast.Name | ast.Attribute], ...] = (ast.Name, ast.Attribute)
ASSIGNING: tuple[type[Assigning], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def name_of(node: ast.AST | None) -> str:
    """Return the name of a variable, or of an attribute without its owner; empty for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def names_in(*nodes: ast.AST) -> frozenset[str]:
    """Return the names of variables in code."""
    return frozenset(item.id for item in inside(ast.Name, *nodes))


def names_read(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of the variables that these nodes read, without the nodes below them."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name


def texts_of(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the code of these nodes in a normalised form."""
    return frozenset(map(ast.unparse, nodes))


def elements(node: ast.expr) -> list[ast.expr]:
    """Return the elements of a literal tuple; the node itself if it is anything else."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def without(items: Sequence[Node], place: int) -> list[Node]:
    """Return all nodes except the one at an index."""
    return [*items[:place], *items[place + 1 :]]


def targets_of(node: Assigning) -> list[ast.expr]:
    """Return the targets of an assignment."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def parameters(function: FunctionNode) -> frozenset[str]:
    """Return the names of a function's parameters."""
    return frozenset(item.arg for item in inside(ast.arg, function.args))


def defaults_of(given: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield positional parameters with defaults and all keyword-only ones, each with its default or None."""
    yield from zip([*given.posonlyargs, *given.args][::-1], given.defaults[::-1], strict=False)
    yield from zip(given.kwonlyargs, given.kw_defaults, strict=True)


def is_none(node: ast.AST | None) -> bool:
    """Return whether a node is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def is_not(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    """Return whether an expression is a `not`."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def is_all_of(node: ast.AST) -> TypeGuard[ast.BoolOp]:
    """Return whether an expression is an `and`."""
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def is_call_to(node: ast.AST | None, *names: str) -> TypeGuard[ast.Call]:
    """Return whether a node calls a plain name that is one of these."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in names
    return False


def is_guard(node: ast.AST) -> TypeGuard[ast.If]:
    """Return whether a statement is an `if` without `else` that leaves its block."""
    return isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], LEAVING)


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement consists only of a constant, such as a docstring."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def is_one_line(node: ast.expr | ast.stmt) -> bool:
    """Return whether a node is written on one line."""
    return node.lineno == node.end_lineno
