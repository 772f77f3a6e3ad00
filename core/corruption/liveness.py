"""Finds values that are stored in a variable and never read afterwards."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gistpoint.core.code.nodes import inside, only
from gistpoint.core.corruption.shapes import SHARING, FunctionNode, names_in

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_Live = frozenset[str]


def dead_stores(function: FunctionNode) -> Counter[str]:
    """Return, for each variable, the number of assignments whose value is read on no path.

    Variables that an inner function reads, and those of other scopes, don't count.
    """
    # An inner function may read its variables at any time; names of other scopes may be read elsewhere.
    outer = {name for node in inside(SHARING, function) for name in node.names}
    inner = (node for node in inside(_SCOPES, function) if node is not function)
    found = _Reading(names_in(*inner).union(outer))
    found.block(function.body, frozenset())
    return Counter(name for name, _ in found.dead)


@dataclass
class _Reading:
    """A backward walk through code that tracks the variables that are read later."""

    shared: _Live
    dead: set[tuple[str, int]] = field(default_factory=set)
    raised: _Live = frozenset()
    """The variables that are read if an error is raised."""
    left: _Live = frozenset()
    """The variables that are read after `break`."""
    again: _Live = frozenset()
    """The variables that are read after `continue`."""

    def block(self, body: Sequence[ast.stmt], live: _Live) -> _Live:
        for statement in reversed(body):
            live = self.statement(statement, live)
        return live

    def statement(self, node: ast.stmt, live: _Live) -> _Live:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                return _reads(test) | self.block(body, live) | self.block(orelse, live)
            case ast.While() | ast.For() | ast.AsyncFor():
                return self.loop(node, live)
            case ast.Try() | ast.TryStar():
                return self.attempt(node, live)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return self.block(body, live).union(*map(_reads, items))
            case ast.Match(subject=subject, cases=cases):
                ways = [self.block(case.body, live) | _reads(case.pattern, case.guard) for case in cases]
                return (_reads(subject) | live).union(*ways)
            case ast.Return() | ast.Raise():
                return _reads(node) | self.raised
            case ast.Break():
                return self.left
            case ast.Continue():
                return self.again
            case ast.AugAssign(target=target):
                # The statement also reads its target.
                return self.simple(node, [target], live) | _names_of([target])
            case ast.Assign(targets=targets):
                return self.simple(node, targets, live)
        return self.simple(node, (), live)

    def simple(self, node: ast.stmt, targets: Sequence[ast.expr], live: _Live) -> _Live:
        names = _names_of(targets)
        for name in names - live - self.raised - self.shared:
            self.dead.add((name, node.lineno))
        return (live - names) | _reads(node)

    def loop(self, node: ast.While | ast.For | ast.AsyncFor, live: _Live) -> _Live:
        outer = self.left, self.again, set(self.dead)
        after = self.block(node.orelse, live)
        head = getattr(node, "test", None)
        round_ = _reads(head) | after
        # The body is walked twice, because the variables that the start of the body reads are live at its
        # end.
        for _ in range(2):
            self.dead = set(outer[2])
            self.left, self.again = live, round_
            round_ = round_ | self.block(node.body, round_)
        self.left, self.again = outer[0], outer[1]
        return round_ | _reads(getattr(node, "iter", None))

    def attempt(self, node: ast.Try | ast.TryStar, live: _Live) -> _Live:
        # Any statement of the body may raise, so variables that handlers or `finally` read are live in all of
        # it.
        outer = self.raised
        after = self.block(node.finalbody, live)
        self.raised = outer | (after if node.finalbody else frozenset())
        handlers = frozenset[str]().union(*(self.block(item.body, after) for item in node.handlers))
        done = self.block(node.orelse, after)
        self.raised = self.raised | handlers
        entered = self.block(node.body, done)
        self.raised = outer
        return entered | handlers


def _names_of(targets: Sequence[ast.expr]) -> _Live:
    """Return the variables that are targets themselves, not parts of a tuple."""
    return frozenset(item.id for item in only(ast.Name, targets))


def _reads(*nodes: ast.AST | None) -> _Live:
    names = inside(ast.Name, *filter(None, nodes))
    return frozenset(item.id for item in names if not isinstance(item.ctx, ast.Store))
