"""Faults in iteration: keys for values, another order, the wrong extreme, one end for the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import argument_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_ORDERING = frozenset({"sorted", "sort", "min", "max", "groupby", "nsmallest", "nlargest"})


def keys_values(subject: CorruptionTarget) -> Iterator[Edits]:
    """`.keys()` for `.values()`, and back."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "values") and not node.args:
            end = subject.span(node.func)[1]
            yield (TextEdit(end - len(node.func.attr), end, "values" if node.func.attr == "keys" else "keys"),)


def sort_key(subject: CorruptionTarget) -> Iterator[Edits]:
    """The key of a sort left out, or its direction reversed."""
    for node in subject.of(ast.Call):
        if _called(node) not in _ORDERING:
            continue
        for place, keyword in enumerate(node.keywords):
            if (
                keyword.arg == "key" and (node.args or place or len(node.keywords) > 1 or _called(node) == "sort")
            ) or keyword.arg == "reverse":
                yield from argument_dropped(subject, node, keyword)


def other_order(subject: CorruptionTarget) -> Iterator[Edits]:
    """Iteration in the original order, no longer reversed or sorted."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("reversed", "sorted") and len(node.args) == 1:
            parent = subject.parent(node)
            if not node.keywords and isinstance(parent, ast.For | ast.comprehension | ast.Call):
                yield subject.replaced(node, subject.source(node.args[0]))
    for item in subject.of(ast.Subscript):
        bounds = item.slice
        if isinstance(bounds, ast.Slice) and isinstance(bounds.step, ast.UnaryOp) and bounds.lower is bounds.upper:
            yield (TextEdit(subject.span(item.value)[1], subject.span(item)[1], ""),)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


OPERATORS = (
    Operator("keys for values", 0.05, keys_values),
    Operator("sort key", 0.15, sort_key),
    Operator("other order", 0.15, other_order),
)
