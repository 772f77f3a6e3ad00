"""All information about a library before its first task: its suite, test map, call graph and metrics.

Each part is determined once, stored in the library's folder, and later read from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gistpoint.core.callgraph import MODULE, CallGraph, ObservedCall, build_call_graph, resolve_calls
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.code.testmap import TestMap, TestMapError
from gistpoint.core.corruption.subject import Vocabulary, read_vocabulary
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import TaskError
from gistpoint.core.generation.intake import Intake, record_tests, take_in
from gistpoint.core.locations import mark_used
from gistpoint.core.logs import replace_file
from gistpoint.core.metrics.table import (
    CENTRALITY,
    COMPLEXITY,
    FunctionMetrics,
    measure_functions,
    with_complexity,
)
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import Runner, TestMapper
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.protection import protection_document, read_protection
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, Repository
from gistpoint.core.trees import SourceTree, write_tar

T = TypeVar("T")


class Reach:
    """Shortest paths on a graph of calls; in a `directed` graph, they lead from callees to callers."""

    def __init__(self, edges: Iterable[tuple[str, str]], *, directed: bool) -> None:
        near: dict[str, set[str]] = {}
        for caller, callee in edges:
            near.setdefault(callee, set()).add(caller)
            if not directed:
                near.setdefault(caller, set()).add(callee)
        self._near = {name: sorted(others) for name, others in near.items()}
        self._known: dict[str, dict[str, int]] = {}

    def steps(self, name: str, most: int | None = None) -> Mapping[str, int]:
        """Return the number of steps to `name` from each function that reaches it; `name` itself has 0.

        Only functions within `most` steps are included, unless it is None.
        """
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
        """Return the shortest path from `start` to `end`, including both; empty if there is none.

        If there are several, the first one in alphabetical order is returned.
        """
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
class SourceLibrary:
    """A library that tasks can be made from."""

    intake: Intake
    test_map: TestMap
    edges: frozenset[Edge]
    """Calls between functions of the library as (caller, callee), both static and observed."""
    test_edges: frozenset[Edge]
    """Calls that begin in the tests."""
    rows: tuple[FunctionMetrics, ...]
    """The functions of the library with their metrics."""
    backend: str
    stars: int | None = None
    observed: tuple[tuple[str, str, int], ...] | None = None
    """Observed calls between functions with their number; None if an earlier version stored the library."""

    @cached_property
    def key(self) -> str:
        """The hash of everything that the tasks depend on, without durations."""
        intake, repository = self.intake, self.intake.repository
        tree = repository.tree
        return sha256_of_json(
            {
                "source": [repository.source.kind, repository.source.name, repository.source.revision],
                "files": sha256_of_json(
                    [[path, len(data), hashlib.sha256(data).hexdigest()] for path, data in tree.read_all("")]
                ),
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
        """The files that tests were collected from."""
        return frozenset(self.intake.test_files)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names that each function can use."""
        return read_vocabulary(self.intake.repository.tree, self.test_files)

    @cached_property
    def by_name(self) -> Mapping[str, FunctionMetrics]:
        """The rows by the name of their function."""
        return {row.function: row for row in self.rows}

    @cached_property
    def reach(self) -> Reach:
        """Distances between functions of the library along calls in either direction."""
        return Reach(self.edges, directed=False)

    @cached_property
    def reach_from_tests(self) -> Reach:
        """Distances along calls, including calls of the tests."""
        return Reach(self.edges | self.test_edges, directed=True)

    def call_graph(self, *, tests: bool = False) -> CallGraph:
        """Return the static and observed calls of the library, and those made by tests if `tests` is true.

        Calls that only a run showed are marked as observed. Static calls that a run showed too are marked if
        `observed` is known.
        """
        graph = build_call_graph(
            dict(self.intake.repository.tree.read_all(".py")) if tests else own_files(self.intake)
        )
        known = {(caller, callee): count for caller, callee, count in self.observed or ()}
        static = {(edge.caller, edge.callee) for edge in graph.edges}
        known.update(dict.fromkeys((self.edges | self.test_edges) - static - known.keys(), 0))
        return graph.with_observed((*edge, count) for edge, count in known.items())

    def seeing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the passing tests that a change of the functions can affect, in suite order."""
        return tuple(id for id in self.test_map.seeing(names) if id in self.intake.passed)

    @cached_property
    def mapped_intake(self) -> Intake:
        """The results of the suite on the original, with the test map."""
        return replace(self.intake, test_map=self.test_map)

    def entering(self, name: str) -> frozenset[str]:
        """Return the passing tests that enter a function, or a method of a class, while they run."""
        known = self.entered.get(name)
        return self.test_map.tests_of(name) & self.intake.passed if known is None else known

    @cached_property
    def entered(self) -> Mapping[str, frozenset[str]]:
        """The passing tests that enter each function while they run, by the function's name."""
        return {name: tests & self.intake.passed for name, tests in self.test_map.entered.items()}

    def metrics_of(self, name: str) -> dict[str, dict[str, float | int | None]]:
        """Return the `value` and the `percentile` of each metric of a function, by the metric's name.

        The percentile is the percentage of functions at or below the value; both are None if the value is
        unknown. Empty for an unknown function.
        """
        row = self.by_name.get(name)
        if row is None:
            return {}
        metrics: dict[str, dict[str, float | int | None]] = {}
        for column in (*COMPLEXITY, *CENTRALITY):
            value = row.cell(column)
            if isinstance(value, str):
                continue
            metrics[column] = {"value": value, "percentile": self._percentile(column, value)}
        return metrics

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


