"""Finds values that code uses although a condition shows that they are absent or have another type.

Conditions are read as statements about presence and type, for both of their outcomes in one walk (decision
62): `truth` is the outcome that is examined. `giveaways.py` counts what is found.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from gistpoint.core.code.nodes import inside, only
from gistpoint.core.corruption.naming import identifiers, of_one_stem, words
from gistpoint.core.corruption.shapes import TESTING, is_all_of, is_guard, is_none

_ALIKE, _APART = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)
"""Comparisons that hold for equal values or for members, and those that hold for all others."""
_VARIABLES: tuple[type[ast.Name | ast.Attribute | ast.Subscript], ...] = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
)
_PARTS: tuple[type[ast.Attribute | ast.Subscript], ...] = (ast.Attribute, ast.Subscript)
_BRANCHING: tuple[type[ast.If | ast.IfExp], ...] = (ast.If, ast.IfExp)
_LEAST_WORD = 4
"""The minimum length of a word whose mention counts as a use."""
_WORDS = {
    True: ("though not there", "though of no such kind"),
    False: ("though not there, else", "though not there, else"),
}
"""The words for an absent value and for a value of another type, by whether the condition is true."""


def uses_despite_condition(node: ast.AST) -> Iterator[str]:
    """Yield a finding for each value that a node reads although the node's condition says it is absent."""
    if isinstance(node, ast.BoolOp):
        truth = is_all_of(node)
        for index, test in enumerate(node.values[:-1]):
            later = _walked(node.values[index + 1 :])
            for value in _missing(test, truth=truth):
                if _reads(later, value):
                    yield f"{value} though not there"
    if isinstance(node, TESTING):
        yield from _contradictions(node.test, True, _as_list(node.body), *_WORDS[True])
        yield from _contradictions(node.test, False, _as_list(node.orelse), *_WORDS[False])


