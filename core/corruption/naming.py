"""Compares a function's name and docstring with its body, which give away a body that does another thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

from gistpoint.core.corruption.subject import FunctionNode

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_LEAST_SHARED = 4
"""Number of common first letters that make two words forms of the same one."""

_SIDE = {"LtE": "Lt", "GtE": "Gt"}
_DENIED: Mapping[str, tuple[type[ast.cmpop], ...]] = {
    "__eq__": (ast.NotEq, ast.IsNot),
    "__ne__": (ast.Eq, ast.Is),
    "__contains__": (ast.NotIn,),
    "__lt__": (ast.Gt, ast.GtE, ast.LtE),
    "__le__": (ast.Gt, ast.GtE, ast.Lt),
    "__gt__": (ast.Lt, ast.LtE, ast.GtE),
    "__ge__": (ast.Lt, ast.LtE, ast.Gt),
}
"""The comparisons that a method that defines an operator does not use."""


def words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier, in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name))


def of_one_stem(first: Iterable[str], second: Iterable[str]) -> bool:
    """Return whether two sets of words have one in common, or forms of one, such as `format` and `formatted`."""
    others = set(second)
    for one in first:
        if any(one == two or (min(len(one), len(two)) >= _LEAST_SHARED and _begins(one, two)) for two in others):
            return True
    return False


def _begins(one: str, two: str) -> bool:
    return one.startswith(two) or two.startswith(one)


def identifiers(nodes: Iterable[ast.AST], function: str = "") -> Counter[str]:
    """Count the names and attributes in code, without calls of `function` itself."""
    return Counter(name for node in nodes for name in _identifier(node, function))


def _identifier(node: ast.AST, function: str) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id != function:
        yield node.id
    elif isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if not (own and node.attr == function):
            yield node.attr


def given_away_by_name(function: str, before: Counter[str], after: Counter[str]) -> bool:
    """Return whether the body loses the thing its function is named after, or has something else in its place.

    `left_edge` does if `self._left_edge` is gone, or has become `self._right_edge`.
    """
    own = set(words(function))
    gone, new = before - after, after - before
    if gone and not new and any(name not in after and set(words(name)) < own for name in gone if words(name)):
        return True
    for name in gone:
        parts = set(words(name))
        if name.strip("_") == function.strip("_") or (len(own) > 1 and own <= parts):
            return True
    if len(gone) == len(new) == 1:
        (old,), (other,) = gone, new
        return len(own & set(words(old))) > len(own & set(words(other)))
    return False


def given_away_by_variable(before: Iterable[ast.AST], after: Iterable[ast.AST]) -> bool:
    """Return whether the names of variables or keywords match their values less than before, for as many as before.

    For example `height = self.width` instead of `height = self.height`.
    """
    named, named_now = list(_called_alike(before)), list(_called_alike(after))
    return len(named) == len(named_now) and sum(named) > sum(named_now)


def _called_alike(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg:
            yield _alike({node.arg}, node.value)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield _alike(identifiers(targets).keys(), node.value)


def _alike(names: Set[str], value: ast.expr) -> int:
    """Return how well a value's name matches one of the names: 2 for the same name, 1 for a common word stem."""
    found = identifiers(ast.walk(value)).keys()
    if {name.strip("_") for name in names} & {name.strip("_") for name in found}:
        return 2
    own = {word for name in names for word in words(name) if len(word) > 1}
    return int(of_one_stem(own, (word for name in found for word in words(name))))


def comparison_alone(function: FunctionNode) -> str:
    """Return the operator of a function that is nothing but one comparison; empty for any other function."""
    last = function.body[-1]
    rest = [
        item for item in function.body[:-1] if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
    ]
    if rest or not isinstance(last, ast.Return) or not isinstance(last.value, ast.Compare):
        return ""
    return " ".join(_SIDE.get(type(kind).__name__, type(kind).__name__) for kind in last.value.ops)


def denied(function: str, nodes: Iterable[ast.AST]) -> int:
    """Return how often a method that defines an operator, such as `__eq__`, compares by the opposite one."""
    kinds = _DENIED.get(function, ())
    return sum(isinstance(kind, kinds) for node in nodes if isinstance(node, ast.Compare) for kind in node.ops)


def given_away_by_docstring(docstring: str | None, before: Iterable[str | bytes], after: Iterable[str | bytes]) -> bool:
    """Return whether a docstring mentions a name or a text that is no longer in the body."""
    if not docstring:
        return False
    gone = {name for name in set(before) - set(after) if isinstance(name, str)}
    return bool(gone & set(_IDENTIFIER.findall(docstring)))
