"""Omissions after which the code reads complete: a step, an entry, an argument or a handler is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.layout import LEAVING, is_one_line, names_in
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import Arity, CorruptionTarget

_MOST_LINES = 6
_FEW = 3
"""Number of elements or terms of which one is not missed."""


def lost_step(subject: CorruptionTarget) -> Iterator[Edits]:
    """A whole step left out: a loop, a block under `with`, or an `if` that prepares something."""
    for block in subject.blocks:
        for node in block.statements if len(block.statements) > 1 else ():
            if not isinstance(node, ast.If | ast.For | ast.While | ast.With) or getattr(node, "orelse", None):
                continue
            if isinstance(node.body[-1], LEAVING) or _leaves(node):
                continue
            if block.owner is subject.node and all(
                isinstance(other, ast.Expr) for other in block.statements if other is not node
            ):
                continue
            if (node.end_lineno or 0) - node.lineno < _MOST_LINES:
                yield from deleted(subject, node)


def _leaves(node: ast.stmt) -> bool:
    """Whether a statement returns, or gives something to who called."""
    return any(isinstance(item, ast.Return | ast.Yield | ast.YieldFrom | ast.Raise) for item in ast.walk(node))


def lost_preparation(subject: CorruptionTarget) -> Iterator[Edits]:
    """A line left out that brings a value into the form that the rest expects: `x = x.strip()`, `x = prepared(x)`."""
    for block in subject.blocks:
        for node in block.statements if len(block.statements) > 1 else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and len(node.targets) == 1:
                target = node.targets[0].id
                if isinstance(node.value, ast.Call | ast.Subscript) and target in names_in(node.value):
                    yield from deleted(subject, node)


def lost_yield(subject: CorruptionTarget) -> Iterator[Edits]:
    """One of several `yield` left out."""
    found = [
        node
        for block in subject.blocks
        for node in block.statements
        if len(block.statements) > 1
        and isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Yield | ast.YieldFrom)
    ]
    for node in found if len(found) > 1 else ():
        yield from deleted(subject, node)


def lost_handler(subject: CorruptionTarget) -> Iterator[Edits]:
    """One of several handlers of a `try` left out."""
    for node in subject.of(ast.Try):
        for handler in node.handlers if len(node.handlers) > 1 else ():
            first = subject.text.rfind("\n", 0, subject.span(handler)[0]) + 1
            last = subject.text.find("\n", subject.span(handler)[1])
            if last > 0 and "#" not in subject.text[first:last]:
                yield (TextEdit(first, last + 1, ""),)
            elif last < 0:
                yield (TextEdit(first - 1, len(subject.text), ""),)


def lost_entry(subject: CorruptionTarget) -> Iterator[Edits]:
    """An entry of a dict, or an element of a list, tuple or set that is not a single value, left out."""
    for node in subject.nodes:
        if isinstance(node, ast.Dict):
            keys = node.keys
            if len(keys) < _FEW or any(key is None for key in keys):
                continue
            parts = [(key or value, value) for key, value in zip(keys, node.values, strict=True)]
        elif isinstance(node, ast.List | ast.Set | ast.Tuple) and not isinstance(getattr(node, "ctx", None), ast.Store):
            parent = subject.parent(node)
            if len(node.elts) < _FEW or isinstance(
                parent, ast.Assign | ast.Return | ast.Subscript | ast.Compare | ast.BinOp
            ):
                continue
            if isinstance(node, ast.Tuple) and isinstance(parent, ast.Call | ast.List | ast.Tuple | ast.Set | ast.Dict):
                continue
            if isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") == "join":
                continue
            parts = [(item, item) for item in node.elts]
        else:
            continue
        for place, (first, last) in enumerate(parts):
            if place:
                yield (TextEdit(subject.span(parts[place - 1][1])[1], subject.span(last)[1], ""),)
            else:
                yield (TextEdit(subject.span(first)[0], subject.span(parts[1][0])[0], ""),)


def lost_argument(subject: CorruptionTarget) -> Iterator[Edits]:
    """The last argument of a function of the library left out, where it has a default."""
    for node in subject.of(ast.Call):
        arity = _arity(subject, node)
        if arity is None or node.keywords or not node.args or any(isinstance(item, ast.Starred) for item in node.args):
            continue
        if len(node.args) > max(arity.least, 1):
            yield (TextEdit(subject.span(node.args[-2])[1], subject.span(node.args[-1])[1], ""),)


def _arity(subject: CorruptionTarget, node: ast.Call) -> Arity | None:
    if isinstance(node.func, ast.Name):
        return subject.scope.functions.get(node.func.id)
    if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in ("self", "cls"):
        return subject.scope.own.methods.get(node.func.attr)
    return None


def lost_choice(subject: CorruptionTarget) -> Iterator[Edits]:
    """The usual value of a conditional expression, whatever its condition says."""
    for node in subject.of(ast.IfExp):
        for value in (node.body, node.orelse):
            if not isinstance(value, ast.Constant) and not names_in(node.test) & names_in(value):
                whole = (
                    subject.operand(node)
                    if isinstance(value, ast.Name | ast.Attribute | ast.Call)
                    else subject.span(node)
                )
                yield (TextEdit(*whole, subject.source(value)),)


def lost_term(subject: CorruptionTarget) -> Iterator[Edits]:
    """A term of a sum of at least three left out: one in the middle, or a name at its end."""
    for node in subject.of(ast.BinOp):
        inner = node.left
        if not (isinstance(node.op, ast.Add) and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add)):
            continue
        texts = ast.Constant | ast.JoinedStr  # of which a part would be missed
        if is_one_line(subject, node) and not any(isinstance(item, texts) for item in ast.walk(node)):
            yield (TextEdit(subject.operand(inner.left)[1], subject.operand(inner.right)[1], ""),)
            if isinstance(node.right, ast.Name | ast.Attribute):
                yield (TextEdit(subject.operand(inner)[1], subject.operand(node.right)[1], ""),)


OPERATORS = (
    Operator("lost step", 0.2, lost_step),
    Operator("lost preparation", 0.3, lost_preparation),
    Operator("lost yield", 0.2, lost_yield),
    Operator("lost handler", 0.3, lost_handler),
    Operator("lost entry", 0.2, lost_entry),
    Operator("lost argument", 0.4, lost_argument),
    Operator("lost choice", 0.1, lost_choice, in_rewritten=True),
    Operator("lost term", 0.4, lost_term),
)
