"""Names that a gist uses and nothing in it defines: what a run would stumble over, found without running it."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator

from gistpoint.core.code.parsing import parse

_MODULE_NAMES = frozenset({"__name__", "__file__", "__doc__", "__spec__", "__loader__", "__package__", "__builtins__"})


def undefined_names(text: str) -> tuple[tuple[int, str], ...]:
    """Return the first line (from 1) and the name of each global that is used but never bound, in source order.

    Empty for a text that does not parse, or that imports everything from somewhere. `del` and order are not followed.
    """
    try:
        tree = parse(text)
        module = symtable.symtable(text, "gist", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return ()
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return ()
    tables = list(_tables(module))
    bound = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if (table is module or symbol.is_declared_global())
        and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace())
    }
    used = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() if table is not module else True)
    }
    missing = used - bound - _MODULE_NAMES - set(dir(builtins))
    first: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in missing:
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
    return tuple(sorted((line, name) for name, line in first.items()))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)
