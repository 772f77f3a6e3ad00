"""Finds the images that tasks name, inspects them, and prepares them for runs by adding a layer.

The content of these images is not trusted. None of it runs on this machine; code that has to run in a
container has no network, sees nothing of this machine, and has no rights except over the container's files.
Nothing is pulled unless the user requests it (decision 78).
"""

from __future__ import annotations

import io
import json
import posixpath
import shlex
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import msgspec

from gistpoint.core.archives import ArchiveBounds, ArchiveError, BoundedTar, streamed_tar
from gistpoint.core.decoding import decodable
from gistpoint.core.pins import IMAGE_NAME, PASSED_ON, PLATFORMS, ImagePins, quoted
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.text import visible_line
from gistpoint.sandbox.backends.docker.containers import OWNER, SHOWN, USER, WORK, remove, this_program
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError, engine_errors
from gistpoint.sandbox.backends.docker.images import ENVIRONMENT, KIND, first_process, known_image
from gistpoint.sandbox.backends.docker.layers import Entry, digest_of, with_parents, write_layer

if TYPE_CHECKING:
    from docker.models.images import Image

_PROGRAM = Path(__file__).parent.parent.parent / "payload" / "image_layer.py"
_REPORT = f"{SHOWN}/report.json"
_PREPARING_S = 600
_MEMORY = 2 << 30
_PROCESSES = 256
_MOST_REPORT = 16 << 20
_MOST_COPIED = 8 << 30
_MOST_MEMBERS = 1_000_000
_NAME = "testbed"
_PREFIXES = ("/opt/miniconda3", "/opt/conda", "/opt/miniforge3", "/opt/mambaforge", "/opt/anaconda3")
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_NOT_HERE = "the image {name} is not on the engine at {address}"

Text = Annotated[str, msgspec.Meta(max_length=1 << 20)]


class ImageDistribution(msgspec.Struct, frozen=True):
    """A distribution in an image; `own` says whether it is installed from the workdir."""

    name: Text
    version: Text
    requires: tuple[Text, ...]
    entry_points: Text
    own: bool


class ImageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings from the preparation of an image; `payload/image_layer.py` describes the members."""

    version: Text = ""
    full_version: Text = ""
    distributions: tuple[ImageDistribution, ...] = ()
    roots: tuple[Text, ...] = ()
    removed: tuple[Text, ...] = ()
    importable: dict[Text, Text] = {}
    error: Text = ""


def find_image(engine: Engine, reference: str, *, pull: bool = False, run: RunContext = UNATTENDED) -> Image:
    """Return the image that `NAME@sha256:DIGEST`, `NAME:TAG` or `NAME` names.

    The digest of an image that is not from a registry is its id. A missing image is pulled if `pull` is true;
    otherwise `EngineError` is raised, with the command that would get it. Raises `EngineError` with what
    prevented the pull, and `CancelledError` if stopped; the engine keeps the layers that have arrived.
    """
    import docker.errors

    images = engine.client.images
    name, _, digest = reference.partition("@")
    if not IMAGE_NAME.fullmatch(name):
        raise EngineError(
            f"{quoted(reference)} does not name an image", "Give NAME@sha256:DIGEST or NAME:TAG."
        )
    for known in (reference, digest):
        if known:
            try:
                return images.get(known)
            except docker.errors.ImageNotFound:
                continue
    if not pull:
        raise EngineError(
            _NOT_HERE.format(name=reference, address=engine.address),
            f"Get it with `{shlex.join(['docker', 'pull', reference])}`, or from a file with `docker load`.",
        )
    repository, colon, tag = name.rpartition(":") if ":" in posixpath.basename(name) else (name, "", "")
    return _pulled(engine, repository, digest or (tag if colon else "latest"), run)


def _pulled(engine: Engine, repository: str, tag: str, run: RunContext) -> Image:
    """Pull and return an image, and report how many MiB have arrived. Raises `EngineError` if that fails."""
    separator = "@" if tag.startswith("sha256:") else ":"
    name = f"{repository}{separator}{tag}"
    run = run.step(f"pulling {visible_line(name)} (MiB)")
    arrived: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for event in engine.client.api.pull(repository, tag=tag, stream=True, decode=True):
        run.check()
        problem = event.get("error")
        if problem:
            raise EngineError(f"{quoted(name)} can't be pulled: {visible_line(str(problem))}")
        layer = event.get("id", "")
        status = event.get("status")
        detail = event.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            arrived[layer] = detail.get("current", 0)
            sizes[layer] = detail["total"]
        elif status in ("Download complete", "Pull complete"):
            arrived[layer] = sizes.get(layer, 0)
        run.progress(RunProgress(done=sum(arrived.values()) >> 20, total=sum(sizes.values()) >> 20))
    return engine.client.images.get(name)


def digest_in(image: Image, name: str) -> tuple[str, str]:
    """Return the name without its tag, and the digest by which a registry names the image.

    If there is no such digest, the image's id is returned instead.
    """
    bare = name.partition("@")[0]
    if ":" in posixpath.basename(bare):
        bare = bare.rpartition(":")[0]
    listed = [str(known).partition("@") for known in image.attrs.get("RepoDigests") or ()]
    own = [digest for known, _, digest in listed if known == bare or known.endswith(f"/{bare}")]
    return bare, next(iter(own), str(image.id))


def platform_of(engine: Engine, image: Image) -> str:
    """Return the platform of an image, such as `linux/amd64`.

    Raises `EngineError` if the engine can't run the image, or if the image declares volumes.
    """
    platform = f"{image.attrs.get('Os')}/{image.attrs.get('Architecture')}"
    if platform not in PLATFORMS:
        raise EngineError(f"the image is for {platform}, not for {' or '.join(PLATFORMS)}")
    if _MACHINES[platform] != engine.machine:
        raise EngineError(
            f"the image is for {platform}, but the engine at {engine.address} has another architecture",
            "Name an engine of that architecture with DOCKER_HOST.",
        )
    # The content of a volume is neither read-only nor part of the digest (decision 78).
    volumes = (image.attrs.get("Config") or {}).get("Volumes")
    if volumes:
        raise EngineError(
            f"the image keeps {visible_line(', '.join(sorted(volumes)))[:200]} in volumes, which a run could"
            " write to",
            "Make an image from it without VOLUME.",
        )
    return platform


def variables_of(image: Image) -> dict[str, str]:
    """Return the environment variables that an image sets, by name."""
    lines = (image.attrs.get("Config") or {}).get("Env") or ()
    return {name: value for name, _, value in (str(line).partition("=") for line in lines)}


def passed_on(image: Image) -> tuple[str, ...]:
    """Return the image's environment variables that runs get, as sorted `NAME=VALUE` strings."""
    return tuple(
        f"{name}={value}" for name, value in sorted(variables_of(image).items()) if name in PASSED_ON
    )


