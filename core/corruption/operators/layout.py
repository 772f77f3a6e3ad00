"""Text in a function's own layout: margins, whole lines of blocks, and conditions written the other way round."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.subject import CorruptionTarget

LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OPPOSITE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
    ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">",
}  # fmt: skip
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


def step_of(subject: CorruptionTarget) -> str:
    """Return the white space by which the function's body is indented."""
    return margin(subject, subject.node.body[0])


def margin(subject: CorruptionTarget, statement: ast.stmt) -> str:
    """Return the white space before a statement; empty if something else is on its line."""
    start = subject.span(statement)[0]
    space = subject.text[subject.text.rfind("\n", 0, start) + 1 : start]
    return "" if space.strip() else space


def lines_of(subject: CorruptionTarget, statements: Sequence[ast.stmt]) -> tuple[int, int] | None:
    """Return the offsets of the whole lines of consecutive statements, without the last line end.

    None if other code shares their first or last line, or a comment stands between them.
    """
    first, last = subject.lines(statements[0]), subject.lines(statements[-1])
    if first is None or last is None or "#" in subject.text[first[0] : last[1]]:
        return None
    return first[0], last[1]


def is_one_line(subject: CorruptionTarget, node: ast.expr | ast.stmt) -> bool:
    """Whether a node is written on one line."""
    return node.lineno == node.end_lineno


def shifted(text: str, old: str, new: str) -> str | None:
    """Return lines with the margin `new` for `old`; None if a line has another margin or a text spans lines."""
    lines = text.split("\n")
    if any(line.strip() and not line.startswith(old) for line in lines) or '"""' in text or "'''" in text:
        return None
    return "\n".join(new + line[len(old) :] if line.strip() else line for line in lines)


def negation(subject: CorruptionTarget, test: ast.expr) -> str:
    """Return the text of a condition's opposite, as one would write it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return subject.source(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = (subject.text[slice(*subject.operand(item))] for item in (test.left, test.comparators[0]))
        return f"{left} {_OPPOSITE[type(test.ops[0])]} {right}"
    if isinstance(test, ast.BoolOp):
        parts = [negation(subject, value) for value in test.values]
        if isinstance(test.op, ast.And):
            return " or ".join(parts)
        return " and ".join(
            f"({part})" if isinstance(value, ast.BoolOp) else part
            for part, value in zip(parts, test.values, strict=True)
        )
    return f"not {subject.source(test)}" if isinstance(test, _TIGHT) else f"not ({subject.source(test)})"


def is_open(test: ast.expr) -> bool:
    """Whether a condition has to stand in parentheses beside an `and`."""
    return isinstance(test, ast.IfExp | ast.Lambda | ast.NamedExpr) or (
        isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
    )


def names_in(*nodes: ast.AST) -> frozenset[str]:
    """Return the names of variables in code."""
    return frozenset(item.id for node in nodes for item in ast.walk(node) if isinstance(item, ast.Name))


def argument_dropped(subject: CorruptionTarget, call: ast.Call, dropped: ast.keyword) -> Iterator[tuple[TextEdit, ...]]:
    """Yield the edit that leaves out one keyword argument of a call, with the comma that is no longer needed."""
    start, end = subject.span(dropped)
    before, after = subject.before(start), subject.after(end)
    if before is None or after is None or any(keyword.arg is None for keyword in call.keywords):
        return
    if before.text == ",":
        yield (TextEdit(before.start, end, ""),)
    elif after.text == ",":
        following = subject.after(after.end)
        yield (TextEdit(start, following.start if following else after.end, ""),)
    elif before.text == "(" and after.text == ")":
        yield (TextEdit(start, end, ""),)
