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
import itertools
import numbers
import pathlib
import re
import statistics
import uuid
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import NamedTuple

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.nodes import inside, only
from gistpoint.core.suspicion.meaning import Meaning
from gistpoint.core.suspicion.names import DECIDING_METHODS, is_special

_PRIVATE = re.compile(r"_[A-Za-z]\w*?__\w*[^_\W]_?")
"""The mangled form of a private name, which code outside its class has to write: `_UserList__cast`."""
_MODULES = (collections, collections.abc, fractions, ipaddress, numbers, pathlib, statistics, uuid)
"""The pure modules with classes that are written in Python and have comparable objects."""
_JUDGING = re.compile(r"assert\w*")
"""The names of functions that check their arguments, such as `assertEqual` and `assert_allclose`."""
_SPACES = frozenset({"types.SimpleNamespace"})
"""Classes whose constructors store keyword arguments as attributes."""
_DEEPEST = 20


def bindings_that_decide_comparisons(
    meaning: Meaning, nodes: Iterable[ast.AST], decides: Callable[[str], bool]
) -> Iterator[str]:
    """Yield a description of each binding in a piece of code that decides a comparison by its name.

    `decides(name)` returns whether comparisons of the library, or assertions of its tests, call a method with
    this name.
    """

    def decides_in_class(name: str) -> bool:
        return decides(name) or bool(_PRIVATE.fullmatch(name))

    for node in nodes:
        match node:
            case ast.ClassDef():
                yield from _of_class(meaning, node, decides_in_class)
            case ast.Call(func=function, keywords=[*given]) if _SPACES & set(meaning.paths(function)):
                # A keyword without a name is `**given`, whose names are unknown.
                keywords = filter(None, (item.arg for item in given))
                for name in filter(decides, keywords):
                    yield f"{name}, which decides comparisons, set on a new object"
            case (
                ast.Attribute(attr=name, ctx=ast.Store())
                | ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(name)), _])
            ) if decides_in_class(name):
                yield f".{name}, which decides comparisons, is replaced"


def _of_class(meaning: Meaning, node: ast.ClassDef, decides: Callable[[str], bool]) -> Iterator[str]:
    """Yield a description of each member of a new class that decides a comparison by its name.

    A member does so if methods of an imported base class compare by it, or if `decides` is true for its name.
    """
    known = frozenset().union(*map(deciding_names, _bases_of(meaning, node, _DEEPEST)))
    for name in sorted(names_bound_in(node.body, into_definitions=False)):
        is_private = name.startswith("__") and not is_special(name)
        mangled = f"_{node.name.lstrip('_')}{name}" if is_private else name
        if mangled in known or decides(name):
            yield f"{name}, which decides comparisons, defined in a new class"


def _bases_of(meaning: Meaning, node: ast.ClassDef, depth: int) -> Iterator[str]:
    """Yield the paths of the imported classes from which a class derives, directly or via local classes."""
    for base in node.bases:
        yield from meaning.paths(base)
        bindings = meaning.bindings(base) if isinstance(base, ast.Name) and depth else ()
        for local in (binding.definition for binding in bindings):
            if isinstance(local, ast.ClassDef) and local is not node:
                yield from _bases_of(meaning, local, depth - 1)


@functools.cache
def deciding_names(path: str) -> frozenset[str]:
    """Return the members of a standard-library class that its own methods use to compare objects.

    The result is empty for a class that is written in C, or is not one of the pure modules.
    """
    module, _, name = path.rpartition(".")
    owner = next((found for found in _MODULES if found.__name__ == module), None)
    kind = getattr(owner, name, None)
    if not isinstance(kind, type):
        return frozenset()
    members = {key: value for part in reversed(kind.__mro__[:-1]) for key, value in vars(part).items()}

    def used_by(name: str) -> set[str]:
        return members.keys() & _names_in(_code_of(members[name]))

    found = _reached(DECIDING_METHODS & members.keys(), used_by)
    return frozenset(itertools.filterfalse(is_special, found))


def _reached(names: Iterable[str], used_by: Callable[[str], set[str]]) -> set[str]:
    """Return the names that `names` use, directly or through other names; `used_by` is the use of one."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        used = used_by(waiting.pop())
        waiting += used - found
        found |= used
    return found


def _code_of(member: object) -> object:
    """Return the code of a method or of a property's getter; None if the member is not written in Python."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return function.__code__ if isinstance(function, FunctionType) else None


def _names_in(code: object) -> Iterator[str]:
    """Yield the names of attributes and globals in a function's code, including code nested in it."""
    yield from getattr(code, "co_names", ())
    for part in getattr(code, "co_consts", ()):
        if hasattr(part, "co_names"):
            yield from _names_in(part)


class ComparedNames(NamedTuple):
    """The names of a module that show which members decide how its objects compare."""

    compared: set[str]
    """The attributes that comparing methods read, directly or through other methods of their class."""
    members: set[str]
    """The methods and constants of the module's classes."""
    stored: set[str]
    """The attributes that any code of the module sets."""


def compared_by(tree: ast.AST) -> ComparedNames:
    """Return the names that decide the comparisons of a module's classes, and those of mere data."""
    compared: set[str] = set()
    members: set[str] = set()
    stored: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                members.update(itertools.chain.from_iterable(map(_members, body)))
                compared |= _read_by_comparisons(body)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                stored.add(name)
    return ComparedNames(compared, members, stored)


def _members(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of the methods and constants that a statement in a class defines, but not of fields."""
    match statement:
        case ast.FunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets, value=value) if not isinstance(value, ast.Call):
            yield from (target.id for target in only(ast.Name, targets))


def _read_by_comparisons(body: list[ast.stmt]) -> set[str]:
    """Return the attributes that comparing methods of a class read, directly or through its other methods."""
    methods = {part.name: [part] for part in only(ast.FunctionDef, body)}

    def read_by(name: str) -> set[str]:
        return {part.attr for part in inside(ast.Attribute, *methods.get(name, ()))}

    return _reached(DECIDING_METHODS & methods.keys(), read_by)


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
    """Return the names of the methods that an expression calls with an argument."""
    with_arguments = (call for call in inside(ast.Call, expression) if call.args)
    functions = (call.func for call in with_arguments)
    return {function.attr for function in only(ast.Attribute, functions)}
