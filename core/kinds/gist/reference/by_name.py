"""Finds modules and definitions that code looks up by a name in a string, to replace them in a flat file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from gistpoint.core.kinds.gist.reference.modules import ModuleCode

_IMPORTERS = frozenset({"importlib.import_module", "import_module"})
_PATCHERS = frozenset({"setattr", "delattr", "patch"})


def module_of_name(text: str, modules: Collection[str]) -> str:
    """Return the longest of the dotted names `modules` with which `text` begins; empty if there is none."""
    parts = text.split(".")
    longer = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in longer if name in modules), "")


def names_in_strings(tree: ast.AST, owned: Collection[str]) -> Iterator[ast.Constant]:
    """Yield the strings that are a dotted name in one of the packages `owned`, in the order of `ast.walk`."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if "\n" not in text:
                parts = text.split(".")
                if parts[0] in owned and all(map(str.isidentifier, parts)):
                    yield node


def asked_by_name(
    statement: ast.stmt, module: ModuleCode, flat_name: Callable[[str], str | None], itself: str
) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions that look up modules by name, each with its replacement in a flat file.

    These are calls to `import_module`, entries of `sys.modules`, and the targets of `monkeypatch.setattr` and
    `mock.patch`. `flat_name` returns the name of a definition in the flat file, an empty string for a module
    of the codebase, and None for everything else; `itself` is the flat file's own module.
    """
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=function, args=[first, *_]) if ast.unparse(function) in _IMPORTERS:
                if _may_be_owned(first, module, flat_name):
                    yield node, itself
            case ast.Subscript(value=ast.Attribute(attr="modules"), slice=index):
                if flat_name(_text(index) or "") == "":
                    yield node, itself
            case ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word), args=[first, *_]) if (
                word in _PATCHERS
            ):
                found = flat_name(_text(first) or "")
                if found:
                    yield first, f'__name__ + ".{found}"'


def _may_be_owned(name: ast.expr, module: ModuleCode, flat_name: Callable[[str], str | None]) -> bool:
    """Return whether a name to import is one of the codebase's, or is made at run time."""
    text = _text(name)
    if text is None:
        return True
    in_package = module.is_package or "." in module.name
    if text.startswith(".") and in_package:
        return True
    return flat_name(text) is not None


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
