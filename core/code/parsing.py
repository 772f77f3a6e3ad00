"""Python's own parser and compiler, used by one thread at a time and without warnings.

CPython up to 3.12 counts the depth of a syntax tree under construction in one place for all threads
(python/cpython#106905), and likewise keeps the filters of warnings. A thread that is interrupted in the
middle of a tree, by a finalizer or a callback of the garbage collector, resumes with another thread's count
and raises `SystemError`.
"""

from __future__ import annotations

import ast
import gc
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import CodeType
from typing import TypeAlias, TypeVar

from gistpoint.core.errors import UserError

T = TypeVar("T")

_LOCK = threading.RLock()
_TRIES = 10
_MISCOUNTED = "recursion depth mismatch"
_LONE_AT = re.compile(r"@[ \t\f(\\]*(?:#[^\r\n]*)?[\r\n]")
_LINE_END = re.compile(r"\r\n?|\n")


class NestedTooDeeplyError(SyntaxError):
    """Raised for code that is nested too deeply for Python to parse or compile."""


def parse(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module, in which `first_line` finds every decorator's `@`.

    Raises `NestedTooDeeplyError` for code that is nested too deeply, `SyntaxError` for other code that is not
    valid, and `ValueError` for a lone surrogate. Other threads cause no error.
    """
    tree = _built(lambda: ast.parse(source))
    text = source if isinstance(source, str) else source.decode("latin-1")
    if _LONE_AT.search(text):
        _note_at_signs(tree, _LINE_END.split(text))
    return tree


def parsed_or_empty(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module as `parse` does, or an empty module's tree if it does not parse."""
    try:
        return parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _note_at_signs(tree: ast.Module, lines: list[str]) -> None:
    """Record the line of each decorator's `@`, which is not in the syntax tree, on its expression."""
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            vars(decorator)["at_line"] = at_line(decorator, lambda number: lines[number - 1])


def at_line(decorator: ast.expr, line_of: Callable[[int], str]) -> int:
    """Return the line of a decorator's `@`; parentheses can push its expression to a later line.

    `line_of` returns a line of the file by its number.
    """
    line = decorator.lineno
    # Between the two are only brackets, comments and line continuations.
    while line > 1 and not line_of(line).lstrip(" \t\f").startswith("@"):
        line -= 1
    return line


def first_line(node: ast.stmt | ast.expr) -> int:
    """Return the first physical line of a node; for a definition, that of the `@` of its first decorator.

    The node is from `parse`; the lines of code objects begin at a decorator's expression instead.
    """
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(getattr(item, "at_line", item.lineno) for item in decorators)])


def parse_expression(text: str) -> ast.expr:
    """Return the syntax tree of one expression. Raises the same exceptions as `parse`."""
    return _built(lambda: ast.parse(text, mode="eval")).body


def compile_module(source: str | ast.Module, name: str) -> CodeType:
    """Return the compiled code of a module with the file name `name`. Raises the errors of `parse`."""
    return _built(lambda: compile(source, name, "exec", dont_inherit=True))


def _built(call: Callable[[], T]) -> T:
    """Return the result of `call`, which parses or compiles code.

    Code that is nested too deeply is refused like any other: Python has several exceptions for it, and the
    permitted depth depends on the calls that are active at that moment.
    """
    try:
        return undisturbed(call)
    except (RecursionError, MemoryError, OverflowError) as error:
        raise NestedTooDeeplyError("it is nested too deeply") from error


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why Python rejects code, and the line (counted from 1; 0 if unknown)."""

    reason: str
    line: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason

    def after(self, lines: int) -> Fault:
        """Return the fault with its line number shifted, as if this many lines preceded the code."""
        return Fault(self.reason, self.line and self.line + lines)


def fault_in(source: str) -> Fault | None:
    """Return the fault of code as a Python module; None if it compiles."""
    try:
        compile_module(source, "<text>")
    except SyntaxError as error:
        return Fault(error.msg, error.lineno or 0)
    except ValueError as error:
        return Fault(str(error))
    return None


def undisturbed(call: Callable[[], T]) -> T:
    """Return the result of `call`, which makes Python build syntax trees and can be repeated.

    It is repeated, with the garbage collector off, if it was disturbed by a thread that parses without this
    module, such as a library's. Raises the errors of `call`, and `SystemError` if it was disturbed every
    time.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except SystemError as error:
            if _MISCOUNTED not in str(error):
                raise
        # Without garbage collection no finalizer can interrupt; the last attempt may raise.
        for _ in range(_TRIES):
            with uncollected(), suppress(SystemError):
                return call()
        return call()


