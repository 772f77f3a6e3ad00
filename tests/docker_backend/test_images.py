"""Images: named by their content, never pulled, made from this machine's Python or the shipped Dockerfile."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.backends.base import Environment, Invocation, Stop, probe_command
from gistpoint.sandbox.backends.docker import images, layers
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError, connect
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.backends.runtime import Runtime, RuntimeCache, programs_alone

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("machine")]


@pytest.fixture
def engine(shared: DockerBackend) -> Engine:
    return connect()


@pytest.fixture
def environment(environments) -> Environment:
    return environments.get(EnvironmentPins(), PlainBackend())


@pytest.fixture
def runtime(environment: Environment) -> Runtime:
    return RuntimeCache().of(environment)


@pytest.fixture
def no_pull(monkeypatch):
    import docker

    def pull(*arguments: object, **more: object) -> None:
        raise AssertionError(f"pulled {arguments} {more}")

    monkeypatch.setattr(docker.api.client.APIClient, "pull", pull)


def test_the_same_content_has_the_same_image(engine, environment, runtime, no_pull):
    first = images.environment_image(engine, environment, runtime)
    assert images.environment_image(engine, environment, runtime) == first
    assert engine.client.images.get(first).labels["io.gistpoint.kind"] == "environment"


def test_other_content_has_another_image(engine, environment, runtime, tmp_path, no_pull):
    found = set()
    for text in ("a = 1\n", "a = 2\n"):
        folder = tmp_path / "environment" / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.py").write_text(text)
        changed = Environment(folder.parent, environment.interpreter, environment.prefix, environment.version)
        found.add(images.environment_image(engine, changed, runtime))
    assert len(found) == 2
    for image in found:
        engine.client.images.remove(image, force=True)


def test_an_unknown_image_is_an_error(engine, no_pull):
    import docker.errors

    from gistpoint.sandbox.backends.docker.containers import ContainerSettings, start
    from gistpoint.sandbox.limits import RunLimits

    with pytest.raises(docker.errors.ImageNotFound):
        start(engine, ContainerSettings("localhost/gistpoint-nowhere:1", RunLimits(), ()))


def test_without_a_python_of_its_own_kind_it_asks_for_the_official_image(
    engine, environment, runtime, monkeypatch, no_pull
):
    monkeypatch.setattr(images, "can_be_made", lambda machine: False)
    nowhere = Environment(environment.folder, environment.interpreter, environment.prefix, "3.99")
    with pytest.raises(EngineError) as caught:
        images.base_image(engine, nowhere, runtime)
    assert "python:3.99-slim is not on the engine" in caught.value.message
    assert "docker pull python:3.99-slim" in caught.value.fix


def test_the_shipped_dockerfile_builds_on_what_the_engine_has(
    engine, environment, runtime, monkeypatch, no_pull
):
    base = images.base_image(engine, environment, runtime)
    name = f"python:{environment.version}-slim"
    if images.known_image(engine, name) is None:
        engine.client.images.get(base).tag(*name.split(":"))
    monkeypatch.setattr(images, "can_be_made", lambda machine: False)
    built = images.base_image(engine, environment, runtime)
    assert built != base
    assert images.base_image(engine, environment, runtime) == built
    backend = DockerBackend()
    probe = backend.probe()
    backend.close()
    assert probe.works, probe
    assert backend._images
    engine.client.images.remove(name)


@pytest.fixture
def apart(monkeypatch):
    """Use separate names and labels for images, so that those of other programs and tests are kept."""
    monkeypatch.setattr(images, "KIND", "io.gistpoint.test.kind")
    monkeypatch.setattr(images, "STAMP", "io.gistpoint.test.stamp")
    monkeypatch.setattr(images, "_BASE", "localhost/gistpoint-test-base")
    monkeypatch.setattr(images, "ENVIRONMENT", "localhost/gistpoint-test-environment")


def test_removing_the_images_leaves_those_of_others(engine, environment, runtime, tmp_path, apart):
    (tmp_path / "lib").mkdir()
    small = Environment(tmp_path, environment.interpreter, environment.prefix, environment.version)
    base, made = images.base_image(engine, small, runtime), images.environment_image(engine, small, runtime)
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    others = "localhost/somebody-elses:1"
    engine.client.api.import_image(str(tmp_path / "empty.tar"), repository=others)
    assert images.remove_images(engine) == 2
    assert [images.known_image(engine, image) for image in (base, made)] == [None, None]
    assert images.known_image(engine, others) is not None
    engine.client.images.remove(others)
    assert images.environment_image(engine, small, runtime)
    assert images.remove_images(engine) == 2


def test_the_base_holds_nothing_that_was_installed_for_this_python(environment, runtime):
    entries = layers.root_entries(environment, runtime)
    assert not [entry.path for entry in entries if "-packages/" in entry.path or "/_bundled" in entry.path]
    paths = [entry.path for entry in entries]
    assert len(set(paths)) == len(paths)
    folders = {entry.path for entry in entries if entry.is_folder}
    assert {Path(path).parent.as_posix() for path in paths} <= folders | {"."}


def test_an_interpreter_is_closed_to_all_but_root_where_a_command_may_only_read(environment, runtime):
    programs = programs_alone(("bash", "cat"))
    entries = {entry.path: entry for entry in layers.closed_entries(environment, runtime, programs)}
    assert entries["usr/local"].mode == 0o700
    python = f"usr/local/bin/python{environment.version}"
    assert entries[python].mode == 0o700
    open_to_all = {path for path, entry in entries.items() if entry.source is not None and entry.mode & 0o077}
    assert open_to_all == {
        path for path in open_to_all if any(f"/{path}".startswith(part.path) for part in programs.system)
    }
    binaries = {Path(path).name for path in entries if "/bin/" in path and not path.startswith("usr/local")}
    assert binaries == {"bash", "cat"}


def test_a_base_from_a_registry_serves_such_a_command_too(
    engine, environment, runtime, monkeypatch, tmp_path
):
    """The command works whatever the base contains, because the base's programs are not hidden from it."""
    name = f"python:{environment.version}-slim"
    if images.known_image(engine, name) is None:
        engine.client.images.get(images.base_image(engine, environment, runtime)).tag(*name.split(":"))
    monkeypatch.setattr(images, "can_be_made", lambda machine: False)
    asked = probe_command(tmp_path, b"")
    command = replace(
        asked, programs=("bash",), invocation=lambda places: Invocation(("/bin/bash", "-c", "echo done"), {})
    )
    backend = DockerBackend()
    ended = backend.run(command, on_line=lambda line: None)
    backend.close()
    assert (ended.stop, ended.output) == (Stop.EXITED, "done\n")
    engine.client.images.remove(name)