VERSION = 1
"""The version of the files in a folder; files of other versions are not read."""


class _Pinned(msgspec.Struct):
    source: Source
    environment: EnvironmentPins


class _Results(msgspec.Struct):
    collected: list[str]
    passed: list[str]
    flaky: tuple[str, ...]
    seconds: float
    runs: int
    protection: dict[str, Any] | None = None

    def on(self, repository: Repository) -> Intake:
        """Return the intake with these results. Raises `TaskError` if the protection is damaged."""
        stored = self.protection
        allowed = None if stored is None else read_protection(Fields(stored, "intake.json", "protection"))
        collected, passed = frozenset(self.collected), frozenset(self.passed)
        return Intake(repository, collected, passed, self.flaky, self.seconds, self.runs, protection=allowed)


class _Calls(msgspec.Struct):
    map: dict[str, Any]
    edges: list[tuple[str, str]]
    test_edges: list[tuple[str, str]]
    rows: tuple[FunctionMetrics, ...]
    observed: list[tuple[str, str, int]] | None = None
    """Observed calls between functions with their number; None if an earlier version stored this."""

    @property
    def has_map(self) -> bool:
        """Whether the test map can be read."""
        try:
            TestMap.from_json(self.map)
        except TestMapError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Folder:
    """The files that store all information about a library."""

    folder: Path

    def repository(self, make: Callable[[], Repository]) -> Repository:
        """Return the repository, after making and storing it if it is not known."""
        known = self._read("repository", _Pinned)
        tar = self.folder / "tree.tar"
        if known is not None and tar.is_file():
            with contextlib.suppress(TaskError):  # a damaged tree must be fetched again
                return Repository(known.source, SourceTree.open(tar), known.environment)
        made = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_tar(made.tree, tar)
        self._write("repository", _Pinned(made.source, made.environment))
        return Repository(made.source, SourceTree.open(tar), made.environment)

    def source(self) -> Source | None:
        """Return the source of the folder; None if it can't be read."""
        known = self._read("repository", _Pinned)
        return None if known is None else known.source

    def intake(self, repository: Repository, make: Callable[[], Intake]) -> Intake:
        """Return the results of the suite on the original, after running and storing them if unknown."""
        known = self._read("intake", _Results)
        if known is not None:
            with contextlib.suppress(TaskError):  # with a damaged protection, the suite is run again
                return known.on(repository)
        made = make()
        protection = None if made.protection is None else protection_document(made.protection)
        results = _Results(
            sorted(made.collected), sorted(made.passed), made.flaky, made.seconds, made.runs, protection
        )
        self._write("intake", results)
        return made

    def calls(self, make: Callable[[], _Calls], files: Callable[[], Mapping[str, bytes]]) -> _Calls:
        """Return the test map, the calls and the metrics; `make` computes them if they are not stored.

        Metrics missing from an earlier version's file are measured on `files`.
        """
        known = self._read("calls", _Calls)
        if known is not None and not known.has_map:
            known = None  # a damaged map is recorded again
        if known is not None and not any(
            row.complexity and row.complexity.is_incomplete for row in known.rows
        ):
            return known
        if known is None:
            known = make()
        else:
            known.rows = with_complexity(known.rows, files())
        self._write("calls", known)
        return known

    def _read(self, name: str, kind: type[T]) -> T | None:
        try:
            value = json.loads((self.folder / f"{name}.json").read_text("utf-8"))
            known = isinstance(value, dict) and value.get("version") == VERSION
            return msgspec.convert(value, decodable(kind)) if known else None
        except (OSError, ValueError, RecursionError):
            return None

    def _write(self, name: str, record: msgspec.Struct) -> None:
        text = json.dumps({"version": VERSION, **msgspec.to_builtins(record)}, separators=(",", ":"))
        replace_file(self.folder / f"{name}.json", text.encode("ascii"))


