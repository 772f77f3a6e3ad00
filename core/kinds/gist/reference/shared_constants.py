"""Finds the constants that several modules define alike, of which a flat file needs only one."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable

from gistpoint.core.code.nodes import inside
from gistpoint.core.kinds.gist.reference.modules import ModuleCode, Unit

_SHARED_CALLS = frozenset({"TypeVar", "ParamSpec", "compile", "getLogger", "frozenset"})
"""Calls that make equal objects from equal arguments; `object` is not one of them."""
_CHANGEABLE = (
    *(ast.Dict, ast.List, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp),
    *(ast.Lambda, ast.Subscript, ast.NamedExpr),
)


def shared_constants(
    modules: Iterable[ModuleCode], meaning: Callable[[str, str], str], *, keeps_names: bool
) -> list[list[Unit]]:
    """Return the statements that define equal constants in several modules, in groups, first run first.

    Equal constants are made by the same code from the same objects, and no code seems to change one of them
    at run time. `meaning` returns the meaning of a name that a module imports from outside the codebase,
    empty for any other name. With `keeps_names`, `__name__` differs from module to module.
    """
    modules = list(modules)
    changed = frozenset().union(*(_changed_names(module.tree) for module in modules))
    found: dict[tuple[str, ...], list[Unit]] = {}
    for module in modules:
        for unit in module.units:
            value = _constant_value(unit)
            if value is None or not unit.binds.isdisjoint(changed):
                continue
            meanings = [_meaning_of(name, module, meaning, keeps_names) for name in _names(value)]
            if all(meanings):
                found.setdefault((ast.unparse(unit.statement), *meanings), []).append(unit)
    return [sorted(units, key=lambda unit: unit.rank) for units in found.values() if len(units) > 1]


def _constant_value(unit: Unit) -> ast.expr | None:
    """Return the value that a statement gives to one name, if modules can share it; otherwise None."""
    statement = unit.statement
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or len(unit.binds) != 1:
        return None
    binding = [other for other in unit.module.units if unit.binds <= other.binds]
    return statement.value if len(binding) == 1 and _is_constant(statement.value) else None


def _is_constant(value: ast.expr | None) -> bool:
    """Return whether an expression creates an immutable object, which modules can share."""
    if value is None:
        return False
    for node in ast.walk(value):
        match node:
            case ast.Call(func=function):
                if ast.unparse(function).rpartition(".")[2] not in _SHARED_CALLS:
                    return False
            case _ if isinstance(node, _CHANGEABLE):
                return False
    return True


def _names(value: ast.expr) -> list[str]:
    return sorted({node.id for node in inside(ast.Name, value)})


def _meaning_of(name: str, module: ModuleCode, meaning: Callable[[str, str], str], keeps_names: bool) -> str:
    """Return the meaning of a name in any module; empty if it may differ from one module to another."""
    if any(name in unit.binds for unit in module.units):
        return meaning(module.name, name)
    if name == "__name__":
        return "" if keeps_names else name
    is_builtin = hasattr(builtins, name) and not name.startswith("__")
    return meaning(module.name, name) or (f"builtins.{name}" if is_builtin else "")


def _changed_names(tree: ast.Module) -> set[str]:
    """Return the names of globals that some code of a module may bind again at run time, in any module.

    These are names declared `global`, attributes that are assigned or deleted, and the names by which
    `monkeypatch.setattr(a, "LIMIT", 3)` and `patch.multiple(a, LIMIT=3)` do so.
    """
    found: set[str] = set()
    for statement in tree.body:
        # `T = TypeVar("T")` and `__all__ = ["LIMIT"]` contain names as strings, but change nothing.
        own = _only_target(statement)
        names = {name for node in ast.walk(statement) for name in _names_changed_by(node)}
        found |= set() if own == "__all__" else names - {own}
    return found


def _only_target(statement: ast.stmt) -> str:
    """Return the only name that an assignment binds; empty for other statements."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
            | ast.AugAssign(target=ast.Name(id=name))
        ):
            return name
    return ""


def _names_changed_by(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Global(names=names):
            return names
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return ()
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.Call(func=ast.Attribute(attr="multiple" | "update" | "dict"), keywords=keywords):
            return [keyword.arg for keyword in keywords if keyword.arg]
        case ast.Constant(value=str(text)):
            return (text.rpartition(".")[2],)
    return ()
