"""Faults in error handling: fewer or more exceptions caught, or an error swallowed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import without
from gistpoint.core.corruption.subject import CorruptionTarget

_PARTS: Mapping[str, str] = {
    "LookupError": "KeyError",
    "OSError": "FileNotFoundError",
    "Exception": "ValueError",
    "ArithmeticError": "ZeroDivisionError",
    "ImportError": "ModuleNotFoundError",
    "BaseException": "Exception",
}


@at_each(ast.ExceptHandler)
def narrowed(subject: CorruptionTarget, node: ast.ExceptHandler) -> Iterator[Edits]:
    """Yield edits that leave out one of the exceptions that a handler names."""
    match node.type:
        case ast.Tuple(elts=[_, _, *_] as kinds) as listed:
            for place in range(len(kinds)):
                rest = [subject.source(kind) for kind in without(kinds, place)]
                yield subject.replaced(listed, rest[0] if len(rest) == 1 else f"({', '.join(rest)})")


@at_each(ast.ExceptHandler)
def part_of_error(subject: CorruptionTarget, node: ast.ExceptHandler) -> Iterator[Edits]:
    """Yield edits that catch only a part of the exceptions: `KeyError` for `LookupError`."""
    match node.type:
        case ast.Name(id=name) as kind if name in _PARTS:
            yield subject.replaced(kind, _PARTS[name])


@at_each(ast.ExceptHandler)
def widened(subject: CorruptionTarget, node: ast.ExceptHandler) -> Iterator[Edits]:
    """Yield edits that catch `Exception` instead of a narrower class."""
    match node.type:
        case ast.Name(id=name) as kind if name not in ("Exception", "BaseException"):
            yield subject.replaced(kind, "Exception")


@at_each(ast.ExceptHandler)
def swallowed(subject: CorruptionTarget, node: ast.ExceptHandler) -> Iterator[Edits]:
    """Yield edits that leave out a `raise` at the end of a handler, or an `if` whose branch raises."""
    match node.body:
        case [_, *_, ast.Raise() as last]:
            yield from deleted(subject, last)
    for item in node.body if len(node.body) > 1 else ():
        match item:
            case ast.If(body=[ast.Raise(), *_], orelse=[]):
                yield from deleted(subject, item)


@at_each(ast.Try)
def else_into_try(subject: CorruptionTarget, node: ast.Try) -> Iterator[Edits]:
    """Yield edits that move the `else` block of a `try` inside it, so that its errors are also caught."""
    match node:
        case ast.Try(body=[*_, last], orelse=[following], finalbody=[]):
            yield from _moved_up(subject, following, last)


def _moved_up(subject: CorruptionTarget, following: ast.stmt, last: ast.stmt) -> Iterator[Edits]:
    lines, own = subject.lines(following), subject.lines(last)
    if lines is None or own is None:
        return
    start = subject.text.rfind("\n", 0, lines[0] - 1)
    if subject.text[start : lines[0]].strip() == "else:":
        yield TextEdit(own[1], own[1], f"\n{subject.cut(lines)}"), TextEdit(start, lines[1], "")


OPERATORS = (
    Operator("narrowed exception", 0.25, narrowed),
    Operator("narrowed exception", 0.25, part_of_error),
    Operator("widened exception", 0.1, widened),
    Operator("swallowed exception", 0.1, swallowed),
    Operator("widened exception", 0.1, else_into_try),
)
