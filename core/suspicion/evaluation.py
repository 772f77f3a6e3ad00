"""Code that runs without being called: when a module is imported, or when annotations are evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

from gistpoint.core.code.nodes import inside
from gistpoint.core.code.parsing import parse_expression

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_RUNNING = (
    ast.Call,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Await,
)
"""Expressions that can do anything when they are evaluated."""
_PLAIN = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
    ast.Starred,
    ast.Slice,
    ast.UnaryOp,
    ast.USub,
)
"""Nodes of usual annotations, which only name types."""


def annotations_of(function: _FUNCTIONS) -> list[ast.expr]:
    """Return the annotations of a function's parameters, then the annotation of its result."""
    return [*filter(None, [*_annotations_of_parameters(function.args), function.returns])]


def _annotations_of_parameters(arguments: ast.arguments) -> list[ast.expr | None]:
    return [item.annotation for item in inside(ast.arg, arguments)]


def is_plain_annotation(part: ast.AST) -> bool:
    """Return whether a node of an annotation only names a type."""
    return isinstance(part, _PLAIN)


def parts_of_annotation(annotation: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of an annotation, including those of the code in its strings."""
    for part in ast.walk(annotation):
        yield part
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from _nodes_of_text(part.value)


def _nodes_of_text(text: str) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(parse_expression(text))
    except (SyntaxError, ValueError):
        return


def expressions_run_at_import(root: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that can run code, such as calls, which a node evaluates at import."""
    return chain.from_iterable(map(_running, _evaluated(root)))


def _evaluated(root: ast.AST) -> Iterable[ast.expr]:
    """Return the expressions that a piece evaluates when its module is imported."""
    if not isinstance(root, _FUNCTIONS):
        return _own_expressions(root)
    arguments = root.args
    given = [*arguments.defaults, *arguments.kw_defaults, *_annotations_of_parameters(arguments)]
    return filter(None, [*given, *root.decorator_list, root.returns])


def _own_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a statement evaluates at once, without the bodies of functions."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.expr):
            yield inner
        elif inner is node or not isinstance(inner, _DEFINITIONS):
            stack.extend(ast.iter_child_nodes(inner))


def _running(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions that run when an expression is evaluated; for a lambda, only its defaults."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, _RUNNING):
            yield inner
        if isinstance(inner, ast.Lambda):
            stack.extend(filter(None, [*inner.args.defaults, *inner.args.kw_defaults]))
        else:
            stack.extend(ast.iter_child_nodes(inner))
