"""Attributes of values: how they are read, written and deleted, and the calls that this causes."""

from __future__ import annotations

from functools import partial

from gistpoint.core.callgraph.calls import Calls, first_with
from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.program import MOST_SUBCLASSES, CallSite, Program, as_class
from gistpoint.core.callgraph.values import (
    NOTHING,
    AnalysisScope,
    Arguments,
    BuiltinMethod,
    Class,
    Constant,
    ContainerValue,
    Function,
    Generated,
    Instance,
    ModuleValue,
    Object,
    OpenClass,
    Outside,
    Property,
    PropertySlot,
    SuperProxy,
    Text,
    Value,
    Variable,
    Wrapped,
)


class Attributes:
    """Reads, writes and deletions of attributes, and the calls that they cause, such as of properties."""

    def __init__(self, program: Program, calls: Calls) -> None:
        self.program = program
        self.solver = program.solver
        self.calls = calls

    def load(self, scope: AnalysisScope, base: Variable, name: str) -> Variable:
        """Return the variable of `base.name`, read in `scope`."""
        result = self.solver.variable()
        self.solver.watch(base, partial(self.read, scope, name, result))
        return result

    def read(self, scope: AnalysisScope, name: str, result: Variable, value: Value) -> None:
        """Add the attribute `name` of one value to `result`."""
        if isinstance(value, Instance):
            self._read_instance(scope, name, result, value)
        elif isinstance(value, Class | OpenClass):
            self._read_class(scope, name, result, value)
        elif isinstance(value, ModuleValue):
            self.read_module(name, result, value)
        elif isinstance(value, Outside):
            self.solver.add(result, self.program.outside(f"{value.name}.{name}"))
        elif isinstance(value, SuperProxy):
            self._read_super(scope, name, result, value)
        elif isinstance(value, ContainerValue | Generated | Constant | Text):
            self.solver.add(result, self.program.builtin_method(value, name))
        elif isinstance(value, Object):
            made = self.program.builtin_method(value, name) if value.type_name else value
            self.solver.add(result, made)
        elif isinstance(value, Property) and name in ("getter", "setter", "deleter"):
            self.solver.add(result, PropertySlot(value, name))
        elif isinstance(value, Function) and name in self.program.stored_names:
            self.solver.copy(self.program.field(value, name), result)
        elif isinstance(value, BuiltinMethod):
            self.solver.add(result, self.program.opaque(""))

    def _read_instance(self, scope: AnalysisScope, name: str, result: Variable, value: Instance) -> None:
        if name in self.program.stored_names:
            seen = self.program.fields_seen(value.cls, name, exact=value.exact)
            self.solver.copy(seen, result)
        found = False
        for _, variable in self.calls.versions(value.cls, name, exact=value.exact):
            found = True
            self.solver.watch(variable, partial(self._bind, scope, result, value))
        if name == "__class__":
            self.solver.add(result, as_class(value))
        elif not found and self._may_be_computed(name):
            arguments = Arguments([self.solver.holding(self.program.constant(name))])
            call = CallSite(scope, "__getattr__", arguments, result, CallEvidence.PROTOCOL)
            self.calls.special(call, value, "__getattr__")
            if value.cls.outside_bases:
                self.solver.add(result, self.program.opaque(""))

    def _may_be_computed(self, name: str) -> bool:
        """Return whether `__getattr__` may supply a name: no code assigns it, and it has no leading `__`."""
        return name not in self.program.written_names and not name.startswith("__")

    def _bind(self, scope: AnalysisScope, result: Variable, receiver: Value, value: Value) -> None:
        """Let `result` hold the value of a class attribute read through `receiver`."""
        if isinstance(value, Function):
            if value.is_static:
                self.solver.add(result, value)
            elif value.is_class_method:
                self.solver.add(result, self.program.bound(value, as_class(receiver)))
            else:
                self.solver.add(result, self.program.bound(value, receiver))
        elif isinstance(value, Wrapped):
            made = value.function if value.static else self.program.bound(value.function, as_class(receiver))
            self.solver.add(result, made)
        elif isinstance(value, Property):
            call = CallSite(scope, "", Arguments(), result, CallEvidence.PROPERTY)
            self.solver.watch(value.getter, partial(self.calls.apply_bound, call, receiver))
        elif self._is_descriptor(value):
            owner = self.solver.holding(as_class(receiver))
            call = CallSite(
                scope,
                "__get__",
                Arguments([self.solver.holding(receiver), owner]),
                result,
                CallEvidence.PROTOCOL,
            )
            self.calls.special(call, value, "__get__")
        else:
            self.solver.add(result, value)

    def _is_descriptor(self, value: Value) -> bool:
        # The set of names comes first: most programs define no `__get__` at all.
        if "__get__" not in self.program.class_names or not isinstance(value, Instance):
            return False
        return first_with(value.cls.mro, "__get__") is not None

    def _read_class(
        self, scope: AnalysisScope, name: str, result: Variable, value: Class | OpenClass
    ) -> None:
        cls = value if isinstance(value, Class) else value.cls
        if name in self.program.stored_names:
            self.solver.copy(self.program.fields_seen(cls, name, exact=isinstance(value, Class)), result)
        for _, variable in self.calls.versions(cls, name, exact=isinstance(value, Class)):
            self.solver.watch(variable, partial(self._bind_class, result, value))
            if any(base.endswith(("Enum", "Flag")) for owner in cls.mro for base in owner.outside_bases):
                self.solver.add(result, cls.instance)

    def _bind_class(self, result: Variable, receiver: Class | OpenClass, value: Value) -> None:
        if isinstance(value, Function) and value.is_class_method:
            self.solver.add(result, self.program.bound(value, receiver))
        elif isinstance(value, Wrapped):
            made = value.function if value.static else self.program.bound(value.function, receiver)
            self.solver.add(result, made)
        else:
            self.solver.add(result, value)

    def read_module(
        self, name: str, result: Variable, value: ModuleValue, *, submodule_first: bool = False
    ) -> None:
        """Let `result` hold the values of a module's name, or a submodule if the name is not bound.

        With `submodule_first`, a submodule takes precedence over a bound name.
        """
        submodule = self.program.hierarchy.submodule(value, name)
        scope = value.scope
        if scope is not None and name not in scope.bound and name not in scope.variables:
            scope = None
        if submodule is not None and (submodule_first or scope is None):
            self.solver.add(result, submodule)
        elif scope is not None:
            self.solver.copy(self.program.name_variable(scope, name), result)

    def _read_super(self, scope: AnalysisScope, name: str, result: Variable, value: SuperProxy) -> None:
        receiver = value.receiver
        own = receiver.cls if isinstance(receiver, Instance | OpenClass) else receiver
        if not isinstance(own, Class):
            return
        exact = receiver.exact if isinstance(receiver, Instance) else isinstance(receiver, Class)
        orders = [own.mro]
        if not exact:
            # Which class comes next in the order depends on the subclass of the instance.
            orders += [sub.mro for sub in own.subclasses[:MOST_SUBCLASSES]]
        seen: set[Class] = set()
        for mro in orders:
            if value.cls not in mro:
                continue
            found = first_with(mro[mro.index(value.cls) + 1 :], name)
            if found is not None and found not in seen:
                seen.add(found)
                variable = self.program.name_variable(found.scope, name)
                self.solver.watch(variable, partial(self._bind, scope, result, receiver))
        if not seen:
            self.solver.add(result, self.program.opaque("super"))

    def store(self, scope: AnalysisScope, base: Variable, name: str, source: Variable) -> None:
        """Let `base.name`, written in `scope`, hold the values of `source`."""
        self.solver.watch(base, partial(self._write, scope, name, source))

    def _write(self, scope: AnalysisScope, name: str, source: Variable, value: Value) -> None:
        if isinstance(value, Instance):
            self.solver.copy(source, self.program.field(value.cls, name))
            for _, variable in self.calls.versions(value.cls, name, exact=value.exact):
                self.solver.watch(variable, partial(self._computed, scope, value, source, "setter"))
            named = self.solver.holding(self.program.constant(name))
            call = CallSite(scope, "__setattr__", Arguments([named, NOTHING]), NOTHING, CallEvidence.PROTOCOL)
            self.calls.special(call, value, "__setattr__")
        elif isinstance(value, Class | OpenClass):
            cls = value if isinstance(value, Class) else value.cls
            self.solver.copy(source, self.program.field(cls, name))
        elif isinstance(value, ModuleValue) and value.scope is not None:
            self.solver.copy(source, self.program.name_variable(value.scope, name))
        elif isinstance(value, Function):
            self.solver.copy(source, self.program.field(value, name))

    def delete(self, scope: AnalysisScope, base: Variable, name: str) -> None:
        """Record the calls that `del base.name` makes."""
        self.solver.watch(base, partial(self._delete, scope, name))

    def _delete(self, scope: AnalysisScope, name: str, value: Value) -> None:
        if isinstance(value, Instance):
            for _, variable in self.calls.versions(value.cls, name, exact=value.exact):
                self.solver.watch(variable, partial(self._computed, scope, value, NOTHING, "deleter"))
            named = self.solver.holding(self.program.constant(name))
            call = CallSite(scope, "__delattr__", Arguments([named]), NOTHING, CallEvidence.PROTOCOL)
            self.calls.special(call, value, "__delattr__")

    def _computed(
        self, scope: AnalysisScope, receiver: Instance, source: Variable, slot: str, value: Value
    ) -> None:
        if isinstance(value, Property):
            call = CallSite(
                scope, "", Arguments([] if slot == "deleter" else [source]), NOTHING, CallEvidence.PROPERTY
            )
            function = value.setter if slot == "setter" else value.deleter
            self.solver.watch(function, partial(self.calls.apply_bound, call, receiver))
        elif isinstance(value, Instance) and slot == "setter":
            arguments = Arguments([self.solver.holding(receiver), source])
            self.calls.special(
                CallSite(scope, "__set__", arguments, NOTHING, CallEvidence.PROTOCOL), value, "__set__"
            )
