"""Gives existing functions the code of a changed source, without importing anything again.

A function object keeps its identity, whatever wraps it or refers to it; only its `__code__` is replaced, and
the code of functions that it made earlier. Functions that it makes later have the new code anyway. If the
source has become longer or shorter, the code below it is moved accordingly, so that tracebacks show the right
lines (decision 36).
"""

from __future__ import annotations
import __future__

import ast
import gc
import os
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


class UnfitError(Exception):
    """The code can't be swapped; the message explains why."""


class LiveFunctions:
    """The functions with code from below a folder that existed when this object was made."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root) + os.sep
        self.by_code: dict[int, list[FunctionType]] = {}
        self.codes: dict[str, dict[int, CodeType]] = {}
        self._swapped: set[int] = set()
        files: dict[str, str] = {}
        for found in gc.get_objects():
            if type(found) is FunctionType:
                code = found.__code__
                path = files.get(code.co_filename)
                if path is None:
                    path = files[code.co_filename] = os.path.realpath(code.co_filename)
                if path.startswith(self.root) and not code.co_filename.startswith("<"):
                    self.by_code.setdefault(id(code), []).append(found)
                    self.codes.setdefault(path[len(self.root) :], {})[id(code)] = code

    def swap(self, path: str, line: int, name: str, source: str) -> None:
        """Give the function `name` of `path`, whose code starts on `line`, its code in `source`.

        `source` defines only that function, inside the classes that are part of its name, on the lines that
        it will have. Does nothing for a file that is not imported yet. Raises `UnfitError` if the code does
        not fit; then nothing has been swapped.
        """
        in_file = self.codes.get(path)
        if in_file is None:
            return
        old = [
            c for c in in_file.values() if c.co_firstlineno == line and _name_of(c) == name.rpartition(".")[2]
        ]
        if not old:
            raise UnfitError(f"{name} was not found in memory")
        # All swaps are planned before the first is made: a candidate is in memory as a whole or not at all.
        swaps: list[tuple[FunctionType, CodeType]] = []
        for code in old:
            swaps += self._planned(code, source, name)
        for function, new in swaps:
            function.__code__ = new
            self._swapped.add(id(function))

    def move(self, path: str, below: int, lines: int) -> None:
        """Move code that begins after the line `below` of `path` down by `lines`, except for swapped code.

        The lines of a traceback are then correct for the changed file.
        """
        for code in self.codes.get(path, {}).values():
            for function in self.by_code[id(code)] if code.co_firstlineno > below else ():
                if id(function) not in self._swapped:
                    function.__code__ = _moved(function.__code__, lines)

    def _planned(self, old: CodeType, source: str, name: str) -> list[tuple[FunctionType, CodeType]]:
        live = {path: code for path, code in _nested(old, ()) if id(code) in self.by_code}
        kept: dict[tuple[str, ...], tuple[str, ...]] = {}
        new = dict(_nested(_compiled(old, source, name, kept), ()))
        for path, code in live.items():
            # Python refuses code whose free variables differ from those of the closure that exists.
            if path in new and set(code.co_freevars) - set(new[path].co_freevars):
                kept[tuple(part.partition("#")[0] for part in path)] = code.co_freevars
        if kept:
            new = dict(_nested(_compiled(old, source, name, kept), ()))
        planned = []
        for path, code in live.items():
            if path not in new:
                raise UnfitError(f"a function inside {name} that exists already is no longer defined")
            if new[path].co_freevars != code.co_freevars:
                raise UnfitError(f"{name} refers to other variables of the functions around it")
            planned += [(function, new[path]) for function in self.by_code[id(code)]]
        return planned


def _nested(code: CodeType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], CodeType]]:
    """Yield a code object and all those within it, each with the path of names to it.

    A name that is repeated at one level gets a number.
    """
    yield path, code
    seen: dict[str, int] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            name = _name_of(constant)
            seen[name] = seen.get(name, 0) + 1
            yield from _nested(constant, (*path, name if seen[name] == 1 else f"{name}#{seen[name]}"))


def _moved(code: CodeType, lines: int) -> CodeType:
    """Return code, with all code in it, moved down by `lines`; line tables are relative to the first line."""
    constants = tuple(
        _moved(value, lines) if isinstance(value, CodeType) else value for value in code.co_consts
    )
    return code.replace(co_firstlineno=code.co_firstlineno + lines, co_consts=constants)


def _name_of(code: CodeType) -> str:
    return code.co_name


def _compiled(
    old: CodeType, source: str, name: str, kept: Mapping[tuple[str, ...], tuple[str, ...]]
) -> CodeType:
    """Return the code of the one function of `source`, which still refers to the variables in `kept`.

    `kept` contains the names of the free variables of functions, by the path of names to the function. Raises
    `UnfitError` if the source does not compile, or does not define the function under its old name.
    """
    tree = ast.parse(source)
    if kept:
        _Keeper(kept, name.rpartition(".")[2]).visit(tree)
        ast.fix_missing_locations(tree)
    try:
        found = compile(tree, old.co_filename, "exec", flags=old.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UnfitError(f"{name} does not compile on its own: {error}") from error
    for _, code in _nested(found, ()):
        if _name_of(code) == old.co_name and getattr(code, "co_qualname", "") == getattr(
            old, "co_qualname", ""
        ):
            return code
    raise UnfitError(f"{name} is not defined as before")


class _Keeper(ast.NodeTransformer):
    """A transformer that adds dead references to variables of outer functions, so that closures still fit."""

    def __init__(self, kept: Mapping[tuple[str, ...], tuple[str, ...]], unit: str) -> None:
        self.kept = kept
        self.unit = unit
        self.path: tuple[str, ...] | None = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self.path
        self.path = None if outer is None else (*outer, node.name)
        self.generic_visit(node)
        self.path = outer
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer = self.path
        if outer is None and node.name != self.unit:
            return node
        self.path = () if outer is None else (*outer, node.name)
        self.generic_visit(node)
        names = self.kept.get(self.path)
        if names is not None:
            used: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
            node.body.append(ast.If(ast.Constant(0), [ast.Expr(ast.Tuple(used, ast.Load()))], []))
        self.path = outer
        return node
