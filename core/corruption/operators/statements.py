"""Faults in statements: an update skipped, a state not restored, `=` for `+=`, two operations in the wrong order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import blocks_of_function, deleted
from gistpoint.core.corruption.operators.effects import meet
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)
_FAMILIAR = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def skipped_call(subject: CorruptionTarget) -> Iterator[Edits]:
    """A call left out that was made for its effect."""
    for block in blocks_of_function(subject):
        if block.name != "finalbody":
            for node in block.statements:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                    yield from deleted(subject, node)


def skipped_update(subject: CorruptionTarget) -> Iterator[Edits]:
    """An assignment to an attribute or an item, or an augmented one, left out.

    Not in `__init__`, since the first error would name the attribute without a value.
    """
    starts = subject.node.name == "__init__"
    for block in blocks_of_function(subject):
        if block.name != "finalbody":
            for node in block.statements:
                if isinstance(node, ast.AugAssign) or (_stores(node) and not starts):
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


def wrong_order(subject: CorruptionTarget) -> Iterator[Edits]:
    """One line moved past the statement after it: two operations in the wrong order, an update early or late."""
    for block in blocks_of_function(subject):
        for first, second in zip(block.statements, block.statements[1:], strict=False):
            yield from _swapped(subject, first, second)


def _swapped(subject: CorruptionTarget, first: ast.stmt, second: ast.stmt) -> Iterator[Edits]:
    """Yield the edits that move whichever of the two is simple past the other."""
    if isinstance(first, _FAMILIAR) or isinstance(second, _FAMILIAR):
        return
    if not (_acts(first) and _acts(second) and meet(first, second)):
        return
    spans = subject.lines(first), subject.lines(second)
    if spans[0] is None or spans[1] is None:
        return
    between = subject.text[spans[0][1] : spans[1][0]]
    if between.strip() or between.count("\n") > 1:
        return
    texts = [subject.text[slice(*span)] for span in (spans[0], spans[1])]
    simple = isinstance(first, _SIMPLE), isinstance(second, _SIMPLE)
    if simple[0] and "\n" not in texts[0]:
        yield TextEdit(spans[0][0], spans[1][0], ""), TextEdit(spans[1][1], spans[1][1], "\n" + texts[0])
    elif simple[1] and "\n" not in texts[1]:
        yield TextEdit(spans[0][0], spans[0][0], texts[1] + "\n"), TextEdit(spans[0][1], spans[1][1], "")


def _acts(node: ast.stmt) -> bool:
    """Whether a statement can be moved past another: it does not leave a block, and is not a bare string."""
    if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break | ast.Pass):
        return False
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


OPERATORS = (
    Operator("skipped call", 0.28, skipped_call),
    Operator("skipped update", 0.13, skipped_update),
    Operator("unrestored state", 0.2, unrestored_state),
    Operator("wrong order", 0.15, wrong_order),
)
