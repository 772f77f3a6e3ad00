"""Images named by what they hold: a base with Python, and one on top of it for each environment.

None is ever pulled, unless `GISTPOINT_DOCKER_BASE=registry` asks for the base to come from there.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.docker import rootfs
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError
from gistpoint.sandbox.backends.docker.layers import Entry, digest_of, folder_entries, with_parents, write_layer
from gistpoint.sandbox.backends.runtime import Runtime

KIND, STAMP = "io.gistpoint.kind", "io.gistpoint.stamp"
_BASE, _ENVIRONMENT = "localhost/gistpoint-base", "localhost/gistpoint-environment"
_SHOWN = "gistpoint"
_INSIDE = Path(__file__).parent.parent.parent / "inside"
_DOCKERFILE = Path(__file__).parent / "base.Dockerfile"
_SETTING = "GISTPOINT_DOCKER_BASE"
_FOREIGN = "the environment holds code compiled for another system than the engine's: {name}"


def environment_image(engine: Engine, environment: Environment, runtime: Runtime) -> str:
    """Return the id of the image that holds `environment`, built on the engine if it is not there yet.

    `runtime` is what it needs of this machine. Raises `EngineError`.
    """
    base = base_image(engine, environment, runtime)
    entries = environment_entries(environment)
    if sys.platform != "linux":
        for entry in entries:
            if entry.source is not None and entry.path.endswith(".so") and not _is_elf(entry.source):
                raise EngineError(
                    _FOREIGN.format(name=entry.path), "Run on Linux, or use a lock without binary wheels."
                )
    tag = digest_of([Entry("base", data=base.encode()), *entries])[:32]
    found = _known(engine, f"{_ENVIRONMENT}:{tag}")
    if found is not None:
        return found
    with tempfile.TemporaryFile() as layer:
        write_layer(entries, layer)
        # The label comes first: it covers the one that even unfinished steps would inherit from the base.
        dockerfile = f'FROM {base}\nLABEL {KIND}="environment"\nADD layer.tar /\n'
        return _build(engine, dockerfile, {"layer.tar": layer}, f"{_ENVIRONMENT}:{tag}")


def environment_entries(environment: Environment) -> list[Entry]:
    """Return what an environment's image adds to its base: the environment, and what is started in the container."""
    below = f"{_SHOWN}/environment"
    python = f"/{rootfs.PYTHON}/bin/python{environment.version}"
    settings = f"home = /{rootfs.PYTHON}/bin\ninclude-system-site-packages = false\nversion = {environment.version}\n"
    entries = [Entry(f"{below}/pyvenv.cfg", data=settings.encode())]
    entries += [
        Entry(f"{below}/bin/{name}", 0o777, link=python)
        for name in ("python", "python3", f"python{environment.version}")
    ]
    entries += _first_process()
    entries += folder_entries(environment.folder, below)
    return with_parents(entries)


def base_image(engine: Engine, environment: Environment, runtime: Runtime) -> str:
    """Return the id of the base image with the interpreter of `environment`; raises `EngineError`."""
    if not made_here(engine):
        return _from_registry(engine, environment.version, may_pull=os.environ.get(_SETTING, "") == "registry")
    stamp = f"{rootfs.RECIPE}-{runtime.key}"
    return _imported(engine, stamp, lambda: rootfs.root_entries(environment, runtime))


def programs_image(engine: Engine, environment: Environment, runtime: Runtime, programs: Runtime) -> str:
    """Return the id of an image in which only root finds an interpreter, and everybody the parts of `programs`.

    Its base must be made here: one from a registry holds whatever it holds. Raises `EngineError`.
    """
    first = _first_process()

    def entries() -> list[Entry]:
        return with_parents([*rootfs.closed_entries(environment, runtime, programs), *first])

    return _imported(engine, f"{rootfs.RECIPE}-{runtime.key}-{programs.key}-{digest_of(first)[:16]}", entries)


def _first_process() -> list[Entry]:
    """Return what is started in a container, and what that imports."""
    names = ("container_entry.py", "tree_states.py")
    return [Entry(f"{_SHOWN}/inside/{name}", data=(_INSIDE / name).read_bytes()) for name in names]


