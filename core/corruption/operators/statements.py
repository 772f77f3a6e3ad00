"""Faults in statements: an update skipped, a state not restored, `=` for `+=`, two operations in the wrong
order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.shapes import SIMPLE
from gistpoint.core.corruption.subject import CorruptionTarget


def skipped_call(subject: CorruptionTarget) -> Iterator[Edits]:
    """A call left out that was made for its effect."""
    for node in _outside_finally(subject):
        match node:
            case ast.Expr(value=ast.Call()):
                yield from deleted(subject, node)


def skipped_update(subject: CorruptionTarget) -> Iterator[Edits]:
    """An assignment to an attribute or an item left out.

    Not in `__init__`, since the first error would name the attribute without a value. What is counted up or
    moved on is missed at once: what follows reads as if it had been.
    """
    if subject.node.name != "__init__":
        for node in filter(_stores, _outside_finally(subject)):
            yield from deleted(subject, node)


def _outside_finally(subject: CorruptionTarget) -> Iterator[ast.stmt]:
    """Yield the statements that have neighbours, without those of a `finally`, which `unrestored_state`
    leaves out.
    """
    for block in subject.longer_blocks():
        if block.name != "finalbody":
            yield from block.statements


def unrestored_state(subject: CorruptionTarget) -> Iterator[Edits]:
    """The line that restores a changed value left out: in a `finally`, or to a value that was read before."""
    for block in subject.longer_blocks():
        saved: set[str] = set()
        for node in block.statements:
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name), *_], value=ast.Attribute() | ast.Subscript() | ast.Call()
                ):
                    saved.add(name)
                case ast.Assign(targets=[ast.Name(), *_]):
                    continue
                case ast.Assign(value=ast.Name(id=name)) if name in saved and _stores(node):
                    yield from deleted(subject, node)
                case _ if block.name == "finalbody" and isinstance(node, SIMPLE):
                    yield from deleted(subject, node)


# Updates such as `n += 1` are not left out: of 15 none was good, since what follows reads as if they were
# there (decision 93).
def _stores(node: ast.stmt) -> bool:
    """Whether a statement is an assignment to attributes and items alone."""
    places = (ast.Attribute, ast.Subscript)
    return isinstance(node, ast.Assign) and all(isinstance(target, places) for target in node.targets)


OPERATORS = (
    Operator("skipped call", 0.08, skipped_call),
    Operator("skipped update", 0.15, skipped_update),
    Operator("unrestored state", 0.15, unrestored_state),
)
