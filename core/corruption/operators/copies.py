"""Faults in sharing: an alias for a copy, a shallow copy for a deep one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_COPYING = frozenset({"list", "dict", "set", "tuple", "bytearray", "copy", "deepcopy", "frozenset"})


def lost_copy(subject: CorruptionTarget) -> Iterator[Edits]:
    """The object itself instead of a copy."""
    for node in subject.of(ast.Call):
        if node.keywords:
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            yield (TextEdit(subject.span(node.func.value)[1], subject.span(node)[1], ""),)
        elif _name(node.func) in _COPYING and len(node.args) == 1 and _is_shared(node.args[0]):
            yield subject.replaced(node, subject.source(node.args[0]))
    for item in subject.of(ast.Subscript):
        if (
            isinstance(item.slice, ast.Slice)
            and isinstance(item.ctx, ast.Load)
            and not isinstance(subject.parent(item), ast.Delete)
        ) and item.slice.lower is item.slice.upper is item.slice.step is None:
            yield (TextEdit(subject.span(item.value)[1], subject.span(item)[1], ""),)


def shallow_copy(subject: CorruptionTarget) -> Iterator[Edits]:
    """A shallow copy instead of a deep one."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "deepcopy":
            end = subject.span(node.func)[1]
            yield (TextEdit(end - len("deepcopy"), end, "copy"),)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_shared(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


OPERATORS = (
    Operator("lost copy", 0.2, lost_copy),
    Operator("shallow copy", 0.3, shallow_copy),
)
