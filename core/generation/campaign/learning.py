"""Getting to know a library once: each thing is kept in a folder as soon as it is known, and read from there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gistpoint.core.callgraph.builder import build_call_graph
from gistpoint.core.callgraph.graph import ObservedCall, resolve_calls
from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.generation.campaign.bench import Bench
from gistpoint.core.generation.campaign.candidates import is_function
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.intake import Intake, MakingProgress, OnMaking, Repository, take_in
from gistpoint.core.generation.testmap import TestMap
from gistpoint.core.metrics.centrality import Centrality
from gistpoint.core.metrics.complexity import Complexity
from gistpoint.core.metrics.table import FunctionMetrics, measure_functions
from gistpoint.core.ports import EnvironmentPins, RunProgress, Source
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.protection import Protection, protection_document, read_protection
from gistpoint.core.trees import SourceTree, write_tar

VERSION = 1
"""Of the files of a folder; another one is not read."""


@dataclass(frozen=True, slots=True)
class LibraryFolder:
    """The folder in which what is known of a library is kept."""

    folder: Path

    @property
    def complete(self) -> bool:
        """Whether nothing is left to find out."""
        return all((self.folder / name).is_file() for name in ("repository.json", "intake.json", "calls.json"))

    def repository(self, make: Callable[[], Repository]) -> Repository:
        """Return the repository, made and kept where it is not known."""
        known = self._read("repository")
        tar = self.folder / "tree.tar"
        if known is not None and tar.is_file():
            return Repository(Source(**known["source"]), SourceTree.open(tar), _environment(known["environment"]))
        made = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_tar(made.tree, tar)
        self._write("repository", {"source": asdict(made.source), "environment": asdict(made.environment)})
        return Repository(made.source, SourceTree.open(tar), made.environment)

    def intake(self, repository: Repository, make: Callable[[], Intake]) -> Intake:
        """Return what the suite shows on the original, run and kept where it is not known."""
        known = self._read("intake")
        if known is not None:
            return Intake(
                repository, frozenset(known["collected"]), frozenset(known["passed"]), tuple(known["flaky"]),
                known["seconds"], known["runs"], protection=_protection(known),
            )  # fmt: skip
        made = make()
        self._write(
            "intake",
            {
                "collected": sorted(made.collected),
                "passed": sorted(made.passed),
                "flaky": made.flaky,
                "seconds": made.seconds,
                "runs": made.runs,
                "protection": None if made.protection is None else protection_document(made.protection),
            },
        )
        return made

    def calls(self, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return test map, calls and metrics as `_measured` gives them, found out and kept where they are not known."""
        known = self._read("calls")
        if known is None:
            known = {**make()}
            self._write("calls", known)
        return known

    def forget(self) -> None:
        """Remove what is known."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            value = json.loads((self.folder / f"{name}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) and value.get("version") == VERSION else None

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        partial = self.folder / f".{name}.{os.getpid()}"
        with partial.open("w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **value}, file, ensure_ascii=True, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.folder / f"{name}.json")


def learn_library(
    place: LibraryFolder,
    make: Callable[[], Repository],
    bench: Bench,
    *,
    stars: int | None = None,
    on_progress: OnMaking | None = None,
    cancel: CancelToken | None = None,
) -> Library:
    """Return what is known of a library, finding out what is not: three runs of its suite, and one that is traced.

    `make` fetches the repository and pins its environment. Raises `NoTaskError` where its suite is no good.
    """
    repository = place.repository(make)
    runner = bench.runner()
    intake = place.intake(repository, lambda: take_in(repository, runner, on_progress=on_progress, cancel=cancel))
    calls = place.calls(lambda: _measured(intake, bench, on_progress, cancel))
    return replace(_library(intake, calls, runner.backend.name), stars=stars)


def read_library(place: LibraryFolder, backend: str) -> Library:
    """Return a library that is known in full; raises FileNotFoundError where something is missing."""

    def missing() -> Any:
        raise FileNotFoundError(place.folder)

    repository = place.repository(missing)
    return _library(place.intake(repository, missing), place.calls(missing), backend)


def _measured(intake: Intake, bench: Bench, on_progress: OnMaking | None, cancel: CancelToken | None) -> dict[str, Any]:
    def forward(progress: RunProgress) -> None:
        if on_progress is not None:
            on_progress(MakingProgress("tests recorded with the functions that they enter", progress))

    tree, environment = intake.repository.tree, intake.repository.environment
    test_map, observed = bench.mapper().record(tree, environment, intake.passed, on_progress=forward, cancel=cancel)
    if cancel is not None:
        cancel.check()
    if on_progress is not None:
        on_progress(MakingProgress("call graph and metrics"))
    return {"map": test_map.to_json(), **_graphs(tree, frozenset(intake.test_files), observed)}


def _graphs(tree: SourceTree, test_files: frozenset[str], observed: tuple[ObservedCall, ...]) -> dict[str, Any]:
    """Return calls and metrics: of the library alone, and the calls that begin in its tests beside them."""
    everything = dict(tree.read_all(".py"))
    own = {path: data for path, data in everything.items() if not is_protected(path, test_files)}
    graph = build_call_graph(own)
    graph = graph.with_observed(resolve_calls(graph, observed))
    rows = measure_functions(graph, own)
    edges = {(edge.caller, edge.callee) for edge in graph.edges if is_function(edge.caller)}
    whole = build_call_graph(everything)
    whole = whole.with_observed(resolve_calls(whole, observed))
    from_tests = {
        (edge.caller, edge.callee)
        for edge in whole.edges
        if is_function(edge.caller) and is_protected(edge.caller.partition("::")[0], test_files)
    }
    return {
        "edges": sorted(edges),
        "test_edges": sorted(from_tests),
        "rows": [asdict(row) for row in rows],
    }


def _library(intake: Intake, calls: Mapping[str, Any], backend: str) -> Library:
    return Library(
        intake,
        TestMap.from_json(calls["map"]),
        frozenset((caller, callee) for caller, callee in calls["edges"]),
        frozenset((caller, callee) for caller, callee in calls["test_edges"]),
        tuple(_row(value) for value in calls["rows"]),
        backend,
    )


def _row(value: Mapping[str, Any]) -> FunctionMetrics:
    complexity = value["complexity"]
    return FunctionMetrics(
        value["function"],
        value["kind"],
        value["line"],
        None if complexity is None else Complexity(**complexity),
        Centrality(**value["centrality"]),
    )


def _protection(value: Mapping[str, Any]) -> Protection | None:
    """Return what of its tree the suite may change; None where that is not known, as it was not always kept."""
    if value.get("protection") is None:
        return None
    return read_protection(Fields(value, "intake.json").table("protection"))


def _environment(value: Mapping[str, Any]) -> EnvironmentPins:
    return EnvironmentPins(
        python=value["python"],
        lock=tuple(value["lock"]),
        resolved=value["resolved"],
        import_roots=tuple(value["import_roots"]),
        plugins=tuple(value["plugins"]),
        pytest_args=tuple(value["pytest_args"]),
        build_steps=tuple(value["build_steps"]),
        metadata=value["metadata"],
    )
