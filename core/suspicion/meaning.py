"""What the names of one module mean: something imported, a built-in, a written text, the class of a value."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.scopes import NameScope, scoped
from gistpoint.core.suspicion.names import ROOTS, SAME, STANDARD

_BUILTINS = frozenset(dir(builtins))
_LISTED = (ast.List, ast.Set, ast.Tuple)
_REACHED = ("builtins", "gc", "os", "sys")
"""Modules that are recognised at any place of a chain of attributes, whatever it begins with."""
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of a name: to something imported, to an expression, to a definition, or to what is unknown."""

    path: str = ""
    value: ast.expr | None = None
    definition: ast.AST | None = None


class Meaning:
    """The names of one module, whatever the flow of control. Nothing is followed through containers or calls."""

    def __init__(self, tree: ast.Module) -> None:
        """Read the bindings of a module; `modules` holds those that it imports by `import`."""
        self.nodes = scoped(tree)
        self.scopes: dict[ast.AST, NameScope] = dict(self.nodes)
        self.modules: set[str] = set()
        self._bindings: dict[tuple[NameScope, str], list[Binding]] = defaultdict(list)
        given = {id(target): values for node, _ in self.nodes for target, values in _given(node)}
        for node, scope in self.nodes:
            for name, binding in _bound(node, given):
                self._bindings[scope.of(name) or scope, name].append(binding)
            if isinstance(node, ast.Import):
                self.modules.update(canonical(item.name) for item in node.names)

    def bindings(self, name: ast.Name) -> list[Binding]:
        """Return the bindings of a name where it is used; empty for a built-in, and for an unknown one."""
        home = self._home(name)
        return self._bindings[home, name.id] if home is not None else []

    def _home(self, name: ast.Name) -> NameScope | None:
        """Return the scope that binds a name where it is used."""
        scope = self.scopes.get(name)
        return scope and scope.of(name.id)

    def is_unbound(self, name: ast.Name) -> bool:
        """Whether no scope binds a name: it is a built-in, or came by `import *`."""
        return name in self.scopes and self.scopes[name].of(name.id) is None

    def is_local(self, name: ast.Name) -> bool:
        """Whether a function or a class binds a name, not the module."""
        home = self._home(name)
        return home is not None and home.parent is not None

    def paths(self, node: ast.expr) -> tuple[str, ...]:
        """Return what a name or a chain of attributes means, as paths of modules: `sys.modules`,
        `builtins.open`.
        """
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        found = self._named(node) if isinstance(node, ast.Name) else ()
        rest = attributes[::-1]
        if not found:
            # Whatever the object is, a module that is its attribute is that module.
            rest = list(dropwhile(lambda name: name.lstrip("_") not in _REACHED, rest))
            return (canonical(".".join([rest[0].lstrip("_"), *rest[1:]])),) if rest else ()
        return tuple(canonical(".".join([path, *rest])) for path in found)

    def _named(self, name: ast.Name) -> tuple[str, ...]:
        if not self.is_unbound(name):
            return tuple(dict.fromkeys(filter(None, (binding.path for binding in self.bindings(name)))))
        # A special name, such as `__import__` or `__loader__`, is one of the module, which the built-ins may
        # lack.
        special = name.id.startswith("__") and name.id != "__class__"
        if special or name.id in _BUILTINS:
            return (f"builtins.{name.id}",)
        return (name.id,) if name.id in STANDARD else ()

    def texts(self, node: ast.expr, depth: int = _DEEPEST) -> tuple[str, ...] | None:
        """Return the texts that an expression may mean if all are written out; else None."""
        if isinstance(node, ast.Constant):
            return (node.value,) if isinstance(node.value, str) else None
        values = self._may_be(node)
        # Names that are bound to each other in a circle never come to a text.
        if not values or not depth:
            return None
        found: list[str] = []
        for value in values:
            texts = self.texts(value, depth - 1) if value is not None else None
            if texts is None:
                return None
            found += texts
        return tuple(found)

    def _may_be(self, node: ast.expr) -> list[ast.expr | None]:
        """Return the expressions of which an expression has the value of one; None for a value that is
        unknown.
        """
        match node:
            case ast.IfExp(body=body, orelse=other):
                return [body, other]
            case ast.BoolOp(values=values):
                return [*values]
            case ast.Name():
                return [binding.value for binding in self.bindings(node)]
        return []

    def is_class_of_value(self, node: ast.expr, depth: int = _DEEPEST) -> bool:
        """Whether an expression is `type(x)` or `x.__class__`, or a name bound to one: for a class it is
        `type`.
        """
        match node:
            case ast.Attribute(attr="__class__"):
                return True
            case ast.Call(func=ast.Name() as function, args=[_]):
                return "builtins.type" in self.paths(function)
            case ast.NamedExpr(value=value):
                values: list[ast.expr | None] = [value]
            case _:
                values = self._may_be(node)
        return depth > 0 and any(self.is_class_of_value(value, depth - 1) for value in filter(None, values))


def canonical(path: str) -> str:
    """Return a path from the last module in it: `sys.modules` for `collections._sys.modules`."""
    parts = path.split(".")
    for place in range(len(parts) - 1, 0, -1):
        name = parts[place].lstrip("_")
        hides = name in ROOTS or (parts[place] != name and name in STANDARD)
        if hides and ".".join(parts[: place + 1]) not in ("os.path", "posix.path"):
            return ".".join([SAME.get(name, name), *parts[place + 1 :]])
    return ".".join([SAME.get(parts[0], parts[0]), *parts[1:]])


def _given(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Yield the names that a statement assigns to, each with the expressions that it may be given."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield target, [value]
                yield from _given_each(target, value)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
        ):
            yield target, [value]
        case (
            ast.For(target=target, iter=ast.List(elts=items) | ast.Tuple(elts=items))
            | ast.comprehension(target=target, iter=ast.List(elts=items) | ast.Tuple(elts=items))
        ):
            yield target, items


def _given_each(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Yield the parts of a target that are each given one part of a value: `a, b = 1, 2`."""
    if isinstance(target, _LISTED) and isinstance(value, _LISTED) and len(target.elts) == len(value.elts):
        yield from ((one, [other]) for one, other in zip(target.elts, value.elts, strict=True))


def _bound(node: ast.AST, given: dict[int, list[ast.expr]]) -> Iterator[tuple[str, Binding]]:
    match node:
        case ast.Import(names=names):
            yield from map(_bound_module, names)
        case ast.ImportFrom(names=names):
            paths = (canonical(imported_path(node, item.name)) for item in names)
            yield from (
                (item.asname or item.name, Binding(path)) for item, path in zip(names, paths, strict=True)
            )
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, Binding(definition=node)
        case ast.Name(id=name, ctx=ast.Store()) if id(node) in given:
            yield from ((name, Binding(value=value)) for value in given[id(node)])
        case _:
            yield from ((name, Binding()) for name in bound_names(node))


def _bound_module(item: ast.alias) -> tuple[str, Binding]:
    """Return what `import a.b` binds: `a`; `import a.b as c` binds `c` to the module itself."""
    first = item.name.partition(".")[0]
    return item.asname or first, Binding(canonical(item.name if item.asname else first))


def imported_path(node: ast.ImportFrom, name: str) -> str:
    """Return the path of a name that is imported from a module, with a dot for each level: `.other.name`."""
    return "." * node.level + ".".join(part for part in (node.module, name) if part)
