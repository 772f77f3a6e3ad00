"""Logical lines, and the blocks that contain them: classes, functions, methods and the top level."""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gistpoint.core.code.parsing import DefinitionNode, first_line
from gistpoint.core.code.source_text import leading_space

_BODIES = frozenset({"body", "orelse", "handlers", "finalbody", "cases", "decorator_list"})
"""Fields of a statement that are not part of its header."""


def column_of(line: str, offset: int) -> int:
    """Return the column, in characters, of a position on a line that a syntax tree counts in bytes."""
    if line.isascii():
        return offset
    return len(line.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "surrogatepass"))


def last_line(node: ast.stmt | ast.expr) -> int:
    """Return the last physical line of a node."""
    return node.end_lineno or node.lineno


def any_within(numbers: Sequence[int], first: int, last: int) -> bool:
    """Return whether one of the sorted `numbers` is in the range `first` to `last`, inclusive."""
    place = bisect_left(numbers, first)
    return place < len(numbers) and numbers[place] <= last


def margin_of(line: str) -> str:
    """Return the indentation of a line: the whitespace at its beginning, after any form feed."""
    return leading_space(line)


def lines_in_strings(lines: Sequence[str]) -> set[int]:
    """Return the 0-based numbers of the lines that begin inside a string.

    `lines` may be a fragment at any depth; one that can't be tokenised to its end is read up to the error.
    """
    inside: set[int] = set()
    text = "\n".join(lines) + "\n"
    shift = 1
    if lines and margin_of(lines[0]):
        # An indented fragment is tokenised below an added header, so its lines are one further down.
        text = "if 1:\n" + text
        shift = 2
    starts: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            # From Python 3.12 on, an f-string is several tokens, which may contain other f-strings.
            match tokenize.tok_name[token.type]:
                case "FSTRING_START":
                    starts.append(token.start[0])
                    continue
                case "FSTRING_END" if starts:
                    start = starts.pop()
                case "STRING":
                    start = token.start[0]
                case _:
                    continue
            inside.update(range(start + 1 - shift, token.end[0] + 1 - shift))
    except (tokenize.TokenError, IndentationError):
        pass
    return inside


def dedented(lines: Sequence[str]) -> list[str]:
    """Return `lines` moved left so that the first is at the margin; text inside strings is unchanged.

    A form feed before the code of a line is removed: indented again, it would end the indentation.
    """
    if not lines:
        return []
    margin = margin_of(lines[0])
    if not margin and not any("\f" in line for line in lines):
        return list(lines)
    inside = lines_in_strings(lines)
    result = list[str]()
    for number, line in enumerate(lines):
        code = margin_of(line) + line.lstrip(" \t\f")
        if number in inside:
            result.append(line)
        elif code.startswith(margin):
            result.append(code.removeprefix(margin))
        else:
            result.append(code.lstrip())
    return result


def indented(lines: Sequence[str], margin: str) -> list[str]:
    """Return `lines` moved right by `margin`; text inside strings is unchanged."""
    if not margin:
        return list(lines)
    inside = lines_in_strings(lines)
    result = list(lines)
    for number, line in enumerate(lines):
        if line.strip() and number not in inside:
            result[number] = margin + line
    return result


class GistLineKind(StrEnum):
    """The kind of a line, which determines whether it counts in the execution rate."""

    EXECUTABLE = "executable"
    POTENTIAL = "potentially_executable"
    """A line that does not count: an `except` header or its body, `pass`, or a constant such as `...`."""
    NON_EXECUTABLE = "non_executable"
    """A line without compiled code: `global`, `nonlocal`, a bare annotation of a local name."""


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """A simple statement, a header, a decorator or one imported name.

    Reflowing the text therefore changes no rate (decision 11).
    """

    text: str
    first: int
    """The first physical line of the header, 1-based."""
    last: int
    """The last physical line of the header, inclusive."""
    end: int
    """The last physical line of the statement's body; `last` if it has none."""
    kind: GistLineKind


type_of_function = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_text_only(statement: ast.stmt) -> bool:
    """Return whether the statement is a bare string: a docstring, or one that the compiler drops."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def is_placeholder(statement: ast.stmt) -> bool:
    """Return whether the statement only fills a body: `pass`, `...` or another bare constant."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def lines_of_statement(
    statement: ast.stmt, *, potential: bool = False, in_function: bool = False, nested: bool = True
) -> Iterator[LogicalLine]:
    """Yield the lines of `statement` and of everything in it, in source order.

    `potential` is true in the body of an `except`, and `in_function` in the body of a function. Unless
    `nested`, definitions are left out with their headers, decorators and bodies; a statement that is itself a
    definition then yields nothing. A statement that is only a string never yields anything.
    """
    left_out = not nested and isinstance(statement, DefinitionNode)
    if left_out or is_text_only(statement):
        return
    yield from _header_lines(statement, potential, in_function)
    inside = in_function or isinstance(statement, type_of_function)
    for part in _parts(statement):
        below = potential
        match part:
            case ast.stmt():
                body = [part]
            case ast.ExceptHandler():
                # Handlers don't count, because they run only if something fails (decision 13).
                below = True
                body = part.body
                yield _logical_line(_handler_text(part, statement), part, [part.type], GistLineKind.POTENTIAL)
            case _:
                body = part.body
                yield _logical_line(
                    _case_text(part), part.pattern, [part.pattern, part.guard], _kind(potential), body
                )
        for child in body:
            yield from lines_of_statement(child, potential=below, in_function=inside, nested=nested)


