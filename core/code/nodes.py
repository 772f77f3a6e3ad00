"""The nodes of syntax trees by their type."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


def inside(kind: type[Node] | tuple[type[Node], ...], *roots: ast.AST) -> Iterator[Node]:
    """Yield the nodes in these trees, including the roots, that are of `kind`, a type or a tuple of types."""
    return only(kind, chain.from_iterable(map(ast.walk, roots)))


def only(kind: type[Node] | tuple[type[Node], ...], nodes: Iterable[ast.AST | None]) -> Iterator[Node]:
    """Yield the nodes that are instances of `kind`, a type or a tuple of types."""
    for node in nodes:
        if isinstance(node, kind):
            yield node


def has(kind: type[ast.AST] | tuple[type[ast.AST], ...], *roots: ast.AST) -> bool:
    """Return whether these trees contain a node of one of these types."""
    return next(inside(kind, *roots), None) is not None


def has_any(kind: type[ast.AST] | tuple[type[ast.AST], ...], nodes: Iterable[ast.AST]) -> bool:
    """Return whether one of these nodes has one of these types."""
    return next(only(kind, nodes), None) is not None
