"""Faults in counting: off by one in ranges, slices and sums, and the wrong division."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.conditions import bare
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.subject import CorruptionTarget

_ROUNDING: Mapping[type[ast.operator], str] = {ast.FloorDiv: "/", ast.Div: "//"}
_ARITHMETIC: Mapping[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Mod: "//",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}


def _is_whole(node: ast.AST | None, *values: int) -> bool:
    """Return whether a node is a literal of one of these integers."""
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in values


@at_each(ast.BinOp)
def dropped_one(subject: CorruptionTarget, node: ast.BinOp) -> Iterator[Edits]:
    """Yield edits that replace `n + 1` or `n - 1` with `n`."""
    if isinstance(node.op, ast.Add | ast.Sub) and _is_whole(node.right, 1):
        yield from bare(subject, node, node.left)


@at_each(ast.Call)
def range_end(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that move an end of a range by one, or leave out the start of an `enumerate`."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[last] | [_, last], keywords=[]):
            yield from _moved_by_one(subject, last, " - 1")
            if len(node.args) == 2 and _is_whole(node.args[0], 1):
                yield subject.replaced(node.args[0], "0")
        case ast.Call(func=ast.Name(id="enumerate"), args=[counted, first], keywords=[]):
            yield subject.replaced_after(counted, first)


def _moved_by_one(subject: CorruptionTarget, bound: ast.expr, step: str) -> Iterator[Edits]:
    if isinstance(bound, ast.Name | ast.Call | ast.Attribute):
        end = subject.span(bound)[1]
        yield (TextEdit(end, end, step),)


@at_each(ast.Slice)
def slice_bound(subject: CorruptionTarget, node: ast.Slice) -> Iterator[Edits]:
    """Yield edits that change a bound of a slice by one."""
    for bound in filter(None, (node.lower, node.upper)):
        yield from _moved_by_one(subject, bound, " + 1")
        if _is_whole(bound, 1, 2):
            yield subject.replaced(bound, "2" if _is_whole(bound, 1) else "1")


def rounding(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that exchange `/` and `//`."""
    yield from _exchanged(subject, _ROUNDING)


def arithmetic(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that use another arithmetic operator."""
    yield from _exchanged(subject, _ARITHMETIC)


def _exchanged(subject: CorruptionTarget, table: Mapping[type[ast.operator], str]) -> Iterator[Edits]:
    for node in subject.of(ast.BinOp):
        text = table.get(type(node.op))
        joins = _is_text(node.left) or _is_text(node.right)
        span = subject.between(node.left, node.right) if text and not joins else None
        if text and span:
            yield (TextEdit(*span, text),)


def _is_text(side: ast.expr) -> bool:
    """Return whether an operand is a string, a list or a tuple, so that no other operator is valid."""
    match side:
        case ast.JoinedStr() | ast.List() | ast.Tuple() | ast.Constant(value=str() | bytes()):
            return True
    return False


# Changes of a boundary have a prior of at most 0.1 (decision 93).
OPERATORS = (
    Operator("off by one", 0.03, dropped_one),
    Operator("off by one", 0.03, range_end),
    Operator("slice bound", 0.02, slice_bound),
    Operator("rounding", 0.05, rounding),
)
ARITHMETIC = Operator("arithmetic", 0.25, arithmetic)
"""An operator that only serves to undo corruptions, because its edits are seen at a glance."""
