"""Reduces the changes back to an earlier body to a smallest failing part, and finds missing features."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from gistpoint.core.code.parsing import CodeError, parse

T = TypeVar("T")


class TooManyProbesError(Exception):
    """The allowed number of probes is used up."""


def smallest(items: Sequence[T], fails: Callable[[Sequence[T]], bool], most: int) -> tuple[T, ...]:
    """Return a part of `items` for which `fails` is true, and from which no single item can be left out.

    `fails` must be true for all items together, and is called at most `most` times; if that is not enough,
    the smallest part that was found is returned. Parts keep the order of the items. This is the algorithm
    ddmin (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002).
    """
    probes = _Probes(items, fails, most)
    part, pieces = list(range(len(items))), 2
    try:
        while len(part) >= 2:
            smaller, pieces_then = _smaller(probes, part, pieces)
            if smaller is None and pieces == len(part):
                break
            part = part if smaller is None else smaller
            pieces = pieces_then
    except TooManyProbesError:
        pass  # the smallest part so far still fails
    return tuple(items[n] for n in part)


def _smaller(probes: _Probes[T], part: list[int], pieces: int) -> tuple[list[int] | None, int]:
    """Return a failing part of `part`, or None, and the number of pieces to cut next."""
    chunks = _chunks(part, pieces)
    for chunk in chunks:
        if probes.fail(chunk):
            return chunk, 2
    # With two pieces, each is the complement of the other.
    rests = [[n for n in part if n not in chunk] for chunk in chunks]
    for rest in rests:
        if probes.fail(rest):
            return rest, max(pieces - 1, 2)
    return None, min(2 * pieces, len(part))


class _Probes(Generic[T]):
    """Calls `fails` at most once for each part, and at most `most` times in total."""

    def __init__(self, items: Sequence[T], fails: Callable[[Sequence[T]], bool], most: int) -> None:
        self._items, self._fails, self._left = items, fails, most
        self._known: dict[tuple[int, ...], bool] = {}

    def fail(self, part: Sequence[int]) -> bool:
        """Return whether a part fails. Raises `TooManyProbesError` if no call is left."""
        key = tuple(part)
        if key not in self._known:
            if not self._left:
                raise TooManyProbesError
            self._left -= 1
            self._known[key] = self._fails([self._items[n] for n in key])
        return self._known[key]


def _chunks(part: Sequence[int], pieces: int) -> list[list[int]]:
    """Return `part` in this many chunks of almost equal length."""
    ends = [len(part) * n // pieces for n in range(pieces + 1)]
    return [list(part[start:end]) for start, end in pairwise(ends)]


_NOT_THERE = "NotImplementedError"


def missing_feature(current: str, earlier_file: str, tests: Iterable[str], error_types: Iterable[str]) -> str:
    """Return the name or text of a feature that the earlier version does not have; empty if there is none.

    It is a name, an attribute, a keyword or a string of the current function, other than a local variable,
    that occurs in the code of a failing test, but not in the earlier file; or `NotImplementedError`, if a
    test failed with it (decision 137).
    """
    if _NOT_THERE in error_types:
        return _NOT_THERE
    new = _words(current) - _local_variables(current) - _words(earlier_file)
    used = frozenset[str]().union(*map(_words, tests))
    return min(new & used, default="")


def _words(text: str) -> frozenset[str]:
    """Return the names, keywords, parameters and strings in code; empty if the code can't be parsed."""
    try:
        tree = parse(text)
    except (CodeError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(map(_word, ast.walk(tree))) - {""}


def _local_variables(text: str) -> frozenset[str]:
    """Return the names that are assigned in code."""
    return frozenset(
        node.id
        for node in ast.walk(parse(text))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _word(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=name):
            return name or ""
        case ast.Constant(value=str(text)):
            return text
    return ""
