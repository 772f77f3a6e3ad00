"""Values that are stored in a variable and that no later code reads."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gistpoint.core.corruption.subject import FunctionNode

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_Live = frozenset[str]


def dead_stores(function: FunctionNode) -> Counter[str]:
    """Count, by variable, the assignments whose value is read on no path.

    Variables that an inner function reads, and those of other scopes, don't count.
    """
    shared: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            shared |= set(node.names)
        elif isinstance(node, _SCOPES) and node is not function:
            shared |= {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    found = _Reading(frozenset(shared))
    found.block(function.body, frozenset())
    return Counter(name for name, _ in found.dead)


@dataclass
class _Reading:
    """Goes backwards through code with the variables that are read later."""

    shared: _Live
    dead: set[tuple[str, int]] = field(default_factory=set)
    raised: _Live = frozenset()
    """What is read if an error is raised."""
    left: _Live = frozenset()
    """What is read after `break`."""
    again: _Live = frozenset()
    """What is read after `continue`."""

    def block(self, body: Sequence[ast.stmt], live: _Live) -> _Live:
        for statement in reversed(body):
            live = self.statement(statement, live)
        return live

    def statement(self, node: ast.stmt, live: _Live) -> _Live:
        if isinstance(node, ast.If):
            return _reads(node.test) | self.block(node.body, live) | self.block(node.orelse, live)
        if isinstance(node, ast.While | ast.For | ast.AsyncFor):
            return self.loop(node, live)
        if isinstance(node, ast.Try | ast.TryStar):
            return self.attempt(node, live)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self.block(node.body, live).union(*(_reads(item) for item in node.items))
        if isinstance(node, ast.Match):
            ways = [self.block(case.body, live) | _reads(case.pattern) for case in node.cases]
            guards = [_reads(case.guard) for case in node.cases if case.guard is not None]
            return (_reads(node.subject) | live).union(*ways, *guards)
        if isinstance(node, ast.Return | ast.Raise):
            return _reads(node) | self.raised
        if isinstance(node, ast.Break | ast.Continue):
            return self.left if isinstance(node, ast.Break) else self.again
        return self.simple(node, live)

    def simple(self, node: ast.stmt, live: _Live) -> _Live:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign) else targets
        names = frozenset(item.id for item in targets if isinstance(item, ast.Name))
        for name in names - live - self.raised - self.shared:
            self.dead.add((name, node.lineno))
        return (live - names) | _reads(node) | (names if isinstance(node, ast.AugAssign) else frozenset())

    def loop(self, node: ast.While | ast.For | ast.AsyncFor, live: _Live) -> _Live:
        outer = self.left, self.again, set(self.dead)
        after = self.block(node.orelse, live)
        head = _reads(node.test) if isinstance(node, ast.While) else frozenset()
        round_ = head | after
        for _ in range(2):
            self.dead = set(outer[2])
            self.left, self.again = live, round_
            round_ = round_ | self.block(node.body, round_)
        self.left, self.again = outer[0], outer[1]
        return round_ | (_reads(node.iter) if not isinstance(node, ast.While) else frozenset())

    def attempt(self, node: ast.Try | ast.TryStar, live: _Live) -> _Live:
        outer = self.raised
        after = self.block(node.finalbody, live)
        self.raised = outer | (after if node.finalbody else frozenset())
        handlers = frozenset[str]().union(*(self.block(item.body, after) for item in node.handlers))
        done = self.block(node.orelse, after)
        self.raised = self.raised | handlers
        entered = self.block(node.body, done)
        self.raised = outer
        return entered | handlers


def _reads(node: ast.AST) -> _Live:
    return frozenset(
        item.id for item in ast.walk(node) if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Store)
    )