def _kind(potential: bool) -> GistLineKind:
    if potential:
        return GistLineKind.POTENTIAL
    return GistLineKind.EXECUTABLE


def _parts(statement: ast.stmt) -> Iterator[ast.stmt | ast.ExceptHandler | ast.match_case]:
    for name in ("body", "cases", "handlers", "orelse", "finalbody"):
        yield from getattr(statement, name, [])


def children(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements directly within `statement`, including the ones in its handlers and cases."""
    for part in _parts(statement):
        if isinstance(part, ast.stmt):
            yield part
        else:
            yield from part.body


def bodies_in(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every non-empty list of statements at and below a node."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield body


def _header_lines(statement: ast.stmt, potential: bool, in_function: bool) -> Iterator[LogicalLine]:
    """Yield the header of a statement, with its decorators; decision 13 lists what counts."""
    kind = _kind(potential)
    match statement:
        case ast.Import() | ast.ImportFrom():
            for text in import_texts(statement):
                yield LogicalLine(text, statement.lineno, last_line(statement), last_line(statement), kind)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            for decorator in statement.decorator_list:
                yield _logical_line("@" + ast.unparse(decorator), decorator, [decorator], kind)
            yield _logical_line(
                header_text(statement), statement, _header_parts(statement), kind, statement.body
            )
        case ast.Try() | ast.TryStar():
            # A bare `try:`, `else:` or `finally:` is not a line; only `except X:` is one (decision 11).
            return
        case _ if is_placeholder(statement):
            yield _logical_line(ast.unparse(statement), statement, [statement], GistLineKind.POTENTIAL)
        case ast.Global() | ast.Nonlocal():
            yield _logical_line(ast.unparse(statement), statement, [statement], GistLineKind.NON_EXECUTABLE)
        case ast.AnnAssign(value=None, simple=1) if in_function:
            yield _logical_line(ast.unparse(statement), statement, [statement], GistLineKind.NON_EXECUTABLE)
        case _:
            body = list(children(statement))
            parts = _header_parts(statement) if body else [statement]
            yield _logical_line(header_text(statement), statement, parts, kind, body)


def import_texts(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """Return one normalised import for each name that the statement imports."""
    if isinstance(statement, ast.Import):
        return [ast.unparse(ast.Import(names=[alias])) for alias in statement.names]
    single = (ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names)
    return [ast.unparse(one) for one in single]


def header_text(statement: ast.stmt) -> str:
    """Return the normalised text of a statement's header, without decorators and bodies."""
    fields = dict(ast.iter_fields(statement))
    if _BODIES.isdisjoint(fields):
        return ast.unparse(statement)
    # All fields at once: since Python 3.15, a statement can't be made without those that it requires.
    without_bodies: dict[str, Any] = {n: [] if n in _BODIES else value for n, value in fields.items()}
    shell = type(statement)(**without_bodies)
    return ast.unparse(ast.copy_location(shell, statement))


def _handler_text(handler: ast.ExceptHandler, statement: ast.stmt) -> str:
    text = "except*" if isinstance(statement, ast.TryStar) else "except"
    if handler.type:
        text += f" {ast.unparse(handler.type)}"
    if handler.name:
        text += f" as {handler.name}"
    return text + ":"


def _case_text(case: ast.match_case) -> str:
    guard = f" if {ast.unparse(case.guard)}" if case.guard else ""
    return f"case {ast.unparse(case.pattern)}{guard}:"


def _header_parts(statement: ast.stmt) -> list[ast.AST | None]:
    parts: list[ast.AST | None] = []
    for name, value in ast.iter_fields(statement):
        if name not in _BODIES:
            parts.extend(value if isinstance(value, list) else [value])
    return parts


def _logical_line(
    text: str,
    place: ast.AST,
    parts: Iterable[ast.AST | None],
    kind: GistLineKind,
    body: Iterable[ast.stmt] = (),
) -> LogicalLine:
    """Return the logical line that begins at `place`, contains `parts`, and has `body` below it."""
    first = getattr(place, "lineno", 0)
    last = first
    for part in parts:
        if isinstance(part, ast.expr | ast.stmt | ast.pattern):
            last = max(last, part.end_lineno or 0)
        elif isinstance(part, ast.AST):
            last = max([last, *(getattr(node, "end_lineno", 0) for node in ast.walk(part))])
    end = max([last, *(last_line(child) for child in body)])
    return LogicalLine(text, first, last, end, kind)


class BlockKind(StrEnum):
    """The kind of a block; lines are compared only between blocks of the same kind."""

    TOP_LEVEL = "top_level"
    CLASS = "class"
    """A class's header with its class-level statements; methods are separate blocks."""
    FUNCTION = "function"
    """A function or method with everything nested in it."""


@dataclass(slots=True)
class LineBlock:
    """One block of a file; its lines are normalised on first use."""

    name: str
    """The qualified name without the module; empty for the top level."""
    kind: BlockKind
    path: str
    first: int
    last: int
    statements: list[ast.stmt] = field(repr=False)
    in_guard: bool = False
    """Whether the block is under `if __name__ == "__main__"`."""
    _lines: tuple[LogicalLine, ...] | None = field(default=None, repr=False)

    @property
    def lines(self) -> tuple[LogicalLine, ...]:
        """The logical lines in source order."""
        if self._lines is None:
            self._lines = tuple(self._read())
        return self._lines

    def _read(self) -> Iterator[LogicalLine]:
        for statement in self.statements:
            if self.kind is BlockKind.CLASS and isinstance(statement, ast.ClassDef):
                yield from _lines_of_class(statement)
            else:
                yield from lines_of_statement(statement, nested=self.kind is BlockKind.FUNCTION)


def blocks_of(tree: ast.Module, path: str = "") -> list[LineBlock]:
    """Return the blocks of a file: the top level, then the others in source order."""
    last = max((last_line(statement) for statement in tree.body), default=1)
    top = LineBlock("", BlockKind.TOP_LEVEL, path, 1, last, tree.body)
    return [top, *_definitions(tree.body, "", path, False)]


def _definitions(statements: list[ast.stmt], prefix: str, path: str, guarded: bool) -> Iterator[LineBlock]:
    for statement in statements:
        if not isinstance(statement, DefinitionNode):
            inner = guarded or is_main_guard(statement)
            yield from _definitions(list(children(statement)), prefix, path, inner)
            continue
        name = prefix + statement.name
        kind = BlockKind.FUNCTION if isinstance(statement, type_of_function) else BlockKind.CLASS
        yield LineBlock(name, kind, path, first_line(statement), last_line(statement), [statement], guarded)
        if isinstance(statement, ast.ClassDef):
            yield from _definitions(statement.body, name + ".", path, guarded)


def _lines_of_class(statement: ast.ClassDef) -> Iterator[LogicalLine]:
    """Yield the header of a class, and the lines of its body outside of methods."""
    shell = copy(statement)
    shell.body = []
    for line in lines_of_statement(shell):
        yield LogicalLine(line.text, line.first, line.last, max(line.last, line.end), line.kind)
    for child in statement.body:
        yield from lines_of_statement(child, nested=False)


def is_main_guard(statement: ast.stmt) -> bool:
    """Return whether the statement is `if __name__ == "__main__":`, with the two sides in either order."""
    match statement:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return any(
                isinstance(name, ast.Name)
                and name.id == "__name__"
                and isinstance(value, ast.Constant)
                and value.value == "__main__"
                for name, value in ((left, right), (right, left))
            )
        case _:
            return False


def find_test(tree: ast.Module, qualname: str) -> LineBlock | None:
    """Return the definition that pytest would run for `qualname` (`Class.test` or `test`).

    If several definitions have the name, the last one counts. An inherited method is found in its base class
    if the class is in the same file. Definitions under a main guard don't count, because importing the file
    does not create them. None if there is none.
    """
    functions: dict[str, LineBlock] = {}
    classes: dict[str, LineBlock] = {}
    for block in blocks_of(tree):
        if block.in_guard:
            continue
        if block.kind is BlockKind.FUNCTION:
            functions[block.name] = block
        elif block.kind is BlockKind.CLASS:
            classes[block.name] = block
    if qualname in functions or "." not in qualname:
        return functions.get(qualname)
    owner, _, method = qualname.rpartition(".")
    pending = [owner]
    seen = set[str]()
    while pending:
        current = pending.pop(0)
        if current in seen or current not in classes:
            continue
        seen.add(current)
        if f"{current}.{method}" in functions:
            return functions[f"{current}.{method}"]
        statement = classes[current].statements[0]
        if isinstance(statement, ast.ClassDef):
            pending.extend(map(ast.unparse, statement.bases))
    return None
