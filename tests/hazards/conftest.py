"""Tasks on tiny repositories, with real runs; differences between backends are tested in tests/contract."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pytest
from tiny_tasks import BACKENDS, Maker, Submit

from gistpoint.core.tasks.model import Task
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests of a file to one worker, because they share its tasks."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group(f"hazards: {item.path.stem}"))


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentStore:
    folder = tmp_path_factory.mktemp("cache")
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755)
    return EnvironmentStore(folder)


@pytest.fixture(scope="session")
def made() -> dict[Hashable, Task]:
    """The tasks of these tests, each made once."""
    return {}


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def maker(
    request: pytest.FixtureRequest, tmp_path: Path, environments: EnvironmentStore, made: dict[Hashable, Task]
) -> Maker:
    """A maker of tasks on the chosen backend."""
    return Maker(tmp_path, SuiteRunner(request.param(), environments), made)


@pytest.fixture
def plain(tmp_path: Path, environments: EnvironmentStore, made: dict[Hashable, Task]) -> Maker:
    return Maker(tmp_path, SuiteRunner(PlainBackend(), environments), made)


@pytest.fixture
def submit() -> Submit:
    return lambda attempt, code: attempt.call("submit_attempt", {"func_code": code}).text
