"""Finds which attributes the code of a repository could read, by their names or without naming them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from gistpoint.core.code.parsing import parse
from gistpoint.core.code.source_text import python_text
from gistpoint.core.trees import SourceTree

_READS_ALL = re.compile(
    r"__dict__|__getstate__|\b__getattr|\b(vars|dir|getmembers|asdict)\(|\b(get|has)attr\([^,()]+,(?!\s*[\"'])"
)
"""Code that reads attributes without naming them, such as `getattr(self, name)`."""
_READERS = frozenset(("vars", "getmembers", "getmembers_static", "asdict", "astuple"))
"""Functions that read all attributes of an object, whether they are called or passed on."""
_BY_NAME = {"getattr": 1, "hasattr": 1, "getattr_static": 1, "attrgetter": 0, "methodcaller": 0}
"""Functions that read an attribute by its name, with the position of the name among their arguments."""
_MAY_NAME = re.compile("|".join((*_READERS, *_BY_NAME)))
_TEXTS = (".html", ".htm", ".j2", ".jinja", ".jinja2", ".mako", ".pyx", ".tmpl", ".tpl", ".txt", ".xml")
"""The ends of the names of files that may read attributes by their names, such as templates."""


def readable(tree: SourceTree, attributes: Collection[str]) -> list[str]:
    """Return those of the attributes that code in `tree`, including its tests, could read.

    It could if the name occurs anywhere in it or in a template, if any code reads attributes without naming
    them, or if the name is one of Python's own.
    """
    if not attributes:
        return []
    sources = [python_text(tree.read(path)) for path in tree.files(".py")]
    # Any module counts, because a class may inherit from one elsewhere, and functions elsewhere take its
    # objects.
    if any(map(_reads_all, sources)):
        return sorted(attributes)
    texts = (tree.read(path) for path in tree.files() if path.endswith(_TEXTS))
    sources += [text.decode("utf-8", "replace") for text in texts]

    def is_named(name: str) -> bool:
        return name.startswith("__") or any(map(re.compile(rf"\b{re.escape(name)}\b").search, sources))

    return [attribute for attribute in sorted(attributes) if is_named(attribute.rpartition(".")[2])]


def _reads_all(source: str) -> bool:
    """Whether code reads attributes without naming them."""
    if _READS_ALL.search(source):
        return True
    if not _MAY_NAME.search(source):
        return False
    try:
        nodes = list(ast.walk(parse(source)))
    except (SyntaxError, ValueError):
        return True
    naming = {id(node.func) for node in nodes if isinstance(node, ast.Call) and _names_attribute(node)}
    return any(
        _name_of(node) in _READERS or (_name_of(node) in _BY_NAME and id(node) not in naming)
        for node in nodes
    )


def _name_of(node: ast.AST) -> str:
    """Return the name by which a node reads or imports a function; empty for other nodes."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            return name
        case ast.alias(name=name, asname=str()):
            return name.rpartition(".")[2]
    return ""


def _names_attribute(call: ast.Call) -> bool:
    """Whether a call to a function in `_BY_NAME` has literal names."""
    place = _BY_NAME.get(_name_of(call.func))
    if place is None or call.keywords or len(call.args) <= place:
        return False
    # `attrgetter` takes any number of names.
    named = call.args if _name_of(call.func) == "attrgetter" else [call.args[place]]
    return all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in named)