def made_here(engine: Engine) -> bool:
    """Whether the base of an engine's images is made of this machine's parts."""
    return os.environ.get(_SETTING, "") != "registry" and rootfs.can_be_made(engine.machine)


def _imported(engine: Engine, stamp: str, entries: Callable[[], list[Entry]]) -> str:
    """Return the id of the base with this stamp, sent to the engine if it is not there yet."""
    known = _stamped(engine, stamp)
    if known is not None:
        return known
    made = entries()
    with tempfile.TemporaryFile() as file:
        write_layer(made, file)
        file.seek(0)
        labels = [f'LABEL {KIND}="base" {STAMP}="{stamp}"']
        tag = digest_of(made)[:32]
        # Within the name: Podman's service does not look at the tag beside it.
        engine.client.api.import_image_from_data(file, repository=f"{_BASE}:{tag}", changes=labels)
    found = _known(engine, f"{_BASE}:{tag}")
    if found is None:
        raise EngineError(f"the engine at {engine.address} lost the base image that it was sent")
    return found


def remove_images(engine: Engine) -> int:
    """Remove every image that gistpoint made on this engine, and return how many there were."""
    import docker.errors

    removed = 0
    for kind in ("environment", "base"):
        for image in engine.client.images.list(filters={"label": f"{KIND}={kind}"}):
            try:
                engine.client.images.remove(str(image.id), force=True, noprune=False)
                removed += 1
            except docker.errors.APIError:
                continue  # a container of another program is still on it
    return removed


def _from_registry(engine: Engine, version: str, *, may_pull: bool) -> str:
    """Build the shipped Dockerfile on the official image; pulled only if that was asked for."""
    name = f"python:{version}-slim"
    official = _known(engine, name)
    if official is None:
        if not may_pull:
            raise EngineError(
                f"a base image can't be made from this machine's Python, and {name} is not on the engine",
                f"Pull it (`docker pull {name}`), or allow that with {_SETTING}=registry.",
            )
        engine.client.images.pull("python", tag=f"{version}-slim")
        official = _known(engine, name)
    dockerfile = _DOCKERFILE.read_text("utf-8")
    stamp = digest_of([Entry("Dockerfile", data=f"{official}\0{dockerfile}".encode())])
    known = _stamped(engine, stamp)
    if known is not None:
        return known
    dockerfile += f'LABEL {KIND}="base" {STAMP}="{stamp}"\n'
    return _build(engine, dockerfile, {}, f"{_BASE}:{stamp[:32]}", {"BASE": str(official)})


def _stamped(engine: Engine, stamp: str) -> str | None:
    """Return the id of the base with this stamp; what is built on it inherits the stamp, but is of another kind."""
    found = engine.client.images.list(filters={"label": [f"{STAMP}={stamp}", f"{KIND}=base"]})
    return str(found[0].id) if found else None


def _known(engine: Engine, name: str) -> str | None:
    import docker.errors

    try:
        return str(engine.client.images.get(name).id)
    except docker.errors.ImageNotFound:
        return None


def _build(
    engine: Engine,
    dockerfile: str,
    files: Mapping[str, IO[bytes]],
    tag: str,
    arguments: Mapping[str, str] | None = None,
) -> str:
    """Build without a network; a base named by its id can't be pulled."""
    import docker.errors

    with tempfile.TemporaryFile() as context:
        with tarfile.open(fileobj=context, mode="w") as archive:
            _add(archive, "Dockerfile", io.BytesIO(dockerfile.encode()))
            for name, file in files.items():
                _add(archive, name, file)
        context.seek(0)
        try:
            image, _ = engine.client.images.build(
                fileobj=context, custom_context=True, tag=tag, buildargs=dict(arguments or {}),
                pull=False, rm=True, forcerm=True, network_mode="none",
            )  # fmt: skip
        except docker.errors.BuildError as error:
            raise EngineError(f"the engine at {engine.address} could not build an image: {error.msg}") from error
    return str(image.id)


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = file.seek(0, os.SEEK_END), 0o644
    file.seek(0)
    archive.addfile(info, file)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
