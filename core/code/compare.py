"""Compares two pieces of code as programs, ignoring layout, comments and names of local variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import chain

from gistpoint.core.code.scopes import NameScope, scoped
from gistpoint.core.code.snippet import parse_snippet

_IGNORED = frozenset({"kind", "type_comment", "type_ignores", "ctx"})
_OPTIONAL = frozenset({"orelse", "finalbody"})


def same_program(a: str, b: str) -> bool:
    """Return whether two pieces of code, each with any indentation, are equal after `normalised`.

    Raises `CodeError` if one does not parse.
    """
    trees = [normalised(code) for code in (a, b)]
    try:
        return ast.unparse(trees[0]) == ast.unparse(trees[1])
    except (RecursionError, ValueError):  # too deep, or with too many levels of quotes, for Python to unparse
        return same_tree(trees[0], trees[1])


def normalised(code: str) -> ast.Module:
    """Return the syntax tree of code without the parts that do not affect what a function does.

    Removes docstrings and other bare constants, `pass` next to other statements, and annotations of
    parameters, results and local variables; numbers local names in order of first use. Parameters keep their
    names, because callers may use them, and so do names imported with a dot. Raises `CodeError` if the code
    is empty or can't be parsed.
    """
    tree = ast.Module(body=parse_snippet(code), type_ignores=[])
    for node in ast.walk(tree):
        for name, block in _blocks(node):
            _set_block(node, name, _without_idle(block))
        if isinstance(node, ast.Constant):
            node.kind = None
    # Annotations are removed first, so that no name bound only by a removed annotation gets a number.
    _drop_annotations(tree)
    _number_locals(tree)
    return tree


def same_tree(a: ast.AST, b: ast.AST) -> bool:
    """Return whether two syntax trees are equal, ignoring positions, contexts, type comments and `u` marks.

    Works at any depth.
    """
    stack: list[tuple[object, object]] = [(a, b)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            stack.extend(
                (getattr(left, name, None), getattr(right, name, None))
                for name in left._fields
                if name not in _IGNORED
            )
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True


def _blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the non-empty blocks of a statement, each after the name of its field."""
    for name in ("body", *_OPTIONAL):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield name, block


def _set_block(node: ast.AST, name: str, kept: list[ast.stmt]) -> None:
    """Replace a block; an empty body becomes `pass`."""
    setattr(node, name, kept or [ast.Pass()] * (name not in _OPTIONAL))


def _without_idle(block: list[ast.stmt]) -> list[ast.stmt]:
    left = [item for item in block if not _is_constant(item)]
    # A single `pass` stays if nothing else is left: `pass` and an empty block differ.
    return [item for item in left if not isinstance(item, ast.Pass)] or left[:1]


def _is_constant(item: ast.stmt) -> bool:
    match item:
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _drop_annotations(tree: ast.Module) -> None:
    nodes = scoped(tree)
    dropped: set[ast.AST] = set()
    for node, scope in nodes:
        match node:
            case ast.arg():
                node.annotation = None
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.returns = None
            case ast.AnnAssign(target=ast.Name(id=name)) if scope.of(name) is scope and scope.is_function:
                dropped.add(node)
    for node, _ in nodes:
        for name, block in _blocks(node):
            if not dropped.isdisjoint(block):
                kept = chain.from_iterable(_unannotated(statement, dropped) for statement in block)
                _set_block(node, name, list(kept))


def _unannotated(statement: ast.stmt, gone: set[ast.AST]) -> Iterator[ast.stmt]:
    if statement not in gone:
        yield statement
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        assigned = ast.Assign(targets=[statement.target], value=statement.value)
        yield ast.copy_location(assigned, statement)


_NAMING: Mapping[type[ast.AST], str] = {
    ast.Name: "id",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
"""The field of each node type that holds a name the code may bind."""


def _number_locals(tree: ast.Module) -> None:
    nodes = scoped(tree)
    kept = {(scope.of(name), name) for node, scope in nodes for name in _imported_with_dot(node)}
    numbers: dict[tuple[NameScope | None, str], str] = {}

    def renamed(name: str, scope: NameScope) -> str:
        home = scope.of(name)
        is_local = home is not None and home.is_function and name not in home.parameters
        if not is_local or (home, name) in kept:
            return name
        return numbers.setdefault((home, name), f"local {len(numbers) + 1}")

    for node, scope in nodes:
        match node:
            case ast.Nonlocal():
                node.names = [renamed(name, scope) for name in node.names]
            case ast.Import() | ast.ImportFrom():
                for item in node.names:
                    bound = item.asname or item.name
                    new = renamed(bound, scope)
                    item.asname = item.asname if new == bound else new
            case _ if type(node) in _NAMING:
                field = _NAMING[type(node)]
                name = getattr(node, field)
                if name is not None:
                    setattr(node, field, renamed(name, scope))


def _imported_with_dot(node: ast.AST) -> list[str]:
    """Return the names bound by `import a.b`: `a`, which can't be renamed; empty for other nodes."""
    if not isinstance(node, ast.Import):
        return []
    return [item.name.partition(".")[0] for item in node.names if item.asname is None and "." in item.name]