@contextmanager
def container_files(engine: Engine, image: Image) -> Iterator[ContainerFiles]:
    """Create a container, yield its files for inspection, and remove it; it is never started."""
    identity = _created(engine, str(image.id), ["/nothing"])
    try:
        yield ContainerFiles(engine, identity)
    finally:
        remove(engine, identity)


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """The files of a container that does not run."""

    engine: Engine
    id: str

    def has(self, path: str) -> bool:
        """Whether there is a file, a link or a folder at `path`."""
        import docker.errors

        try:
            stream, _ = self.engine.client.api.get_archive(self.id, path)
        except docker.errors.NotFound:
            return False
        _Chunks(stream, _MOST_REPORT).drain()
        return True

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises `EngineError` if it is too large or not a file, and `docker.errors.NotFound` if there is none.
        """
        with self._archive(path, _MOST_REPORT) as archive:
            for member in archive:
                if member.isfile():
                    return archive.content(member).read()
        raise EngineError(f"{path} in the image is not a file")

    def copy(self, folder: str, target: IO[bytes], *, keeps: Any) -> None:
        """Copy a folder to `target` as a tar, without the members for whose path `keeps` returns false.

        Raises `EngineError` if there is no such folder, or if it is too large.
        """
        import docker.errors

        try:
            with (
                self._archive(folder, _MOST_COPIED) as archive,
                tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as kept,
            ):
                for member in archive:
                    if keeps(member.name):
                        kept.addfile(member, archive.content(member) if member.isfile() else None)
        except docker.errors.NotFound as error:
            raise EngineError(
                f"the image has no folder {folder}", "Name the one with the repository."
            ) from error

    @contextmanager
    def _archive(self, path: str, most: int) -> Iterator[BoundedTar]:
        source = _Chunks(self.engine.client.api.get_archive(self.id, path)[0], most)
        try:
            with streamed_tar(source, ArchiveBounds(most, _MOST_MEMBERS)) as archive:
                yield archive
        except ArchiveError as error:
            raise EngineError(f"the content of the image at {path} {error}") from error
        finally:
            source.drain()


class _Chunks:
    """A stream of byte strings as a readable file, which may contain at most `most` bytes."""

    def __init__(self, stream: Iterator[bytes], most: int) -> None:
        self._stream = stream
        self._left = most
        self._held = b""

    def read(self, size: int) -> bytes:
        """Return `size` bytes; fewer only at the end. Raises `EngineError` if the stream is too large."""
        parts = [self._held]
        missing = size - len(self._held)
        while missing > 0:
            part = next(self._stream, b"")
            if not part:
                break
            self._left -= len(part)
            if self._left < 0:
                raise EngineError("a folder of the image is too large to be copied")
            parts.append(part)
            missing -= len(part)
        data = b"".join(parts)
        self._held = data[size:]
        return data[:size]

    def drain(self) -> None:
        """Read to the end, or drop a stream that is too large; until then the engine keeps the container."""
        for part in self._stream:
            self._left -= len(part)
            if self._left < 0:
                break
        self._stream = iter(())


def find_python(inside: ContainerFiles, image: Image) -> str:
    """Return the path of the image's interpreter, in the conda environment `testbed` or on its PATH.

    Raises `EngineError` if there is neither.
    """
    path_folders = variables_of(image).get("PATH", _USUAL_PATH).split(":")
    folders = [folder for folder in dict.fromkeys(path_folders) if folder.startswith("/")]
    # Benchmarks install the tested code in a conda environment of this name, which might not be on the PATH.
    prefixes = [
        posixpath.dirname(folder) for folder in folders if posixpath.basename(folder) in ("bin", "condabin")
    ]
    candidates = [f"{prefix}/envs/{_NAME}/bin/python" for prefix in dict.fromkeys([*prefixes, *_PREFIXES])]
    for name in ("python", "python3"):
        candidates += [f"{folder}/{name}" for folder in folders]
    for path in map(posixpath.normpath, candidates):
        if inside.has(path):
            return path
    raise EngineError(
        f"the image has no conda environment {_NAME}, and no python on its PATH",
        "Name the interpreter with `--python PATH`.",
    )


def prepared_image(engine: Engine, pins: ImagePins) -> str:
    """Return the id of the image from which a task's runs start, built if necessary.

    It is the pinned image with an additional layer: this adds a user and gistpoint's first process, empties
    the workdir, and removes the installations that lead into it. Raises `EngineError` if the pinned image is
    missing or can't be used.
    """
    image = find_image(engine, pins.reference)
    platform_of(engine, image)
    entries = _entries()
    key = json.dumps([str(image.id), pins.workdir, pins.python, USER]).encode()
    tag = digest_of([Entry("key", data=key), *entries])[:32]
    return known_image(engine, f"{ENVIRONMENT}:{tag}") or _prepare(engine, str(image.id), pins, entries, tag)


def report_on(engine: Engine, pins: ImagePins) -> ImageReport:
    """Return the findings from the preparation of the image, after preparing it if necessary.

    Raises `EngineError` if the image can't be prepared, or its report can't be read.
    """
    image = engine.client.images.get(prepared_image(engine, pins))
    with container_files(engine, image) as inside:
        return _decoded(inside.read(_REPORT))


def _entries() -> list[Entry]:
    program = Entry(f"{SHOWN}/inside/{_PROGRAM.name}".lstrip("/"), data=_PROGRAM.read_bytes())
    return with_parents([*first_process(), program, Entry(WORK.lstrip("/"), 0o755)])


def _created(engine: Engine, image: str, command: list[str]) -> str:
    """Create a container without a network, mounts, or rights except over files; return its id."""
    api = engine.client.api
    limits: dict[str, Any] = {} if "memory" in engine.not_enforced else {"mem_limit": _MEMORY}
    if "processes" not in engine.not_enforced:
        limits["pids_limit"] = _PROCESSES
    created = api.create_container(
        image,
        entrypoint=command[:1],
        command=command[1:],
        user="0:0",
        working_dir="/",
        network_disabled=True,
        use_config_proxy=False,
        labels={KIND: "run", OWNER: this_program()},
        healthcheck={"test": ["NONE"]},
        host_config=api.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            cap_add=["DAC_OVERRIDE", "FOWNER"],
            security_opt=["no-new-privileges:true"],
            ipc_mode="private",
            **limits,
        ),
    )
    return str(created["Id"])


def _prepare(engine: Engine, image: str, pins: ImagePins, entries: list[Entry], tag: str) -> str:
    import requests

    api = engine.client.api
    order = json.dumps({"workdir": pins.workdir, "user": USER})
    program = f"{SHOWN}/inside/{_PROGRAM.name}"
    identity = _created(engine, image, [pins.python, "-I", program, order, _REPORT])
    try:
        layer = io.BytesIO()
        write_layer(entries, layer)
        api.put_archive(identity, "/", layer.getvalue())
        # The image's own interpreter runs the program, without a network and without mounts (decision 78).
        with _startable(engine, pins):
            api.start(identity)
        try:
            status = api.wait(identity, timeout=_PREPARING_S)["StatusCode"]
        except requests.RequestException as error:
            raise EngineError(f"preparing the image took longer than {_PREPARING_S} s") from error
        if status:
            raise EngineError(f"the image can't be used: {_failure_reason(engine, identity, status)}")
        made = api.commit(identity, repository=ENVIRONMENT, tag=tag, changes=f'LABEL {KIND}="environment"')
        return str(made["Id"])
    finally:
        remove(engine, identity)


@contextmanager
def _startable(engine: Engine, pins: ImagePins) -> Iterator[None]:
    try:
        with engine_errors(engine.address):
            yield
    except EngineError as error:
        raise EngineError(
            f"{pins.python} can't be started in the image: {visible_line(error.message)[:300]}",
            "Name its interpreter with `--python PATH`.",
        ) from error


def _failure_reason(engine: Engine, identity: str, status: int) -> str:
    """Return why the preparation failed, in at most 500 characters.

    This is the error in its report, the last line that it printed, or its status, in this order of
    preference.
    """
    import docker.errors

    try:
        report = _decoded(ContainerFiles(engine, identity).read(_REPORT))
        if report.error:
            return visible_line(report.error)[:500]
    except (docker.errors.NotFound, EngineError):
        pass
    printed = engine.client.api.logs(identity, tail=5).decode("utf-8", "replace").strip().splitlines()
    return visible_line(printed[-1] if printed else f"preparing it ended with status {status}")[:500]


def _decoded(data: bytes) -> ImageReport:
    try:
        return msgspec.json.decode(data, type=decodable(ImageReport))
    except (msgspec.DecodeError, RecursionError) as error:
        raise EngineError(f"the image's description of itself can't be read: {str(error)[:300]}") from error
