"""Makes images that are named by their content: a base with Python, and an image on it for each environment.

Nothing is ever pulled, unless `GISTPOINT_DOCKER_BASE=registry` requests the base from a registry.
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
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError
from gistpoint.sandbox.backends.docker.layers import (
    PYTHON,
    RECIPE,
    Entry,
    can_be_made,
    closed_entries,
    digest_of,
    folder_entries,
    root_entries,
    with_parents,
    write_layer,
)
from gistpoint.sandbox.backends.runtime import Runtime

KIND = "io.gistpoint.kind"
STAMP = "io.gistpoint.stamp"
_BASE = "localhost/gistpoint-base"
ENVIRONMENT = "localhost/gistpoint-environment"
_SHOWN = "gistpoint"
_PAYLOAD = Path(__file__).parent.parent.parent / "payload"
_DOCKERFILE = Path(__file__).parent / "base.Dockerfile"
_SETTING = "GISTPOINT_DOCKER_BASE"
_FOREIGN = "the environment contains code compiled for a system other than the engine's: {name}"


def environment_image(engine: Engine, environment: Environment, runtime: Runtime) -> str:
    """Return the id of the image that contains `environment`, built on the engine if necessary.

    `runtime` contains the parts of this machine that the environment needs. Raises `EngineError` if there is
    no base, if the engine can't run the environment's binaries, or if it fails to build the image.
    """
    base = base_image(engine, environment, runtime)
    entries = environment_entries(environment)
    if sys.platform != "linux":
        for entry in entries:
            is_binary = entry.path.endswith(".so")
            if is_binary and entry.source is not None and not _is_elf(entry.source):
                raise EngineError(
                    _FOREIGN.format(name=entry.path), "Run on Linux, or use a lock without binary wheels."
                )
    # Tagged by the content and the base's id, so that equal environments are sent only once (decision 6).
    tag = digest_of([Entry("base", data=base.encode()), *entries])[:32]
    found = known_image(engine, f"{ENVIRONMENT}:{tag}")
    if found is not None:
        return found
    with tempfile.TemporaryFile() as layer:
        write_layer(entries, layer)
        # The label comes first, so that even unfinished steps do not inherit the base's label.
        dockerfile = f'FROM {base}\nLABEL {KIND}="environment"\nADD layer.tar /\n'
        return _build(engine, dockerfile, {"layer.tar": layer}, f"{ENVIRONMENT}:{tag}")


def environment_entries(environment: Environment) -> list[Entry]:
    """Return the entries that an environment's image adds to its base, sorted by path."""
    below = f"{_SHOWN}/environment"
    python = f"/{PYTHON}/bin/python{environment.version}"
    settings = (
        f"home = /{PYTHON}/bin\ninclude-system-site-packages = false\nversion = {environment.version}\n"
    )
    entries = [Entry(f"{below}/pyvenv.cfg", data=settings.encode())]
    entries += [
        Entry(f"{below}/bin/{name}", 0o777, link=python)
        for name in ("python", "python3", f"python{environment.version}")
    ]
    entries += first_process()
    entries += folder_entries(environment.folder, below)
    return with_parents(entries)


def base_image(engine: Engine, environment: Environment, runtime: Runtime) -> str:
    """Return the id of the base image with the interpreter of `environment`, made if necessary.

    Raises `EngineError` if it can't be made.
    """
    if not made_here(engine):
        return _from_registry(
            engine, environment.version, may_pull=os.environ.get(_SETTING, "") == "registry"
        )
    stamp = f"{RECIPE}-{runtime.key}"
    return _imported(engine, stamp, lambda: root_entries(environment, runtime))


def programs_image(engine: Engine, environment: Environment, runtime: Runtime, programs: Runtime) -> str:
    """Return the id of an image in which commands find only `programs`; only root can use its interpreter.

    It must be made from this machine's parts, because the content of a registry's image is unknown. Raises
    `EngineError` if the engine loses the image.
    """
    first = first_process()

    def entries() -> list[Entry]:
        return with_parents([*closed_entries(environment, runtime, programs), *first])

    return _imported(engine, f"{RECIPE}-{runtime.key}-{programs.key}-{digest_of(first)[:16]}", entries)


