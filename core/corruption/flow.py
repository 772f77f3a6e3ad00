"""Control flow in one function: reads of unbound names, and unreachable statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.nodes import inside
from gistpoint.core.corruption.shapes import LEAVING, SHARING, FunctionNode, parameters

Bound: TypeAlias = frozenset[str] | None
"""The names that are bound on every path to a place; None if the place is unreachable."""

_FIELDS = ("body", "orelse", "finalbody")
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def unbound_reads(node: FunctionNode) -> frozenset[str]:
    """Return the local names that may be read before they are bound.

    Loops are assumed to run once or not at all.
    """
    outer = {name for item in inside(SHARING, node) for name in item.names}
    given = parameters(node)
    local = names_bound_in(node.body, into_definitions=False) - outer
    flow = _Flow(frozenset(local) - given)
    flow.block(node.body, given)
    return frozenset(flow.unbound)


class _Flow:
    """A forward walk through code that tracks the names bound on every path so far."""

    def __init__(self, local: frozenset[str]) -> None:
        self.local = local
        self.unbound: set[str] = set()

    def block(self, body: Sequence[ast.stmt], bound: Bound) -> Bound:
        for statement in body:
            if bound is None:
                return None
            bound = self.statement(statement, bound)
        return bound

    def statement(self, node: ast.stmt, bound: frozenset[str]) -> Bound:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                bound = self.read(test, bound)
                return _joined([self.block(body, bound), self.block(orelse, bound)])
            case ast.While(test=test, body=body, orelse=orelse):
                bound = self.read(test, bound)
                after = self.block(body, bound)
                # Only the body of `while True` can leave the loop; any other loop might not run at all.
                endless = isinstance(test, ast.Constant) and test.value
                return self.block(orelse, _joined([after, bound]) if endless else bound)
            case ast.For() | ast.AsyncFor():
                bound = self.read(node.iter, bound)
                self.block(node.body, bound | names_bound_in([node.target]))
                return self.block(node.orelse, bound)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    bound = self.read(item.context_expr, bound)
                    bound = bound | names_bound_in(filter(None, [item.optional_vars]))
                return self.block(node.body, bound)
            case ast.Try() | ast.TryStar():
                return self.attempt(node, bound)
            case ast.Match(subject=subject, cases=cases):
                bound = self.read(subject, bound)
                ways = [self.block(case.body, bound | names_bound_in([case.pattern])) for case in cases]
                return _joined([*ways, bound])
        bound = self.read(node, bound)
        return None if isinstance(node, LEAVING) else bound

    def attempt(self, node: ast.Try | ast.TryStar, bound: frozenset[str]) -> Bound:
        # An error may be raised before the body binds anything, so handlers start with the names bound before
        # it.
        ways = [self.block(node.orelse, self.block(node.body, bound))]
        for handler in node.handlers:
            name = {handler.name} if handler.name else set()
            ways.append(self.block(handler.body, bound | name))
        if not node.finalbody:
            return _joined(ways)
        last = self.block(node.finalbody, bound)
        joined = _joined(ways)
        return None if joined is None or last is None else joined | last

    def read(self, node: ast.AST, bound: frozenset[str]) -> frozenset[str]:
        """Record the names that straight-line code reads, and return the names bound after it."""
        self._note(node, bound)
        return bound | names_bound_in([node], into_definitions=False)

    def _note(self, node: ast.AST, bound: frozenset[str]) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, _COMPREHENSIONS):
            bound = bound | names_bound_in([item.target for item in node.generators])
        match node:
            # The target of `x += 1` is read although it is stored to; other names are read unless they are
            # stored to.
            case ast.AugAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Load() | ast.Del()):
                self.unbound |= ({name} & self.local) - bound
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop):
                self._note(child, bound)


def _joined(ways: Iterable[Bound]) -> Bound:
    open_ways = [way for way in ways if way is not None]
    return frozenset.intersection(*open_ways) if open_ways else None


def unreachable(nodes: Iterable[ast.AST]) -> int:
    """Return the number of statements that leave their block although others follow."""
    return sum(_leaves(statement) for item in nodes for block in blocks_of(item) for statement in block[:-1])


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    """Return the lists of statements in a statement, a handler or a case; empty for other nodes."""
    if not isinstance(node, _BLOCKS):
        return []
    return [block for name in _FIELDS if isinstance(block := getattr(node, name, None), list)]


def _leaves(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(body=[*_, last], orelse=[*_, other]):
            return _leaves(last) and _leaves(other)
    return isinstance(statement, LEAVING)
