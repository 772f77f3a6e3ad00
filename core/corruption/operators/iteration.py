"""Faults in iteration: keys instead of values, or a different order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import argument_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import name_of
from gistpoint.core.corruption.subject import CorruptionTarget

_ORDERING = frozenset({"sorted", "sort", "min", "max", "groupby", "nsmallest", "nlargest"})
_OTHER = {"keys": "values", "values": "keys"}


@at_each(ast.Call)
def keys_values(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that exchange `.keys()` and `.values()`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="keys" | "values" as name) as called, args=[]):
            end = subject.span(called)[1]
            yield (TextEdit(end - len(name), end, _OTHER[name]),)


@at_each(ast.Call)
def sort_key(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that leave out the key of a sort, or its `reverse`."""
    name = name_of(node.func)
    # A key that is the only argument is kept, except in `list.sort`, which needs no other argument.
    has_more = len(node.args) + len(node.keywords) > 1 or name == "sort"
    for keyword in node.keywords if name in _ORDERING else ():
        if keyword.arg == "reverse" or (keyword.arg == "key" and has_more):
            yield from argument_dropped(subject, node, keyword)


def other_order(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that iterate in the original order instead of a reversed or sorted one."""
    yield from _call_left_out(subject)
    yield from _reversing_slice_left_out(subject)


@at_each(ast.Call)
def _call_left_out(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    match node:
        case ast.Call(func=ast.Name(id="reversed" | "sorted"), args=[value], keywords=[]):
            if isinstance(subject.parent(node), ast.For | ast.comprehension | ast.Call):
                yield subject.replaced(node, subject.source(value))


@at_each(ast.Subscript)
def _reversing_slice_left_out(subject: CorruptionTarget, node: ast.Subscript) -> Iterator[Edits]:
    match node.slice:
        case ast.Slice(lower=None, upper=None, step=ast.UnaryOp()):
            yield subject.replaced_after(node.value, node)


OPERATORS = (
    Operator("keys for values", 0.05, keys_values),
    Operator("sort key", 0.15, sort_key),
    Operator("other order", 0.15, other_order),
)
