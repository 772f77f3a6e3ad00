"""Faults in counting: off by one in a range or a slice, at the start of a count, in arithmetic and rounding."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.conditions import bare
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_ROUNDING: Mapping[type[ast.operator], str] = {ast.FloorDiv: "/", ast.Div: "//"}
_ARITHMETIC: Mapping[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Mod: "//", ast.BitAnd: "|", ast.BitOr: "&",
    ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip


def _is_whole(node: ast.AST | None, *values: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and (not values or node.value in values)


def dropped_one(subject: CorruptionTarget) -> Iterator[Edits]:
    """`n` for `n + 1` or `n - 1`."""
    for node in subject.of(ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Sub) and _is_whole(node.right, 1):
            yield from bare(subject, node, node.left)


def range_end(subject: CorruptionTarget) -> Iterator[Edits]:
    """A range that stops one early, starts one late, or counts from the wrong number."""
    for node in subject.of(ast.Call):
        if not isinstance(node.func, ast.Name) or node.keywords or not node.args:
            continue
        if node.func.id == "range" and len(node.args) < 3:
            last = node.args[-1]
            if isinstance(last, ast.Name | ast.Call | ast.Attribute):
                end = subject.span(last)[1]
                yield (TextEdit(end, end, " - 1"),)
            if len(node.args) == 2 and _is_whole(node.args[0], 1):
                yield subject.replaced(node.args[0], "0")
        elif node.func.id == "enumerate" and len(node.args) == 2:
            yield (TextEdit(subject.span(node.args[0])[1], subject.span(node.args[1])[1], ""),)


def slice_bound(subject: CorruptionTarget) -> Iterator[Edits]:
    """A bound of a slice left out or one off."""
    for node in subject.of(ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is None:
                continue
            if isinstance(bound, ast.Name | ast.Call | ast.Attribute):
                end = subject.span(bound)[1]
                yield (TextEdit(end, end, " + 1"),)
            elif _is_whole(bound, 1, 2):
                yield subject.replaced(bound, "2" if _is_whole(bound, 1) else "1")


def rounding(subject: CorruptionTarget) -> Iterator[Edits]:
    """`/` for `//`, and back."""
    yield from _exchanged(subject, _ROUNDING)


def arithmetic(subject: CorruptionTarget) -> Iterator[Edits]:
    """Another arithmetic operator."""
    yield from _exchanged(subject, _ARITHMETIC)


def _exchanged(subject: CorruptionTarget, table: Mapping[type[ast.operator], str]) -> Iterator[Edits]:
    for node in subject.of(ast.BinOp):
        text = table.get(type(node.op))
        span = subject.between(node.left, node.right) if text and not _is_text(node) else None
        if text and span:
            yield (TextEdit(*span, text),)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


OPERATORS = (
    Operator("off by one", 0.03, dropped_one),
    Operator("off by one", 0.03, range_end),
    Operator("slice bound", 0.02, slice_bound),
    Operator("rounding", 0.05, rounding),
)
ARITHMETIC = Operator("arithmetic", 0.25, arithmetic)
"""Seen at a glance, so not among the operators that make tasks; for those who undo corruptions."""
