"""Whether two pieces of code are the same program, whatever their layout, comments and docstrings."""

from __future__ import annotations

import ast

from gistpoint.core.code.snippet import parse_snippet

_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IGNORED = frozenset({"kind", "type_comment", "type_ignores", "ctx"})


def same_behaviour_tree(a: str, b: str) -> bool:
    """Return whether the syntax trees of two pieces of code are equal without docstrings.

    Each may stand at any margin. A body of nothing but a docstring equals `pass`. Raises `CodeError` where one does
    not parse.
    """
    trees = [ast.Module(body=parse_snippet(code), type_ignores=[]) for code in (a, b)]
    return same_tree(trees[0], trees[1], docstrings=False)


def same_tree(a: ast.AST, b: ast.AST, *, docstrings: bool = True) -> bool:
    """Return whether two syntax trees are equal, places in the text apart. Works at any depth."""
    stack: list[tuple[object, object]] = [(a, b)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            for name in left._fields:
                if name in _IGNORED:
                    continue
                values = getattr(left, name, None), getattr(right, name, None)
                if name == "body" and not docstrings and isinstance(left, _DOCUMENTED):
                    values = _without_docstring(values[0]), _without_docstring(values[1])
                stack.append(values)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True


def _without_docstring(body: object) -> object:
    if not isinstance(body, list) or not body:
        return body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:] or [ast.Pass()]
    return body