class CodeError(UserError):
    """Code can't be read, named or replaced as requested; `line` counts from 1, or is None."""

    def __init__(self, message: str, *, hint: str = "", line: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.line = line


class NotDefinedError(CodeError):
    """A file has no definition of the requested name."""


DefinitionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.If: ("body", "orelse"),
    ast.For: ("body", "orelse"),
    ast.AsyncFor: ("body", "orelse"),
    ast.While: ("body", "orelse"),
    ast.With: ("body",),
    ast.AsyncWith: ("body",),
    ast.Try: ("body", "handlers", "orelse", "finalbody"),
    ast.TryStar: ("body", "handlers", "orelse", "finalbody"),
    ast.ExceptHandler: ("body",),
    ast.Match: ("cases",),
    ast.match_case: ("body",),
}
_WALKED = {*_DEFINITIONS, *_BLOCKS}


def parse_module(text: str, what: str, *, first_line: int = 1) -> ast.Module:
    """Return the syntax tree of `text`, which messages call `what`; its first line has number `first_line`.

    Raises `CodeError` with the line if that fails. Warnings of Python's parser are suppressed.
    """
    try:
        return parse(text)
    except SyntaxError as error:
        line = (error.lineno or 1) + first_line - 1
        raise CodeError(f"{what} can't be parsed: {error.msg} (line {line}).", line=line) from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + first_line
        raise CodeError(f"{what} holds half a surrogate pair on line {line}.", line=line) from error
    except ValueError as error:
        raise CodeError(f"{what} can't be parsed: {error} (line {first_line}).", line=first_line) from error


def compile_problem(text: str) -> CodeError | None:
    """Return the error that makes Python refuse to compile code, such as repeated arguments, or None."""
    try:
        compile_module(text, "<code>")
    except SyntaxError as error:
        return CodeError(f"{error.msg} (line {error.lineno or 1})", line=error.lineno or 1)
    except ValueError as error:
        return CodeError(str(error))
    return None


@dataclass(frozen=True, slots=True)
class FoundDefinition:
    """One definition; `parent` is the index of the enclosing definition in source order, or -1."""

    node: DefinitionNode
    qualname: str
    parent: int
    in_class: bool
    conditional: bool


def walk_definitions(module: ast.Module) -> Iterator[FoundDefinition]:
    """Yield every function, method and class in source order, with Python's unnumbered qualified name.

    A definition is conditional if it is in an `if`, `try`, `with`, `match` or loop of its enclosing
    definition.
    """
    stack: list[tuple[ast.AST, str, int, bool, bool]] = []

    def push(nodes: Iterable[ast.AST], prefix: str, parent: int, in_class: bool, conditional: bool) -> None:
        walked = [(node, prefix, parent, in_class, conditional) for node in nodes if type(node) in _WALKED]
        walked.reverse()
        stack.extend(walked)

    push(module.body, "", -1, False, False)
    position = 0
    while stack:
        node, prefix, parent, in_class, conditional = stack.pop()
        if isinstance(node, _DEFINITIONS):
            qualname = prefix + node.name
            yield FoundDefinition(node, qualname, parent, in_class, conditional)
            is_class = isinstance(node, ast.ClassDef)
            push(
                node.body, f"{qualname}." if is_class else f"{qualname}.<locals>.", position, is_class, False
            )
            position += 1
            continue
        for block in reversed(_BLOCKS[type(node)]):
            push(getattr(node, block), prefix, parent, in_class, True)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector in all threads while long-lived objects are built; then restore it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
