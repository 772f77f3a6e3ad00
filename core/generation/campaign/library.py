"""What is known of a library before its first task: its suite, its test map, its call graph and its metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.corruption.subject import Vocabulary, read_vocabulary
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.testmap import TestMap
from gistpoint.core.metrics.table import CENTRALITY, COMPLEXITY, FunctionMetrics


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


Edge = tuple[str, str]


@dataclass(frozen=True)
class Library:
    """A library that tasks can be made of."""

    intake: Intake
    test_map: TestMap
    edges: frozenset[Edge]
    """Calls between functions of the library, caller first: the static ones joined with those that ran."""
    test_edges: frozenset[Edge]
    """Calls that begin in the tests."""
    rows: tuple[FunctionMetrics, ...]
    """Every function of the library with its metrics."""
    backend: str
    stars: int | None = None

    @cached_property
    def key(self) -> str:
        """The hash of everything that decides which tasks come of it; not of seconds."""
        intake, repository = self.intake, self.intake.repository
        tree = repository.tree
        return sha256_of_json(
            {
                "source": [repository.source.kind, repository.source.name, repository.source.revision],
                "files": sha256_of_json([[path, len(data), hash_of(data)] for path, data in tree.read_all("")]),
                "lock": sorted(repository.environment.lock),
                "pytest_args": repository.environment.pytest_args,
                "build_steps": repository.environment.build_steps,
                "passed": sorted(intake.passed),
                "backend": self.backend,
                "map": sha256_of_json({name: sorted(tests) for name, tests in self.test_map.entered.items()}),
                "edges": sorted(self.edges),
            }
        )

    @cached_property
    def test_files(self) -> frozenset[str]:
        """Files from which tests were collected."""
        return frozenset(self.intake.test_files)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names that each function can see."""
        return read_vocabulary(self.intake.repository.tree, self.test_files)

    @cached_property
    def by_name(self) -> Mapping[str, FunctionMetrics]:
        """The rows by the name of their function."""
        return {row.function: row for row in self.rows}

    @cached_property
    def reach(self) -> Reach:
        """Distances between functions of the library, along calls in either direction."""
        return Reach(self.edges, directed=False)

    @cached_property
    def reach_from_tests(self) -> Reach:
        """Distances along calls, those of the tests among them."""
        return Reach(self.edges | self.test_edges, directed=True)

    def seeing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the tests, among those that pass, on which a change of the functions can tell, in suite order."""
        return tuple(id for id in self.test_map.seeing(names) if id in self.intake.passed)

    @cached_property
    def mapped_intake(self) -> Intake:
        """What the suite shows on the original, with the map."""
        return replace(self.intake, test_map=self.test_map)

    def entering(self, name: str) -> frozenset[str]:
        """Return the tests, among those that pass, that enter a function while they run."""
        return self.entered.get(name, frozenset())

    @cached_property
    def entered(self) -> Mapping[str, frozenset[str]]:
        """The tests, among those that pass, that enter each function while they run."""
        return {name: tests & self.intake.passed for name, tests in self.test_map.entered.items()}

    def metrics_of(self, name: str) -> dict[str, dict[str, float | int | None]]:
        """Return every metric of a function with its percentile: the share of functions at or below it, of 100."""
        row = self.by_name.get(name)
        if row is None:
            return {}
        told: dict[str, dict[str, float | int | None]] = {}
        for column in (*COMPLEXITY, *CENTRALITY):
            value = row.cell(column)
            if isinstance(value, str):
                continue
            told[column] = {"value": value, "percentile": self._percentile(column, value)}
        return told

    def _percentile(self, column: str, value: float | None) -> float | None:
        if value is None:
            return None
        values = self._columns[column]
        return round(100 * sum(other <= value for other in values) / len(values), 1) if values else None

    @cached_property
    def _columns(self) -> Mapping[str, list[float]]:
        return {
            column: [float(cell) for row in self.rows if isinstance(cell := row.cell(column), int | float)]
            for column in (*COMPLEXITY, *CENTRALITY)
        }


def hash_of(data: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal."""
    import hashlib

    return hashlib.sha256(data).hexdigest()
