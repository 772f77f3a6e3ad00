"""Values flowing between variables until nothing changes.

Inclusion constraints, as in Andersen's points-to analysis, with bounds that keep the work near linear and the calls
believable: a variable holds at most `MOST_VALUES` functions and classes (a table of them is a common thing), no more
than `MOST_NARROW` once they have met from many places, as in a parameter, nor of objects; and no more values that
matter little to calls (constants, containers, built-in objects) once it holds `MOST_MINOR`. What comes later is
dropped, in an order that depends on the sources alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gistpoint.core.callgraph.values import (
    NOTHING,
    BuiltinMethod,
    Class,
    Constant,
    Container,
    Function,
    Object,
    Outside,
    Text,
    Value,
    Variable,
)

MOST_VALUES = 24
MOST_NARROW = 6
MOST_MINOR = 5

_MINOR = frozenset({Constant, Container, Object, BuiltinMethod, Outside, Text})
_MANY = frozenset({Function, Class})

Watcher = Callable[[Value], None]


class Solver:
    """Variables, the copies between them, and watchers that are told of each new value of a variable."""

    def __init__(self) -> None:
        self._values: list[dict[Value, None] | None] = []
        self._targets: list[dict[Variable, None] | None] = []
        self._watchers: list[list[Watcher] | None] = []
        self._fresh: list[list[Value] | None] = []
        self._pending: deque[Variable] = deque()
        self._narrow: set[Variable] = set()
        self._holders: dict[Value, Variable] = {}

    def narrow(self) -> Variable:
        """Return a new variable for what meets from many places: a parameter, a result or a field."""
        variable = self.variable()
        self._narrow.add(variable)
        return variable

    def variable(self) -> Variable:
        """Return a new variable that holds nothing yet."""
        self._values.append(None)
        self._targets.append(None)
        self._watchers.append(None)
        self._fresh.append(None)
        return len(self._values) - 1

    def holding(self, value: Value) -> Variable:
        """Return a variable that holds `value`, the same one each time; nothing may be added to it."""
        known = self._holders.get(value)
        if known is None:
            known = self._holders[value] = self.variable()
            self.add(known, value)
        return known

    def values(self, variable: Variable) -> list[Value]:
        """Return what `variable` holds by now, in the order in which it came."""
        return list(self._values[variable] or ()) if variable != NOTHING else []

    def is_empty(self, variable: Variable) -> bool:
        """Whether nothing has come to `variable`."""
        return variable == NOTHING or not self._values[variable]

    def add(self, variable: Variable, value: Value) -> None:
        """Let `variable` hold `value` too."""
        if variable == NOTHING:
            return
        held = self._values[variable]
        if held is None:
            held = self._values[variable] = {}
        elif value in held or (len(held) >= MOST_MINOR and self._is_full(variable, len(held), type(value))):
            return
        held[value] = None
        fresh = self._fresh[variable]
        if fresh is None:
            self._fresh[variable] = [value]
            self._pending.append(variable)
        else:
            fresh.append(value)

    def _is_full(self, variable: Variable, held: int, kind: type[Value]) -> bool:
        if kind in _MINOR:
            return True
        return held >= (MOST_NARROW if kind not in _MANY or variable in self._narrow else MOST_VALUES)

    def copy(self, source: Variable, target: Variable) -> None:
        """Let `target` hold everything that `source` does."""
        if source in (NOTHING, target) or target == NOTHING:
            return
        targets = self._targets[source]
        if targets is None:
            targets = self._targets[source] = {}
        elif target in targets:
            return
        targets[target] = None
        for value in self._values[source] or ():
            self.add(target, value)

    def watch(self, variable: Variable, watcher: Watcher) -> None:
        """Call `watcher` with each value of `variable`, those that it holds already too."""
        if variable == NOTHING:
            return
        watchers = self._watchers[variable]
        if watchers is None:
            watchers = self._watchers[variable] = []
        watchers.append(watcher)
        held = self._values[variable]
        if held:
            fresh = self._fresh[variable] or ()  # what is still pending comes by `run`
            for value in list(held)[: len(held) - len(fresh)]:
                watcher(value)

    def run(self) -> None:
        """Propagate until nothing is pending."""
        pending, add = self._pending, self.add
        while pending:
            variable = pending.popleft()
            fresh = self._fresh[variable] or []
            self._fresh[variable] = None
            for target in self._targets[variable] or ():
                for value in fresh:
                    add(target, value)
            watchers = self._watchers[variable]
            if watchers:
                for watcher in watchers[:]:
                    for value in fresh:
                        watcher(value)
