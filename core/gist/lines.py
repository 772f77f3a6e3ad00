"""Logical lines: one statement header each, its text normalised through the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class LineKind(StrEnum):
    """Whether a line counts in the execution rate."""

    EXECUTABLE = "executable"
    POTENTIAL = "potentially_executable"
    """An `except` header and its body, `pass`, `...`: left out."""
    NON_EXECUTABLE = "non_executable"
    """The compiler makes no code for it: `global`, `nonlocal`, a bare annotation of a local name."""


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """One statement header of a file."""

    text: str
    first: int
    """First physical line of the header, 1-based."""
    last: int
    """Last physical line of the header, inclusive."""
    end: int
    """Last physical line of the statement's body; `last` where it has none."""
    kind: LineKind


type_of_function = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def is_text_only(statement: ast.stmt) -> bool:
    """Whether the statement is a bare string: a docstring, or one that the compiler throws away."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_placeholder(statement: ast.stmt) -> bool:
    """Whether the statement only fills a body: `pass`, `...` or another bare constant."""
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def lines_of_statement(
    statement: ast.stmt, *, potential: bool = False, in_function: bool = False, nested: bool = True
) -> Iterator[LogicalLine]:
    """Yield the lines of `statement` and of all that it holds, in source order.

    `potential` says that it stands in the body of an `except`. With `nested` false, the bodies of definitions that it
    holds (and of itself, where it is one) are left out, headers and decorators too.
    """
    if is_text_only(statement) or (not nested and isinstance(statement, Definition)):
        return
    yield from _header_lines(statement, potential, in_function)
    inside = in_function or isinstance(statement, type_of_function)
    for part in _parts(statement):
        if isinstance(part, ast.stmt):
            yield from lines_of_statement(part, potential=potential, in_function=inside, nested=nested)
        elif isinstance(part, ast.ExceptHandler):
            yield _line(_handler_text(part, statement), part, [part.type], LineKind.POTENTIAL)
            for child in part.body:
                yield from lines_of_statement(child, potential=True, in_function=inside, nested=nested)
        else:
            yield _line(_case_text(part), part.pattern, [part.pattern, part.guard], _kind(potential), part.body)
            for child in part.body:
                yield from lines_of_statement(child, potential=potential, in_function=inside, nested=nested)


def _kind(potential: bool) -> LineKind:
    return LineKind.POTENTIAL if potential else LineKind.EXECUTABLE


def _parts(statement: ast.stmt) -> Iterator[ast.stmt | ast.ExceptHandler | ast.match_case]:
    for field in ("body", "cases", "handlers", "orelse", "finalbody"):
        yield from getattr(statement, field, [])


def children(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements directly within `statement`, those of its handlers and cases among them."""
    for part in _parts(statement):
        if isinstance(part, ast.stmt):
            yield part
        else:
            yield from part.body


def _header_lines(statement: ast.stmt, potential: bool, in_function: bool) -> Iterator[LogicalLine]:
    kind = _kind(potential)
    match statement:
        case ast.Import() | ast.ImportFrom():
            for text in import_texts(statement):
                yield LogicalLine(text, statement.lineno, _end(statement), _end(statement), kind)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            for decorator in statement.decorator_list:
                yield _line("@" + ast.unparse(decorator), decorator, [decorator], kind)
            yield _line(header_text(statement), statement, _header_parts(statement), kind, statement.body)
        case ast.Try() | ast.TryStar():
            return
        case _ if is_placeholder(statement):
            yield _line(ast.unparse(statement), statement, [statement], LineKind.POTENTIAL)
        case ast.Global() | ast.Nonlocal():
            yield _line(ast.unparse(statement), statement, [statement], LineKind.NON_EXECUTABLE)
        case ast.AnnAssign(value=None, simple=1) if in_function:
            yield _line(ast.unparse(statement), statement, [statement], LineKind.NON_EXECUTABLE)
        case _:
            body = list(children(statement))
            parts = _header_parts(statement) if body else [statement]
            yield _line(header_text(statement), statement, parts, kind, body)


def import_texts(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """Return one normalised import for each name that the statement imports."""
    if isinstance(statement, ast.Import):
        return [ast.unparse(ast.Import(names=[alias])) for alias in statement.names]
    single = (ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names)
    return [ast.unparse(one) for one in single]


def header_text(statement: ast.stmt) -> str:
    """Return the normalised text of a statement's header, decorators and bodies left out."""
    fields = dict(ast.iter_fields(statement))
    emptied: dict[str, list[ast.AST]] = {
        name: [] for name in ("body", "orelse", "handlers", "finalbody", "cases", "decorator_list") if name in fields
    }
    if not emptied:
        return ast.unparse(statement)
    shell = type(statement)()
    for name, value in {**fields, **emptied}.items():
        setattr(shell, name, value)
    return ast.unparse(ast.copy_location(shell, statement))


def _handler_text(handler: ast.ExceptHandler, statement: ast.stmt) -> str:
    word = "except*" if isinstance(statement, ast.TryStar) else "except"
    caught = f" {ast.unparse(handler.type)}" if handler.type else ""
    return f"{word}{caught}{f' as {handler.name}' if handler.name else ''}:"


def _case_text(case: ast.match_case) -> str:
    guard = f" if {ast.unparse(case.guard)}" if case.guard else ""
    return f"case {ast.unparse(case.pattern)}{guard}:"


def _header_parts(statement: ast.stmt) -> list[ast.AST | None]:
    parts: list[ast.AST | None] = []
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "handlers", "finalbody", "cases", "decorator_list"):
            continue
        parts.extend(value if isinstance(value, list) else [value])
    return parts


def _line(
    text: str,
    place: ast.AST,
    parts: Iterable[ast.AST | None],
    kind: LineKind,
    body: Iterable[ast.stmt] = (),
) -> LogicalLine:
    first = getattr(place, "lineno", 0)
    last = first
    for part in parts:
        if isinstance(part, ast.expr | ast.stmt | ast.pattern):
            last = max(last, part.end_lineno or 0)
        elif isinstance(part, ast.AST):
            last = max([last, *(getattr(node, "end_lineno", 0) for node in ast.walk(part))])
    end = max([last, *(_end(child) for child in body)])
    return LogicalLine(text, first, last, end, kind)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
