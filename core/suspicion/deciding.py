"""Marks for ordinary methods that decide comparisons: special methods or assertions of tests call them.

A class written in Python compares its objects by other names: `UserList.__eq__` calls a private method, and
a class of the library may call `_compare`. Whoever binds such a name decides the comparison (decision 204).
"""

from __future__ import annotations

import ast
import collections
import collections.abc
import fractions
import functools
import ipaddress
import numbers
import pathlib
import re
import statistics
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import FunctionType

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.suspicion.meaning import Meaning
from gistpoint.core.suspicion.names import OPERATORS

_PRIVATE = re.compile(r"_[A-Za-z]\w*?__\w*[^_\W]_?")
"""A private name as other code has to write it: `_UserList__cast`."""
_MODULES = (collections, collections.abc, fractions, ipaddress, numbers, pathlib, statistics, uuid)
"""The pure modules with classes that are written in Python and can be compared."""
_JUDGING = re.compile(r"assert|assert\w+|assert_\w+")
_SPACES = frozenset({"types.SimpleNamespace"})
_DEEPEST = 20


def bound_for_comparisons(
    meaning: Meaning, nodes: Iterable[ast.AST], decides: Callable[[str], bool]
) -> Iterator[str]:
    """Yield a description of each name in a piece of code that is bound and decides a comparison.

    `decides(name)` returns whether comparisons of the library, or assertions of its tests, call a method with
    this name.
    """
    for node in nodes:
        match node:
            case ast.ClassDef():
                yield from _of_class(meaning, node, decides)
            case ast.Attribute(attr=name, ctx=ast.Store()) if _PRIVATE.fullmatch(name) or decides(name):
                yield f".{name}, which decides comparisons, is replaced"
            case ast.Call(func=function, keywords=[*given]) if _SPACES & set(meaning.paths(function)):
                yield from (
                    f"{item.arg}, which decides comparisons, of a new object"
                    for item in given
                    if item.arg is not None and decides(item.arg)
                )
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(name)), _]) if (
                _PRIVATE.fullmatch(name) or decides(name)
            ):
                yield f".{name}, which decides comparisons, is replaced"


def _of_class(meaning: Meaning, node: ast.ClassDef, decides: Callable[[str], bool]) -> Iterator[str]:
    known = frozenset().union(*map(deciding_names, _bases_of(meaning, node, _DEEPEST)))
    for name in sorted(names_bound_in(node.body, into_definitions=False)):
        is_private = name.startswith("__") and not name.endswith("__")
        mangled = f"_{node.name.lstrip('_')}{name}" if is_private else name
        if mangled in known or _PRIVATE.fullmatch(name) or decides(name):
            yield f"{name}, which decides comparisons, of a new class"


def _bases_of(meaning: Meaning, node: ast.ClassDef, depth: int) -> Iterator[str]:
    """Yield the paths of the imported classes from which a class derives, also by way of local ones."""
    for base in node.bases:
        yield from meaning.paths(base)
        if isinstance(base, ast.Name) and depth:
            for binding in meaning.bindings(base):
                if isinstance(binding.definition, ast.ClassDef) and binding.definition is not node:
                    yield from _bases_of(meaning, binding.definition, depth - 1)


@functools.cache
def deciding_names(path: str) -> frozenset[str]:
    """Return the members of a class of the standard library by which its own methods compare objects.

    The result is empty for a class that is written in C, or is not one of the pure modules.
    """
    module, _, name = path.rpartition(".")
    owner = next((found for found in _MODULES if found.__name__ == module), None)
    kind = getattr(owner, name, None)
    if not isinstance(kind, type):
        return frozenset()
    members = {key: value for part in reversed(kind.__mro__[:-1]) for key, value in vars(part).items()}
    waiting = [name for name in members if name in OPERATORS]
    found: set[str] = set()
    while waiting:
        code = _code_of(members[waiting.pop()])
        used = set(_names_in(code)) & members.keys() if code is not None else set()
        waiting += used - found
        found |= used
    return frozenset(name for name in found if not (name.startswith("__") and name.endswith("__")))


def _code_of(member: object) -> object:
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return function.__code__ if isinstance(function, FunctionType) else None


def _names_in(code: object) -> Iterator[str]:
    """Yield the names of attributes and globals in a function's code, also in that inside it."""
    yield from getattr(code, "co_names", ())
    for part in getattr(code, "co_consts", ()):
        if hasattr(part, "co_names"):
            yield from _names_in(part)


def compared_by(tree: ast.AST) -> tuple[set[str], set[str], set[str]]:
    """Return the names by which classes of a module compare, the members of its classes, and what it stores.

    The first are attributes that comparing methods read, directly or by way of other methods of their class;
    the last are attributes that any code sets.
    """
    compared: set[str] = set()
    members: set[str] = set()
    stored: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                members.update(chain.from_iterable(map(_members, body)))
                compared |= _read_by_comparisons(body)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                stored.add(name)
    return compared, members, stored


def _members(statement: ast.stmt) -> Iterator[str]:
    """Yield the methods and constants that a statement of a class defines: not fields, which hold data."""
    match statement:
        case ast.FunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets, value=value) if not isinstance(value, ast.Call):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _read_by_comparisons(body: list[ast.stmt]) -> set[str]:
    methods = {part.name: part for part in body if isinstance(part, ast.FunctionDef)}
    waiting = [name for name in methods if name in OPERATORS]
    found: set[str] = set()
    while waiting:
        nodes = ast.walk(methods[waiting.pop()])
        used = {part.attr for part in nodes if isinstance(part, ast.Attribute)}
        waiting += [name for name in used - found if name in methods]
        found |= used
    return found


def called_by_assertions(tree: ast.AST) -> set[str]:
    """Return the methods that assertions of a test module call with an argument."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=judged):
                found |= _methods_called(judged)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[*given]) if (
                _JUDGING.fullmatch(name)
            ):
                found = found.union(*map(_methods_called, given))
    return found


def _methods_called(expression: ast.AST) -> set[str]:
    calls = (part for part in ast.walk(expression) if isinstance(part, ast.Call))
    return {call.func.attr for call in calls if isinstance(call.func, ast.Attribute) and call.args}
