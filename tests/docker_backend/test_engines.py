"""Remote engines, engines that die, and engines with a watched registry."""

from __future__ import annotations

import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_engines import OwnEngine

import gistpoint.core.demo
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

pytestmark = [pytest.mark.own_engine, pytest.mark.xdist_group("machine")]

GREEN = {"test_a.py": "def test_a(): pass\n"}
HANGS = {"test_a.py": "import time\ndef test_a(): pass\ndef test_b(): time.sleep(600)\n"}


class Registry:
    """A server that counts the connections to it."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        self.knocks = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.knocks += 1
            connection.close()


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    made = Registry()
    yield made
    made.server.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def elsewhere(cache: Path, registry: Registry) -> Iterator[OwnEngine]:
    """An engine over TCP, with a watched registry, that can't see our cache and temporary folders."""
    with tempfile.TemporaryDirectory(prefix="engine-", dir="/var/tmp") as place:
        hidden = [Path(tempfile.gettempdir()).resolve()]
        with OwnEngine(Path(place), hidden, ["--registry-mirror", registry.address]) as engine:
            yield engine


@pytest.fixture
def backend(elsewhere: OwnEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerBackend]:
    monkeypatch.setenv("DOCKER_HOST", elsewhere.address)
    made = DockerBackend()
    yield made
    made.close()


def test_an_engine_elsewhere_works_the_same(run, backend, cache, registry):
    store = EnvironmentStore(cache)
    for _ in range(2):
        report = run(GREEN | {"test_b.py": "def test_b(): assert 0\n"}, backend=backend, store=store)
        assert report.status is RunStatus.FINISHED
        assert report.passed == {"test_a.py::test_a"}
        assert set(report.results) == {"test_a.py::test_a", "test_b.py::test_b"}
    assert registry.knocks == 0


def test_a_whole_library_comes_out_as_it_does_here(backend, cache, tmp_path, registry):
    library = Path(gistpoint.core.demo.__file__).parent / "library"
    write_tree(library, tmp_path / "tree.tar")
    pins = EnvironmentPins(metadata={"name": "sporvei", "version": "1"})
    request = RunRequest(SourceTree.open(tmp_path / "tree.tar"), pins, timeout_s=300)
    reports = [SuiteRunner(each, EnvironmentStore(cache)).run(request) for each in (backend, PlainBackend())]
    assert [report.status for report in reports] == [RunStatus.FINISHED] * 2, reports[0].reason
    assert reports[0].passed == reports[1].passed
    assert len(reports[0].passed) > 100
    assert registry.knocks == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_engine_that_dies_gives_one_message_and_the_next_run_goes_on(run, backend, elsewhere, how):
    assert run(GREEN, backend=backend).passed

    def end(progress) -> None:
        if progress.latest is not None:
            elsewhere.end(how)

    report = run(HANGS, backend=backend, on_progress=end)
    assert (report.status, report.passed) == (RunStatus.HARNESS_FAILED, frozenset())
    assert "in the middle of the run" in report.reason
    assert "Traceback" not in report.reason + report.output
    still = run(GREEN, backend=backend)
    assert still.status is RunStatus.HARNESS_FAILED
    assert still.reason.startswith("No engine answers at ")
    elsewhere.start()
    assert run(GREEN, backend=backend).passed
