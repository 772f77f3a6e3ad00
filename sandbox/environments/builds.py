"""Runs the build backends of sdists and repositories in isolation and offline: their code is not trusted.

The requirements of a build are fetched beforehand, as wheels. Its results, limited in size, come back only
through the result pipe and are checked before use. Wheels are cached by the content of their sdist and by
interpreter (decision 38).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import posixpath
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from gistpoint.core.archives import ArchiveError, opened_zip
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import CancelledError, EnvironmentBuildError, SourceError
from gistpoint.core.pins import quoted
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.text import visible_line
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Stop
from gistpoint.sandbox.backends.runtime import toolchain
from gistpoint.sandbox.cache import build_once
from gistpoint.sandbox.environments.interpreters import find_interpreter
from gistpoint.sandbox.environments.locking import BuiltWheel, Pinned, pin
from gistpoint.sandbox.environments.projects import read_build_system
from gistpoint.sandbox.environments.requirement import Metadata, named_requirement, read_metadata
from gistpoint.sandbox.environments.sdists import download, locate, unpack
from gistpoint.sandbox.environments.uv import KnownMetadata
from gistpoint.sandbox.layout import MountPaths, run_folder
from gistpoint.sandbox.limits import RunLimits

MOST_NESTED = 4
"""The maximum number of nested builds, since a package that a build needs may have no wheel either."""
MOST_BYTES = 128 << 20
"""The largest wheel that a build may return, in bytes."""
MOST_METADATA = 4 << 20
_MOST_UNPACKED = 1 << 30
_MOST_FILES = 100_000
_LAYOUT = "1"
_TIMEOUT_S = 900.0
_LIMITS = RunLimits(results=MOST_BYTES * 4 // 3 + (1 << 20))
_STOPPED = {
    Stop.TIMED_OUT: f"it took longer than {_TIMEOUT_S:g} s",
    Stop.OUT_OF_MEMORY: f"it took more than {_LIMITS.memory >> 20} MiB of memory",
    Stop.TOO_MUCH_DISK: f"it wrote more than {_LIMITS.disk >> 20} MiB",
    Stop.TOO_MANY_RESULTS: f"it returned more than a wheel of {MOST_BYTES >> 20} MiB",
}
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+!-]{0,250}")
_DRIVER = Path(__file__).parents[1] / "payload" / "build_backend.py"
_HINT_OWN = "Fix the build, or list `dependencies` under [project] in pyproject.toml; then nothing is built."
"""The hint for a source itself, which is never replaced with a wheel."""
_HINT = "Choose a version that has a wheel (`--with 'NAME<VERSION'`), or another sandbox."


class BuildEnvironments(Protocol):
    """A source of environments for builds, and the folder below which wheels and logs are stored."""

    @property
    def cache(self) -> Path:
        """The cache folder."""
        ...

    def of_lock(self, lock: tuple[str, ...], builds: Builds) -> Environment:
        """Return the environment of a lock for the Python of `builds`, which builds missing wheels."""
        ...


@dataclass(frozen=True, slots=True)
class Builds:
    """The builds on one backend for one Python.

    All methods raise `EnvironmentBuildError` if a build fails, and `CancelledError` if stopped.
    """

    environments: BuildEnvironments
    backend: Backend
    python: str
    exclude_newer: str | None = None
    """A date in uv's format: newer releases are not used as requirements of the builds; None for no limit."""
    on_line: Callable[[str], None] | None = None
    cancel: CancelToken = NEVER
    within: tuple[str, ...] = ()
    """The canonical names of the packages that are already being built, outermost first."""

    def pin(self, requirements: Iterable[str]) -> Pinned:
        """Return the lock of `requirements`; build the packages that have no wheel."""
        return pin(
            requirements, self.python, self.wheel, exclude_newer=self.exclude_newer, cancel=self.cancel
        )

    def repository_metadata(self, folder: Path, name: str) -> Metadata:
        """Return the metadata of a repository as its build backend computes it.

        Raises `EnvironmentBuildError` if the build fails, and `CancelledError` if stopped.
        """
        with (
            scratch_folder("build") as scratch,
            self._build(folder, "metadata", name, Path(scratch)).open("rb") as file,
        ):
            return read_metadata(file.read(MOST_METADATA).decode("utf-8", "replace"))

    def wheel(self, name: str, version: str, hashes: tuple[str, ...] = ()) -> BuiltWheel:
        """Return a wheel of a package whose index has none; the wheel is built at the first call.

        If `hashes` are given, the sha256 of the package's sdist must be one of them. Raises
        `EnvironmentBuildError` if there is no such sdist, if its build fails, or if builds are nested too
        deeply, and `CancelledError` if stopped.
        """
        # Cached by the hash of the sdist, not by the versions of the build's requirements (decision 38).
        for digest in hashes:
            if self._place(digest).is_dir():
                return _stored_wheel(self._place(digest), name, version, digest)
        self._refuse_nesting(name)
        try:
            with scratch_folder("build") as scratch:
                return self._wheel(name, version, hashes, Path(scratch))
        except SourceError as error:
            raise EnvironmentBuildError(
                f"{name} {version} has no wheel that can be used here. {error.message}"
            ) from error

    def _wheel(self, name: str, version: str, hashes: tuple[str, ...], scratch: Path) -> BuiltWheel:
        sdist = locate(f"{name}=={version}", name, python=self.python, cancel=self.cancel)
        archive, digest = download(sdist, scratch, self.cancel)
        # The lock has the hash of the sdist, so tasks are the same everywhere (decision 38).
        if hashes and digest not in hashes:
            raise EnvironmentBuildError(
                f"{name} {version} has no wheel that can be used here, and the hash of its sdist is not in"
                f" the lock: {digest}."
            )

        def build(folder: Path) -> None:
            wheel = self._build(unpack(archive, scratch / "source"), "wheel", f"{name} {version}", scratch)
            # Checked before it is stored: a hostile build chooses its wheel's name, paths and requirements.
            check_wheel(wheel, name, sdist.version)
            folder.mkdir()
            shutil.move(wheel, folder)

        folder = build_once(self._place(digest), build, self.cancel)
        return _stored_wheel(folder, name, sdist.version, digest)

    def _place(self, digest: str) -> Path:
        key = "\0".join((_LAYOUT, str(find_interpreter(self.python).path), digest))
        return self.environments.cache / "wheels" / hashlib.sha256(key.encode()).hexdigest()[:24]

    def _refuse_nesting(self, name: str) -> None:
        chain = (*self.within, canonicalize_name(name))
        if len(chain) > MOST_NESTED or chain[-1] in self.within:
            raise EnvironmentBuildError(
                f"{chain[0]} can't be built: {' needs '.join(chain)} to be built, and none of them has a"
                " wheel.",
                hint=_HINT,
            )

    def _build(self, folder: Path, want: str, what: str, into: Path) -> Path:
        """Return the file below `into` that the build backend of `folder` returns."""
        system = read_build_system(folder)
        inner = replace(self, within=(*self.within, canonicalize_name(what.partition(" ")[0])))
        order = {"backend": system.backend, "path": system.path, "want": want}
        if self.on_line is not None:
            prefix = "the metadata of " if want == "metadata" else ""
            self.on_line(f"Building {prefix}{what} in {self.backend.name}")
        requirements = system.requirements
        # At most twice, because the first run may only name the backend's requirements (PEP 517).
        for installed in (False, True):
            environment = inner._environment(requirements, what)
            received = BuildOutput(into)
            ended = self._run(folder, environment, {**order, "installed": installed}, received)
            if ended.stop is Stop.CANCELLED:
                raise CancelledError("Stopped at your request.")
            file = received.save_file()
            finished = ended.stop is Stop.EXITED and ended.exit_code == 0
            if finished and file is not None:
                return file
            if not received.requirements:
                break
            requirements = (*requirements, *received.requirements)
        raise self._failure(what, ended, _HINT_OWN if want == "metadata" else _HINT)

    def _environment(self, requirements: tuple[str, ...], what: str) -> Environment:
        try:
            lock = self.pin(requirements).lines if requirements else ()
            return self.environments.of_lock(lock, self)
        except EnvironmentBuildError as error:
            message = (
                f"{what} has to be built, but the packages that its build needs are not"
                f" available. {error.message}"
            )
            raise EnvironmentBuildError(message, hint=error.hint, log=error.log) from error

    def _run(
        self, folder: Path, environment: Environment, order: dict[str, object], received: BuildOutput
    ) -> Ended:
        def invocation(places: MountPaths) -> Invocation:
            driver = f"{places.folders['control']}/{_DRIVER.name}"
            variables = {
                "PATH": os.pathsep.join(
                    (posixpath.dirname(places.python), "/usr/local/bin", "/usr/bin", "/bin")
                ),
                "HOME": places.home,
                "TMPDIR": places.temporary,
                "LANG": "C.UTF-8",
                "LC_ALL": "C.UTF-8",
                "GISTPOINT_RESULTS": str(places.results_fd),
            }
            return Invocation((places.python, "-I", driver, json.dumps(order)), variables)

        with run_folder() as base:
            (base / "control").mkdir()
            shutil.copyfile(_DRIVER, base / "control" / _DRIVER.name)
            shutil.copytree(folder, base / "tree", symlinks=True, copy_function=shutil.copy)
            _open_to_all(base)
            command = Command(
                tree=base / "tree",
                environment=environment,
                invocation=invocation,
                timeout_s=_TIMEOUT_S,
                folders={"control": base / "control"},
                limits=_LIMITS,
                # Ordinary runs see no compiler (decision 39).
                shows=toolchain(environment),
            )
            with received:
                return self.backend.run(command, on_line=received.feed, cancel=self.cancel)

    def _failure(self, what: str, ended: Ended, advice: str) -> EnvironmentBuildError:
        log = self.environments.cache / "logs" / f"build-{hashlib.sha256(what.encode()).hexdigest()[:24]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(ended.output, "utf-8", errors="replace")
        last = next(
            (line for line in reversed(ended.output.splitlines()) if line.strip()), "it printed nothing"
        )
        reason = ended.reason or _STOPPED.get(ended.stop) or visible_line(last.strip())[:300]
        return EnvironmentBuildError(
            f"{what} has to be built, and its build in {self.backend.name} failed: {reason}",
            hint=f"A build has no network access. Look at the log in {log}. {advice}",
            log=ended.output,
        )


