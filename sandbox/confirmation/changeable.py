"""Finds which attributes of values the code of a repository could change once they are made.

A submission may answer with the same value again, such as an object whose class defines a hash, where the
true function makes a new one. A test only sees that if it, or other code, changes the first one, or compares
the two with `is` (decision 209).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from gistpoint.core.code.nodes import only
from gistpoint.core.code.parsing import parse
from gistpoint.core.code.source_text import python_text
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.payload.library_state import OF_LIBRARY
from gistpoint.sandbox.payload.process_state import OF_VALUE

_ANY = ""
"""The name in place of every attribute."""
_MAKING = frozenset(
    ("__init__", "__new__", "__post_init__", "__attrs_post_init__", "__setstate__", "__hash__", "__repr__")
)
"""Methods that set attributes while an object is made, or that cache a result in an attribute."""
_SETTERS = frozenset(("setattr", "delattr", "__setattr__", "__delattr__"))
"""Functions that change an attribute; its name is the first string among their arguments."""
_MUTATORS = frozenset(("update", "pop", "clear", "setdefault", "popitem"))


def unchangeable(tree: SourceTree, words: Collection[str]) -> frozenset[str]:
    """Return the reports on values in several answers whose attribute nothing in `tree` changes.

    `words` are reports on the state of a process (`process_state.py`), such as `Asked.state`. Those about
    anything else are left out.
    """
    of_values = [word for word in words if word.startswith(OF_VALUE)]
    if not of_values:
        return frozenset()
    changed: set[str] = set()
    for path in tree.files(".py"):
        changed.update(_changed_in(python_text(tree.read(path))))
        if _ANY in changed:
            return frozenset()
    return frozenset(word for word in of_values if word.rpartition(".")[2] not in changed)


def unread(tree: SourceTree, tests: Collection[str], words: Collection[str]) -> frozenset[str]:
    """Return the reports on changed names of modules and classes that no file of the tests names.

    `words` are as for `unchangeable`. A repair may fill a cache of the library.
    """
    of_library = [word for word in words if word.startswith(OF_LIBRARY)]
    if not of_library:
        return frozenset()
    named: set[str] = set()
    for path in tests:
        if path.endswith(".py"):
            named.update(re.findall(r"\w+", python_text(tree.read(path))))
    return frozenset(word for word in of_library if re.split("[:.]", word)[-1] not in named)


def _changed_in(source: str) -> Iterator[str]:
    """Yield the names of attributes that code changes after an object was made."""
    try:
        module = parse(source)
    except (SyntaxError, ValueError):
        yield _ANY
        return
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in _MAKING:
            continue
        waiting.extend(ast.iter_child_nodes(node))
        yield from _changed_by(node)


def _changed_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Subscript(value=ast.Attribute(attr="__dict__"), ctx=ast.Store() | ast.Del()):
            yield _ANY
        case ast.Call():
            yield from _changed_by_call(node)
        case ast.Assert(test=test) if any(map(_compares_identity, ast.walk(test))):
            yield _ANY


def _changed_by_call(call: ast.Call) -> Iterator[str]:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _SETTERS:
            texts = [part.value for part in only(ast.Constant, call.args)]
            names = [text for text in texts if isinstance(text, str)]
            yield names[0] if names else _ANY
        case ast.Attribute(attr=name, value=ast.Attribute(attr="__dict__")) if name in _MUTATORS:
            yield _ANY
        case ast.Attribute(attr="assertIsNot"):
            yield _ANY


def _compares_identity(node: ast.AST) -> bool:
    """Whether a part of an assertion compares two values with `is not`, or uses an object's `id`."""
    match node:
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[right]):
            return ast.Constant not in (type(left), type(right))
        case ast.Call(func=ast.Name(id="id")):
            return True
    return False
