"""Rows of like statements, conditions or elements: one that is unlike its neighbours stands out."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_LEAVES = (ast.Name, ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.JoinedStr)
_LEAST = 4
"""Pieces with fewer parts than this are alike by chance."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many neighbours have the same form, and the forms that there are.

    Neighbours are statements that follow each other in a block, operands of one `and` or `or`, and elements.
    """

    alike: int
    forms: Counter[tuple[str, ...]]

    def broken_by(self, after: Rows) -> bool:
        """Whether a piece has another form afterwards and is no longer like its neighbours; moves break no row."""
        same_number = self.forms.total() == after.forms.total()
        return same_number and after.alike < self.alike and after.forms != self.forms


def rows_of(nodes: Iterable[ast.AST]) -> Rows:
    """Return the rows of like pieces among the nodes of a function."""
    alike, found = 0, Counter[tuple[str, ...]]()
    for node in nodes:
        for group in _groups(node):
            forms = [form(item) for item in group]
            found.update(forms)
            alike += sum(one == two and len(one) >= _LEAST for one, two in pairwise(forms))
    return Rows(alike, found)


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
