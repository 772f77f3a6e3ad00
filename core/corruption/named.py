"""What the name and the docstring of a function say of its body, so that a body which does another thing shows."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_LEAST_SHARED = 4
"""Letters that two words must begin with alike to be forms of the same one."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SIDE = {"LtE": "Lt", "GtE": "Gt"}
_DENIED: Mapping[str, tuple[type[ast.cmpop], ...]] = {
    "__eq__": (ast.NotEq, ast.IsNot),
    "__ne__": (ast.Eq, ast.Is),
    "__contains__": (ast.NotIn,),
    "__lt__": (ast.Gt, ast.GtE),
    "__le__": (ast.Gt, ast.GtE),
    "__gt__": (ast.Lt, ast.LtE),
    "__ge__": (ast.Lt, ast.LtE),
}
"""What a method that defines an operator does not compare by."""


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
    """Count the names and attributes that stand in code, calls of `function` itself left out."""
    return Counter(name for node in nodes for name in _identifier(node, function))


def _identifier(node: ast.AST, function: str) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id != function:
        yield node.id
    elif isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if not (own and node.attr == function):
            yield node.attr


def told_by_name(function: str, before: Counter[str], after: Counter[str]) -> bool:
    """Return whether the body loses what its function is called after, or has something else in its place.

    So does `left_edge` where `self._left_edge` is gone, or has become `self._right_edge`.
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


def told_by_variable(before: Iterable[ast.AST], after: Iterable[ast.AST]) -> bool:
    """Return whether variables, or keywords, are less called like what they get; for as many as there were.

    So does `height = self.width` for `height = self.height`.
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
    """Return how much a value is called like one of the names: 2 for the same name, 1 for a word of one stem."""
    found = identifiers(ast.walk(value)).keys()
    if {name.strip("_") for name in names} & {name.strip("_") for name in found}:
        return 2
    own = {word for name in names for word in words(name) if len(word) > 1}
    return int(of_one_stem(own, (word for name in found for word in words(name))))


def comparison_alone(function: Function) -> str:
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


def told_by_docstring(docstring: str | None, before: Iterable[str | bytes], after: Iterable[str | bytes]) -> bool:
    """Return whether a docstring speaks of a name, or of a text, that stands in the body no more."""
    if not docstring:
        return False
    gone = {name for name in set(before) - set(after) if isinstance(name, str)}
    return bool(gone & set(_IDENTIFIER.findall(docstring)))
