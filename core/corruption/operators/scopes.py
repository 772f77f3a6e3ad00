"""Faults of timing and extent: an early reset, a stale value, a `try` that is too wide, a lost `finally`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain

from gistpoint.core.code.nodes import has, inside, only
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.layout import lines_of, margin, relaid, shifted
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import (
    LEAVING,
    LOOPS,
    NAMED,
    SIMPLE,
    is_call_to,
    is_text,
    names_in,
    parameters,
    texts_of,
)
from gistpoint.core.corruption.subject import CorruptionTarget, StatementBlock

_FAR = 4
"""The maximum number of statements that a line is moved past, and of reads of one stale value."""
_LENGTHS = ("size", "length", "count", "total")
_Use = tuple[int, ast.expr]
"""A place where a value is read: the number of the statement in its block, and the expression."""


def meet(one: ast.stmt, other: ast.stmt) -> bool:
    """Return whether one statement may change a value that the other mentions, so their order matters."""
    stored, also_stored = stores(one), stores(other)
    if stored & places(other) or also_stored & places(one):
        return True
    return bool(_owners(stored) & _passed_on(other) or _owners(also_stored) & _passed_on(one))


def places(node: ast.stmt) -> frozenset[str]:
    """Return the variables and attributes that a statement mentions, without `self`."""
    return texts_of(inside(NAMED, node)) - {"self"}


def stores(node: ast.stmt) -> frozenset[str]:
    """Return the variables, attributes and collections that a statement visibly changes."""
    return texts_of(_changed_by(node)) - {"self", "super()"}


def _changed_by(node: ast.stmt) -> Iterator[ast.expr]:
    for item in ast.walk(node):
        match item:
            case ast.Name(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield item
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                yield owner
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
                yield owner  # a method that is called for its effect


def _owners(stored: frozenset[str]) -> frozenset[str]:
    """Return the objects whose attributes are among these places."""
    return frozenset(place.rpartition(".")[0] for place in stored if "." in place)


def _passed_on(node: ast.stmt) -> frozenset[str]:
    """Return the objects whose methods a statement calls, or that it passes to a call."""
    calls = list(inside(ast.Call, node))
    owners = [called.value for called in only(ast.Attribute, (call.func for call in calls))]
    return texts_of(only(NAMED, chain(owners, *(call.args for call in calls))))


@at_each(*LOOPS)
def early_reset(subject: CorruptionTarget, loop: ast.For | ast.AsyncFor | ast.While) -> Iterator[Edits]:
    """Yield edits that move a reset from the start of a loop's body to before the loop."""
    lines = subject.lines(loop)
    if lines is not None:
        yield from _started_before(subject, loop, lines[0])


def _started_before(
    subject: CorruptionTarget, loop: ast.For | ast.AsyncFor | ast.While, start: int
) -> Iterator[Edits]:
    space, bound = margin(subject, loop), names_in(getattr(loop, "target", loop.body[0]))
    for node in loop.body[:-1]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value) if (
                _is_start(value) and name not in bound
            ):
                own = subject.lines(node)
                if own is not None and "\n" not in subject.cut(own):
                    line = f"{space}{subject.source(node)}\n"
                    yield TextEdit(start, start, line), TextEdit(own[0], own[1] + 1, "")


def _is_start(value: ast.expr) -> bool:
    """Return whether a value is a usual starting value: a constant, an empty collection or a new object."""
    match value:
        case (
            ast.Call(func=ast.Name(), args=[], keywords=[])
            | ast.List(elts=[])
            | ast.Tuple(elts=[])
            | ast.Set(elts=[])
            | ast.Constant()
            | ast.Dict(keys=[])
        ):
            return True
    return False


@at_each(ast.Break)
def lost_break(subject: CorruptionTarget, node: ast.Break) -> Iterator[Edits]:
    """Yield edits that leave out a `break`, so a loop finds the last match instead of the first."""
    match subject.parent(node), subject.nearest(node, LOOPS):
        # Without its `break`, a loop with an `else` would always enter the `else`.
        case ast.If(body=[_, *_, last]), (
            ast.For(orelse=[]) | ast.AsyncFor(orelse=[]) | ast.While(orelse=[])
        ):
            if last is node:
                yield from deleted(subject, node)


@at_each(ast.Try)
def lost_finally(subject: CorruptionTarget, node: ast.Try) -> Iterator[Edits]:
    """Yield edits that run the code of a `finally` only if no error is raised."""
    match node:
        case ast.Try(body=[*_, last], handlers=[], orelse=[], finalbody=[_, *_]) if not isinstance(
            last, LEAVING
        ):
            yield from _in_turn(subject, node)


def _in_turn(subject: CorruptionTarget, node: ast.Try) -> Iterator[Edits]:
    lines, space = subject.lines(node), margin(subject, node)
    if lines is None or "#" in subject.cut(lines):
        return
    first, then = (relaid(subject, block, space) for block in (node.body, node.finalbody))
    if first is not None and then is not None:
        yield (TextEdit(*lines, f"{first}\n{then}"),)