class _Answer(msgspec.Struct):
    """A line that `payload/build_backend.py` writes."""

    requires: tuple[str, ...] = ()
    file: str = ""
    part: str = ""
    """A part of the file, in base64."""
    end: bool = False


class BuildOutput:
    """A receiver of the lines of `payload/build_backend.py`, which drops invalid ones: none are trusted."""

    def __init__(self, into: Path) -> None:
        self.requirements: tuple[str, ...] = ()
        self._into = into
        self._name = ""
        self._size = 0
        self._complete = False

    def __enter__(self) -> None:
        self._file = (self._into / "part").open("wb")

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def feed(self, line: bytes) -> None:
        """Take a line; a part of the file that exceeds the limit is not written."""
        try:
            answer = msgspec.json.decode(line, type=decodable(_Answer))
            # The driver shares its sandbox with the build, which can write the same lines.
            part = base64.b64decode(answer.part, validate=True)
        except (ValueError, RecursionError):
            return
        self.requirements = answer.requires or self.requirements
        self._name = answer.file or self._name
        self._complete = answer.end
        if part:
            self._size += len(part)
            if self._size <= MOST_BYTES:
                self._file.write(part)

    def save_file(self) -> Path | None:
        """Give the received file its name, and return its path; a later call returns the same path.

        Returns None if the file is incomplete, too large, or has an invalid name.
        """
        is_complete = self._complete and self._size <= MOST_BYTES
        if not is_complete or not _FILE.fullmatch(self._name):
            return None
        part, named = self._into / "part", self._into / self._name
        return part.rename(named) if part.exists() else named


