"""Lists, tuples, sets, dicts and iterators: items that are stored and read by key."""

from __future__ import annotations

from functools import partial

from gistpoint.core.callgraph.calls import Calls
from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.program import CallSite, Program
from gistpoint.core.callgraph.values import (
    NOTHING,
    AnalysisScope,
    Arguments,
    Class,
    Constant,
    ContainerValue,
    Generated,
    Instance,
    Object,
    OpenClass,
    Outside,
    Value,
    Variable,
)

#: A constant key: the name of its type and its value; None for an unknown key.
Key = tuple[str, object] | None


class Containers:
    """Reads and writes of items, iteration and unpacking; `calls` runs the special methods of instances."""

    def __init__(self, program: Program, calls: Calls) -> None:
        self.program = program
        self.solver = program.solver
        self.calls = calls

    def put(self, base: Variable, key: Key, source: Variable) -> None:
        """Let the containers in `base` hold the values of `source` under `key`."""
        if source != NOTHING:
            self.solver.watch(base, partial(self._put, key, source))

    def _put(self, key: Key, source: Variable, value: Value) -> None:
        if isinstance(value, ContainerValue):
            self.solver.copy(source, self._target(value, key))

    def _target(self, container: ContainerValue, key: Key) -> Variable:
        return container.unplaced if key is None else self.program.place(container, key)

    def get(self, base: Variable, key: Key) -> Variable:
        """Return the variable of the values in the containers of `base` under a key; None means any key."""
        result = self.solver.variable()
        self.solver.watch(base, partial(self._get, key, result))
        return result

    def _get(self, key: Key, result: Variable, value: Value) -> None:
        if not isinstance(value, ContainerValue):
            return
        match key:
            case ("int", int(place)) if place < 0:
                # A negative index counts from the end, which is known only if nothing was unpacked into the
                # container.
                key = None if value.length is None else ("int", place + value.length)
        if key is None:
            self.solver.copy(value.items, result)
            return
        self.solver.copy(self.program.place(value, key), result)
        self.solver.copy(value.unplaced, result)

    def items(self, base: Variable) -> Variable:
        """Return the variable of all items of the containers in `base`."""
        return self.get(base, None)

    def merge(self, source: Variable, target: Variable) -> None:
        """Let the containers in `target` hold the items of those in `source`, under the same keys."""
        self.solver.watch(target, partial(self._merge_into, source))

    def _merge_into(self, source: Variable, target: Value) -> None:
        if isinstance(target, ContainerValue):
            self.solver.watch(source, partial(self._merge, target))

    def _merge(self, target: ContainerValue, source: Value) -> None:
        if isinstance(source, ContainerValue) and source is not target:
            for key, variable in list(source.places.items()):
                self.solver.copy(variable, self.program.place(target, key))
            self.solver.copy(source.unplaced, target.unplaced)
            if target.keys != NOTHING:
                self.solver.copy(source.keys, target.keys)

    def subscript(self, scope: AnalysisScope, base: Variable, key: Key, index: Variable) -> Variable:
        """Return the variable of `base[index]`; `key` is the key of a constant index, None for any other."""
        result = self.solver.variable()
        call = CallSite(scope, "__getitem__", Arguments([index]), result, CallEvidence.PROTOCOL)
        self.solver.watch(base, partial(self._subscript, call, key, index))
        return result

    def _subscript(self, call: CallSite, key: Key, index: Variable, value: Value) -> None:
        if isinstance(value, ContainerValue):
            if key is not None or index == NOTHING:
                self._get(key, call.result, value)
            else:
                self.solver.watch(index, partial(self._by_constant, value, call.result))
                self.program.deferred.append(partial(self._by_any, value, index, call.result))
        elif isinstance(value, Instance):
            self.calls.special(call, value, "__getitem__")
        elif isinstance(value, Class | OpenClass | Outside):
            self.solver.add(call.result, value)
        elif isinstance(value, Object):
            self.solver.add(call.result, self.program.opaque(""))

    def _by_constant(self, container: ContainerValue, result: Variable, index: Value) -> None:
        if isinstance(index, Constant) and isinstance(index.value, tuple):
            self._get(index.value, result, container)

    def _by_any(self, container: ContainerValue, index: Variable, result: Variable) -> None:
        if not any(isinstance(value, Constant) for value in self.solver.values(index)):
            self.solver.copy(container.items, result)

    def store(
        self, scope: AnalysisScope, base: Variable, key: Key, index: Variable, source: Variable
    ) -> None:
        """Record `base[index] = source`."""
        call = CallSite(scope, "__setitem__", Arguments([index, source]), NOTHING, CallEvidence.PROTOCOL)
        self.solver.watch(base, partial(self._store, call, key, index, source))

    def _store(self, call: CallSite, key: Key, index: Variable, source: Variable, value: Value) -> None:
        if isinstance(value, Instance):
            self.calls.special(call, value, "__setitem__")
        elif isinstance(value, ContainerValue):
            if value.keys != NOTHING:
                self.solver.copy(index, value.keys)
            if key is not None or index == NOTHING:
                self.solver.copy(source, self._target(value, key))
            else:
                self.solver.watch(index, partial(self._store_by, value, source))
                self.program.deferred.append(partial(self._store_any, value, index, source))

    def _store_by(self, container: ContainerValue, source: Variable, index: Value) -> None:
        if isinstance(index, Constant):
            self.solver.copy(source, self.program.place(container, index.value))

    def _store_any(self, container: ContainerValue, index: Variable, source: Variable) -> None:
        if not any(isinstance(value, Constant) for value in self.solver.values(index)):
            self.solver.copy(source, container.unplaced)

    def iterate(self, scope: AnalysisScope, base: Variable, *, asynchronous: bool = False) -> Variable:
        """Return the variable of the items in a loop over `base`; `asynchronous` for an `async for`."""
        result = self.solver.variable()
        self.solver.watch(base, partial(self._iterate, scope, result, asynchronous))
        return result

    def _iterate(self, scope: AnalysisScope, result: Variable, asynchronous: bool, value: Value) -> None:
        if isinstance(value, ContainerValue):
            self.solver.copy(value.keys if value.keys != NOTHING else value.items, result)
        elif isinstance(value, Generated):
            self.solver.copy(value.items, result)
        elif isinstance(value, Instance):
            begin, step = ("__aiter__", "__anext__") if asynchronous else ("__iter__", "__next__")
            made = self.solver.variable()
            if self.calls.special(
                CallSite(scope, begin, Arguments(), made, CallEvidence.PROTOCOL), value, begin
            ):
                self.solver.watch(
                    made,
                    partial(self._advance, CallSite(scope, step, Arguments(), result, CallEvidence.PROTOCOL)),
                )
            else:
                self.calls.special(
                    CallSite(scope, "__getitem__", Arguments([NOTHING]), result, CallEvidence.PROTOCOL),
                    value,
                    "__getitem__",
                )
        elif isinstance(value, Class):
            self.solver.add(result, value.instance)
        elif isinstance(value, Object):
            self.solver.add(result, self.program.opaque(""))

    def _advance(self, call: CallSite, value: Value) -> None:
        if isinstance(value, ContainerValue | Generated):
            self.solver.copy(value.items, call.result)
        elif isinstance(value, Instance):
            self.calls.special(call, value, call.name)

    def advance(self, scope: AnalysisScope, base: Variable) -> Variable:
        """Return the variable of the result of `next(base)`."""
        result = self.solver.variable()
        self.solver.watch(
            base,
            partial(self._advance, CallSite(scope, "__next__", Arguments(), result, CallEvidence.PROTOCOL)),
        )
        return result

    def slice(self, scope: AnalysisScope, base: Variable, start: int | None) -> Variable:
        """Return the variable of `base[start:…]`; `start` is None unless the slice starts at a constant."""
        result = self.solver.variable()
        made = self.program.container("list")
        call = CallSite(scope, "__getitem__", Arguments([NOTHING]), result, CallEvidence.PROTOCOL)
        self.solver.watch(base, partial(self._slice, call, made, start))
        return result

    def _slice(self, call: CallSite, made: ContainerValue, start: int | None, value: Value) -> None:
        if isinstance(value, ContainerValue):
            self.solver.add(call.result, made)
            if start is None or start < 0:
                self.solver.copy(value.items, made.unplaced)
                return
            for key, variable in list(value.places.items()):
                match key:
                    case (_, int(place)) if place >= start:
                        self.solver.copy(variable, self.program.place(made, ("int", place - start)))
            self.solver.copy(value.unplaced, made.unplaced)
        elif isinstance(value, Instance):
            self.calls.special(call, value, "__getitem__")
        elif isinstance(value, Object | Constant):
            self.solver.add(call.result, value if isinstance(value, Object) else self.program.opaque("str"))
