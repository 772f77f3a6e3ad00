"""Calls to the values of a variable, which a runner carries out for each kind of callable value.

Special methods are looked up on the class of the receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gistpoint.core.callgraph.program import MOST_SUBCLASSES, CallSite, Program, as_class
from gistpoint.core.callgraph.values import Class, Function, Instance, Value, Variable

#: Runs a call on a value of the kind for which it is registered.
Runner = Callable[[CallSite, Any], None]


class Calls:
    """The runners of calls by kind of value; values of a kind without a runner can't be called."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver = program.solver
        self._runners: dict[type[Value], Runner] = {}

    def register(self, runner: Runner, *kinds: type[Value]) -> None:
        """Register the runner for calls to values of these kinds."""
        self._runners.update(dict.fromkeys(kinds, runner))

    def run(self, call: CallSite, callee: Variable) -> None:
        """Run `call` on every value of `callee`."""
        self.solver.watch(callee, partial(self.apply, call))

    def apply(self, call: CallSite, value: Value) -> None:
        """Run `call` on one value."""
        runner = self._runners.get(type(value))
        if runner is not None:
            runner(call, value)

    def versions(self, cls: Class, name: str, *, exact: bool) -> Iterator[tuple[Class, Variable]]:
        """Yield the classes that define the attribute `name` of an instance, each with its variable.

        These are the first such class in the resolution order of `cls`, and classes that define the attribute
        for subclasses. The latter count only if the instance may be of a subclass (not `exact`), and `cls`
        has no such attribute or an abstract one: in other cases, runs confirmed too few of the calls.
        """
        if name not in self.program.class_names:
            return
        first = first_with(cls.mro, name)
        if first is not None:
            yield first, self.program.name_variable(first.scope, name)
        if exact:
            return
        seen = {first}
        if first is not None and name not in first.abstract_names:
            return
        for sub in cls.subclasses[:MOST_SUBCLASSES]:
            other = first_with(sub.mro, name)
            if other is not None and other not in seen:
                seen.add(other)
                yield other, self.program.name_variable(other.scope, name)

    def special(self, call: CallSite, receiver: Value, name: str) -> bool:
        """Run `call` on the special method `name` of an instance's class; return whether it exists."""
        if not isinstance(receiver, Instance):
            return False
        found = False
        for _, variable in self.versions(receiver.cls, name, exact=receiver.exact):
            found = True
            self.solver.watch(variable, partial(self.apply_bound, call, receiver))
        return found

    def protocol(self, call: CallSite, receiver: Variable, name: str) -> None:
        """Run `call` on the special method `name` of the instances that `receiver` may hold."""
        if name in self.program.class_names:
            self.solver.watch(receiver, partial(self._protocol, call, name))

    def _protocol(self, call: CallSite, name: str, value: Value) -> None:
        self.special(call, value, name)

    def apply_bound(self, call: CallSite, receiver: Value, value: Value) -> None:
        """Run `call` on one value found on the class of `receiver`."""
        if isinstance(value, Function) and not value.is_static:
            value = self.program.bound(value, as_class(receiver) if value.is_class_method else receiver)
        self.apply(call, value)


def first_with(order: tuple[Class, ...], name: str) -> Class | None:
    """Return the first class of a method resolution order that binds `name`; None if there is none."""
    return next((cls for cls in order if name in cls.scope.bound), None)
