"""Marks for code that could hide a failed check of a test, by catching its exception or ending its block."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeGuard

from gistpoint.core.code.nodes import has_any, only
from gistpoint.core.suspicion.meaning import Meaning

_ALL = frozenset({"builtins.BaseException", "builtins.AssertionError"})
_MOST = frozenset({"builtins.Exception"})
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_EXITS = ("__exit__", "__aexit__")
_STACKS = frozenset({"contextlib.ExitStack", "contextlib.AsyncExitStack"})


def hidden_checks(meaning: Meaning, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield a description of each place in a piece of code that could hide a failed assertion.

    Such places are handlers that catch assertions and raise nothing, or that catch most exceptions raised by
    a generator's caller; jumps out of a `finally`; and methods and functions that end a `with` block.
    """
    known = list(nodes)
    paths = chain.from_iterable(map(meaning.paths, filter(_may_be_stack, known)))
    has_stack = not _STACKS.isdisjoint(paths)
    for node in known:
        match node:
            case ast.Try():
                yield from _caught(meaning, node)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body) if _yields(body):
                for item in items:
                    yield from _suppressed(meaning, item.context_expr, _ALL | _MOST)
            case ast.Call(func=ast.Attribute(attr="push" | "push_async_exit" as name)) if has_stack:
                yield f"{name} of an ExitStack"
            case ast.Call():
                yield from _suppressed(meaning, node, _ALL)
            case ast.ClassDef(body=body):
                yield from filter(None, map(_exit_that_answers, body))


def _may_be_stack(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute]:
    """Return whether a node may name an `ExitStack`."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and node.attr.endswith("ExitStack"))


def _exit_that_answers(member: ast.stmt) -> str:
    """Return a description of an `__exit__` that may suppress an exception; empty for any other member."""
    match member:
        case ast.FunctionDef(name=name, body=body) | ast.AsyncFunctionDef(name=name, body=body) if (
            name in _EXITS and any(map(_may_be_true, _own_nodes(body)))
        ):
            return f"{name} in a new class that can suppress exceptions"
    return ""


def _caught(meaning: Meaning, node: ast.Try) -> Iterator[str]:
    if has_any((ast.Return, ast.Break, ast.Continue), _own_nodes(node.finalbody)):
        yield "a jump out of a finally block"
    # In a context manager, the assertions of its block fail at the `yield`.
    broad = _ALL | _MOST if _yields(node.body) else _ALL
    for handler in node.handlers:
        catches_checks = handler.type is None or _is_one_of(meaning, [handler.type], broad)
        if catches_checks and not has_any(ast.Raise, _own_nodes(handler.body)):
            yield "an except clause that catches failed assertions"


def _suppressed(meaning: Meaning, node: ast.expr, broad: frozenset[str]) -> Iterator[str]:
    if not isinstance(node, ast.Call) or "contextlib.suppress" not in meaning.paths(node.func):
        return
    is_unclear = has_any(ast.Starred, node.args)
    if is_unclear or _is_one_of(meaning, node.args, broad):
        yield "a suppress call that hides failed assertions"


def _is_one_of(meaning: Meaning, kinds: Iterable[ast.expr], paths: frozenset[str]) -> bool:
    """Return whether one of the expressions names one of the classes, directly or by a local name."""
    nodes = list(chain.from_iterable(map(ast.walk, kinds)))
    names = list(only(ast.Name, nodes))
    attributes = list(only(ast.Attribute, nodes))
    bindings = chain.from_iterable(map(meaning.bindings, names))
    values = [binding.value for binding in bindings if binding.value is not None]
    return any(not paths.isdisjoint(meaning.paths(part)) for part in (*names, *attributes, *values))


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, except nodes of functions and classes inside them."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _NESTED):
            waiting.extend(ast.iter_child_nodes(node))


def _yields(body: list[ast.stmt]) -> bool:
    return has_any((ast.Yield, ast.YieldFrom), _own_nodes(body))


def _may_be_true(node: ast.AST) -> bool:
    """Return whether a node returns something other than a literal None or False."""
    match node:
        case ast.Return(value=ast.Constant(value=value)):
            return bool(value)
        case ast.Return(value=ast.expr()):
            return True
    return False
