"""Tests of the Docker backend on a real engine; deselected with a notice if none works or can be started.

If `GISTPOINT_REQUIRE_BACKENDS` contains docker, no test is deselected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker_engines
import pytest
from warm_homes import kept_apart

from gistpoint.core.outcomes import SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import NEVER, RunContext
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.testruns import SuiteRunner

REQUIRED = "docker" in os.environ.get("GISTPOINT_REQUIRE_BACKENDS", "").split(",")
_said: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    ours = [item for item in items if item.path.is_relative_to(here)]
    if REQUIRED or not ours:
        return
    probe = DockerBackend().probe()
    out = [item for item in ours if item.get_closest_marker("docker") and not probe.works]
    if out:
        _said.append(f"{len(out)} tests of the Docker backend did not run: {probe.why_not}")
    if not docker_engines.can_start_engines():
        more = [item for item in ours if item.get_closest_marker("own_engine")]
        out += more
        if more:
            _said.append(f"{len(more)} tests that start an engine did not run: they need root and dockerd")
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in _said:
        terminalreporter.write_line(line)


Run = Callable[..., SuiteReport]


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[[Mapping[str, str]], SourceTree]:
    def make(files: Mapping[str, str]) -> SourceTree:
        folder = tmp_path / "repository"
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        write_tree(folder, tmp_path / "tree.tar")
        return SourceTree.open(tmp_path / "tree.tar")

    return make


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentStore:
    return EnvironmentStore(kept_apart(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def shared() -> Iterator[DockerBackend]:
    made = DockerBackend()
    yield made
    made.close()


@pytest.fixture
def run(make_tree: Callable[..., SourceTree], environments: EnvironmentStore, shared: DockerBackend) -> Run:
    def run_suite(
        files: Mapping[str, str],
        *,
        backend: DockerBackend | None = None,
        store: EnvironmentStore | None = None,
        limits: RunLimits | None = None,
        on_progress: Any = lambda progress: None,
        cancel: Any = NEVER,
        **request: Any,
    ) -> SuiteReport:
        asked = RunRequest(make_tree(files), EnvironmentPins(), timeout_s=300)
        runner = SuiteRunner(backend or shared, store or environments, limits)
        return runner.run(replace(asked, **request), run=RunContext(cancel, on_progress))

    return run_suite
