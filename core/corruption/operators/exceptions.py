"""Faults in handling errors: one kind no longer caught, more kinds caught, an error swallowed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_PARTS: Mapping[str, str] = {
    "LookupError": "KeyError",
    "OSError": "FileNotFoundError",
    "Exception": "ValueError",
    "ArithmeticError": "ZeroDivisionError",
    "ImportError": "ModuleNotFoundError",
    "BaseException": "Exception",
}


def narrowed(subject: CorruptionTarget) -> Iterator[Edits]:
    """One of the kinds of error that a handler names left out."""
    for node in subject.of(ast.ExceptHandler):
        if not isinstance(node.type, ast.Tuple) or len(node.type.elts) < 2:
            continue
        kinds = node.type.elts
        for place in range(len(kinds)):
            rest = [subject.source(kind) for other, kind in enumerate(kinds) if other != place]
            yield subject.replaced(node.type, rest[0] if len(rest) == 1 else f"({', '.join(rest)})")


def part_of_error(subject: CorruptionTarget) -> Iterator[Edits]:
    """Only a part of the errors caught: `KeyError` for `LookupError`."""
    for node in subject.of(ast.ExceptHandler):
        if isinstance(node.type, ast.Name) and node.type.id in _PARTS:
            yield subject.replaced(node.type, _PARTS[node.type.id])


def widened(subject: CorruptionTarget) -> Iterator[Edits]:
    """Every error caught instead of one kind."""
    for node in subject.of(ast.ExceptHandler):
        if isinstance(node.type, ast.Name) and node.type.id not in ("Exception", "BaseException"):
            yield subject.replaced(node.type, "Exception")


def swallowed(subject: CorruptionTarget) -> Iterator[Edits]:
    """An error that is no longer raised again at the end of its handler."""
    for node in subject.of(ast.ExceptHandler):
        if len(node.body) > 1 and isinstance(node.body[-1], ast.Raise):
            yield from deleted(subject, node.body[-1])
        for item in node.body if len(node.body) > 1 else ():
            if isinstance(item, ast.If) and isinstance(item.body[0], ast.Raise) and not item.orelse:
                yield from deleted(subject, item)


def else_into_try(subject: CorruptionTarget) -> Iterator[Edits]:
    """The `else` block of a `try` moved inside it, so that its errors are also caught."""
    for node in subject.of(ast.Try):
        if len(node.orelse) != 1 or node.finalbody:
            continue
        lines, last = subject.lines(node.orelse[0]), subject.lines(node.body[-1])
        if lines is None or last is None:
            continue
        start = subject.text.rfind("\n", 0, lines[0] - 1)
        if subject.text[start : lines[0]].strip() == "else:":
            yield TextEdit(last[1], last[1], "\n" + subject.text[slice(*lines)]), TextEdit(start, lines[1], "")


OPERATORS = (
    Operator("narrowed exception", 0.25, narrowed),
    Operator("narrowed exception", 0.25, part_of_error),
    Operator("widened exception", 0.1, widened),
    Operator("swallowed exception", 0.1, swallowed),
    Operator("widened exception", 0.1, else_into_try),
)