def wider_try(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that move the line before or after a `try` into it, so that its errors are caught too."""
    for first, second in subject.neighbours():
        match first, second:
            case moved, ast.Try(handlers=[_, *_]) as around:
                yield from _moved_in(subject, moved, around, before=True)
            case ast.Try(body=[*_, last], handlers=[_, *_], orelse=[], finalbody=[]) as around, moved:
                if not isinstance(last, LEAVING):
                    yield from _moved_in(subject, moved, around, before=False)


def _moved_in(
    subject: CorruptionTarget, moved: ast.stmt, around: ast.Try, *, before: bool
) -> Iterator[Edits]:
    own, lines = subject.lines(moved), lines_of(subject, around.body)
    # Without a call, there is no error that the handlers could catch by mistake.
    can_fail = isinstance(moved, SIMPLE) and has(ast.Call, moved)
    if own is None or lines is None or not can_fail:
        return
    text = shifted(subject.cut(own), margin(subject, moved), margin(subject, around.body[0]))
    if text is None or text.count("\n") > 1:
        return
    if before:
        yield TextEdit(own[0], own[1] + 1, ""), TextEdit(lines[0], lines[0], f"{text}\n")
    else:
        yield TextEdit(lines[1], lines[1], f"\n{text}"), TextEdit(own[0] - 1, own[1], "")


def other_time(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that move a line past two to four statements, of which only the last depends on it."""
    for block in subject.blocks:
        for place, node in enumerate(block.statements):
            lines = subject.lines(node) if isinstance(node, SIMPLE) and not is_text(node) else None
            if lines is not None and "\n" not in subject.cut(lines):
                yield from _moved_past(subject, node, lines, block.statements[place + 1 : place + 1 + _FAR])


def _moved_past(
    subject: CorruptionTarget, node: ast.stmt, lines: tuple[int, int], after: Sequence[ast.stmt]
) -> Iterator[Edits]:
    for number in range(2, len(after) + 1):
        *between, last = after[:number]
        span = lines_of(subject, after[:number])
        if span is None or isinstance(last, LEAVING):
            return
        # A line that is moved to the end of another paragraph would be noticed.
        if "\n\n" in subject.text[lines[1] : span[1]]:
            return
        # The line can pass the statements in between only if its order with them does not matter; only the
        # last one depends on it.
        concerns_earlier = any(meet(node, item) for item in between)
        if meet(node, last) and not concerns_earlier:
            edit = TextEdit(span[1], span[1], f"\n{subject.cut(lines)}")
            yield TextEdit(lines[0], lines[1] + 1, ""), edit


def stale_value(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that read a value once and keep it in a variable, although it changes in between."""
    taken = {item.id for item in subject.of(ast.Name)} | parameters(subject.node) | subject.scope.known
    for block in subject.blocks:
        for uses in _reads(subject, block):
            if 2 <= len(uses) <= _FAR:
                yield from _read_once(subject, block, uses, taken)


def _reads(subject: CorruptionTarget, block: StatementBlock) -> list[list[_Use]]:
    """Return the places that read the same value, for each value that can be kept."""
    reads: dict[str, list[_Use]] = {}
    for place, statement in enumerate(block.statements):
        for item in inside(ast.expr, statement):
            if _is_kept(subject, item):
                reads.setdefault(ast.unparse(item), []).append((place, item))
    return list(reads.values())


def _read_once(
    subject: CorruptionTarget, block: StatementBlock, uses: Sequence[_Use], taken: set[str]
) -> Iterator[Edits]:
    nodes = sorted((node for _, node in uses), key=lambda node: (node.lineno, node.col_offset))
    first = block.statements[min(place for place, _ in uses)]
    name, space = _name_for(nodes[0], taken), margin(subject, first)
    if name and space and _changed(nodes[0], _statements_between(subject, nodes[0], nodes[-1])):
        start = subject.span(first)[0]
        made = TextEdit(start, start, f"{name} = {subject.source(nodes[0])}\n{space}")
        yield made, *(TextEdit(*subject.span(node), name) for node in nodes)


def _statements_between(subject: CorruptionTarget, first: ast.expr, last: ast.expr) -> list[ast.stmt]:
    """Return the statements that end between the starts of two expressions."""
    low, high = subject.span(first)[0], subject.span(last)[0]
    return [node for node in subject.of(ast.stmt) if low < subject.span(node)[1] <= high]


def _is_kept(subject: CorruptionTarget, node: ast.expr) -> bool:
    """Return whether a node reads, as a value, an attribute of `self` or the length of something."""
    match node, subject.parents.get(node):
        case _, None | ast.Attribute() | ast.AugAssign() | ast.Subscript():
            return False
        case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Load()), parent:
            return not (isinstance(parent, ast.Call) and parent.func is node)
    return is_call_to(node, "len")


def _name_for(node: ast.expr, taken: set[str]) -> str:
    """Return a name for a value that no other variable has; empty if there is none."""
    names = (node.attr.strip("_"),) if isinstance(node, ast.Attribute) else _LENGTHS
    return next((name for name in names if name not in taken), "")


def _changed(node: ast.expr, between: Sequence[ast.stmt]) -> bool:
    """Return whether statements change a value or its owner (see `stores`), or call a method of `self`."""
    value = node.args[0] if isinstance(node, ast.Call) else node
    owner = ast.unparse(value.value) if isinstance(value, ast.Attribute) else ""
    stored = frozenset[str]().union(*map(stores, between))
    if not stored.isdisjoint((ast.unparse(value), owner)):
        return True
    return owner == "self" and any(map(_calls_own, between))


def _calls_own(statement: ast.stmt) -> bool:
    called = only(ast.Attribute, (call.func for call in inside(ast.Call, statement)))
    return "self" in texts_of(function.value for function in called)


# Faults of timing keep a low prior: they are meant for functions in which nothing else is found (decision
# 93).
OPERATORS = (
    Operator("early reset", 0.05, early_reset),
    Operator("lost break", 0.2, lost_break),
    Operator("lost finally", 0.2, lost_finally),
    Operator("wider try", 0.1, wider_try),
    Operator("other time", 0.03, other_time),
    Operator("stale value", 0.04, stale_value),
)
