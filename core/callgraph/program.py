"""The state shared by all parts of the analysis: solver, hierarchy, calls found, and canonical values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.hierarchy import Hierarchy
from gistpoint.core.callgraph.scopes import Definitions
from gistpoint.core.callgraph.values import (
    NOTHING,
    AnalysisScope,
    Arguments,
    BoundMethod,
    BuiltinMethod,
    Class,
    Constant,
    ContainerValue,
    Function,
    Object,
    OpenClass,
    Outside,
    Partial,
    Solver,
    Text,
    Value,
    Variable,
)

#: The maximum number of subclasses examined for overrides of a method called on their base.
MOST_SUBCLASSES = 12

_LONGEST_KEY = 60
_MOST_DOTS = 5


@dataclass(slots=True, eq=False)
class CallSite:
    """One call in the sources: its scope, the name called, the arguments and the variable of the result.

    `found` is the evidence if the syntax decides it (a decorator, a protocol); if it is None, the callee
    decides.
    """

    scope: AnalysisScope
    name: str
    arguments: Arguments
    result: Variable
    found: CallEvidence | None = None
    partials: tuple[Partial, ...] = ()
    """The partial objects whose arguments are included; a call passes through each of them once."""

    @property
    def caller(self) -> str:
        """The id of the function, lambda or module code that makes the call."""
        return self.scope.owner


class Program:
    """The state of one analysis."""

    def __init__(self, definitions: Definitions, hierarchy: Hierarchy) -> None:
        self.definitions = definitions
        self.hierarchy = hierarchy
        self.solver = Solver()
        self.edges: dict[tuple[str, str], dict[CallEvidence, None]] = {}
        self.deferred: list[Callable[[], None]] = []
        self.class_names = {name for cls in definitions.classes.values() for name in cls.scope.bound}
        self.written_names = frozenset(definitions.stored_names)
        self.stored_names = set(self.written_names)
        self._constants: dict[tuple[str, object], Constant] = {}
        self._texts: dict[str, Text] = {}
        self._objects: dict[str, Object] = {}
        self._outside: dict[str, Outside] = {}
        self._bound: dict[tuple[Function, Value], BoundMethod] = {}
        self._methods: dict[tuple[Value, str], BuiltinMethod] = {}
        self._fields: dict[tuple[Value, str], Variable] = {}
        self._views: dict[tuple[Class, str, bool], Variable] = {}

    def emit(self, caller: str, callee: Function, found: CallEvidence) -> None:
        """Record a call."""
        self.edges.setdefault((caller, callee.id), {})[found] = None

    def name_variable(self, scope: AnalysisScope, name: str) -> Variable:
        """Return the variable of all values that a name of `scope` may ever have."""
        known = scope.variables.get(name)
        if known is None:
            known = scope.variables[name] = self.solver.variable()
        return known

    def constant(self, value: object) -> Value:
        """Return the constant of a short string, an integer or None; else the object of the value's type."""
        if isinstance(value, str | bytes) and len(value) > _LONGEST_KEY:
            return self.opaque(type(value).__name__)
        if not isinstance(value, str | int | None):
            return self.opaque(type(value).__name__)
        key = (type(value).__name__, value)
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = Constant(key)
        return known

    def opaque(self, type_name: str) -> Object:
        """Return the object for all values of a built-in or outside type; "" if the type is unknown."""
        known = self._objects.get(type_name)
        if known is None:
            known = self._objects[type_name] = Object(type_name)
        return known

    def text(self, start: str) -> Text:
        """Return the value for strings that begin with `start`, always the same object."""
        known = self._texts.get(start)
        if known is None:
            known = self._texts[start] = Text(start)
        return known

    def outside(self, name: str) -> Value:
        """Return the value of a dotted name outside the sources; an unknown object if it is too long."""
        if name.count(".") > _MOST_DOTS:
            return self.opaque("")
        known = self._outside.get(name)
        if known is None:
            known = self._outside[name] = Outside(name)
        return known

    def bound(self, function: Function, receiver: Value) -> BoundMethod:
        """Return the method of a receiver, always the same object."""
        key = (function, receiver)
        known = self._bound.get(key)
        if known is None:
            known = self._bound[key] = BoundMethod(function, receiver)
        return known

    def builtin_method(self, owner: Value, name: str) -> BuiltinMethod:
        """Return the method of a built-in object, always the same one."""
        key = (owner, name)
        known = self._methods.get(key)
        if known is None:
            known = self._methods[key] = BuiltinMethod(owner, name)
        return known

    def container(self, kind: str, length: int | None = None) -> ContainerValue:
        """Return a new, empty container."""
        solver = self.solver
        keys = solver.variable() if kind == "dict" else NOTHING
        made = ContainerValue(kind, solver.variable(), solver.variable(), keys, length=length)
        solver.copy(made.unplaced, made.items)
        return made

    def place(self, container: ContainerValue, key: object) -> Variable:
        """Return the variable of the values that a container holds under a constant key."""
        known = container.places.get(key)
        if known is None:
            known = container.places[key] = self.solver.variable()
            self.solver.copy(known, container.items)
        return known

    def field(self, owner: Value, name: str) -> Variable:
        """Return the variable of the values stored as attribute `name` of `owner` or its instances."""
        key = (owner, name)
        known = self._fields.get(key)
        if known is None:
            known = self._fields[key] = self.solver.narrow()
        return known

    def fields_seen(self, cls: Class, name: str, *, exact: bool) -> Variable:
        """Return the variable for the values of an instance attribute, stored through its class or a base.

        If the instance is not `exact`, values stored through up to `MOST_SUBCLASSES` subclasses are included.
        """
        key = (cls, name, exact)
        known = self._views.get(key)
        if known is None:
            known = self._views[key] = self.solver.variable()
            for owner in cls.mro:
                self.solver.copy(self.field(owner, name), known)
            if not exact:
                for owner in cls.subclasses[:MOST_SUBCLASSES]:
                    self.solver.copy(self.field(owner, name), known)
        return known


def class_of(value: Value) -> Class | None:
    """Return the class of an instance or a `super()`, or the one that a class value represents; else None."""
    if isinstance(value, Class):
        return value
    return getattr(value, "cls", None) if not isinstance(value, Function) else None


def as_class(value: Value) -> Value:
    """Return the value of `type(value)` for an instance; other values are returned unchanged."""
    cls = class_of(value)
    if cls is None or isinstance(value, Class | OpenClass):
        return value
    return cls if getattr(value, "exact", False) else cls.open
