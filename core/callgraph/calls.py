"""Attributes and calls: what is looked up, what is called, which parameters arguments reach, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from gistpoint.core.callgraph.containers import Containers
from gistpoint.core.callgraph.graph import Found
from gistpoint.core.callgraph.program import MOST_SUBCLASSES, Call, Program, as_class
from gistpoint.core.callgraph.values import (
    NOTHING,
    Arguments,
    Bound,
    Builtin,
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
    Partial,
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
    from gistpoint.core.callgraph.library import Library


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


_MOST_PLACES = 8


class Calls:
    """Runs calls on the values that reach a callee; `library` knows what is built in or from outside."""

    def __init__(self, program: Program, attributes: Attributes, containers: Containers) -> None:
        self.program = program
        self.solver = program.solver
        self.attributes = attributes
        self.containers = containers
        self.library: Library

    def run(self, call: Call, callee: Variable) -> None:
        """Run `call` on everything that `callee` may hold."""
        self.solver.watch(callee, partial(self.apply, call))

    def apply(self, call: Call, value: Value) -> None:
        """Run `call` on one value."""
        if isinstance(value, Function):
            self._function(call, value)
        elif isinstance(value, Bound):
            self._bound(call, value)
        elif isinstance(value, Class | OpenClass):
            self._class(call, value)
        elif isinstance(value, Instance):
            self._instance(call, value)
        elif isinstance(value, Builtin | Outside | BuiltinMethod):
            self.library.apply(call, value)
        elif isinstance(value, Partial):
            merged = Call(call.scope, call.name, call.arguments.after(value.arguments), call.result, call.found)
            self.solver.watch(value.callee, partial(self.apply, merged))
        elif isinstance(value, PropertySlot):
            self.solver.add(call.result, self._property(call, value))
        elif isinstance(value, Wrapped):
            self._function(call, value.function)
        elif isinstance(value, Object):
            self._opaque(call)

    def special(self, call: Call, receiver: Value, name: str) -> bool:
        """Run `call` on the special method `name` of an instance's class; whether there is one."""
        if not isinstance(receiver, Instance):
            return False
        found = False
        for _, variable in self.attributes.special(receiver.cls, name, exact=receiver.exact):
            found = True
            self.solver.watch(variable, partial(self.apply_bound, call, receiver))
        return found

    def protocol(self, call: Call, receiver: Variable, name: str) -> None:
        """Run `call` on the special method `name` of whatever instance `receiver` may hold."""
        if name in self.program.class_names:
            self.solver.watch(receiver, partial(self._protocol, call, name))

    def _protocol(self, call: Call, name: str, value: Value) -> None:
        self.special(call, value, name)

    def apply_bound(self, call: Call, receiver: Value, value: Value) -> None:
        """Run `call` on one value that was found on the class of `receiver`."""
        if isinstance(value, Function) and not value.is_static:
            value = self.program.bound(value, as_class(receiver) if value.is_class_method else receiver)
        self.apply(call, value)

    def _instance(self, call: Call, value: Instance) -> None:
        if not self.special(call, value, "__call__") and call.found is Found.DECORATOR:
            self._opaque(call)

    def _function(self, call: Call, function: Function) -> None:
        found = call.found or (Found.DIRECT if call.name == function.name else Found.FLOW)
        self.program.emit(call.caller, function, found)
        self.bind(call, function, 0)

    def _bound(self, call: Call, value: Bound) -> None:
        function, receiver = value.function, value.receiver
        self.program.emit(call.caller, function, self._found(call, function, receiver))
        receiver = _narrowed(function, receiver)
        if function.positional:
            first = function.positional[0]
            self.solver.add(function.parameters[first], receiver)
            if first in function.passes_through:
                self.solver.add(call.result, receiver)
        elif function.rest != NOTHING:
            for item in self.solver.values(function.rest):
                if isinstance(item, Container):
                    self.solver.add(self.program.place(item, ("int", 0)), receiver)
        self.bind(call, function, 1)

    def _found(self, call: Call, function: Function, receiver: Value) -> Found:
        cls = receiver if isinstance(receiver, Class) else getattr(receiver, "cls", None)
        if isinstance(cls, Class) and function.cls is not None and function.cls not in cls.mro:
            return Found.OVERRIDE
        if call.found is not None:
            return call.found
        return Found.METHOD if call.name in (function.name, "") or function.name == "__call__" else Found.FLOW

    def bind(self, call: Call, function: Function, given: int) -> None:
        """Let the parameters after the first `given` hold the arguments, and the result what is returned."""
        arguments = call.arguments
        names = function.positional[given:]
        for place, variable in enumerate(arguments.positional):
            if place < len(names):
                self._give(call, function, names[place], variable)
            elif function.rest != NOTHING and variable != NOTHING:
                self._give_rest(function, place - len(function.positional) + given, variable)
        for name, variable in arguments.named.items():
            if name in function.parameters:
                self._give(call, function, name, variable)
            elif function.keywords != NOTHING:
                self.containers.put(function.keywords, ("str", name), variable)
        for start, variable in arguments.starred:
            self._give_starred(call, function, names, start, variable)
        for variable in arguments.mappings:
            for name in [*names, *function.keyword_only]:
                self._give(call, function, name, self.containers.get(variable, ("str", name)))
            if function.keywords != NOTHING:
                self.containers.merge(variable, function.keywords)
        self.solver.copy(function.result, call.result)

    def _give(self, call: Call, function: Function, name: str, variable: Variable) -> None:
        self.solver.copy(variable, function.parameters[name])
        if name in function.passes_through:
            self.solver.copy(variable, call.result)

    def _give_rest(self, function: Function, place: int, variable: Variable) -> None:
        key = ("int", place) if 0 <= place < _MOST_PLACES else None
        self.containers.put(function.rest, key, variable)

    def _give_starred(self, call: Call, function: Function, names: list[str], start: int, variable: Variable) -> None:
        for place, name in enumerate(names[start : start + _MOST_PLACES]):
            self._give(call, function, name, self.containers.get(variable, ("int", place)))
        if function.rest != NOTHING:
            if not names:
                self.containers.merge(variable, function.rest)
            else:
                self.containers.put(function.rest, None, self.containers.items(variable))

    def _class(self, call: Call, value: Class | OpenClass) -> None:
        cls = value if isinstance(value, Class) else value.cls
        exact = isinstance(value, Class)
        made = cls.instance if exact else cls.open_instance
        self.solver.add(call.result, made)
        inner = Call(call.scope, cls.name, call.arguments, NOTHING, Found.CONSTRUCTOR)
        if not self.special(inner, made, "__init__") and cls.data_fields:
            self._set_fields(call, cls)
        self.special(Call(call.scope, "__post_init__", Arguments(), NOTHING, Found.CONSTRUCTOR), made, "__post_init__")
        for _, variable in self.attributes.special(cls, "__new__", exact=exact):
            class_variable = self.solver.holding(value)
            given = call.arguments.after(Arguments([class_variable]))
            self.solver.watch(
                variable, partial(self.apply, Call(call.scope, "", given, call.result, Found.CONSTRUCTOR))
            )

    def _set_fields(self, call: Call, cls: Class) -> None:
        """Store the arguments of a data class, a named tuple or the like in the fields that it declares."""
        names = [name for owner in reversed(cls.mro) for name in owner.data_fields]
        for place, variable in enumerate(call.arguments.positional[: len(names)]):
            self.program.stored_names.add(names[place])
            self.solver.copy(variable, self.program.field(cls, names[place]))
        for name, variable in call.arguments.named.items():
            if name in names:
                self.program.stored_names.add(name)
                self.solver.copy(variable, self.program.field(cls, name))

    def _property(self, call: Call, value: PropertySlot) -> Property:
        given = call.arguments.positional[0] if call.arguments.positional else NOTHING
        owner = value.owner
        return Property(
            given if value.slot == "getter" else owner.getter,
            given if value.slot == "setter" else owner.setter,
            given if value.slot == "deleter" else owner.deleter,
        )

    def _opaque(self, call: Call) -> None:
        """Run a call of something unknown: as a decorator it is taken to give back what it is given."""
        if len(call.arguments.positional) == 1:
            self.solver.watch(call.arguments.positional[0], partial(self._returned, call))
        if call.found is not Found.DECORATOR:
            self.solver.add(call.result, self.program.opaque(""))

    def _returned(self, call: Call, value: Value) -> None:
        if call.found is Found.DECORATOR or isinstance(value, Function | Bound):
            self.solver.add(call.result, value)

    def unknown_decorator(self, call: Call) -> None:
        """Treat a decorator of which nothing is known as one from outside."""
        self._opaque(call)


def _narrowed(function: Function, receiver: Value) -> Value:
    """Return the receiver as its method sees it: where a subclass's version runs, it is one of that subclass."""
    cls = function.cls
    if cls is None or not isinstance(receiver, Instance | OpenClass) or cls in receiver.cls.mro:
        return receiver
    return cls.open_instance if isinstance(receiver, Instance) else cls.open
