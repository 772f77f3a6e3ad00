"""Rows of like statements, conditions or elements: one that is unlike its neighbours stands out."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_LEAVES = (ast.Name, ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.JoinedStr)
_VARIABLE = re.compile(r"id='[^']*'")
_LEAST = 4
"""Pieces with fewer parts than this are alike by chance."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many neighbours have the same form, and the forms that there are.

    Neighbours are statements that follow each other in a block, operands of one `and` or `or`, and elements.
    """

    alike: int
    forms: Counter[tuple[str, ...]]
    twins: int
    """How many neighbours are the same but for the names of variables."""

    def broken_by(self, after: Rows) -> bool:
        """Whether a piece is no longer like its neighbours: its form, or all but its variables; moves break no row."""
        if self.forms.total() != after.forms.total():
            return False
        return after.twins < self.twins or (after.alike < self.alike and after.forms != self.forms)


def rows_of(nodes: Iterable[ast.AST]) -> Rows:
    """Return the rows of like pieces among the nodes of a function."""
    alike, found, twins = 0, Counter[tuple[str, ...]](), 0
    for node in nodes:
        for group in _groups(node):
            forms = [form(item) for item in group]
            found.update(forms)
            alike += sum(one == two and len(one) >= _LEAST for one, two in pairwise(forms))
            for (one, two), (first, second) in zip(pairwise(group), pairwise(forms), strict=True):
                twins += first == second and len(first) >= _LEAST and "" != _outline(one) == _outline(two)
    return Rows(alike, found, twins)


def _outline(node: ast.AST) -> str:
    """Return a simple statement or an expression without the names of its variables."""
    return "" if hasattr(node, "body") else _VARIABLE.sub("id=", ast.dump(node))


def _groups(node: ast.AST) -> Iterable[Sequence[ast.AST]]:
    if isinstance(node, ast.BoolOp):
        return [node.values]
    if isinstance(node, ast.List | ast.Tuple):
        return [node.elts]
    if not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
        return []
    blocks = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [block for block in blocks if isinstance(block, list)]


def form(node: ast.AST) -> tuple[str, ...]:
    """Return the kinds of a node's parts in order, without names and values; of a compound statement, its test's."""
    if isinstance(node, _LEAVES):
        return ("value",)
    if isinstance(node, ast.If | ast.While):
        return (type(node).__name__, *form(node.test))
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        return (type(node).__name__,)
    parts = [type(node).__name__]
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr_context):
            parts += form(child)
    return tuple(parts)
