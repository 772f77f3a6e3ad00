"""Faults in what is let through: cases in the wrong order, a guard too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import (
    LEAVING,
    lines_of,
    margin,
    step_of,
)
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget


def case_order(subject: CorruptionTarget) -> Iterator[Edits]:
    """Two neighbouring cases, of an `if` with `elif` or that each leave, asked in the other order."""
    for choice in subject.of(ast.If):
        after = choice.orelse
        if len(after) == 1 and isinstance(after[0], ast.If) and subject.source(after[0]).startswith("elif"):
            yield from _exchanged(subject, choice, after[0])
    for block in subject.blocks:
        for first, second in zip(block.statements, block.statements[1:], strict=False):
            if not (isinstance(first, ast.If) and isinstance(second, ast.If)) or first.orelse or second.orelse:
                continue
            if isinstance(first.body[-1], LEAVING) and isinstance(second.body[-1], LEAVING):
                yield from _exchanged(subject, first, second)


def _exchanged(subject: CorruptionTarget, first: ast.If, second: ast.If) -> Iterator[Edits]:
    bodies = lines_of(subject, first.body), lines_of(subject, second.body)
    if bodies[0] is None or bodies[1] is None or _exclusive(first.test, second.test):
        return
    tests = subject.operand(first.test), subject.operand(second.test)
    if any("\n" in subject.text[slice(*span)] for span in tests):
        return
    yield tuple(
        TextEdit(*here, subject.text[slice(*there)])
        for here, there in (tests, tests[::-1], (bodies[0], bodies[1]), (bodies[1], bodies[0]))
    )


def _exclusive(first: ast.expr, second: ast.expr) -> bool:
    """Whether two conditions compare one value with constants, so that at most one holds in any order."""
    if not (isinstance(first, ast.Compare) and isinstance(second, ast.Compare)):
        return False
    kinds = (ast.Eq, ast.Is, ast.NotEq, ast.IsNot)
    plain = all(len(test.ops) == 1 and isinstance(test.ops[0], kinds) for test in (first, second))
    return plain and ast.unparse(first.left) == ast.unparse(second.left)


def _values(test: ast.AST) -> frozenset[str]:
    """Return the variables and attributes in code."""
    found = (item for item in ast.walk(test) if isinstance(item, ast.Name | ast.Attribute))
    return frozenset(ast.unparse(item) for item in found) - {"self"}


def added_guard(subject: CorruptionTarget) -> Iterator[Edits]:
    """What is empty or 0 passed over at the start of a loop."""
    for loop in subject.of(ast.For):
        target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
        first, space = loop.body[0], margin(subject, loop.body[0])
        if not isinstance(target, ast.Name) or not space or target.id.startswith("_") or len(loop.body) < 2:
            continue
        if isinstance(first, ast.If) and target.id in _values(first.test):
            continue
        start = subject.span(first)[0]
        guard = f"if not {target.id}:\n{space}{step_of(subject)}continue\n{space}"
        yield (TextEdit(start, start, guard),)


OPERATORS = (
    Operator("case order", 0.05, case_order),
    Operator("added guard", 0.05, added_guard),
)
