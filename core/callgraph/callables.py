"""Calls of code in the sources: the parameters that arguments reach, and the results returned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gistpoint.core.callgraph.calls import Calls
from gistpoint.core.callgraph.containers import Containers
from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.program import CallSite, Program
from gistpoint.core.callgraph.values import (
    NOTHING,
    Arguments,
    BoundMethod,
    Class,
    ContainerValue,
    Function,
    Instance,
    Object,
    OpenClass,
    Partial,
    Property,
    PropertySlot,
    Value,
    Variable,
    Wrapped,
)

_MOST_PLACES = 8
_MOST_PARTIALS = 3


class Callables:
    """The calls to functions, methods, classes and instances of the sources."""

    def __init__(self, program: Program, calls: Calls, containers: Containers) -> None:
        self.program = program
        self.solver = program.solver
        self.calls = calls
        self.containers = containers
        calls.register(self._function, Function)
        calls.register(self._bound, BoundMethod)
        calls.register(self._class, Class, OpenClass)
        calls.register(self._instance, Instance)
        calls.register(self._partial, Partial)
        calls.register(self._property, PropertySlot)
        calls.register(self._wrapped, Wrapped)
        calls.register(self._opaque, Object)

    def _partial(self, call: CallSite, value: Partial) -> None:
        if value in call.partials or len(call.partials) == _MOST_PARTIALS:
            return  # as in a loop over `f = partial(f, 1)`, whose variable holds the partial object itself
        arguments, partials = call.arguments.after(value.arguments), (*call.partials, value)
        self.calls.run(replace(call, arguments=arguments, partials=partials), value.callee)

    def _wrapped(self, call: CallSite, value: Wrapped) -> None:
        self._function(call, value.function)

    def _instance(self, call: CallSite, value: Instance) -> None:
        if not self.calls.special(call, value, "__call__") and call.found is CallEvidence.DECORATOR:
            self._opaque(call, value)

    def _function(self, call: CallSite, function: Function) -> None:
        found = call.found or (CallEvidence.DIRECT if call.name == function.name else CallEvidence.FLOW)
        self.program.emit(call.caller, function, found)
        self._bind(call, function, 0)

    def _bound(self, call: CallSite, value: BoundMethod) -> None:
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
                if isinstance(item, ContainerValue):
                    self.solver.add(self.program.place(item, ("int", 0)), receiver)
        self._bind(call, function, 1)

    def _found(self, call: CallSite, function: Function, receiver: Value) -> CallEvidence:
        cls = receiver if isinstance(receiver, Class) else getattr(receiver, "cls", None)
        owner = function.cls
        if isinstance(cls, Class) and owner not in (None, *cls.mro):
            return CallEvidence.OVERRIDE
        if call.found is not None:
            return call.found
        is_named = call.name in (function.name, "") or function.name == "__call__"
        return CallEvidence.METHOD if is_named else CallEvidence.FLOW

    def _bind(self, call: CallSite, function: Function, given: int) -> None:
        """Bind arguments to parameters after the first `given`, and the function's result to the call."""
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

    def _give(self, call: CallSite, function: Function, name: str, variable: Variable) -> None:
        self.solver.copy(variable, function.parameters[name])
        if name in function.passes_through:
            self.solver.copy(variable, call.result)

    def _give_rest(self, function: Function, place: int, variable: Variable) -> None:
        key = ("int", place) if 0 <= place < _MOST_PLACES else None
        self.containers.put(function.rest, key, variable)

    def _give_starred(
        self, call: CallSite, function: Function, names: list[str], start: int, variable: Variable
    ) -> None:
        for place, name in enumerate(names[start : start + _MOST_PLACES]):
            self._give(call, function, name, self.containers.get(variable, ("int", place)))
        if function.rest != NOTHING:
            if not names:
                self.containers.merge(variable, function.rest)
            else:
                self.containers.put(function.rest, None, self.containers.items(variable))

    def _class(self, call: CallSite, value: Class | OpenClass) -> None:
        cls = value if isinstance(value, Class) else value.cls
        exact = isinstance(value, Class)
        made = cls.instance if exact else cls.open_instance
        self.solver.add(call.result, made)
        inner = CallSite(call.scope, cls.name, call.arguments, NOTHING, CallEvidence.CONSTRUCTOR)
        if not self.calls.special(inner, made, "__init__") and cls.data_fields:
            self._set_fields(call, cls)
        self.calls.special(
            CallSite(call.scope, "__post_init__", Arguments(), NOTHING, CallEvidence.CONSTRUCTOR),
            made,
            "__post_init__",
        )
        for _, variable in self.calls.versions(cls, "__new__", exact=exact):
            class_variable = self.solver.holding(value)
            given = call.arguments.after(Arguments([class_variable]))
            self.calls.run(CallSite(call.scope, "", given, call.result, CallEvidence.CONSTRUCTOR), variable)

    def _set_fields(self, call: CallSite, cls: Class) -> None:
        """Store the arguments of a data class, a named tuple or the like in its declared fields."""
        names = [name for owner in reversed(cls.mro) for name in owner.data_fields]
        for place, variable in enumerate(call.arguments.positional[: len(names)]):
            self.program.stored_names.add(names[place])
            self.solver.copy(variable, self.program.field(cls, names[place]))
        for name, variable in call.arguments.named.items():
            if name in names:
                self.program.stored_names.add(name)
                self.solver.copy(variable, self.program.field(cls, name))

    def _property(self, call: CallSite, value: PropertySlot) -> None:
        given = call.arguments.positional[0] if call.arguments.positional else NOTHING
        owner = value.owner
        made = Property(
            given if value.slot == "getter" else owner.getter,
            given if value.slot == "setter" else owner.setter,
            given if value.slot == "deleter" else owner.deleter,
        )
        self.solver.add(call.result, made)

    def _opaque(self, call: CallSite, _: Value) -> None:
        """Run a call to an unknown value: as a decorator, it is assumed to return its argument."""
        if len(call.arguments.positional) == 1:
            self.solver.watch(call.arguments.positional[0], partial(self._returned, call))
        if call.found is not CallEvidence.DECORATOR:
            self.solver.add(call.result, self.program.opaque(""))

    def _returned(self, call: CallSite, value: Value) -> None:
        if call.found is CallEvidence.DECORATOR or isinstance(value, Function | BoundMethod):
            self.solver.add(call.result, value)


def _narrowed(function: Function, receiver: Value) -> Value:
    """Return the receiver as its method sees it: an instance of a subclass that overrides the method."""
    cls = function.cls
    if not isinstance(receiver, Instance | OpenClass):
        return receiver
    if cls is None or cls in receiver.cls.mro:
        return receiver
    return cls.open_instance if isinstance(receiver, Instance) else cls.open
