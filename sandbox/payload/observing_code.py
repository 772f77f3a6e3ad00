"""Makes code of functions that passes the values it uses to an observer; see `operands`."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any


def observing(
    path: str,
    lines: frozenset[int],
    deep: Callable[[object], object],
    shallow: Callable[[object], object],
    begin: Callable[[int], None],
) -> dict[CodeType, CodeType]:
    """Return the observing code of functions that begin on `lines`, by their code; empty if unreadable.

    `deep` and `shallow` are called with the values (see `Passing`), `begin` with a function's first line.
    """
    # The observers are constants of the code: the gist could find and replace a global name, but can't guess
    # a random string.
    deep_mark, shallow_mark, begin_mark = (f"gistpoint {os.urandom(16).hex()}" for _ in range(3))
    marks = {deep_mark: deep, shallow_mark: shallow, begin_mark: begin}
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = file.read()
            plain = compile(source, path, "exec", dont_inherit=True)
            passing = Passing(
                lambda: ast.Constant(deep_mark),
                lambda: ast.Constant(shallow_mark),
                lambda: ast.Constant(begin_mark),
                lines,
            )
            tree = passing.visit(ast.parse(source))
            changed = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    pairs = zip(_with_inner(plain), _with_inner(changed))  # noqa: B905 - Python 3.9 has no `strict`
    return {
        old: _with_constants(new, marks)
        for old, new in pairs
        if old.co_firstlineno in lines and old.co_name == new.co_name
    }


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _with_constants(code: CodeType, values: dict[str, Any]) -> CodeType:
    """Return code after replacing strings among its constants with values, in inner functions too."""
    constants = [
        _with_constants(one, values)
        if isinstance(one, CodeType)
        else values.get(one, one)
        if type(one) is str
        else one
        for one in code.co_consts
    ]
    return code.replace(co_consts=tuple(constants))


_VALUES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.BinOp,
    ast.Await,
    ast.IfExp,
    ast.BoolOp,
    ast.Starred,
)
_COLLECTIONS = (
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_DECIDED: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Compare: ("left", "comparators"),
    ast.Call: ("args",),
    ast.keyword: ("value",),
    ast.Assert: ("test",),
    ast.If: ("test",),
    ast.While: ("test",),
    ast.IfExp: ("test",),
    ast.BoolOp: ("values",),
    ast.UnaryOp: ("operand",),
    ast.BinOp: ("left", "right"),
    ast.For: ("iter",),
    ast.comprehension: ("iter", "ifs"),
    ast.FormattedValue: ("value",),
    ast.ExceptHandler: ("type",),
    **({ast.Match: ("subject",)} if sys.version_info >= (3, 10) else {}),
}
"""The parts of a node whose values, with everything in them, can decide what the test does."""


class Passing(ast.NodeTransformer):
    """A transformer that wraps values in calls, in functions that begin on one of `lines`.

    All code is changed if `lines` is None. `deep`, `shallow` and `begin` create the nodes of the called
    functions: `deep` searches through a value that can decide what the test does; `shallow` records only the
    class of any other value that is used; `begin`, if given, records that a function on `lines` begins.
    """

    def __init__(
        self,
        deep: Callable[[], ast.expr],
        shallow: Callable[[], ast.expr],
        begin: Callable[[], ast.expr] | None = None,
        lines: frozenset[int] | None = None,
    ) -> None:
        self._deep, self._shallow, self._begin, self._lines = deep, shallow, begin, lines
        self._inside = lines is None

    def visit(self, node: ast.AST) -> Any:
        """Change a node and its children, and return the changed node."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return self._function(node)
        # Compared by name, because Python before 3.10 has no `ast.match_case`.
        is_case = node.__class__.__name__ == "match_case"
        if is_case or not self._inside:
            return self._plain(node)
        found = self._decided(node)
        if (
            not isinstance(found, ast.expr)
            or not isinstance(found, _VALUES)
            or isinstance(found, ast.Starred)
        ):
            return found
        return found if _is_target(found) else self._wrapped(found, self._shallow)

    def _function(self, node: ast.AST) -> ast.AST:
        """Change the body of an observed function; decorators and defaults belong to the outer code."""
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(one.lineno for one in decorators)])  # type: ignore[attr-defined]
        outer, self._inside = self._inside, self._inside or first in (self._lines or ())
        body = node.body  # type: ignore[attr-defined]
        changed = [self.visit(one) for one in body] if isinstance(body, list) else self.visit(body)
        if self._begin is not None and self._inside and isinstance(changed, list):
            call = ast.Call(self._begin(), [ast.Constant(first)], [])
            # After the docstring, which otherwise would not be one any more.
            changed.insert(_has_docstring(body), ast.copy_location(ast.Expr(call), body[0]))
        node.body = changed  # type: ignore[attr-defined]
        self._inside = outer
        return node

    def _plain(self, node: Any) -> Any:
        """Change the children of a node, but not the node; of a `case`, change only the body."""
        if hasattr(node, "pattern") and hasattr(node, "body"):
            node.body = [self.visit(one) for one in node.body]
            return node
        return self.generic_visit(node)

    def _decided(self, node: ast.AST) -> ast.AST:
        parts = _DECIDED.get(type(node), ())
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            node.args = [self.visit(one) for one in node.args]
            node.keywords = [self.visit(one) for one in node.keywords]
        else:
            self.generic_visit(node)
        for part in parts:
            value = getattr(node, part)
            # Comes after the children, because deep calls then replace the shallow ones of deciding values.
            looked = (
                [self._looked_through(one) for one in value]
                if isinstance(value, list)
                else self._looked_through(value)
            )
            setattr(node, part, looked)
        return node

    def _looked_through(self, node: Any) -> Any:
        if isinstance(node, ast.Starred):
            node.value = self._looked_through(node.value)
            return node
        if isinstance(node, ast.Call) and getattr(node.func, "passes", False):
            node = node.args[0]
        return self._wrapped(node, self._deep) if isinstance(node, (*_VALUES, *_COLLECTIONS)) else node

    def _wrapped(self, node: ast.expr, to: Callable[[], ast.expr]) -> ast.expr:
        called = ast.copy_location(to(), node)
        called.passes = True  # type: ignore[attr-defined]
        return ast.copy_location(ast.Call(called, [node], []), node)


def _is_target(node: ast.AST) -> bool:
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _has_docstring(body: list[ast.stmt]) -> bool:
    first = body[0]
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
