"""Values flowing between variables until nothing changes.

Inclusion constraints, as in Andersen's points-to analysis, with two bounds that keep the work near linear: a variable
holds at most `MOST_VALUES`, and at most `MOST_CONSTANTS` of them are constants. What comes later is dropped, in an
order that depends on the sources alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gistpoint.core.callgraph.values import NOTHING, Constant, Value, Variable

MOST_VALUES = 24
MOST_CONSTANTS = 6

Watcher = Callable[[Value], None]


class Solver:
    """Variables, the copies between them, and watchers that are told of each new value of a variable."""

    def __init__(self) -> None:
        self._values: list[dict[Value, None] | None] = []
        self._targets: list[dict[Variable, None] | None] = []
        self._watchers: list[list[Watcher] | None] = []
        self._done: list[int] = []
        self._pending: deque[tuple[Variable, Value]] = deque()
        self._holders: dict[Value, Variable] = {}

    def variable(self) -> Variable:
        """Return a new variable that holds nothing yet."""
        self._values.append(None)
        self._targets.append(None)
        self._watchers.append(None)
        self._done.append(0)
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
        elif value in held or len(held) >= MOST_VALUES:
            return
        elif isinstance(value, Constant) and sum(isinstance(item, Constant) for item in held) >= MOST_CONSTANTS:
            return
        held[value] = None
        self._pending.append((variable, value))

    def copy(self, source: Variable, target: Variable) -> None:
        """Let `target` hold everything that `source` does."""
        if source == NOTHING or target == NOTHING or source == target:
            return
        targets = self._targets[source]
        if targets is None:
            targets = self._targets[source] = {}
        elif target in targets:
            return
        targets[target] = None
        for value in self.values(source):
            self.add(target, value)

    def watch(self, variable: Variable, watcher: Watcher) -> None:
        """Call `watcher` with each value of `variable`, those that it holds already too."""
        if variable == NOTHING:
            return
        watchers = self._watchers[variable]
        if watchers is None:
            watchers = self._watchers[variable] = []
        watchers.append(watcher)
        if self._done[variable]:  # what is still pending will come by `run`
            for value in self.values(variable)[: self._done[variable]]:
                watcher(value)

    def run(self) -> None:
        """Propagate until nothing is pending."""
        pending = self._pending
        while pending:
            variable, value = pending.popleft()
            self._done[variable] += 1
            for target in list(self._targets[variable] or ()):
                self.add(target, value)
            for watcher in list(self._watchers[variable] or ()):
                watcher(value)
