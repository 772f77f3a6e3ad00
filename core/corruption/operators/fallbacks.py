"""Faults in what wins: a default for values that are false, the wrong of two sources, the first for the last."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import is_one_line, is_open, margin, names_in, step_of
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_ALONE = (ast.Assign, ast.AnnAssign, ast.Return, ast.keyword, ast.Call)
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_OF_MAPPINGS = frozenset({"get", "items", "keys", "values", "setdefault", "update"})
_WITH_DEFAULT: Mapping[str, int] = {"get": 2, "getattr": 3}


def falsy_default(subject: CorruptionTarget) -> Iterator[Edits]:
    """`a or b` where only None, or only a missing key, has a default."""
    for call in subject.of(ast.Call):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if _WITH_DEFAULT.get(name) != len(call.args) or call.keywords or not _stands(subject, call):
            continue
        default = call.args[-1]
        if not (isinstance(default, ast.Constant) and not default.value) and not is_open(default):
            start, end = subject.span(call.args[-2])[1], subject.span(call)[1]
            given = ", None" if name == "getattr" else ""
            yield (TextEdit(start, end, f"{given}) or {subject.source(default)}"),)
    for choice in subject.of(ast.IfExp):
        there = _unless_none(choice.test, choice.body, choice.orelse)
        if there is not None and _stands(subject, choice) and is_one_line(subject, choice):
            yield subject.replaced(choice, f"{subject.source(there[0])} or {subject.source(there[1])}")
    for node in subject.of(ast.If):
        done = node.body[0]
        if node.orelse or len(node.body) > 1 or not isinstance(done, ast.Assign) or not is_one_line(subject, done):
            continue
        found = _unless_none(node.test, None, done.value)
        alike = found and len(done.targets) == 1 and ast.unparse(done.targets[0]) == ast.unparse(found[0])
        if found and alike and subject.lines(node) and isinstance(found[1], _PLAIN):
            text = subject.source(found[0])
            yield subject.replaced(node, f"{text} = {text} or {subject.source(found[1])}")


def _unless_none(test: ast.expr, body: ast.expr | None, orelse: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return a value and what stands in for it if it is None; None if a condition asks for something else."""
    if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name | ast.Attribute)):
        return None
    of = test.comparators[0]
    if not (isinstance(of, ast.Constant) and of.value is None):
        return None
    if body is None:
        return (test.left, orelse) if isinstance(test.ops[0], ast.Is) else None
    given, other = (orelse, body) if isinstance(test.ops[0], ast.Is) else (body, orelse)
    return (given, other) if ast.unparse(given) == ast.unparse(test.left) and not is_open(other) else None


def _stands(subject: CorruptionTarget, node: ast.expr) -> bool:
    """Whether an expression can become an `or` without parentheses."""
    parent = subject.parent(node)
    return isinstance(parent, _ALONE) and node is not getattr(parent, "func", None)


def first_wins(subject: CorruptionTarget) -> Iterator[Edits]:
    """Of several values for one key the first kept instead of the last, and back."""
    mappings = _mappings(subject)
    for block in subject.blocks:
        for node in block.statements:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and subject.lines(node):
                yield from _stored_once(subject, node, mappings)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_one_line(subject, node):
                call = node.value
                if isinstance(call.func, ast.Attribute) and call.func.attr == "setdefault" and len(call.args) == 2:
                    of, key, value = (subject.source(item) for item in (call.func.value, *call.args))
                    yield subject.replaced(node, f"{of}[{key}] = {value}")


def _stored_once(subject: CorruptionTarget, node: ast.Assign, mappings: frozenset[str]) -> Iterator[Edits]:
    place = node.targets[0]
    if not isinstance(place, ast.Subscript) or not isinstance(place.slice, ast.Name | ast.Attribute | ast.Tuple):
        return
    looped = any(isinstance(item, ast.For | ast.While) for item in subject.around(node))
    of, key = subject.source(place.value), subject.source(place.slice)
    if not looped or ast.unparse(place.value) not in mappings or not is_one_line(subject, node):
        return
    if _of_distinct_keys(subject, node):
        return
    value, space = subject.source(node.value), margin(subject, node)
    if isinstance(node.value, ast.Name | ast.Attribute | ast.Constant | ast.Call):
        yield subject.replaced(node, f"{of}.setdefault({key}, {value})")
    if space and not names_in(node.value) & names_in(place.value):
        start = subject.span(node)[0]
        yield (TextEdit(start, start, f"if {key} not in {of}:\n{space}{step_of(subject)}"),)


def _of_distinct_keys(subject: CorruptionTarget, node: ast.stmt) -> bool:
    """Whether the loop around a statement goes through the items of a mapping, whose keys differ."""
    loop = next((item for item in subject.around(node) if isinstance(item, ast.For)), None)
    called = loop.iter.func if loop is not None and isinstance(loop.iter, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("items", "keys")


def _mappings(subject: CorruptionTarget) -> frozenset[str]:
    """Return the variables and attributes that are used as mappings."""
    found = {ast.unparse(node.value) for node in subject.of(ast.Attribute) if node.attr in _OF_MAPPINGS}
    for node in subject.of(ast.Assign):
        value = node.value
        if isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict"):
            found |= {ast.unparse(target) for target in node.targets}
    return frozenset(found)


def lost_clamp(subject: CorruptionTarget) -> Iterator[Edits]:
    """A value without its upper or lower limit: `n` for `min(n, most)`."""
    for node in subject.of(ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in ("min", "max") or len(node.args) != 2:
            continue
        if node.keywords or isinstance(subject.parent(node), ast.BinOp | ast.Expr):
            continue
        for value in node.args:
            if not isinstance(value, ast.Constant | ast.Starred):
                yield subject.replaced(node, subject.source(value))


OPERATORS = (
    Operator("falsy default", 0.4, falsy_default, in_rewritten=True),
    Operator("first wins", 0.1, first_wins),
    Operator("lost clamp", 0.1, lost_clamp),
)
