"""The meanings of the names in one module: imports, built-ins, literal strings, classes of values."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.nodes import only
from gistpoint.core.code.scopes import NameScope, scoped
from gistpoint.core.suspicion.names import FOUND_MODULES, STANDARD, USUAL_NAMES

_BUILTINS = frozenset(dir(builtins))
_REACHED = ("builtins", "gc", "os", "sys")
"""Modules that are recognised at any place in a chain of attributes, whatever it begins with."""
_OWN_PATHS = ("os.path", "posix.path")
"""Paths whose last part has the name of a module, but does not mean that module."""
_UNKNOWN = ast.Name("?", ast.Load())
"""An expression in place of an unknown value: a name that no scope binds."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of a name to an import, an expression or a definition; unknown if no field is set."""

    path: str = ""
    value: ast.expr | None = None
    definition: ast.AST | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the name is bound to something imported or to a definition."""
        return bool(self.path) or self.definition is not None


class Meaning:
    """The names of one module with all their bindings, whatever the flow of control.

    Values are not followed through containers or calls.
    """

    def __init__(self, tree: ast.Module) -> None:
        """Read the bindings of a module. `modules` contains the modules that an `import` names."""
        self.nodes = scoped(tree)
        self.scopes: dict[ast.AST, NameScope] = dict(self.nodes)
        self.modules: set[str] = set()
        self._bindings: dict[tuple[NameScope, str], list[Binding]] = defaultdict(list)
        given = {id(target): values for node, _ in self.nodes for target, values in _assigned_targets(node)}
        for node, scope in self.nodes:
            for name, binding in _bound(node, given):
                self._bindings[scope.of(name) or scope, name].append(binding)
            if isinstance(node, ast.Import):
                self.modules.update(canonical(item.name) for item in node.names)

    def bindings(self, name: ast.Name) -> list[Binding]:
        """Return the bindings of a name where it is used; empty for built-in and unknown names."""
        scope = self._binding_scope(name)
        return self._bindings[scope, name.id] if scope is not None else []

    def _binding_scope(self, name: ast.Name) -> NameScope | None:
        """Return the scope that binds a name where it is used; None if none does."""
        scope = self.scopes.get(name)
        return scope and scope.of(name.id)

    def is_unbound(self, name: ast.Name) -> bool:
        """Return whether no scope binds a name: it is a built-in, or comes from `import *`."""
        return name in self.scopes and self.scopes[name].of(name.id) is None

    def is_local(self, name: ast.Name) -> bool:
        """Return whether a function or a class binds a name, not the module."""
        scope = self._binding_scope(name)
        return scope is not None and scope.parent is not None

    def paths(self, node: ast.expr) -> tuple[str, ...]:
        """Return the paths that a name or an attribute chain can mean, such as `sys.modules`.

        An attribute with the name of a module that gives access to others counts as that module. Empty if it
        means nothing that is imported or built in.
        """
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        attributes.reverse()
        found = self._named(node) if isinstance(node, ast.Name) else ()
        if found:
            return tuple(canonical(".".join([path, *attributes])) for path in found)
        # Whatever the object is, an attribute with the name of such a module counts as that module.
        names = [name.lstrip("_") for name in attributes]
        place = next((place for place, name in enumerate(names) if name in _REACHED), None)
        return () if place is None else (canonical(".".join([names[place], *attributes[place + 1 :]])),)

    def _named(self, name: ast.Name) -> tuple[str, ...]:
        if not self.is_unbound(name):
            imported = filter(None, (binding.path for binding in self.bindings(name)))
            return tuple(dict.fromkeys(imported))
        # Special names such as `__loader__` are set in each module: they count as built-ins even where they
        # are not in `_BUILTINS`.
        special = name.id.startswith("__") and name.id != "__class__"
        if special or name.id in _BUILTINS:
            return (f"builtins.{name.id}",)
        return (name.id,) if name.id in STANDARD else ()

    def texts(self, node: ast.expr) -> tuple[str, ...] | None:
        """Return the strings that an expression can be; None if one of its values is not a literal string."""
        ends = [one for one in self._followed(node) if not self._possible_values(one)]
        literals = [one.value for one in only(ast.Constant, ends)]
        texts = tuple(value for value in literals if isinstance(value, str))
        return texts if texts and len(texts) == len(ends) else None

    def _followed(self, node: ast.expr) -> Iterable[ast.expr]:
        """Return an expression and all expressions whose value it may have, directly or by way of others.

        Each is followed once: names may be bound to each other, many times and in circles.
        """
        found: dict[ast.expr, None] = {}
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = None
                waiting += self._possible_values(one)
        return found

    def _possible_values(self, node: ast.expr) -> list[ast.expr]:
        """Return the expressions whose value an expression may have, with `_UNKNOWN` for an unknown value."""
        match node:
            case ast.NamedExpr(value=value):
                return [value]
            case ast.IfExp(body=body, orelse=other):
                return [body, other]
            case ast.BoolOp(values=values):
                return values
            case ast.Name():
                return [binding.value or _UNKNOWN for binding in self.bindings(node)]
        return []

    def is_class_of_value(self, node: ast.expr) -> bool:
        """Return whether an expression is `type(x)` or `x.__class__`, or a name that may be bound to one."""
        return any(map(self._asks_for_class, self._followed(node)))

    def _asks_for_class(self, node: ast.expr) -> bool:
        match node:
            case ast.Attribute(attr="__class__"):
                return True
            case ast.Call(func=ast.Name() as function, args=[_]):
                return "builtins.type" in self.paths(function)
        return False


def canonical(path: str) -> str:
    """Return the end of a path, from its last module: `sys.modules` for `collections._sys.modules`."""
    parts = path.split(".")
    for place in range(len(parts) - 1, 0, -1):
        name = parts[place].lstrip("_")
        is_private = name != parts[place]
        is_module = name in FOUND_MODULES or (is_private and name in STANDARD)
        if is_module and ".".join(parts[: place + 1]) not in _OWN_PATHS:
            return ".".join([USUAL_NAMES.get(name, name), *parts[place + 1 :]])
    return ".".join([USUAL_NAMES.get(parts[0], parts[0]), *parts[1:]])


def _assigned_targets(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """Yield the targets that a node assigns to, each with the expressions whose value the target may get."""
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
    """Yield the parts of a target, each with the part of the value assigned to it, as in `a, b = 1, 2`."""
    targets, values = _listed(target), _listed(value)
    if len(targets) == len(values):
        yield from ((one, [other]) for one, other in zip(targets, values, strict=True))


def _listed(node: ast.expr) -> list[ast.expr]:
    """Return the parts of a list, tuple or set; empty for any other expression."""
    return getattr(node, "elts", [])


def _bound(node: ast.AST, given: Mapping[int, Sequence[ast.expr | None]]) -> Iterator[tuple[str, Binding]]:
    """Yield the names that a node binds, with their bindings. `given` maps ids of target nodes to values."""
    match node:
        case ast.Import(names=names):
            yield from map(_bound_module, names)
        case ast.ImportFrom(names=names):
            for item in names:
                path = canonical(imported_path(node, item.name))
                yield item.asname or item.name, Binding(path)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, Binding(definition=node)
        case _:
            values = given.get(id(node), [None])
            yield from ((name, Binding(value=value)) for name in bound_names(node) for value in values)


def _bound_module(item: ast.alias) -> tuple[str, Binding]:
    """Return the name that an `import` binds: `a` for `import a.b`; for `import a.b as c`, `c` with `a.b`."""
    first = item.name.partition(".")[0]
    if item.asname:
        return item.asname, Binding(canonical(item.name))
    return first, Binding(canonical(first))


def imported_path(node: ast.ImportFrom, name: str) -> str:
    """Return the path of a name imported from a module, with one leading dot per level: `.other.name`."""
    return "." * node.level + ".".join(part for part in (node.module, name) if part)