def uses_despite_return(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding for each value used after an `if` that leaves the block if the value is present."""
    for index, node in enumerate(block):
        if is_guard(node):
            later = block[index + 1 :]
            yield from _contradictions(
                node.test, False, later, "though not there, after", "of no such kind, after"
            )


def _contradictions(
    test: ast.expr, truth: bool, code: Sequence[ast.AST], if_absent: str, if_other_type: str
) -> Iterator[str]:
    """Yield a finding for each value that code uses although a test shows it is absent or of another type.

    `truth` is the outcome of the test; `if_absent` and `if_other_type` are the words that follow the value.
    """
    missing, of_other_type = _missing(test, truth=truth), _of_other_type(test, truth=truth)
    yield from (f"{value} {if_absent}" for value in missing if _used(code, value))
    yield from (f"{value} {if_other_type}" for value in of_other_type if _parts_read(code, value))


def tested_and_read(nodes: Iterable[ast.AST]) -> tuple[Counter[str], Counter[str]]:
    """Return, by value, how many conditions test its presence, and how many of their branches read it.

    If a branch reads a different value from the one tested, a reader sees that one of them was exchanged.
    """
    tested, read = Counter[str](), Counter[str]()
    for node in only(_BRANCHING, nodes):
        branch = _walked(_as_list(node.body))
        for value in {*_tested(node.test)}:
            tested[value] += 1
            read[value] += int(_reads(branch, value))
    return tested, read


def _tested(test: ast.expr) -> Iterator[str]:
    """Yield the values that a condition tests for presence: those that are absent if it is false.

    For `a and b`, these are both values; for `a is not b`, it is `a`, whatever `b` is.
    """
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _tested(value)
        case ast.Compare(left=left, ops=[ast.IsNot(), *_]):
            yield from _value_text(left)
        case _:
            yield from _missing(test, truth=False)


def _missing(test: ast.expr, *, truth: bool) -> Iterator[str]:
    """Yield the values that are None, empty or absent if the condition is `truth`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _missing(operand, truth=not truth)
        case ast.Compare(left=left, ops=[sign, *_], comparators=[right, *_]):
            yield from _missing_by(left, sign, right, truth)
        case ast.BoolOp(op=operator, values=values):
            # `a and b` decides both if it is true, `a or b` if it is false.
            decides_all = ast.And if truth else ast.Or
            if isinstance(operator, decides_all):
                yield from chain.from_iterable(_missing(value, truth=truth) for value in values)
        case _ if truth:  # a value that is truthy is not absent
            return
        case ast.Call(func=ast.Name(id="hasattr")):
            yield from filter(None, [_attribute(test)])
        case _:
            yield from _value_text(test)


def _missing_by(left: ast.expr, sign: ast.cmpop, right: ast.expr, truth: bool) -> Iterator[str]:
    """Yield the value that is absent if a comparison is `truth`: one equal to None, or an item."""
    absent_sign, outside_sign = (ast.Is, ast.NotIn) if truth else (ast.IsNot, ast.In)
    if is_none(right) and isinstance(sign, absent_sign):
        yield from _value_text(left)
        return
    key, owner = _text(left), _text(right)
    if isinstance(sign, outside_sign) and key and owner:
        yield f"{owner}[{key}]"


def _of_other_type(test: ast.expr, *, truth: bool) -> Iterator[str]:
    """Yield the values that are not of the type that the condition tests for, if the condition is `truth`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _of_other_type(operand, truth=not truth)
        case ast.Call(func=ast.Name(id="isinstance"), args=args) if not truth:
            yield from _value_text(args[0])
        case ast.Compare(left=ast.Call(func=ast.Name(id="type"), args=[value, *_]), ops=[sign, *_]):
            # `type(x) in (int, str)` also tests for types.
            excluding = _APART if truth else _ALIKE
            if isinstance(sign, excluding):
                yield from _value_text(value)


def _value_text(node: ast.expr) -> Iterator[str]:
    """Yield the text of a variable, an attribute or an item; nothing for anything else."""
    text = _text(node)
    if text and not isinstance(node, ast.Constant):
        yield text


def _text(node: ast.AST) -> str:
    """Return the text of a name, a constant, an attribute or an item; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return repr(value)
        case ast.Attribute(value=owner, attr=name):
            return _text_of_attribute(owner, name)
        case ast.Call(func=ast.Name(id="getattr")):
            return _attribute(node)
        case ast.Subscript(value=owner, slice=item):
            text, key = _text(owner), _text(item)
            return f"{text}[{key}]" if text and key else ""
    return ""


def _text_of_attribute(owner: ast.expr, name: object) -> str:
    text = _text(owner)
    return f"{text}.{name!s}" if text else ""


def _attribute(call: ast.expr) -> str:
    """Return the attribute of a `getattr` or `hasattr` with a literal name; empty for other calls."""
    match call:
        case ast.Call(args=[owner, ast.Constant(value=name), *_]):
            return _text_of_attribute(owner, name)
    return ""


def _used(nodes: Iterable[ast.AST], value: str) -> bool:
    """Return whether code reads a value before it binds it, or mentions its name."""
    nodes_before = _until_bound(nodes, value)
    return _mentions(nodes_before, value) or _reads(nodes_before, value)


def _mentions(nodes: Iterable[ast.AST], value: str) -> bool:
    """Return whether a name contains the last word of a value's text, as `show_header` does for `header`."""
    # A variable used as an item's key says nothing about the item.
    by_variable = value.endswith("]") and value[-2:-1] not in "'\""
    if by_variable:
        return False
    # Values are source text, such as `self.header['k']`.
    last = words(value)[-1:]
    if len("".join(last)) < _LEAST_WORD:
        return False
    return any(of_one_stem(last, words(name)) for name in identifiers(nodes))


def _parts_read(nodes: Iterable[ast.AST], value: str) -> bool:
    """Return whether code reads an attribute or an item of a value before it binds it."""
    parts = only(_PARTS, _until_bound(nodes, value))
    return any(_text(node.value) == value for node in parts if isinstance(node.ctx, ast.Load))


def _until_bound(nodes: Iterable[ast.AST], value: str) -> list[ast.AST]:
    """Return the nodes up to the first statement that binds a value, and that statement if it is simple."""
    # An assignment to `x` also replaces `x.y`.
    places = (value, value.split(".")[0].split("[")[0])
    found: list[ast.AST] = []
    for root in nodes:
        inner = list(ast.walk(root))
        if not _stores_to(inner, places):
            found += inner
            continue
        # A compound statement may read a value before or after it binds it: none of its nodes count.
        is_compound = isinstance(root, ast.stmt) and hasattr(root, "body")
        return found if is_compound else found + inner
    return found


def _stores_to(nodes: Iterable[ast.AST], places: tuple[str, ...]) -> bool:
    """Return whether one of the nodes stores to one of the places."""
    stored = (node for node in only(_VARIABLES, nodes) if not isinstance(node.ctx, ast.Load))
    return any(_text(node) in places for node in stored)


def _reads(nodes: Iterable[ast.AST], value: str) -> bool:
    return any(_text(node) == value for node in only(_VARIABLES, nodes) if isinstance(node.ctx, ast.Load))


def _walked(roots: Iterable[ast.AST]) -> list[ast.AST]:
    return list(inside(ast.AST, *roots))


def _as_list(branch: ast.expr | list[ast.stmt]) -> list[ast.expr] | list[ast.stmt]:
    return branch if isinstance(branch, list) else [branch]
