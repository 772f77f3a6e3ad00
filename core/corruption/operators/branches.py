"""Faults in the flow: a case lost, a guard lost, `elif` for `if`, `break` for `continue`, a line in the wrong block."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import margin, shifted
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget, StatementBlock

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def lost_case(subject: CorruptionTarget) -> Iterator[Edits]:
    """An early return, a branch of several or a `case` left out."""
    for block in subject.blocks:
        for node in block.statements[:-1]:
            if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVING):
                yield from deleted(subject, node)
    for choice in subject.of(ast.If):
        after = choice.orelse
        if len(after) == 1 and isinstance(after[0], ast.If) and _keyword(subject, after[0]) == "elif":
            yield from _branch_dropped(subject, after[0])
            if _keyword(subject, choice) == "if":
                start, second = subject.span(choice)[0], subject.span(after[0])[0]
                yield (TextEdit(start, second + len("el"), ""),)
    for match in subject.of(ast.Match):
        for case in match.cases[:-1]:
            start = subject.text.rfind("\n", 0, subject.span(case.body[0])[0])
            first = _line_of_case(subject, case, start)
            end = subject.text.find("\n", subject.span(case.body[-1])[1])
            if first is not None and end > 0 and len(match.cases) > 2:
                yield (TextEdit(first, end + 1, ""),)


def lost_guard(subject: CorruptionTarget) -> Iterator[Edits]:
    """The statement of a one-line `if`, always executed."""
    for choice in subject.of(ast.If):
        if choice.orelse or len(choice.body) != 1 or _keyword(subject, choice) != "if":
            continue
        inner = subject.lines(choice.body[0])
        if inner is None or isinstance(choice.body[0], _LEAVING):
            continue
        text = shifted(subject.text[slice(*inner)], margin(subject, choice.body[0]), margin(subject, choice))
        if text and not _replaces(choice):
            yield (TextEdit(subject.text.rfind("\n", 0, subject.span(choice)[0]) + 1, inner[1], text),)


def _replaces(choice: ast.If) -> bool:
    """Whether the body assigns to a value that the condition tests: without the condition it would be lost."""
    tested = {ast.unparse(item) for item in ast.walk(choice.test) if isinstance(item, ast.Name | ast.Attribute)}
    done = choice.body[0]
    return isinstance(done, ast.Assign) and any(
        ast.unparse(item) in tested
        for target in done.targets
        for item in (target.elts if isinstance(target, ast.Tuple) else [target])
    )


def break_continue(subject: CorruptionTarget) -> Iterator[Edits]:
    """`break` for `continue`, and back."""
    for node in subject.nodes:
        if isinstance(node, ast.Break | ast.Continue):
            yield subject.replaced(node, "continue" if isinstance(node, ast.Break) else "break")


def deleted(subject: CorruptionTarget, statement: ast.stmt) -> Iterator[Edits]:
    """Yield the edit that removes a statement with its lines, and one of two blank lines that would meet."""
    lines = subject.lines(statement)
    if lines is None:
        return
    start, end = lines
    if end == len(subject.text):
        yield (TextEdit(start - 1, end, ""),)
        return
    blank_before = subject.text[:start].endswith(("\n\n", ":\n"))
    blank_after = subject.text.startswith("\n\n", end)
    yield (TextEdit(start, end + (2 if blank_before and blank_after else 1), ""),)


def _branch_dropped(subject: CorruptionTarget, branch: ast.If) -> Iterator[Edits]:
    start = subject.text.rfind("\n", 0, subject.span(branch)[0]) + 1
    end = subject.text.find("\n", subject.span(branch.body[-1])[1])
    if end < 0:
        yield (TextEdit(start - 1, len(subject.text), ""),)
    else:
        yield (TextEdit(start, end + 1, ""),)


def _line_of_case(subject: CorruptionTarget, case: ast.match_case, before: int) -> int | None:
    """Return the start of the line that has the word `case` of a branch."""
    pattern = case.pattern
    place = subject.document.offset(pattern.lineno, pattern.col_offset)
    start = subject.text.rfind("\n", 0, place) + 1
    return start if subject.text[start:place].split()[:1] == ["case"] and start <= before else None


def _keyword(subject: CorruptionTarget, node: ast.If) -> str:
    start = subject.span(node)[0]
    return "elif" if subject.text.startswith("elif", start) else "if"


def blocks_of_function(subject: CorruptionTarget) -> Iterator[StatementBlock]:
    """Yield the blocks with more than one statement."""
    for block in subject.blocks:
        if len(block.statements) > 1:
            yield block


OPERATORS = (
    Operator("lost case", 0.45, lost_case),
    Operator("lost guard", 0.03, lost_guard),
    Operator("break for continue", 0.03, break_continue),
)