def _stored_wheel(folder: Path, name: str, version: str, digest: str) -> BuiltWheel:
    wheel = next(folder.glob("*.whl"))
    metadata = check_wheel(wheel, name, version)
    known = KnownMetadata(
        name=name,
        version=version,
        requirements=tuple(metadata["Requires-Dist"]),
        extras=tuple(metadata["Provides-Extra"]),
        requires_python=str(metadata.get("Requires-Python", "")),
    )
    return BuiltWheel(wheel, known, digest)


def _open_to_all(folder: Path) -> None:
    """Make everything below `folder` readable for all users, because another user may run the code."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            # Changing the mode of a link would change its target, which may lie elsewhere.
            if path.is_symlink():
                continue
            is_open = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if is_open else 0o644)


def check_wheel(wheel: Path, name: str, version: str) -> Metadata:
    """Return the metadata of a wheel of `name` in `version`.

    Raises `EnvironmentBuildError` for a file that is not a wheel of exactly that name and version, for paths
    that lead out of it, for links, for more than 1 GiB or 100,000 files when unpacked, and for requirements
    that are not plain names.
    """
    identity = (canonicalize_name(name), Version(version))
    try:
        built = parse_wheel_filename(wheel.name)[:2]
    except InvalidWheelFilename as error:
        raise _no_wheel(wheel, f"not a valid name of a wheel ({error})") from error
    if built != identity:
        raise _no_wheel(wheel, f"a wheel of {built[0]} {built[1]}, not of {name} {version}")
    try:
        with wheel.open("rb") as file, opened_zip(file) as archive:
            metadata = read_metadata(_metadata_text(wheel, archive))
    except (ArchiveError, OSError) as error:
        raise _no_wheel(wheel, f"damaged (it {error})") from error
    if not _describes(metadata, identity):
        raise _no_wheel(
            wheel, f"not as described by its metadata: {metadata.get('Name')} {metadata.get('Version')}"
        )
    # Only names from an index are allowed: uv would fetch a URL.
    for line in metadata["Requires-Dist"]:
        named_requirement(line)
    return metadata


def _metadata_text(wheel: Path, archive: zipfile.ZipFile) -> str:
    """Return the text of a wheel's metadata, after checking all paths.

    Raises `EnvironmentBuildError` if the wheel is too large when unpacked, contains a path that leads out of
    it or a link, or does not have exactly one file of metadata.
    """
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if len(members) > _MOST_FILES or unpacked > _MOST_UNPACKED:
        raise _no_wheel(
            wheel, f"when unpacked, larger than {_MOST_UNPACKED >> 20} MiB or {_MOST_FILES:,} files"
        )
    for member in members:
        if _leads_out(member) or stat.S_ISLNK(member.external_attr >> 16):
            raise _no_wheel(
                wheel, f"not an archive that can be unpacked: it contains {member.filename[:200]!r}"
            )
    at_top = [member for member in members if member.filename.count("/") == 1]
    found = [member for member in at_top if member.filename.endswith(".dist-info/METADATA")]
    if len(found) != 1 or found[0].file_size > MOST_METADATA:
        raise _no_wheel(wheel, "without its own metadata")
    with archive.open(found[0]) as file:
        return file.read(MOST_METADATA).decode("utf-8", "replace")


def _leads_out(member: zipfile.ZipInfo) -> bool:
    is_odd = "\\" in member.filename or "\0" in member.orig_filename
    return is_odd or posixpath.normpath(member.filename).startswith(("/", ".."))


def _describes(metadata: Metadata, identity: tuple[str, Version]) -> bool:
    name = metadata.get("Name", "")
    version = metadata.get("Version", "")
    try:
        return (canonicalize_name(str(name)), Version(str(version))) == identity
    except InvalidVersion:
        return False


def _no_wheel(wheel: Path, what: str) -> EnvironmentBuildError:
    return EnvironmentBuildError(f"The build returned {quoted(wheel.name)}, which is {what}.")
