"""Compares a function's name and docstring with its body: a mismatch gives a corruption away."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain

from gistpoint.core.code.nodes import only
from gistpoint.core.corruption.shapes import FunctionNode, is_text, targets_of

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_LEAST_SHARED = 4
"""The minimum length of a word for longer words that begin with it to count as its forms."""

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
"""The comparisons that contradict the operator that each special method defines."""


def words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier, in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name))


def of_one_stem(first: Iterable[str], second: Iterable[str]) -> bool:
    """Return whether two sets of words share a word, or forms of a word, such as `format` and `formatted`."""
    others = set(second)
    return any(one in others or any(_of_one_stem(one, two) for two in others) for one in first)


def _of_one_stem(one: str, two: str) -> bool:
    short, long = sorted((one, two), key=len)
    return len(short) >= _LEAST_SHARED and long.startswith(short)


def identifiers(nodes: Iterable[ast.AST], function: str = "") -> Counter[str]:
    """Return the counts of the names and attributes in code, without calls to `function` itself."""
    return Counter(filter(None, (_identifier(node, function) for node in nodes)))


def _identifier(node: ast.AST, function: str) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) | ast.Name(id=name):
            return "" if name == function else name
        case ast.Attribute(attr=name):
            return name
    return ""


def given_away_by_name(function: str, before: Counter[str], after: Counter[str]) -> bool:
    """Return whether the body loses what its function is named after, or replaces it.

    The function `left_edge` is given away if `self._left_edge` is gone, or has become `self._right_edge`.
    """
    own = set(words(function))
    gone, new = before - after, after - before
    if not new and _loses_part(own, gone.keys() - after.keys()):
        return True
    for name in gone:
        has_all_words = len(own) > 1 and own <= set(words(name))
        if has_all_words or name.strip("_") == function.strip("_"):
            return True
    if len(gone) == len(new) == 1:
        (old,), (other,) = gone, new
        return len(own & set(words(old))) > len(own & set(words(other)))
    return False


def _loses_part(own: Set[str], lost: Iterable[str]) -> bool:
    """Return whether a lost name consists of some, but not all, words of the function's own name."""
    parts = filter(None, (set(words(name)) for name in lost))
    return any(part < own for part in parts)


def given_away_by_variable(before: Iterable[ast.AST], after: Iterable[ast.AST]) -> bool:
    """Return whether names of variables or keywords match their values less than before.

    An example is `height = self.width` instead of `height = self.height`. The number of names must be the
    same.
    """
    named, named_now = list(_name_matches(before)), list(_name_matches(after))
    return len(named) == len(named_now) and sum(named) > sum(named_now)


def _name_matches(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        match node:
            case ast.keyword(arg=str(name), value=value):
                yield _alike({name}, value)
            case (
                ast.Assign(value=value)
                | ast.AugAssign(value=value)
                | ast.AnnAssign(value=ast.expr() as value)
            ):
                yield _alike(identifiers(targets_of(node)).keys(), value)


def _alike(names: Set[str], value: ast.expr) -> int:
    """Return how well a value's name matches: 2 for the same name, 1 for a common stem, else 0."""
    found = identifiers(ast.walk(value)).keys()
    if not {name.strip("_") for name in names}.isdisjoint(name.strip("_") for name in found):
        return 2
    own = [word for word in _words_of(names) if len(word) > 1]
    return int(of_one_stem(own, _words_of(found)))


def _words_of(names: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(words, names))


def comparison_alone(function: FunctionNode) -> str:
    """Return the operators of a function that only compares; empty for any other function.

    They are the names of their node types, separated by spaces. `<=` counts as `<`, and `>=` as `>`.
    """
    match function.body:
        case [*rest, ast.Return(value=ast.Compare(ops=ops))] if all(map(is_text, rest)):
            names = (type(kind).__name__ for kind in ops)
            return " ".join(_SIDE.get(name, name) for name in names)
    return ""


def denied(function: str, nodes: Iterable[ast.AST]) -> int:
    """Return how often a method that defines an operator, such as `__eq__`, uses a contradictory operator."""
    kinds = _DENIED.get(function, ())
    return sum(isinstance(kind, kinds) for node in only(ast.Compare, nodes) for kind in node.ops)


def given_away_by_docstring(
    docstring: str | None, before: Iterable[str | bytes], after: Iterable[str | bytes]
) -> bool:
    """Return whether a docstring mentions a name or a string that is no longer in the body."""
    if not docstring:
        return False
    gone = {name for name in set(before) - set(after) if isinstance(name, str)}
    return bool(gone & set(_IDENTIFIER.findall(docstring)))
