"""Finds the names that a node or a piece of code binds (language reference, section 4.2.1).

`core/code/scopes.py` finds the scope that binds a name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_BINDERS = frozenset(
    {
        ast.Name,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Import,
        ast.ImportFrom,
        ast.ExceptHandler,
        ast.MatchAs,
        ast.MatchStar,
        ast.MatchMapping,
        ast.arg,
    }
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def bound_names(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node itself binds or unbinds, without `*` and the names bound in its parts."""
    if type(node) not in _BINDERS:  # the common case: every node of a library passes here
        return ()
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return tuple(item.asname or item.name.partition(".")[0] for item in names if item.name != "*")
        # The nodes below may have no name: an `except` or a star pattern without a name binds nothing.
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.MatchMapping(rest=str(name)):
            return (name,)
    return ()


def names_bound_in(code: Iterable[ast.AST], *, into_definitions: bool = True) -> set[str]:
    """Return the names bound anywhere in some code, in any scope, including parameters.

    Without `into_definitions`, functions and classes contribute only their own names; lambdas and
    comprehensions are always entered.
    """
    names: set[str] = set()
    waiting = list(code)
    while waiting:
        node = waiting.pop()
        names.update(bound_names(node))
        if into_definitions or not isinstance(node, _DEFINITIONS):
            waiting.extend(ast.iter_child_nodes(node))
    return names
