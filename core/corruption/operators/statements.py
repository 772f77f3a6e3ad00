"""Faults in statements: a skipped call or update, or saved state that is not restored."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.shapes import SIMPLE
from gistpoint.core.corruption.subject import CorruptionTarget


def skipped_call(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out a call that is made for its effect."""
    for node in _outside_finally(subject):
        match node:
            case ast.Expr(value=ast.Call()):
                yield from deleted(subject, node)


def skipped_update(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out an assignment to an attribute or an item.

    `__init__` is left alone, because the first error would name the attribute that has no value. Updates such
    as `n += 1` are left alone too: their absence is obvious, because the code after them reads as if they had
    been made.
    """
    if subject.node.name != "__init__":
        for node in filter(_stores, _outside_finally(subject)):
            yield from deleted(subject, node)


def _outside_finally(subject: CorruptionTarget) -> Iterator[ast.stmt]:
    """Yield the statements that have neighbours, without those in a `finally`.

    Edits that leave out statements in a `finally` are those of `unrestored_state`.
    """
    for block in subject.longer_blocks():
        if block.name != "finalbody":
            yield from block.statements


def unrestored_state(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out a line that restores a saved value, or a simple statement in a `finally`."""
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


# Updates such as `n += 1` are not left out: none of 15 was good, because the code after them reads as if they
# had been made (decision 93).
def _stores(node: ast.stmt) -> bool:
    """Return whether a statement only assigns to attributes and items."""
    places = (ast.Attribute, ast.Subscript)
    return isinstance(node, ast.Assign) and all(isinstance(target, places) for target in node.targets)


OPERATORS = (
    Operator("skipped call", 0.08, skipped_call),
    Operator("skipped update", 0.15, skipped_update),
    Operator("unrestored state", 0.15, unrestored_state),
)
