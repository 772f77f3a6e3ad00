"""Attributes: looked up along the method resolution order, bound to their receiver, computed or stored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gistpoint.core.callgraph.graph import Found
from gistpoint.core.callgraph.program import MOST_SUBCLASSES, Call, Program, as_class
from gistpoint.core.callgraph.values import (
    NOTHING,
    Arguments,
    BuiltinMethod,
    Class,
    Constant,
    Container,
    Function,
    Generated,
    Instance,
    Module,
    Object,
    OpenClass,
    Outside,
    Property,
    PropertySlot,
    Scope,
    SuperProxy,
    Text,
    Value,
    Variable,
    Wrapped,
)

if TYPE_CHECKING:
    from gistpoint.core.callgraph.calls import Calls


class Attributes:
    """Reads and writes of attributes; `calls` runs what computes them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver = program.solver
        self.calls: Calls

    def load(self, scope: Scope, base: Variable, name: str) -> Variable:
        """Return the variable of `base.name`, read in `scope`."""
        result = self.solver.variable()
        self.solver.watch(base, partial(self.read, scope, name, result))
        return result

    def read(self, scope: Scope, name: str, result: Variable, value: Value) -> None:
        """Let `result` hold the attribute of one value."""
        if isinstance(value, Instance):
            self._read_instance(scope, name, result, value)
        elif isinstance(value, Class | OpenClass):
            self._read_class(scope, name, result, value)
        elif isinstance(value, Module):
            self.read_module(name, result, value)
        elif isinstance(value, Outside):
            self.solver.add(result, self.program.outside(f"{value.name}.{name}"))
        elif isinstance(value, SuperProxy):
            self._read_super(scope, name, result, value)
        elif isinstance(value, Container | Generated | Constant | Text):
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

    def special(self, cls: Class, name: str, *, exact: bool) -> Iterator[tuple[Class, Variable]]:
        """Yield the class attributes `name` of an instance: the one that its class has, and those of subclasses.

        Those count only where the instance may be of a subclass, and its class has none or an abstract one: elsewhere
        a run confirmed too few of them.
        """
        if name not in self.program.class_names:
            return
        first = _first(cls.mro, name)
        if first is not None:
            yield first, self.program.name_variable(first.scope, name)
        if exact:
            return
        seen = {first}
        if first is not None and name not in first.abstract_names:
            return
        for sub in cls.subclasses[:MOST_SUBCLASSES]:
            other = _first(sub.mro, name)
            if other is not None and other not in seen:
                seen.add(other)
                yield other, self.program.name_variable(other.scope, name)

    def _read_instance(self, scope: Scope, name: str, result: Variable, value: Instance) -> None:
        if name in self.program.stored_names:
            seen = self.program.fields_seen(value.cls, name, exact=value.exact)
            self.solver.copy(seen, result)
        found = False
        for _, variable in self.special(value.cls, name, exact=value.exact):
            found = True
            self.solver.watch(variable, partial(self._bind, scope, result, value))
        if name == "__class__":
            self.solver.add(result, as_class(value))
        elif not found and name not in self.program.written_names and not name.startswith("__"):
            arguments = Arguments([self.solver.holding(self.program.constant(name))])
            call = Call(scope, "__getattr__", arguments, result, Found.PROTOCOL)
            self.calls.special(call, value, "__getattr__")
            if value.cls.outside_bases:
                self.solver.add(result, self.program.opaque(""))

    def _bind(self, scope: Scope, result: Variable, receiver: Value, value: Value) -> None:
        """Let `result` hold what a class attribute is when it is read through `receiver`."""
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
            call = Call(scope, "", Arguments(), result, Found.PROPERTY)
            self.solver.watch(value.getter, partial(self.calls.apply_bound, call, receiver))
        elif isinstance(value, Instance) and "__get__" in self.program.class_names and self._has(value.cls, "__get__"):
            owner = self.solver.holding(as_class(receiver))
            call = Call(scope, "__get__", Arguments([self.solver.holding(receiver), owner]), result, Found.PROTOCOL)
            self.calls.special(call, value, "__get__")
        else:
            self.solver.add(result, value)

    def _has(self, cls: Class, name: str) -> bool:
        return _first(cls.mro, name) is not None

    def _read_class(self, scope: Scope, name: str, result: Variable, value: Class | OpenClass) -> None:
        cls = value if isinstance(value, Class) else value.cls
        if name in self.program.stored_names:
            self.solver.copy(self.program.fields_seen(cls, name, exact=isinstance(value, Class)), result)
        for _, variable in self.special(cls, name, exact=isinstance(value, Class)):
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

    def read_module(self, name: str, result: Variable, value: Module, *, submodule_first: bool = False) -> None:
        """Let `result` hold what a module's name does; a module of a package where no name is bound to it."""
        submodule = self.program.hierarchy.submodule(value, name)
        bound = value.scope is not None and (name in value.scope.bound or name in value.scope.variables)
        if submodule is not None and (submodule_first or not bound):
            self.solver.add(result, submodule)
        elif value.scope is not None and bound:
            self.solver.copy(self.program.name_variable(value.scope, name), result)

    def _read_super(self, scope: Scope, name: str, result: Variable, value: SuperProxy) -> None:
        receiver = value.receiver
        own = receiver.cls if isinstance(receiver, Instance | OpenClass) else receiver
        if not isinstance(own, Class):
            return
        exact = isinstance(receiver, Class) or (isinstance(receiver, Instance) and receiver.exact)
        orders = [own.mro] if exact else [own.mro, *(sub.mro for sub in own.subclasses[:MOST_SUBCLASSES])]
        seen: set[Class] = set()
        for mro in orders:
            if value.cls not in mro:
                continue
            found = _first(mro[mro.index(value.cls) + 1 :], name)
            if found is not None and found not in seen:
                seen.add(found)
                variable = self.program.name_variable(found.scope, name)
                self.solver.watch(variable, partial(self._bind, scope, result, receiver))
        if not seen:
            self.solver.add(result, self.program.opaque("super"))

    def store(self, scope: Scope, base: Variable, name: str, source: Variable) -> None:
        """Let `base.name`, written in `scope`, hold what `source` does."""
        self.solver.watch(base, partial(self._write, scope, name, source))

    def _write(self, scope: Scope, name: str, source: Variable, value: Value) -> None:
        if isinstance(value, Instance):
            self.solver.copy(source, self.program.field(value.cls, name))
            for _, variable in self.special(value.cls, name, exact=value.exact):
                self.solver.watch(variable, partial(self._computed, scope, value, source, "setter"))
            named = self.solver.holding(self.program.constant(name))
            call = Call(scope, "__setattr__", Arguments([named, NOTHING]), NOTHING, Found.PROTOCOL)
            self.calls.special(call, value, "__setattr__")
        elif isinstance(value, Class | OpenClass):
            cls = value if isinstance(value, Class) else value.cls
            self.solver.copy(source, self.program.field(cls, name))
        elif isinstance(value, Module) and value.scope is not None:
            self.solver.copy(source, self.program.name_variable(value.scope, name))
        elif isinstance(value, Function):
            self.solver.copy(source, self.program.field(value, name))

    def delete(self, scope: Scope, base: Variable, name: str) -> None:
        """Note what `del base.name` calls."""
        self.solver.watch(base, partial(self._delete, scope, name))

    def _delete(self, scope: Scope, name: str, value: Value) -> None:
        if isinstance(value, Instance):
            for _, variable in self.special(value.cls, name, exact=value.exact):
                self.solver.watch(variable, partial(self._computed, scope, value, NOTHING, "deleter"))
            named = self.solver.holding(self.program.constant(name))
            call = Call(scope, "__delattr__", Arguments([named]), NOTHING, Found.PROTOCOL)
            self.calls.special(call, value, "__delattr__")

    def _computed(self, scope: Scope, receiver: Instance, source: Variable, slot: str, value: Value) -> None:
        if isinstance(value, Property):
            call = Call(scope, "", Arguments([] if slot == "deleter" else [source]), NOTHING, Found.PROPERTY)
            function = value.setter if slot == "setter" else value.deleter
            self.solver.watch(function, partial(self.calls.apply_bound, call, receiver))
        elif isinstance(value, Instance) and slot == "setter":
            arguments = Arguments([self.solver.holding(receiver), source])
            self.calls.special(Call(scope, "__set__", arguments, NOTHING, Found.PROTOCOL), value, "__set__")


def _first(order: tuple[Class, ...], name: str) -> Class | None:
    return next((cls for cls in order if name in cls.scope.bound), None)
