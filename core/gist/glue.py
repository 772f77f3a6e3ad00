"""Glue: the lines that a flat file needs where the codebase has modules."""

from __future__ import annotations

import ast

from gistpoint.core.code.parsing import parse

ITSELF = "sys.modules[__name__]"
"""The gist, as it is reached from within."""
_GLUE_IMPORTS = {"import sys", "import types", "from types import SimpleNamespace"}


def is_glue(text: str) -> bool:
    """Whether a top-level line that does not stand in the original is glue.

    Glue is `import sys` and `import types`; a name bound to the gist itself (`pkg = sys.modules[__name__]`); a name
    bound to another name or to an attribute of one, as an import with `as` would do; a namespace made of such
    names only (`tokens = types.SimpleNamespace(Name=Name)`); and an attribute of a name bound to a name.
    """
    if text in _GLUE_IMPORTS:
        return True
    try:
        body = parse(text).body
    except SyntaxError:
        return False
    if len(body) != 1 or not isinstance(body[0], ast.Assign):
        return False
    assign = body[0]
    return all(_is_reference(target) for target in assign.targets) and _is_binding(assign.value)


def _is_binding(value: ast.expr) -> bool:
    if ast.unparse(value) == ITSELF or _is_reference(value):
        return True
    if not (isinstance(value, ast.Call) and ast.unparse(value.func) in ("types.SimpleNamespace", "SimpleNamespace")):
        return False
    return not value.args and all(k.arg is not None and _is_binding(k.value) for k in value.keywords)


def _is_reference(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)