def first_process() -> list[Entry]:
    """Return entries for the program that runs first in a container, and for the modules that it imports."""
    names = ("container_entry.py", "tree_states.py")
    return [Entry(f"{_SHOWN}/inside/{name}", data=(_PAYLOAD / name).read_bytes()) for name in names]


def made_here(engine: Engine) -> bool:
    """Whether the base of an engine's images is made from this machine's parts."""
    return os.environ.get(_SETTING, "") != "registry" and can_be_made(engine.machine)


def _imported(engine: Engine, stamp: str, entries: Callable[[], list[Entry]]) -> str:
    """Return the id of the base with this stamp; if the engine has none, send it one with `entries`.

    Raises `EngineError` if the engine does not have the base afterwards.
    """
    known = _stamped(engine, stamp)
    if known is not None:
        return known
    made = entries()
    with tempfile.TemporaryFile() as file:
        write_layer(made, file)
        file.seek(0)
        labels = [f'LABEL {KIND}="base" {STAMP}="{stamp}"']
        tag = digest_of(made)[:32]
        # The tag is part of the name, because Podman's service ignores a separate one.
        engine.client.api.import_image_from_data(file, repository=f"{_BASE}:{tag}", changes=labels)
    found = known_image(engine, f"{_BASE}:{tag}")
    if found is None:
        raise EngineError(f"the engine at {engine.address} lost the base image that was sent to it")
    return found


def remove_images(engine: Engine) -> int:
    """Remove the images that gistpoint made on this engine and no container uses; return their number."""
    import docker.errors

    removed = 0
    for kind in ("environment", "base"):
        for image in engine.client.images.list(filters={"label": f"{KIND}={kind}"}):
            try:
                engine.client.images.remove(str(image.id), force=True, noprune=False)
                removed += 1
            except docker.errors.APIError:
                continue  # another program's container still uses it
    return removed


def _from_registry(engine: Engine, version: str, *, may_pull: bool) -> str:
    """Build the shipped Dockerfile on the official image, and return the id; pull that only if `may_pull`.

    Raises `EngineError` if the official image is missing and must not be pulled.
    """
    name = f"python:{version}-slim"
    official = known_image(engine, name)
    if official is None:
        # Nothing is pulled unless the user has requested that (decision 6).
        if not may_pull:
            raise EngineError(
                f"a base image can't be made from this machine's Python, and {name} is not on the engine",
                f"Pull it (`docker pull {name}`), or allow that with {_SETTING}=registry.",
            )
        engine.client.images.pull("python", tag=f"{version}-slim")
        official = known_image(engine, name)
    dockerfile = _DOCKERFILE.read_text("utf-8")
    stamp = digest_of([Entry("Dockerfile", data=f"{official}\0{dockerfile}".encode())])
    known = _stamped(engine, stamp)
    if known is not None:
        return known
    dockerfile += f'LABEL {KIND}="base" {STAMP}="{stamp}"\n'
    return _build(engine, dockerfile, {}, f"{_BASE}:{stamp[:32]}", {"BASE": str(official)})


def _stamped(engine: Engine, stamp: str) -> str | None:
    """Return the id of the base with this stamp; None if there is none.

    Images built on it inherit the stamp, but are of another kind.
    """
    found = engine.client.images.list(filters={"label": [f"{STAMP}={stamp}", f"{KIND}=base"]})
    return str(found[0].id) if found else None


def known_image(engine: Engine, name: str) -> str | None:
    """Return the id of the image with this name; None if there is none."""
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
    """Build an image without network access, and return its id.

    A base that is named by its id is never pulled: the engine must have it. Raises `EngineError` if the
    build fails.
    """
    import docker.errors

    with tempfile.TemporaryFile() as context:
        with tarfile.open(fileobj=context, mode="w") as archive:
            _add(archive, "Dockerfile", io.BytesIO(dockerfile.encode()))
            for name, file in files.items():
                _add(archive, name, file)
        context.seek(0)
        try:
            image, _ = engine.client.images.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=dict(arguments or {}),
                pull=False,
                rm=True,
                forcerm=True,
                network_mode="none",
            )
        except docker.errors.BuildError as error:
            raise EngineError(
                f"the engine at {engine.address} could not build an image: {error.msg}"
            ) from error
    return str(image.id)


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size = file.seek(0, os.SEEK_END)
    info.mode = 0o644
    file.seek(0)
    archive.addfile(info, file)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
