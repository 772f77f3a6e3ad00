"""Faults in sharing: an alias instead of a copy, or a shallow copy instead of a deep one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import name_of
from gistpoint.core.corruption.subject import CorruptionTarget

_COPYING = frozenset({"list", "dict", "set", "tuple", "bytearray", "copy", "deepcopy", "frozenset"})


def lost_copy(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that replace a copy with the object itself."""
    yield from _copying_call_left_out(subject)
    yield from _copying_slice_left_out(subject)


@at_each(ast.Call)
def _copying_call_left_out(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="copy"), args=[], keywords=[]):
            yield subject.replaced_after(value, node)
        case ast.Call(args=[ast.Name() | ast.Attribute() | ast.Subscript() as value], keywords=[]):
            if name_of(node.func) in _COPYING:
                yield subject.replaced(node, subject.source(value))


@at_each(ast.Subscript)
def _copying_slice_left_out(subject: CorruptionTarget, node: ast.Subscript) -> Iterator[Edits]:
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=None), ctx=ast.Load()):
            yield subject.replaced_after(value, node)


@at_each(ast.Call)
def shallow_copy(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace a deep copy with a shallow one."""
    match node.func:
        case ast.Attribute(attr="deepcopy" as name) as called:
            end = subject.span(called)[1]
            yield (TextEdit(end - len(name), end, "copy"),)


OPERATORS = (
    Operator("lost copy", 0.2, lost_copy),
    Operator("shallow copy", 0.3, shallow_copy),
)
