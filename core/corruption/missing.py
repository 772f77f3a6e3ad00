"""Decides whether a test fails because an earlier version lacks a feature, and not because of a fault."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gistpoint.core.code.parsing import CodeError, parse

_NOT_THERE = "NotImplementedError"


def missing_feature(today: str, earlier_file: str, tests: Iterable[str], error_types: Iterable[str]) -> str:
    """Return the name or text of a feature that the earlier version lacks everywhere; empty if there is none.

    It is a name, an attribute, a keyword or a string of today's function, other than a local variable, that
    does not occur in the earlier file, but in the code of a failing test; or `NotImplementedError`, if a test failed by it (decision 137).
    """
    if _NOT_THERE in error_types:
        return _NOT_THERE
    new = _words(today) - _local_variables(today) - _words(earlier_file)
    used = frozenset[str]().union(*map(_words, tests))
    return min(new & used, default="")


def _words(text: str) -> frozenset[str]:
    """Return the names, keywords, parameters and strings in a text; empty if it can't be parsed."""
    try:
        tree = parse(text)
    except (CodeError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(word for node in ast.walk(tree) if (word := _word(node)))


def _local_variables(text: str) -> frozenset[str]:
    """Return the names that are assigned in a text."""
    names = (node for node in ast.walk(parse(text)) if isinstance(node, ast.Name))
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Store))


def _word(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name
        case ast.keyword(arg=str(name)):
            return name
        case ast.Constant(value=str(text)):
            return text
    return ""
