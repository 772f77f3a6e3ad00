"""Faults in precedence: defaults for all falsy values, the first value instead of the last, lost limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import is_open, margin, step_of
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import (
    LOOPS,
    NAMED,
    is_call_to,
    is_none,
    is_one_line,
    name_of,
    names_in,
    texts_of,
)
from gistpoint.core.corruption.subject import CorruptionTarget

_ALONE = (ast.Assign, ast.AnnAssign, ast.Return, ast.keyword, ast.Call)
_PLAIN = (*NAMED, ast.Constant, ast.Call)
_OF_MAPPINGS = frozenset({"get", "items", "keys", "values", "setdefault", "update"})
_WITH_DEFAULT: Mapping[str, int] = {"get": 2, "getattr": 3}


# `or` for a default is a weaker idiom that is also common (decision 93).
def falsy_default(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that write `a or b` where only None, or only a missing key or attribute, gets a default."""
    yield from _or_for_missing(subject)
    yield from _or_for_choice(subject)
    yield from _or_for_branch(subject)


@at_each(ast.Call)
def _or_for_missing(subject: CorruptionTarget, call: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace `x.get(key, y)` with `x.get(key) or y`."""
    name = name_of(call.func)
    has_default = _WITH_DEFAULT.get(name) == len(call.args) and not call.keywords
    if not has_default or not _can_become_or(subject, call):
        return
    *_, before, default = call.args
    # A falsy default is left alone: `or` with it changes hardly anything.
    is_falsy = isinstance(default, ast.Constant) and not default.value
    if not is_falsy and not is_open(default):
        default_of_getattr = ", None" if name == "getattr" else ""
        yield subject.replaced_after(before, call, f"{default_of_getattr}) or {subject.source(default)}")


@at_each(ast.IfExp)
def _or_for_choice(subject: CorruptionTarget, choice: ast.IfExp) -> Iterator[Edits]:
    """Yield edits that replace `y if x is None else x` with `x or y`."""
    operands = _unless_none(choice)
    if operands is None or not is_one_line(choice):
        return
    if _can_become_or(subject, choice):
        yield subject.replaced(choice, " or ".join(map(subject.source, operands)))


def _unless_none(choice: ast.IfExp) -> tuple[ast.expr, ast.expr] | None:
    """Return `x` and `y` of `y if x is None else x`; None for other choices, or if `y` needs parentheses."""
    match choice.test:
        case ast.Compare(left=ast.Name() | ast.Attribute() as value, ops=[kind, *_], comparators=[asked, *_]):
            given, other = choice.body, choice.orelse
            if isinstance(kind, ast.Is):
                given, other = other, given
            usable = is_none(asked) and not is_open(other)
            return (given, other) if usable and ast.unparse(given) == ast.unparse(value) else None
    return None


@at_each(ast.If)
def _or_for_branch(subject: CorruptionTarget, node: ast.If) -> Iterator[Edits]:
    """Yield edits that replace `if x is None: x = y` with `x = x or y`."""
    match node:
        case ast.If(
            test=ast.Compare(
                left=ast.Name() | ast.Attribute() as value,
                ops=[ast.Is(), *_],
                comparators=[ast.Constant(value=None), *_],
            ),
            body=[
                ast.Assign(
                    targets=[target],
                    value=ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call() as default,
                ) as done
            ],
            orelse=[],
        ) if is_one_line(done) and subject.lines(node):
            if ast.unparse(target) == ast.unparse(value):
                text = subject.source(value)
                yield subject.replaced(node, f"{text} = {text} or {subject.source(default)}")


def _can_become_or(subject: CorruptionTarget, node: ast.expr) -> bool:
    """Return whether an expression can become an `or` without parentheses."""
    parent = subject.parent(node)
    return isinstance(parent, _ALONE) and node is not getattr(parent, "func", None)


def first_wins(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that keep the first of several values for a key instead of the last, and vice versa."""
    mappings = _mappings(subject)
    for node in subject.statements():
        match node:
            case ast.Assign(targets=[ast.Subscript() as place]) if subject.lines(node) and is_one_line(node):
                if _is_repeated(subject, node, place, mappings):
                    yield from _stored_once(subject, node, place)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=[key, value])
            ):
                if is_one_line(node):
                    of, name, text = map(subject.source, (owner, key, value))
                    yield subject.replaced(node, f"{of}[{name}] = {text}")


def _is_repeated(
    subject: CorruptionTarget, node: ast.stmt, place: ast.Subscript, mappings: frozenset[str]
) -> bool:
    """Return whether a loop stores in a mapping by a key that may occur again.

    Otherwise the first value and the last would be the same.
    """
    if not isinstance(place.slice, ast.Name | ast.Attribute | ast.Tuple):
        return False
    if ast.unparse(place.value) not in mappings:
        return False
    in_loop = subject.nearest(node, LOOPS) is not None
    return in_loop and not _of_distinct_keys(subject, node)


def _stored_once(subject: CorruptionTarget, node: ast.Assign, place: ast.Subscript) -> Iterator[Edits]:
    of, key, value = map(subject.source, (place.value, place.slice, node.value))
    space = margin(subject, node)
    if isinstance(node.value, _PLAIN):
        yield subject.replaced(node, f"{of}.setdefault({key}, {value})")
    if space and not names_in(node.value) & names_in(place.value):
        start = subject.span(node)[0]
        yield (TextEdit(start, start, f"if {key} not in {of}:\n{space}{step_of(subject)}"),)


def _of_distinct_keys(subject: CorruptionTarget, node: ast.stmt) -> bool:
    """Return whether the loop around a statement iterates over the items of a mapping, whose keys differ."""
    match subject.nearest(node, ast.For):
        case ast.For(iter=ast.Call(func=ast.Attribute(attr="items" | "keys"))):
            return True
    return False


def _mappings(subject: CorruptionTarget) -> frozenset[str]:
    """Return the variables and attributes that are used as mappings."""
    found = texts_of(node.value for node in subject.of(ast.Attribute) if node.attr in _OF_MAPPINGS)
    for node in subject.of(ast.Assign):
        if isinstance(node.value, ast.Dict) or is_call_to(node.value, "dict"):
            found |= texts_of(node.targets)
    return found


@at_each(ast.Call)
def lost_clamp(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that leave out the upper or lower limit of a value: `n` for `min(n, most)`."""
    match node:
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _] as values, keywords=[]):
            if not isinstance(subject.parent(node), ast.BinOp | ast.Expr):
                yield from _unlimited(subject, node, values)


def _unlimited(subject: CorruptionTarget, node: ast.Call, values: list[ast.expr]) -> Iterator[Edits]:
    for value in values:
        if not isinstance(value, ast.Constant | ast.Starred):
            yield subject.replaced(node, subject.source(value))


OPERATORS = (
    Operator("falsy default", 0.4, falsy_default, in_rewritten=True),
    Operator("first wins", 0.1, first_wins),
    Operator("lost clamp", 0.1, lost_clamp),
)
