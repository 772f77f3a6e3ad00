"""What a function compiles to, so that two texts can be told to be one program."""

from __future__ import annotations

import ast
from types import CodeType

from gistpoint.core.code.parsing import compile_module, parse


def compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> CodeType | None:
    """Compile a function by itself; None where Python refuses. Names that it takes from functions around it are given.

    Nothing of it is run.
    """
    outer = sorted({name for item in ast.walk(node) if isinstance(item, ast.Nonlocal) for name in item.names})
    body: list[ast.stmt] = [node]
    if outer:
        wrap = parse(f"def around():\n {' = '.join(outer)} = None").body[0]
        if isinstance(wrap, ast.FunctionDef):
            wrap.body.append(node)
            body = [wrap]
    try:
        return compile_module(ast.Module(body, type_ignores=[]), "<corruption>")
    except (SyntaxError, ValueError, RecursionError):
        return None


def same_code(first: CodeType, second: CodeType) -> bool:
    """Return whether two pieces of code do the same, places in the text apart; constants are folded by then."""
    if first.co_code != second.co_code or first.co_exceptiontable != second.co_exceptiontable:
        return False
    if (first.co_names, first.co_varnames, first.co_flags) != (second.co_names, second.co_varnames, second.co_flags):
        return False
    if (first.co_cellvars, first.co_freevars) != (second.co_cellvars, second.co_freevars):
        return False
    if len(first.co_consts) != len(second.co_consts):
        return False
    return all(
        same_code(one, two) if isinstance(one, CodeType) and isinstance(two, CodeType) else _same_constant(one, two)
        for one, two in zip(first.co_consts, second.co_consts, strict=True)
    )


def _same_constant(first: object, second: object) -> bool:
    if isinstance(first, frozenset) and isinstance(second, frozenset):
        return sorted(map(repr, first)) == sorted(map(repr, second))
    return repr(first) == repr(second)
