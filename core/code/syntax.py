"""Parsing that never raises anything but `CodeError`, and the walk over the definitions of a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.parsing import compile_module, parse

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
    """Parse `text`, which messages call `what` and whose first line they number `first_line`.

    Raises `CodeError` with the line. The warnings of Python's parser are not shown.
    """
    try:
        return parse(text)
    except SyntaxError as error:
        line = (error.lineno or 1) + first_line - 1
        raise CodeError(f"{what} can't be parsed: {error.msg} (line {line}).", line=line) from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + first_line
        raise CodeError(f"{what} holds half a surrogate pair on line {line}.", line=line) from error
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        reason = str(error) or "it is nested too deeply"
        raise CodeError(f"{what} can't be parsed: {reason} (line {first_line}).", line=first_line) from error


def compile_problem(text: str) -> CodeError | None:
    """Return why Python refuses to compile a text that parses, such as an argument named twice; None if it does not."""
    try:
        compile_module(text, "<code>")
    except SyntaxError as error:
        return CodeError(f"{error.msg} (line {error.lineno or 1})", line=error.lineno or 1)
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        return CodeError(str(error) or "the code is nested too deeply")
    return None


@dataclass(frozen=True, slots=True)
class Found:
    """One definition met by the walk; `parent` is the place of the enclosing one in the walk's order, -1 for none."""

    node: DefinitionNode
    qualname: str
    parent: int
    in_class: bool
    conditional: bool


def walk_definitions(module: ast.Module) -> Iterator[Found]:
    """Yield every function, method and class in source order, with Python's qualified name, unnumbered.

    Conditional is what stands in an `if`, `try`, `with`, `match` or loop of its enclosing definition.
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
            yield Found(node, qualname, parent, in_class, conditional)
            is_class = isinstance(node, ast.ClassDef)
            push(node.body, f"{qualname}." if is_class else f"{qualname}.<locals>.", position, is_class, False)
            position += 1
            continue
        for block in reversed(_BLOCKS[type(node)]):
            push(getattr(node, block), prefix, parent, in_class, True)
