"""What a run must reach of a function for a change of it to matter."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from gistpoint.core.code.parsing import DefinitionNode

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SILENT = (ast.Global, ast.Nonlocal)
"""Statements that have no line event."""
_WHOLE = (ast.Try, ast.Match, *((ast.TryStar,) if sys.version_info >= (3, 11) else ()))
"""Statements with blocks that are compared as one."""


def lines_that_matter(old: DefinitionNode, new: DefinitionNode) -> frozenset[int] | None:
    """Return lines of `old`, of which a run reaches one if `new` can behave otherwise in it.

    None if that can't be told: every run that enters the function may then differ. A statement in the place of another
    one runs where that one did. So does a block of more or fewer statements where its header does.
    """
    if list(_scopes(old)) != list(_scopes(new)):
        return None  # a name that has become local is so in the whole function
    lines: set[int] = set()
    if not _compare(old.body, new.body, None, lines):
        return None
    return frozenset(lines) or None


def _compare(old: list[ast.stmt], new: list[ast.stmt], around: range | None, lines: set[int]) -> bool:
    """Add the lines at which two blocks differ, `around` being those of their header; return whether that can be."""
    if len(old) != len(new):
        lines.update(around or ())
        return around is not None
    return all(_compare_statements(one, other, lines) for one, other in zip(old, new, strict=True))


def _compare_statements(old: ast.stmt, new: ast.stmt, lines: set[int]) -> bool:
    if ast.dump(old) == ast.dump(new):
        return True
    if isinstance(old, _SILENT) or (isinstance(old, ast.Expr) and isinstance(old.value, ast.Constant)):
        return False
    ours, theirs = ([name for name in _BLOCKS if getattr(node, name, None)] for node in (old, new))
    inside = type(old) is type(new) and ours and ours == theirs and not isinstance(old, _WHOLE)
    if not inside or _head(old) != _head(new):
        lines.update(_header(old))
        return True
    blocks = [(getattr(old, name), getattr(new, name)) for name in ours]
    return all(_compare(one, other, _header(old), lines) for one, other in blocks)


def _head(node: ast.stmt) -> list[str]:
    return [
        ast.dump(value) if isinstance(value, ast.AST) else repr([ast.dump(v) for v in value if isinstance(v, ast.AST)])
        if isinstance(value, list) else repr(value)
        for name, value in ast.iter_fields(node) if name not in _BLOCKS
    ]  # fmt: skip


def _header(node: ast.stmt) -> range:
    """Return the lines before a statement's first block; all of those of a `try`, a `match` and a simple statement."""
    decorators = [item.lineno for item in getattr(node, "decorator_list", ())]
    first, last = min([node.lineno, *decorators]), node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if body and not isinstance(node, _WHOLE):
        below = min([body[0].lineno, *(item.lineno for item in getattr(body[0], "decorator_list", ()))])
        last = max(first, node.lineno, below - 1)
    return range(first, last + 1)


def _scopes(node: ast.AST) -> Iterator[tuple[frozenset[str], bool]]:
    """Yield for each scope the names that it binds, and whether it yields or awaits."""
    names: set[str] = set()
    suspends, inner = False, []
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        found = waiting.pop()
        match found:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                names.update(f"{type(found).__name__} {name}" for name in several)
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                suspends = True
            case _:
                pass
        if isinstance(found, (*_SCOPES, *_DEFINITIONS)):
            inner.append(found)
        else:
            waiting += ast.iter_child_nodes(found)
    yield frozenset(names), suspends
    for each in inner:
        yield from _scopes(each)
