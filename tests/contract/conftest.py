"""Runs a small suite on every backend that works on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples import CHOSEN
from fault_tasks import FaultTasks, fault_tasks
from small_gists import Prepared, judge_of
from working_backends import MADE, PARAMETERS, WORKING

from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.outcomes import SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import NEVER, RunContext
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.testruns import SuiteRunner

Run = Callable[..., SuiteReport]

SAME_LAUNCHER = {
    "test_attacks.py",
    "test_build_steps.py",
    "test_candidates.py",
    "test_faults.py",
    "test_gist_attacks.py",
    "test_gist_making.py",
    "test_gist_operands.py",
    "test_gist_rates.py",
    "test_gists_of_many_tests.py",
    "test_hostile_runs.py",
    "test_outcomes.py",
    "test_protection.py",
}
"""Files whose tests on Landlock cover `plain` too: its launcher only differs in that it confines itself."""


OF_CONFIRMATION = {
    "test_beyond_the_tests.py",
    "test_confirmation.py",
    "test_doctored_archives.py",
    "test_equivalence.py",
    "test_hidden_failures.py",
    "test_hidden_faults.py",
    "test_odd_repairs.py",
    "test_other_functions.py",
    "test_surroundings.py",
    "test_values_again.py",
}
"""Files whose tests have a separate group on each backend, because in one worker they would end last."""


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Put the tests of confirmation on each backend into a separate group."""
    backend = _backend_of(item)
    if item.path.name in OF_CONFIRMATION and backend is not None:
        item.add_marker(pytest.mark.xdist_group(f"{backend} confirmation"), append=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that another backend covers (decision 125), unless examples are explored."""
    if CHOSEN == "explore" or "landlock" not in WORKING:
        return
    left_out = {
        item
        for item in items
        if item.path.name in SAME_LAUNCHER
        and item.path.parent.name == "contract"
        and _backend_of(item) == "plain"
    }
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _backend_of(item: pytest.Item) -> object:
    """Return the name of the backend that a test runs on; None for other tests."""
    spec = getattr(item, "callspec", None)
    return spec.params.get("backend") if spec is not None else None


@pytest.fixture(params=PARAMETERS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return MADE[request.param]


_judges: dict[tuple[str, str], GistJudge] = {}


@pytest.fixture
def judge(
    backend: Backend, environments: EnvironmentStore, tmp_path_factory: pytest.TempPathFactory
) -> Prepared:
    """A function that returns the judge of a command of the small codebase, prepared once per backend."""

    def prepared(command: str) -> GistJudge:
        key = backend.name, command
        if key not in _judges:
            _judges[key] = judge_of(command, tmp_path_factory.mktemp("codebase"), backend, environments)
        return _judges[key]

    return prepared


@pytest.fixture(scope="module")
def made() -> dict[str, FaultTasks]:
    """The tasks of one module by backend; module-scoped, so that one worker gets all its tests."""
    return {}


@pytest.fixture
def tasks(
    request: pytest.FixtureRequest,
    backend: Backend,
    environments: EnvironmentStore,
    made: dict[str, FaultTasks],
    tmp_path_factory: pytest.TempPathFactory,
) -> FaultTasks:
    """Tasks on the library in the module's `faults`; all tests of the library need the function `FIRST`."""
    if backend.name not in made:
        folder, module = tmp_path_factory.mktemp(backend.name), request.module
        made[backend.name] = fault_tasks(module.faults, module.FIRST, backend, environments, folder)
    return made[backend.name]


@pytest.fixture(scope="module", autouse=True)
def nothing_kept_ready() -> Iterator[None]:
    """Leave no waiting container behind, because other tests would count it."""
    yield
    for made in MADE.values():
        if isinstance(made, DockerBackend):
            made.close()


@pytest.fixture
def settle(backend: Backend) -> Callable[[], None]:
    """A function that releases the resources that a backend keeps ready for the next run."""

    def close() -> None:
        if isinstance(backend, DockerBackend):
            backend.close()

    return close


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentStore:
    return EnvironmentStore(tmp_path_factory.mktemp("cache"))


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


@pytest.fixture
def run(backend: Backend, environments: EnvironmentStore, make_tree: Callable[..., SourceTree]) -> Run:
    def run_suite(
        files: Mapping[str, str] | SourceTree,
        *,
        limits: RunLimits | None = None,
        on_progress: Any = lambda progress: None,
        cancel: Any = NEVER,
        pins: EnvironmentPins | None = None,
        **request: Any,
    ) -> SuiteReport:
        tree = files if isinstance(files, SourceTree) else make_tree(files)
        asked = RunRequest(tree, pins or EnvironmentPins(), timeout_s=300)
        runner = SuiteRunner(backend, environments, limits)
        return runner.run(replace(asked, **request), run=RunContext(cancel, on_progress))

    return run_suite
