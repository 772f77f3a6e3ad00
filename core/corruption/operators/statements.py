"""Faults in statements: an update skipped, a state not restored, `=` for `+=`, two operations in the wrong order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.operators.branches import blocks_of_function, deleted
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)


def skipped_call(subject: CorruptionTarget) -> Iterator[Edits]:
    """A call left out that was made for its effect."""
    for block in blocks_of_function(subject):
        if block.name != "finalbody":
            for node in block.statements:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                    yield from deleted(subject, node)


def skipped_update(subject: CorruptionTarget) -> Iterator[Edits]:
    """An assignment to an attribute or an item left out.

    Not in `__init__`, since the first error would name the attribute without a value. What is counted up or moved on
    is missed at once: what follows reads as if it had been.
    """
    if subject.node.name != "__init__":
        for block in blocks_of_function(subject):
            for node in block.statements if block.name != "finalbody" else ():
                if _stores(node):
                    yield from deleted(subject, node)


def unrestored_state(subject: CorruptionTarget) -> Iterator[Edits]:
    """The line that restores a changed value left out: in a `finally`, or to a value that was read before."""
    for block in blocks_of_function(subject):
        saved: set[str] = set()
        for node in block.statements:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if isinstance(node.value, ast.Attribute | ast.Subscript | ast.Call):
                    saved.add(node.targets[0].id)
                continue
            restores = isinstance(node, ast.Assign) and _stores(node) and getattr(node.value, "id", "") in saved
            if restores or (block.name == "finalbody" and isinstance(node, _SIMPLE)):
                yield from deleted(subject, node)


def _stores(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
    )


OPERATORS = (
    Operator("skipped call", 0.08, skipped_call),
    Operator("skipped update", 0.15, skipped_update),
    Operator("unrestored state", 0.15, unrestored_state),
)
