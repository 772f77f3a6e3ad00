"""Faults in what is let through: cases in the wrong order, a condition that asks for more, a guard too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import (
    LEAVING,
    is_one_line,
    is_open,
    lines_of,
    margin,
    names_in,
    step_of,
)
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_ADDED = 2
"""Most conditions that are added to one."""


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


def narrowed_condition(subject: CorruptionTarget) -> Iterator[Edits]:
    """A second condition, one that the function asks elsewhere, about a value that the branch uses."""
    given = {item.arg for item in ast.walk(subject.node.args) if isinstance(item, ast.arg)} - {"self", "cls"}
    asked: dict[str, ast.expr] = {}
    for choice in subject.of(ast.If):
        for test in choice.test.values if isinstance(choice.test, ast.BoolOp) else [choice.test]:
            if _is_flag(test) and names_in(test) <= given | {"self"} and is_one_line(subject, test):
                asked.setdefault(subject.source(test), test)
    for choice in subject.of(ast.If):
        around = [choice, *(item for item in subject.around(choice) if isinstance(item, ast.If))]
        known = frozenset[str]().union(*(_values(item.test) for item in around))
        read = frozenset[str]().union(*(_values(item) for item in choice.body))
        fitting = [text for text, test in asked.items() if _values(test) <= read and not _values(test) & known]
        if not is_one_line(subject, choice.test) or is_open(choice.test):
            continue
        end = subject.operand(choice.test)[1]
        for text in fitting[:_ADDED]:
            yield (TextEdit(end, end, f" and {text}"),)


def _is_flag(test: ast.expr) -> bool:
    """Whether a condition asks whether one value is there."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare):
        of = test.comparators[0]
        return isinstance(of, ast.Constant) and of.value is None and isinstance(test.left, ast.Name | ast.Attribute)
    return isinstance(test, ast.Name | ast.Attribute)


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
    Operator("narrowed condition", 0.03, narrowed_condition),
    Operator("added guard", 0.05, added_guard),
)
