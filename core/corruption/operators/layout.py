"""Writes code in a function's own layout: margins, whole lines of blocks, and negated conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.parsing import parse
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.subject import CorruptionTarget

_OPPOSITE: Mapping[type[ast.cmpop], str] = {
    **{ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"},
    **{ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">"},
}
_ORDERS = (ast.Lt, ast.GtE, ast.Gt, ast.LtE)
_COUNTS = ("len", "ord")
"""Functions whose results are integers."""
_COUNTING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
"""Operators whose result is an integer if both operands are integers."""
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


def step_of(subject: CorruptionTarget) -> str:
    """Return the whitespace that indents the function's body."""
    return margin(subject, subject.node.body[0])


def margin(subject: CorruptionTarget, statement: ast.stmt) -> str:
    """Return the whitespace before a statement; empty if other code is on its line."""
    start = subject.span(statement)[0]
    space = subject.text[subject.line_start(start) : start]
    return "" if space.strip() else space


def is_elif(subject: CorruptionTarget, node: ast.stmt) -> bool:
    """Return whether an `if` is written as `elif`."""
    return subject.text.startswith("elif", subject.span(node)[0])


def elif_of(subject: CorruptionTarget, choice: ast.If) -> ast.If | None:
    """Return the `elif` after a branch; None if there is none."""
    match choice.orelse:
        case [ast.If() as following] if is_elif(subject, following):
            return following
    return None


def lines_of(subject: CorruptionTarget, statements: Sequence[ast.stmt]) -> tuple[int, int] | None:
    """Return the offsets of the whole lines that consecutive statements cover, without the last line ending.

    None if other code shares their first or last line, or if the lines contain a `#`.
    """
    first, last = subject.lines(statements[0]), subject.lines(statements[-1])
    if first is None or last is None:
        return None
    return None if "#" in subject.text[first[0] : last[1]] else (first[0], last[1])


def relaid(subject: CorruptionTarget, block: Sequence[ast.stmt], space: str) -> str | None:
    """Return the lines of consecutive statements with a different indentation; None if impossible."""
    lines = lines_of(subject, block)
    return None if lines is None else shifted(subject.cut(lines), margin(subject, block[0]), space)


def shifted(text: str, old: str, new: str) -> str | None:
    """Return lines with the margin `new` instead of `old`.

    None if a line has another margin, or if a string may span lines, because of triple quotes or a backslash.
    """
    if any(sign in text for sign in ('"""', "'''", "\\\n")):
        return None
    lines = text.split("\n")
    has_margin = all(line.startswith(old) for line in filter(str.strip, lines))
    if not has_margin:
        return None
    return "\n".join(new + line[len(old) :] if line.strip() else line for line in lines)


def negation(subject: CorruptionTarget, test: ast.expr) -> str:
    """Return the code of a condition's negation in its usual form; empty if that could mean something else.

    `a >= b` is the opposite of `a < b` only for values that are totally ordered: not for sets, for NaN, or
    for objects whose class decides what `<` means.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return subject.source(operand)
        case ast.Compare(left=left, ops=[kind], comparators=[right]):
            if isinstance(kind, _ORDERS) and not _are_in_order(subject, left, right):
                return ""
            one, two = (subject.cut(subject.operand(side)) for side in (left, right))
            return f"{one} {_OPPOSITE[type(kind)]} {two}"
        case ast.BoolOp(op=ast.And(), values=values):
            negated = [negation(subject, value) for value in values]
            return " or ".join(as_operand(text, of="or") for text in negated) if all(negated) else ""
        case ast.BoolOp(values=values):
            negated = [negation(subject, value) for value in values]
            return " and ".join(map(as_operand, negated)) if all(negated) else ""
    return f"not {subject.source(test)}" if isinstance(test, _TIGHT) else f"not ({subject.source(test)})"


def _are_in_order(subject: CorruptionTarget, one: ast.expr, two: ast.expr) -> bool:
    """Return whether two values are known to be numbers other than NaN, or both strings or both bytes."""
    kinds = {_kind_of(subject, one), _kind_of(subject, two)}
    return kinds <= {int, float} or kinds in ({str}, {bytes})


def _kind_of(subject: CorruptionTarget, value: ast.expr) -> type | None:
    """Return the type of an expression's value; None if the type is unknown."""
    match value:
        case ast.Constant(value=bool() | int()):
            return int
        case ast.Constant(value=float() | str() | bytes() as constant):
            return type(constant)
        case ast.JoinedStr():
            return str
        case ast.Call(func=ast.Name(id=name)) if name in _COUNTS:
            return int if is_builtin(subject, name) else None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            kind = _kind_of(subject, operand)
            return kind if kind in (int, float) else None
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _COUNTING):
            kinds = {_kind_of(subject, left), _kind_of(subject, right)}
            return int if kinds == {int} else None
    return None


def is_builtin(subject: CorruptionTarget, name: str) -> bool:
    """Return whether a name means a built-in: no function around it binds the name, nor does the file."""
    return name not in names_bound_in([subject.node]) | subject.scope.hidden


def as_operand(text: str, of: str = "and") -> str:
    """Return the code of a condition, in parentheses if `and`, or `or`, needs them around this operand."""
    match parse(f"({text})").body:
        case [ast.Expr(value=test)] if is_open(test) and not (of == "or" and isinstance(test, ast.BoolOp)):
            return f"({text})"
    return text


def is_open(test: ast.expr) -> bool:
    """Return whether a condition needs parentheses as an operand of `and`."""
    match test:
        case ast.IfExp() | ast.Lambda() | ast.NamedExpr() | ast.BoolOp(op=ast.Or()):
            return True
    return False


def argument_dropped(
    subject: CorruptionTarget, call: ast.Call, dropped: ast.keyword
) -> Iterator[tuple[TextEdit, ...]]:
    """Yield the edit that leaves out a keyword argument with its comma; none if the call contains `**`."""
    start, end = subject.span(dropped)
    before, after = subject.before(start), subject.after(end)
    unpacked = any(keyword.arg is None for keyword in call.keywords)
    if before is None or after is None or unpacked:
        return
    match before.text, after.text:
        case ",", _:
            yield (TextEdit(before.start, end, ""),)
        case _, ",":
            following = subject.after(after.end)
            yield (TextEdit(start, following.start if following else after.end, ""),)
        case "(", ")":
            yield (TextEdit(start, end, ""),)


def part_dropped(spans: Sequence[tuple[int, int]], place: int) -> tuple[TextEdit, ...]:
    """Return the edit that leaves out one of several parts, with the comma or operator next to it."""
    if place == 0:
        return (TextEdit(spans[0][0], spans[1][0], ""),)
    return (TextEdit(spans[place - 1][1], spans[place][1], ""),)
