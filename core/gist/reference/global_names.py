"""Where a module's code names its globals, as the compiler resolves scopes."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from gistpoint.core.code.parsing import compile_module
from gistpoint.core.gist.source_text import physical_lines


@dataclass(frozen=True, slots=True)
class Site:
    """One name in the source that means a global of the module."""

    name: str
    line: int
    column: int
    """In code points."""
    stores: bool
    in_function: bool
    chain: tuple[str, ...] = ()
    """Attributes that follow it: `a.b.c` is the name `a` with the chain b, c."""
    chain_ends: tuple[tuple[int, int], ...] = ()
    """Line and column behind each attribute of the chain."""
    statement_form: bool = False
    """Whether it is a name in a `global` statement."""


def global_sites(source: str, tree: ast.Module, path: str) -> list[Site]:
    """Return all sites of a module, in source order.

    Scopes are taken from the compiled code; names that a function imports from anywhere count as its own here.
    Code that the compiler drops has no sites.
    """
    places = _places(compile_module(source, path))
    lines = physical_lines(source)
    found: list[Site] = []
    for node, chain, in_function in _names(tree, (), False):
        if isinstance(node, ast.Global):
            for name in node.names:
                column = _word(lines[node.lineno - 1], name)
                found.append(Site(name, node.lineno, column, True, True, statement_form=True))
        elif (node.lineno, node.col_offset, node.id) in places:
            column = _column(lines, node.lineno, node.col_offset)
            ends = tuple(
                (a.end_lineno or a.lineno, _column(lines, a.end_lineno or a.lineno, a.end_col_offset or 0))
                for a in chain
            )
            stores = not isinstance(node.ctx, ast.Load)
            found.append(Site(node.id, node.lineno, column, stores, in_function, tuple(a.attr for a in chain), ends))
    return sorted(found, key=lambda site: (site.line, site.column))


def _places(code: CodeType, *, is_class: bool = False) -> set[tuple[int, int, str]]:
    """Return (line, byte column, name) of every name in the code, and in all code within it, that is a global."""
    found: set[tuple[int, int, str]] = set()
    own: set[str] = set()
    module = code.co_name == "<module>"
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        name = instruction.opname
        if isinstance(instruction.argval, CodeType):
            found |= _places(instruction.argval, is_class=not instruction.argval.co_flags & 0x2)
        argument = instruction.argval
        if not isinstance(argument, str) or position is None or position.lineno is None or position.col_offset is None:
            continue
        by_name = name in ("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
        if is_class and not module and name == "STORE_NAME":
            own.add(argument)
        elif name in ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL") or (by_name and argument not in own):
            found.add((position.lineno, position.col_offset, argument))
    return found


def _names(
    node: ast.AST, chain: tuple[ast.Attribute, ...], in_function: bool
) -> Iterator[tuple[ast.Name | ast.Global, tuple[ast.Attribute, ...], bool]]:
    if isinstance(node, ast.Attribute):
        yield from _names(node.value, (node, *chain), in_function)
        return
    if isinstance(node, ast.Name):
        yield node, chain, in_function
        return
    if isinstance(node, ast.Global):
        yield node, (), True
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        inner = node.body if isinstance(node.body, list) else [node.body]
        for child in ast.iter_child_nodes(node):
            yield from _names(child, (), in_function or child in inner)
        return
    for child in ast.iter_child_nodes(node):
        yield from _names(child, (), in_function)


def _column(lines: list[str], line: int, byte_column: int) -> int:
    text = lines[line - 1]
    return byte_column if text.isascii() else len(text.encode()[:byte_column].decode())


def _word(line: str, name: str) -> int:
    for column in range(len(line)):
        behind = column + len(name)
        if line.startswith(name, column) and not (line[column - 1 : column] + line[behind : behind + 1]).strip(" ,;"):
            return column
    return 0
