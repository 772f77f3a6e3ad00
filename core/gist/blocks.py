"""Blocks: a file as classes, functions, methods and the lines outside of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.core.gist.lines import Definition, LogicalLine, children, lines_of_statement, type_of_function


class BlockKind(StrEnum):
    """What a block is."""

    TOP_LEVEL = "top_level"
    CLASS = "class"
    """A class's header with its class-level statements; its methods are blocks of their own."""
    FUNCTION = "function"
    """A function or method with all that is nested in it."""


@dataclass(slots=True)
class Block:
    """One block of a file; its lines are normalised when they are first asked for."""

    name: str
    """Qualified name without the module; empty for the top level."""
    kind: BlockKind
    path: str
    first: int
    last: int
    statements: list[ast.stmt] = field(repr=False)
    in_guard: bool = False
    """Whether it stands under `if __name__ == "__main__"`."""
    _lines: tuple[LogicalLine, ...] | None = field(default=None, repr=False)

    @property
    def lines(self) -> tuple[LogicalLine, ...]:
        """Its logical lines in source order."""
        if self._lines is None:
            self._lines = tuple(self._read())
        return self._lines

    def _read(self) -> Iterator[LogicalLine]:
        for statement in self.statements:
            if self.kind is BlockKind.CLASS and isinstance(statement, ast.ClassDef):
                shell = copy(statement)
                shell.body = []
                for line in lines_of_statement(shell):
                    yield LogicalLine(line.text, line.first, line.last, max(line.last, line.end), line.kind)
                for child in statement.body:
                    yield from lines_of_statement(child, nested=False)
            else:
                yield from lines_of_statement(statement, nested=self.kind is BlockKind.FUNCTION)


def blocks_of(tree: ast.Module, path: str = "") -> list[Block]:
    """Return the blocks of a file; the first is the top level, the others follow in source order."""
    top = Block("", BlockKind.TOP_LEVEL, path, 1, max((s.end_lineno or 1 for s in tree.body), default=1), tree.body)
    return [top, *_definitions(tree.body, "", path, False)]


def _definitions(statements: list[ast.stmt], prefix: str, path: str, guarded: bool) -> Iterator[Block]:
    for statement in statements:
        if not isinstance(statement, Definition):
            inner = guarded or is_main_guard(statement)
            yield from _definitions(list(children(statement)), prefix, path, inner)
            continue
        name = prefix + statement.name
        first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
        kind = BlockKind.FUNCTION if isinstance(statement, type_of_function) else BlockKind.CLASS
        yield Block(name, kind, path, first, statement.end_lineno or first, [statement], guarded)
        if isinstance(statement, ast.ClassDef):
            yield from _definitions(statement.body, name + ".", path, guarded)


def is_main_guard(statement: ast.stmt) -> bool:
    """Whether the statement is `if __name__ == "__main__":`, either way round."""
    if not (isinstance(statement, ast.If) and isinstance(statement.test, ast.Compare)):
        return False
    sides = [statement.test.left, *statement.test.comparators]
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    values = {side.value for side in sides if isinstance(side, ast.Constant)}
    return names == {"__name__"} and values == {"__main__"}


def find_test(tree: ast.Module, qualname: str) -> Block | None:
    """Return the definition that pytest would run for `qualname` (`Class.test` or `test`), the last of several.

    A method that the class inherits from another class of the same file is found there. Definitions under a main
    guard are none: importing the file does not make them.
    """
    blocks = [b for b in blocks_of(tree) if not b.in_guard]
    functions = {b.name: b for b in blocks if b.kind is BlockKind.FUNCTION}
    if qualname in functions or "." not in qualname:
        return functions.get(qualname)
    owner, _, method = qualname.rpartition(".")
    classes = {b.name: b for b in blocks if b.kind is BlockKind.CLASS}
    pending, seen = [owner], set[str]()
    while pending:
        current = pending.pop(0)
        if current in seen or current not in classes:
            continue
        seen.add(current)
        if f"{current}.{method}" in functions:
            return functions[f"{current}.{method}"]
        statement = classes[current].statements[0]
        if isinstance(statement, ast.ClassDef):
            pending.extend(ast.unparse(base) for base in statement.bases)
    return None
