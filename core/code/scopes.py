"""Finds the scope that binds each name in a piece of code (language reference, section 4.2.2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gistpoint.core.code.bindings import bound_names

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(slots=True, eq=False)
class NameScope:
    """A module, class, function or comprehension, and the names that it binds."""

    node: ast.AST
    parent: NameScope | None = None
    bound: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    elsewhere: dict[str, NameScope | None] = field(default_factory=dict)
    """Names that `global` or `nonlocal` bind in another scope; None for `nonlocal`, which `of` looks up."""

    @property
    def is_function(self) -> bool:
        """Whether its names are local, as in a function, lambda or comprehension."""
        return isinstance(self.node, Function | _COMPREHENSIONS)

    @property
    def module(self) -> NameScope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def of(self, name: str) -> NameScope | None:
        """Return the scope that binds a name used in this scope; None for a built-in or unknown name."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.elsewhere:
                return scope.elsewhere[name] or (scope.parent and scope.parent.of(name))
            # Names bound in a class are visible only in the code of the class itself.
            is_hidden = scope is not self and isinstance(scope.node, ast.ClassDef)
            if name in scope.bound and not is_hidden:
                return scope
            scope = scope.parent
        return None


def scoped(tree: ast.AST) -> list[tuple[ast.AST, NameScope]]:
    """Return the nodes below `tree`, the outermost scope, depth first, each with its scope.

    A node's scope is the one in which it runs. All names are bound when this returns. Works at any depth.
    """
    module = NameScope(tree)
    found: list[tuple[ast.AST, NameScope]] = []
    stack: list[tuple[ast.AST, NameScope]] = [(child, module) for child in ast.iter_child_nodes(tree)][::-1]
    while stack:
        node, scope = stack.pop()
        found.append((node, scope))
        _bind(node, scope)
        stack.extend(reversed(list(_children(node, scope))))
    return found


def _bind(node: ast.AST, scope: NameScope) -> None:
    match node:
        case ast.Global(names=names):
            scope.elsewhere.update(dict.fromkeys(names, scope.module))
            scope.module.bound.update(names)
        case ast.Nonlocal(names=names):
            scope.elsewhere.update(dict.fromkeys(names))
        case ast.arg(arg=name):
            scope.bound.add(name)
            scope.parameters.add(name)
        case _:
            scope.bound.update(bound_names(node))


def _children(node: ast.AST, scope: NameScope) -> Iterator[tuple[ast.AST, NameScope]]:
    """Yield the parts of a node, each with the scope in which it runs."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            yield from _of_definition(node, scope)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _of_comprehension(node, scope)
        case ast.arg():
            return  # its annotation runs in a different scope from the one that binds the name
        case ast.NamedExpr(target=target, value=value):
            yield value, scope
            # `:=` binds in the function around all comprehensions (PEP 572).
            while isinstance(scope.node, _COMPREHENSIONS) and scope.parent is not None:
                scope = scope.parent
            yield target, scope
        case _:
            yield from ((child, scope) for child in ast.iter_child_nodes(node))


def _of_definition(node: Function | ast.ClassDef, scope: NameScope) -> Iterator[tuple[ast.AST, NameScope]]:
    inner = NameScope(node, scope)
    own = {node.body} if isinstance(node, ast.Lambda) else set(node.body)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.arguments):
            parameters = _parameters(child)
            # Defaults and annotations run in the defining scope.
            outside = (*child.defaults, *child.kw_defaults, *(item.annotation for item in parameters))
            yield from ((item, inner) for item in parameters)
            yield from ((item, scope) for item in filter(None, outside))
        else:
            yield child, inner if child in own else scope


def _of_comprehension(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: NameScope
) -> Iterator[tuple[ast.AST, NameScope]]:
    inner, first = NameScope(node, scope), node.generators[0]
    for child in ast.iter_child_nodes(node):
        if child is first:
            # The first iterable is evaluated outside of the comprehension.
            yield first.iter, scope
            yield from ((part, inner) for part in (first.target, *first.ifs))
        else:
            yield child, inner


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*named, *filter(None, (arguments.vararg, arguments.kwarg))]