def learn_library(
    folder: Path,
    make: Callable[[], Repository],
    runner: Runner,
    mapper: Callable[[], TestMapper],
    *,
    stars: int | None = None,
    max_suite_seconds: float = MAX_SUITE_SECONDS,
    run: RunContext = UNATTENDED,
) -> SourceLibrary:
    """Return the library; unknown parts are determined by three runs of its suite and a traced one.

    `make` fetches the repository and pins its environment. Raises `NoTaskError` if its suite is unusable,
    `RecordingError` if the traced run does not finish, `InfrastructureError` if the sandbox fails,
    `CancelledError` when stopped, and any error of `make`.
    """
    known = _Folder(folder)
    repository = known.repository(make)
    intake = known.intake(
        repository, lambda: take_in(repository, runner, max_seconds=max_suite_seconds, run=run)
    )
    calls = known.calls(lambda: _measured(intake, mapper(), run), lambda: own_files(intake))
    mark_used(folder)
    return replace(_library(intake, calls, runner.backend.name), stars=stars)


def read_library(folder: Path, backend: str) -> SourceLibrary:
    """Return a library whose analysis is complete. Raises `FileNotFoundError` if a part is missing."""

    def missing() -> Any:
        raise FileNotFoundError(folder)

    known = _Folder(folder)
    repository = known.repository(missing)
    intake = known.intake(repository, missing)
    mark_used(folder)
    return _library(intake, known.calls(missing, lambda: own_files(intake)), backend)


def _measured(intake: Intake, mapper: TestMapper, run: RunContext) -> _Calls:
    test_map, observed = record_tests(intake, mapper, run)
    run.check()
    run.step("measuring functions and their calls")
    return _graphs(test_map, intake.repository.tree, frozenset(intake.test_files), observed)


def _graphs(
    test_map: TestMap, tree: SourceTree, test_files: frozenset[str], observed: tuple[ObservedCall, ...]
) -> _Calls:
    """Return the calls and metrics of the library alone, and separately the calls that begin in its tests."""
    everything = dict(tree.read_all(".py"))
    own = {path: data for path, data in everything.items() if not is_protected(path, test_files)}
    graph = build_call_graph(own)
    graph = graph.with_observed(resolve_calls(graph, observed))
    seen = [(edge.caller, edge.callee, edge.count) for edge in graph.edges if edge.observed]
    rows = measure_functions(graph, own)
    edges = {(edge.caller, edge.callee) for edge in graph.edges if is_function(edge.caller)}
    whole = build_call_graph(everything)
    whole = whole.with_observed(resolve_calls(whole, observed))
    from_tests = {
        (edge.caller, edge.callee)
        for edge in whole.edges
        if is_function(edge.caller) and is_protected(edge.caller.partition("::")[0], test_files)
    }
    return _Calls(test_map.to_json(), sorted(edges), sorted(from_tests), tuple(rows), seen)


def _library(intake: Intake, calls: _Calls, backend: str) -> SourceLibrary:
    return SourceLibrary(
        intake,
        TestMap.from_json(calls.map),
        frozenset(calls.edges),
        frozenset(calls.test_edges),
        calls.rows,
        backend,
        observed=None if calls.observed is None else tuple(calls.observed),
    )


def own_files(intake: Intake) -> dict[str, bytes]:
    """Return the Python files of a library by path, without the files of tests."""
    tests = frozenset(intake.test_files)
    return {
        path: data for path, data in intake.repository.tree.read_all(".py") if not is_protected(path, tests)
    }


def is_function(name: str) -> bool:
    """Return whether a node of a call graph is a function, not the code of a module."""
    return not name.endswith(f"::{MODULE}")


def find_learned(libraries: Path, source: Source) -> SourceLibrary | None:
    """Return the library of a source stored below `libraries`; None if there is no complete one.

    If several exist, with different suite arguments or backends, the newest complete one is returned.
    """
    wanted = (source.kind, source.name, source.revision)
    folders = []
    for file in libraries.glob("*/calls.json"):
        pinned = _Folder(file.parent).source()
        if pinned is not None and (pinned.kind, pinned.name, pinned.revision) == wanted:
            folders.append((file.stat().st_mtime, file.parent))
    for _, folder in sorted(folders, reverse=True):
        with contextlib.suppress(FileNotFoundError):
            return read_library(folder, "")
    return None
