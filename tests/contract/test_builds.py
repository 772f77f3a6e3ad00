"""Builds are isolated like suites: they reach nothing outside, and their output is used."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from shelves import Shelf, built_by_itself

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.builds import Builds
from gistpoint.sandbox.environments.interpreters import own_version
from gistpoint.sandbox.environments.resolver import UvResolver, installed_in
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.limits import RunLimits

SECRET = "the-password-of-the-index"
# A build reports what it reached as its requirements.
CURIOUS = """
import socket
REACHED = []


def reaches(what):
    def run(attempt):
        try:
            attempt()
        except Exception:
            return
        REACHED.append("reached-" + what)
    return run


@reaches("file")
def write():
    with open({canary!r}, "w") as file:
        file.write("a build was here")


@reaches("network")
def connect():
    socket.create_connection(("127.0.0.1", {port}), timeout=5).close()


@reaches("secret")
def look():
    assert {secret!r} in repr(os.environ)
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf(tmp_path / "shelf", monkeypatch)
    for what in ("file", "network", "secret"):
        made.wheel(f"reached_{what}")
    return made


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine's loopback that accepts every connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def store(tmp_path: Path) -> EnvironmentStore:
    return EnvironmentStore(tmp_path / "cache")


@pytest.fixture
def curious(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Arguments of `built_by_itself`: code that reports as requirements what the build could reach."""
    monkeypatch.setenv("UV_INDEX_OURS_PASSWORD", SECRET)
    monkeypatch.setenv("NETRC", f"/nowhere/{SECRET}")
    before = CURIOUS.format(canary=str(tmp_path / "canary"), port=port, secret=SECRET)
    return {"before": before, "after": "\nNEEDS += tuple(REACHED)\n"}


@pytest.fixture
def reached(backend: Backend) -> set[str]:
    return set() if backend.record(RunLimits()).isolated else {"reached-file", "reached-network"}


def names_of(lock: tuple[str, ...]) -> set[str]:
    return {line.partition("==")[0] for line in lock} - {"pytest", "pluggy", "iniconfig"}


def resolved(store: EnvironmentStore, backend: Backend, folder: Path, *extra: str) -> EnvironmentPins:
    resolver = UvResolver(store, backend)
    return resolver.resolve(folder, extra_requirements=extra, exclude_newer=None, pytest_args=())


def written(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir()
    for path, text in files.items():
        (folder / path).write_text(text)
    return folder


def test_the_metadata_of_a_repository(backend, store, shelf, curious, reached, tmp_path):
    shelf.wheel("needed", "2.5")
    folder = written(tmp_path / "repository", built_by_itself("thing", needs=("needed>=2",), **curious))
    pins = resolved(store, backend, folder)
    assert names_of(pins.lock) == {"needed", *reached}
    assert (tmp_path / "canary").exists() is bool(reached)


def test_a_dependency_without_a_wheel(backend, store, shelf, curious, reached, tmp_path):
    shelf.wheel("needed", "2.5")
    sdist = shelf.sdist("wheelless", "1.5", built_by_itself("wheelless", "1.5", needs=("needed",), **curious))
    folder = written(
        tmp_path / "repository", {"pyproject.toml": '[project]\nname = "thing"\nversion = "1"\n'}
    )
    pins = resolved(store, backend, folder, "wheelless")
    assert names_of(pins.lock) == {"wheelless", "needed", *reached}
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    assert f"wheelless==1.5 --hash=sha256:{digest}" in pins.lock
    assert "wheelless" in installed_in(store.get(pins, backend).folder)
    assert (tmp_path / "canary").exists() is bool(reached)


def test_a_task_that_somebody_sends(backend, store, shelf, curious, reached, tmp_path):
    """Its environment is made at the first submission."""
    sdist = shelf.sdist("wheelless", "1.5", built_by_itself("wheelless", "1.5", **curious))
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    pins = EnvironmentPins(python=own_version(), lock=(f"wheelless==1.5 --hash=sha256:{digest}",))
    assert set(installed_in(store.get(pins, backend).folder)) == {"wheelless"}
    assert (tmp_path / "canary").exists() is bool(reached)


COMPILED = """
import subprocess, sysconfig
CODE = '#include <Python.h>\\nstatic struct PyModuleDef it = {PyModuleDef_HEAD_INIT, "compiled"};\\n'
CODE += 'PyMODINIT_FUNC PyInit_compiled(void) { return PyModule_Create(&it); }\\n'
with open("compiled.c", "w") as file:
    file.write(CODE)
INCLUDE = "-I" + sysconfig.get_path("include")
subprocess.run(["cc", "-shared", "-fPIC", INCLUDE, "compiled.c", "-o", "compiled.so"], check=True)
"""


def test_a_dependency_in_c_is_compiled_or_named(backend, store, shelf, tmp_path):
    """Builds see the machine's compiler; a base image from a registry may have none."""
    shelf.sdist("compiled", "1.0", built_by_itself("compiled", before=COMPILED))
    builds = Builds(store, backend, own_version())
    if shutil.which("cc") and os.environ.get("GISTPOINT_DOCKER_BASE") != "registry":
        assert builds.wheel("compiled", "1.0").path.is_file()
    else:
        with pytest.raises(EnvironmentBuildError, match=r"compiled 1\.0 has to be built"):
            builds.wheel("compiled", "1.0")


ENDLESS = """
def write(descriptor):
    while True:
        os.write(descriptor, b"x" * (1 << 16))


for descriptor in range(3, 1000):
    try:
        write(descriptor)
    except OSError:
        pass
"""


def test_a_build_that_hands_out_without_an_end_is_stopped(backend, store, shelf):
    shelf.sdist("endless", "1.0", built_by_itself("endless", before=ENDLESS))
    with pytest.raises(EnvironmentBuildError, match=r"endless 1\.0 .* it returned more than a wheel"):
        Builds(store, backend, own_version()).wheel("endless", "1.0")
