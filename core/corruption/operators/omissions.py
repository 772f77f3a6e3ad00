"""Faults by omission after which code still looks complete: of a step, an entry, an argument or a handler."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from gistpoint.core.code.nodes import has, has_any, only
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import deleted, lines_dropped
from gistpoint.core.corruption.operators.layout import part_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import LEAVING, NAMED, is_one_line, names_in
from gistpoint.core.corruption.subject import CorruptionTarget, StatementBlock

_MOST_LINES = 6
_FEW = 3
"""The minimum number of elements or terms among which a missing one is not noticed."""
_STEPS: tuple[type[ast.If | ast.For | ast.While | ast.With], ...] = (ast.If, ast.For, ast.While, ast.With)
_YIELDING = (ast.Yield, ast.YieldFrom)


def lost_step(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out a step: a loop, a block under `with`, or an `if` that prepares something."""
    for block in subject.longer_blocks():
        for node in only(_STEPS, block.statements):
            goes_on = not getattr(node, "orelse", None) and not _leaves(node)
            if goes_on and _is_short(node) and not _is_only_effect(subject, block, node):
                yield from deleted(subject, node)


def _leaves(node: ast.If | ast.For | ast.While | ast.With) -> bool:
    """Return whether a statement leaves the code around it, or returns, yields or raises."""
    return isinstance(node.body[-1], LEAVING) or has((ast.Return, ast.Yield, ast.YieldFrom, ast.Raise), node)


def _is_short(node: ast.stmt) -> bool:
    return (node.end_lineno or 0) - node.lineno < _MOST_LINES


def _is_only_effect(subject: CorruptionTarget, block: StatementBlock, node: ast.stmt) -> bool:
    """Return whether the rest of the function is only expressions, which have no effect without this step."""
    others = (isinstance(other, ast.Expr) for other in block.statements if other is not node)
    return block.owner is subject.node and all(others)


def lost_preparation(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out a line that normalises a value for the code after it: `x = x.strip()`."""
    for node in _with_neighbours(subject):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() | ast.Subscript() as value):
                if name in names_in(value):
                    yield from deleted(subject, node)


def _with_neighbours(subject: CorruptionTarget) -> Iterator[ast.stmt]:
    return chain.from_iterable(block.statements for block in subject.longer_blocks())


def lost_yield(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that leave out one of several `yield`s."""
    expressions = only(ast.Expr, _with_neighbours(subject))
    found = [node for node in expressions if isinstance(node.value, _YIELDING)]
    # Without its only `yield`, a function is no longer a generator, and every caller notices.
    if len(found) > 1:
        yield from chain.from_iterable(deleted(subject, node) for node in found)


@at_each(ast.Try)
def lost_handler(subject: CorruptionTarget, node: ast.Try) -> Iterator[Edits]:
    """Yield edits that leave out one of several handlers of a `try`."""
    for handler in node.handlers if len(node.handlers) > 1 else ():
        start, end = subject.span(handler)
        last = subject.text.find("\n", end)
        commented = last > 0 and "#" in subject.text[subject.line_start(start) : last]
        if not commented:
            yield lines_dropped(subject, start, end)


@at_each(ast.Dict, ast.List, ast.Set, ast.Tuple)
def lost_entry(subject: CorruptionTarget, node: ast.expr) -> Iterator[Edits]:
    """Yield edits that leave out one of at least three entries of a dict, list, tuple or set."""
    spans = _entries(subject, node)
    # Among fewer entries, a lost one would be noticed.
    if len(spans) < _FEW:
        return
    for place in range(len(spans)):
        yield part_dropped(spans, place)


def _entries(subject: CorruptionTarget, node: ast.expr) -> list[tuple[int, int]]:
    """Return the offsets of a collection's entries.

    Empty if the collection is a single value, such as a pair or a result.
    """
    parent = subject.parent(node)
    match node, parent:
        case ast.Dict() as mapping, _:
            return _pairs(subject, mapping)
        case (
            ((ast.List(ctx=ast.Store()) | ast.Tuple(ctx=ast.Store())), _)
            | (_, ast.Assign() | ast.Return() | ast.Subscript() | ast.Compare() | ast.BinOp())
            | (ast.Tuple(), ast.Call() | ast.List() | ast.Tuple() | ast.Set() | ast.Dict())
            | (_, ast.Call(func=ast.Attribute(attr="join")))
        ):
            return []
        case ((ast.List(elts=items) | ast.Set(elts=items) | ast.Tuple(elts=items)), _):
            return list(map(subject.span, items))
    return []


def _pairs(subject: CorruptionTarget, node: ast.Dict) -> list[tuple[int, int]]:
    """Return the offsets of a dict's keys with their values; empty if the dict unpacks another one."""
    spans: list[tuple[int, int]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            return []
        spans.append((subject.span(key)[0], subject.span(value)[1]))
    return spans


@at_each(ast.Call)
def lost_argument(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that leave out the last argument of a function of the library if it has a default."""
    match node:
        case ast.Call(args=[*_, before, last] as args, keywords=[]):
            required = _required(subject, node)
            if required is None or has_any(ast.Starred, args):
                return
            if len(args) > required:
                yield subject.replaced_after(before, last)


def _required(subject: CorruptionTarget, node: ast.Call) -> int | None:
    """Return the number of positional arguments that a called function requires; None if unknown."""
    match node.func:
        case ast.Name(id=name):
            return subject.scope.functions.get(name)
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return subject.scope.own.methods.get(name)
    return None


@at_each(ast.IfExp)
def lost_choice(subject: CorruptionTarget, node: ast.IfExp) -> Iterator[Edits]:
    """Yield edits that replace a conditional expression with one of its values."""
    for value in (node.body, node.orelse):
        # Without the condition, a value that it tests would be wrong too often.
        is_independent = names_in(node.test).isdisjoint(names_in(value))
        if isinstance(value, ast.Constant) or not is_independent:
            continue
        needs_no_parentheses = isinstance(value, ast.Name | ast.Attribute | ast.Call)
        span = subject.operand(node) if needs_no_parentheses else subject.span(node)
        yield (TextEdit(*span, subject.source(value)),)


# Terms in the middle of a sum are left out too: of lost terms, cases and values of lists, 9 of 11 were good
# (decision 93).
@at_each(ast.BinOp)
def lost_term(subject: CorruptionTarget, node: ast.BinOp) -> Iterator[Edits]:
    """Yield edits that leave out a middle term of a sum of at least three terms, or a name at its end."""
    match node:
        case ast.BinOp(
            left=ast.BinOp(left=first, op=ast.Add(), right=middle) as inner, op=ast.Add(), right=last
        ):
            # A missing part of a string would be noticed.
            if is_one_line(node) and not has((ast.Constant, ast.JoinedStr), node):
                yield (TextEdit(subject.operand(first)[1], subject.operand(middle)[1], ""),)
                if isinstance(last, NAMED):
                    yield (TextEdit(subject.operand(inner)[1], subject.operand(last)[1], ""),)


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
