"""Control flow in one function: names that are read before they are bound, and statements that nothing reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from gistpoint.core.code.bindings import names_bound_in

Bound: TypeAlias = frozenset[str] | None
"""The names that are bound at a place on every path to it; None if it is unreachable."""

LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_FIELDS = ("body", "orelse", "finalbody")
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def unbound_reads(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the local names that may be read before they are bound, assuming that loops run once or not at all."""
    outer = {name for item in ast.walk(node) if isinstance(item, ast.Global | ast.Nonlocal) for name in item.names}
    parameters = frozenset(item.arg for item in ast.walk(node.args) if isinstance(item, ast.arg))
    local = names_bound_in(node.body, into_definitions=False) - outer
    flow = _Flow(frozenset(local) - parameters)
    flow.block(node.body, parameters)
    return frozenset(flow.unbound)


class _Flow:
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
        if isinstance(node, ast.If):
            bound = self.read(node.test, bound)
            return _joined([self.block(node.body, bound), self.block(node.orelse, bound)])
        if isinstance(node, ast.While):
            bound = self.read(node.test, bound)
            after = self.block(node.body, bound)
            endless = isinstance(node.test, ast.Constant) and node.test.value
            return self.block(node.orelse, _joined([after, bound]) if endless else bound)
        if isinstance(node, ast.For | ast.AsyncFor):
            bound = self.read(node.iter, bound)
            self.block(node.body, bound | names_bound_in([node.target]))
            return self.block(node.orelse, bound)
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                bound = self.read(item.context_expr, bound)
                bound = bound | (names_bound_in([item.optional_vars]) if item.optional_vars else frozenset())
            return self.block(node.body, bound)
        if isinstance(node, ast.Try | ast.TryStar):
            return self.attempt(node, bound)
        if isinstance(node, ast.Match):
            bound = self.read(node.subject, bound)
            cases = [self.block(case.body, bound | names_bound_in([case.pattern])) for case in node.cases]
            return _joined([*cases, bound])
        bound = self.read(node, bound)
        return None if isinstance(node, LEAVING) else bound

    def attempt(self, node: ast.Try | ast.TryStar, bound: frozenset[str]) -> Bound:
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
        """Note the names that straight-line code reads, and return the names bound after it."""
        self._note(node, bound)
        return bound | names_bound_in([node], into_definitions=False)

    def _note(self, node: ast.AST, bound: frozenset[str]) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, _COMPREHENSIONS):
            bound = bound | names_bound_in([item.target for item in node.generators])
        name = node.target if isinstance(node, ast.AugAssign) else node
        if isinstance(name, ast.Name) and (name is not node or not isinstance(name.ctx, ast.Store)):
            self.unbound |= ({name.id} & self.local) - bound
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop):
                self._note(child, bound)


def _joined(ways: Iterable[Bound]) -> Bound:
    open_ways = [way for way in ways if way is not None]
    return frozenset.intersection(*open_ways) if open_ways else None


def unreachable(nodes: Iterable[ast.AST]) -> int:
    """Return how many statements follow one that leaves their block."""
    return sum(_leaves(statement) for item in nodes for block in blocks_of(item) for statement in block[:-1])


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    """Return the lists of statements in a statement, a handler or a case."""
    if not isinstance(node, _BLOCKS):
        return []
    return [block for name in _FIELDS if isinstance(block := getattr(node, name, None), list)]


def _leaves(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and _leaves(statement.body[-1]) and _leaves(statement.orelse[-1])
    return isinstance(statement, LEAVING)
