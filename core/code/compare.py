"""Compares two pieces of code as programs, ignoring layout, comments and names of local variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.code.scopes import NameScope, scoped
from gistpoint.core.code.snippet import parse_snippet

_IGNORED = frozenset({"kind", "type_comment", "type_ignores", "ctx"})
_OPTIONAL = frozenset({"orelse", "finalbody"})


def same_program(a: str, b: str) -> bool:
    """Return whether two pieces of code are the same after `normalised`, each at any margin.

    Raises `CodeError` if one does not parse.
    """
    trees = [normalised(code) for code in (a, b)]
    try:
        return ast.unparse(trees[0]) == ast.unparse(trees[1])
    except (RecursionError, ValueError):  # nested more deeply, or quoted more often, than Python can unparse
        return same_tree(trees[0], trees[1])


def normalised(code: str) -> ast.Module:
    """Return the syntax tree of a piece of code without the parts that do not count as a change of a function.

    Removes docstrings and other bare constants, `pass` beside other statements, and annotations of parameters, results
    and local variables; numbers local names in order of first use. Parameters keep their names, since callers may use
    them, and so do names that are imported with a dot.
    """
    tree = ast.Module(body=parse_snippet(code), type_ignores=[])
    for node in ast.walk(tree):
        for name in ("body", *_OPTIONAL):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                setattr(node, name, _without_idle(block) or ([] if name in _OPTIONAL else [ast.Pass()]))
        if isinstance(node, ast.Constant):
            node.kind = None
    _drop_annotations(tree)
    _number_locals(tree)
    return tree


def same_tree(a: ast.AST, b: ast.AST) -> bool:
    """Return whether two syntax trees are equal, ignoring positions. Works at any depth."""
    stack: list[tuple[object, object]] = [(a, b)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            stack.extend(
                (getattr(left, name, None), getattr(right, name, None)) for name in left._fields if name not in _IGNORED
            )
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True


def _without_idle(block: list[ast.stmt]) -> list[ast.stmt]:
    left = [item for item in block if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    return [item for item in left if not isinstance(item, ast.Pass)] or left[:1]


def _drop_annotations(tree: ast.Module) -> None:
    nodes = scoped(tree)
    gone: set[ast.AST] = set()
    for node, scope in nodes:
        match node:
            case ast.arg():
                node.annotation = None
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.returns = None
            case ast.AnnAssign(target=ast.Name(id=name)) if scope.of(name) is scope and scope.is_function:
                gone.add(node)
    for node, _ in nodes:
        for name in ("body", *_OPTIONAL):
            block = getattr(node, name, None)
            if isinstance(block, list) and not gone.isdisjoint(block):
                kept = [item for statement in block for item in _unannotated(statement, gone)]
                setattr(node, name, kept or ([] if name in _OPTIONAL else [ast.Pass()]))


def _unannotated(statement: ast.stmt, gone: set[ast.AST]) -> Iterator[ast.stmt]:
    if statement not in gone:
        yield statement
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        assigned = ast.Assign(targets=[statement.target], value=statement.value)
        yield ast.copy_location(assigned, statement)


def _number_locals(tree: ast.Module) -> None:
    nodes = scoped(tree)
    dotted = {
        (scope.of(name), name)
        for node, scope in nodes
        if isinstance(node, ast.Import)
        for item in node.names
        if item.asname is None and (name := item.name.partition(".")[0]) != item.name
    }
    numbers: dict[tuple[NameScope, str], str] = {}

    def renamed(name: str, scope: NameScope) -> str:
        home = scope.of(name)
        if home is None or not home.is_function or name in home.parameters or (home, name) in dotted:
            return name
        return numbers.setdefault((home, name), f"local {len(numbers) + 1}")

    for node, scope in nodes:
        match node:
            case ast.Name():
                node.id = renamed(node.id, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                node.name = renamed(node.name, scope)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                node.name = renamed(name, scope)
            case ast.MatchMapping(rest=str(name)):
                node.rest = renamed(name, scope)
            case ast.Nonlocal():
                node.names = [renamed(name, scope) for name in node.names]
            case ast.Import() | ast.ImportFrom():
                for item in node.names:
                    bound = item.asname or item.name
                    if renamed(bound, scope) != bound:
                        item.asname = renamed(bound, scope)
            case _:
                pass
