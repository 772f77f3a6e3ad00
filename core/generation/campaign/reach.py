"""How many calls lie between two functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping


class Reach:
    """Shortest paths on a graph of calls; `directed` ones follow calls backwards, from a callee to its callers."""

    def __init__(self, edges: Iterable[tuple[str, str]], *, directed: bool) -> None:
        near: dict[str, set[str]] = {}
        for caller, callee in edges:
            near.setdefault(callee, set()).add(caller)
            if not directed:
                near.setdefault(caller, set()).add(callee)
        self._near = {name: sorted(others) for name, others in near.items()}
        self._known: dict[str, dict[str, int]] = {}

    def steps(self, name: str, most: int | None = None) -> Mapping[str, int]:
        """Return the functions that reach `name`, itself with 0, and in how many steps; none beyond `most`."""
        if most is not None:
            return self._search(name, most)
        if name not in self._known:
            self._known[name] = self._search(name, None)
        return self._known[name]

    def _search(self, name: str, most: int | None) -> dict[str, int]:
        found, waiting = {name: 0}, deque([name])
        while waiting:
            here = waiting.popleft()
            if most is not None and found[here] == most:
                continue
            for other in self._near.get(here, ()):
                if other not in found:
                    found[other] = found[here] + 1
                    waiting.append(other)
        return found

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """Return a shortest path, both ends included, the first by name among equals; empty where there is none."""
        steps = self.steps(end)
        if start not in steps:
            return ()
        path = [start]
        while path[-1] != end:
            here = path[-1]
            path.append(min(other for other in self._leads(here) if steps.get(other) == steps[here] - 1))
        return tuple(path)

    def _leads(self, name: str) -> list[str]:
        return self._near.get(name, [])
