"""Annotations and `isinstance` tests as values: the objects that they allow a variable to hold."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gistpoint.core.callgraph.program import Program
from gistpoint.core.callgraph.values import (
    NOTHING,
    AnalysisScope,
    Class,
    Generated,
    Instance,
    Value,
    Variable,
)
from gistpoint.core.code.parsing import parse_expression

_UNIONS = {
    "Optional",
    "Union",
    "Annotated",
    "Final",
    "ClassVar",
    "Required",
    "NotRequired",
    "Awaitable",
    "Coroutine",
}
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "DefaultDict", "OrderedDict", "defaultdict"}
_ITERATORS = {"Iterator", "Generator", "AsyncIterator", "AsyncGenerator", "Iterable", "AsyncIterable"}
_SEQUENCES = {
    "list",
    "List",
    "set",
    "Set",
    "frozenset",
    "FrozenSet",
    "tuple",
    "Tuple",
    "Sequence",
    "MutableSequence",
    "Collection",
    "AbstractSet",
    "MutableSet",
    "deque",
    "Deque",
}


class Annotations:
    """Translates annotations into the values that an annotated variable can hold."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver = program.solver

    def declared(self, scope: AnalysisScope, node: ast.expr | None) -> Variable:
        """Return a variable that holds the values that an annotation allows; `NOTHING` if none are known."""
        values = self._values(scope, node) if node is not None else []
        if not values:
            return NOTHING
        if len(values) == 1:
            return self.solver.holding(values[0])
        variable = self.solver.variable()
        for value in values:
            self.solver.add(variable, value)
        return variable

    def tested(self, scope: AnalysisScope, node: ast.expr) -> list[Value]:
        """Return the known values that `x` can have if `isinstance(x, node)` is true."""
        nodes = node.elts if isinstance(node, ast.Tuple) else [node]
        return [value for item in nodes for value in self._values(scope, item)]

    def _values(self, scope: AnalysisScope, node: ast.expr) -> list[Value]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = parse_expression(node.value.strip())
            except (SyntaxError, ValueError):
                return []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return [*self._values(scope, node.left), *self._values(scope, node.right)]
        if isinstance(node, ast.Subscript):
            return self._generic(scope, node)
        if not isinstance(node, ast.Name | ast.Attribute):
            return []
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name == "Self":
            return self._self(scope)
        meaning = self.program.hierarchy.meaning(scope, node)
        if isinstance(meaning, Class):
            return [meaning.open_instance]
        if isinstance(meaning, str) and name not in ("Any", "None", "object"):
            return [self.program.opaque(meaning.removeprefix("builtins."))]
        return []

    def _self(self, scope: AnalysisScope) -> list[Value]:
        current: AnalysisScope | None = scope
        while current is not None:
            if current.cls is not None:
                return [current.cls.open_instance]
            current = current.parent
        return []

    def _generic(self, scope: AnalysisScope, node: ast.Subscript) -> list[Value]:
        name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
        arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in _UNIONS:
            return self._of_all(scope, arguments[_USED_ARGUMENTS.get(name, slice(None))])
        if name in ("type", "Type"):
            return [value.cls.open for value in self._of_all(scope, arguments) if isinstance(value, Instance)]
        if name in _ITERATORS:
            items = self.declared(scope, arguments[0])
            return [Generated(items, NOTHING)] if items != NOTHING else []
        if name in _MAPPINGS:
            return [self._container(scope, "dict", arguments[1:2])]
        if name in _SEQUENCES:
            return [self._container(scope, "list", arguments)]
        return self._values(scope, node.value)

    def _of_all(self, scope: AnalysisScope, items: Iterable[ast.expr]) -> list[Value]:
        return [value for item in items for value in self._values(scope, item)]

    def _container(self, scope: AnalysisScope, kind: str, items: Iterable[ast.expr]) -> Value:
        made = self.program.container(kind)
        for item in items:
            self.solver.copy(self.declared(scope, item), made.unplaced)
        return made


_USED_ARGUMENTS = {"Coroutine": slice(-1, None), "Annotated": slice(0, 1)}
"""The indexes of the arguments that are types of the value, for generic types with other arguments too."""
