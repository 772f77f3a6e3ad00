"""Makes environments of repositories: each is made once by uv from a lock, named by its content, and frozen.

No environment contains the package under repair, which is imported from the workspace, so that there is only
one copy of it. The modules that build an environment are imported only when one is built, because a store is
made when a screen opens.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import LockLine, fault_in, read_lock_line
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.trees import sha256_of
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sandbox.backends.base import IMAGES_RUN_ON, Backend, Environment, Interpreter
from gistpoint.sandbox.cache import build_once
from gistpoint.sandbox.environments.interpreters import find_interpreter, own_version
from gistpoint.sandbox.environments.uv import WHEELS_ALONE, UvResult, call_uv, run_program
from gistpoint.sandbox.host_programs import run_host_program

if TYPE_CHECKING:
    from importlib import metadata

    from gistpoint.core.pins import EnvironmentPins, ImagePins
    from gistpoint.sandbox.environments.builds import Builds
    from gistpoint.sandbox.environments.locking import BuiltWheel


_COMPILE = "import compileall, sys\nfor path in sys.stdin:\n    compileall.compile_file(path[:-1], quiet=2)\n"


def compile_below(folder: Path, interpreter: Path, cancel: CancelToken = NEVER) -> None:
    """Compile the modules below `folder`, in as many processes as there are processors.

    Files that are not valid Python for `interpreter` are skipped. Raises `CancelledError` if stopped.
    """
    modules = sorted(str(path) for path in folder.rglob("*.py") if str(path).isprintable())
    shares = os.cpu_count() or 1

    def compile_share(share: int) -> None:
        run_program(
            [str(interpreter), "-I", "-S", "-c", _COMPILE],
            folder="/",
            environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
            standard_input="".join(f"{path}\n" for path in modules[share::shares]),
            cancel=cancel,
        )

    with ThreadPoolExecutor(shares) as pool:
        list(pool.map(compile_share, range(shares)))


_COMPILED = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging")
_HOST_LAYOUT = "2"
"""The version of the rules for making pytest's own environment; a change of version makes it again."""


@cache
def runner_distributions() -> dict[str, metadata.Distribution]:
    """Return pytest and all that it requires in gistpoint's own environment, by canonical name.

    Raises `EnvironmentBuildError` if one of them is missing.
    """
    from importlib import metadata

    from packaging.utils import canonicalize_name

    from gistpoint.sandbox.environments.requirement import requirement_of

    found: dict[str, metadata.Distribution] = {}
    waiting = ["pytest"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            raise EnvironmentBuildError(
                f"gistpoint's own environment has no {name}, which pytest needs.",
                hint="Reinstall gistpoint with its dependencies.",
            ) from error
        for line in found[name].requires or ():
            requirement = requirement_of(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return dict(sorted(found.items()))


def host_environment(cache: Path) -> Environment:
    """Return the environment that contains only pytest, below `cache`; it is made at the first call.

    Raises `EnvironmentBuildError` if gistpoint's own interpreter or pytest is not found.
    """
    interpreter = find_interpreter(own_version())
    distributions = runner_distributions()
    pinned = (f"{name}=={d.version}" for name, d in distributions.items())
    key = "\n".join([_HOST_LAYOUT, str(interpreter.path), *pinned])
    digest = hashlib.sha256(key.encode()).hexdigest()[:24]

    def build(folder: Path) -> None:
        (folder / "bin").mkdir(parents=True)
        for name in ("python", "python3"):
            (folder / "bin" / name).symlink_to(interpreter.path)
        (folder / "pyvenv.cfg").write_text(
            f"home = {interpreter.path.parent}\ninclude-system-site-packages = false\nversion ="
            f" {own_version()}\n"
        )
        site = folder / "lib" / f"python{own_version()}" / "site-packages"
        site.mkdir(parents=True)
        for distribution in distributions.values():
            for inner, source in _files(distribution):
                target = site / inner
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        import compileall

        for package in _COMPILED:
            compileall.compile_dir(site / package, quiet=2)
        _compile_what_pytest_imports(folder)

    folder = build_once(cache / "environments" / f"host-{digest}", build)
    return Environment(folder, interpreter.path, interpreter.prefix, interpreter.version)


def _compile_what_pytest_imports(folder: Path) -> None:
    """Import pytest once in an environment, which compiles every module that pytest imports.

    Nothing in a sandbox can write bytecode, so modules without it would be compiled in every run. The few
    modules of pygments that pytest imports took a fifth of its starting time (decision 132).
    """
    # With -I, the user's settings and modules affect neither what is imported nor where bytecode is written.
    python = folder / "bin" / "python"
    with contextlib.suppress(TimeoutError):  # on a very busy machine; the modules are then compiled when used
        run_host_program([python, "-I", "-c", "import pytest"], timeout_s=60)


def _files(distribution: metadata.Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield a distribution's files as relative and real paths, without bytecode, which is made again."""
    for file in distribution.files or ():
        leads_out = file.is_absolute() or ".." in file.parts
        if leads_out or "__pycache__" in file.parts:
            continue
        source = Path(str(distribution.locate_file(file)))
        if source.is_file():
            yield PurePosixPath(file), source


def image_environment(pins: EnvironmentPins, image: ImagePins, backend: Backend) -> Environment:
    """Return the environment in an image.

    Raises `EnvironmentBuildError` if `backend` can't run images.
    """
    if backend.name != IMAGES_RUN_ON:
        raise EnvironmentBuildError(
            f"The task runs in the image {image.reference}, which the sandbox {backend.name} can't use.",
            hint=f"Repeat the command with `--sandbox {IMAGES_RUN_ON}`.",
        )
    python = Path(image.python)
    prefix = python.parent.parent
    return Environment(prefix, python, prefix, pins.python, image)


_LAYOUT = "1"

# Copies, not links, because code that can write to an environment must not reach uv's cache.
_SYNC = ("--require-hashes", "--link-mode", "copy", "--no-compile-bytecode", "--no-allow-empty-requirements")


class EnvironmentStore:
    """The environments below one cache folder."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self._folder = cache / "environments"

    def get(
        self,
        pins: EnvironmentPins,
        backend: Backend,
        *,
        on_line: Callable[[str], None] | None = None,
        cancel: CancelToken = NEVER,
    ) -> Environment:
        """Return the environment of `pins`, built if necessary; an empty lock means pytest alone.

        Packages without a wheel are built on `backend`. Raises `EnvironmentBuildError`, which names the
        requirement and contains the builder's log, and `CancelledError` if stopped.
        """
        if fault := fault_in(pins):
            raise EnvironmentBuildError(f"The environment can't be built: {fault}")
        if pins.image is not None:
            return image_environment(pins, pins.image, backend)
        # Without requirements, the environment contains pytest alone, as installed with gistpoint.
        if not pins.lock:
            return host_environment(self.cache)
        from gistpoint.sandbox.environments.builds import Builds

        return self.of_lock(pins.lock, Builds(self, backend, pins.python, on_line=on_line, cancel=cancel))

    def of_lock(self, lock: tuple[str, ...], builds: Builds) -> Environment:
        """Return the environment of exactly these lines, for the Python of `builds`, built if necessary.

        Raises `EnvironmentBuildError`, which names the requirement and contains the builder's log, and
        `CancelledError` if stopped.
        """
        interpreter = find_interpreter(builds.python)

        def build(folder: Path) -> None:
            self._build(folder, lock, interpreter, builds)

        folder = build_once(self._folder / self._key(builds.python, lock), build, builds.cancel)
        return Environment(folder, interpreter.path, interpreter.prefix, interpreter.version)

    def key(self, pins: EnvironmentPins) -> str:
        """Return the name of the folder, on this machine, of the environment made from the lock of `pins`."""
        return self._key(pins.python, pins.lock)

    def _key(self, python: str, lock: tuple[str, ...]) -> str:
        parts = (_LAYOUT, str(find_interpreter(python).path), python, *lock)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

    def _build(self, folder: Path, lock: tuple[str, ...], interpreter: Interpreter, builds: Builds) -> None:
        """Make an environment without running its own interpreter, which would run code in `*.pth` files.

        Raises `EnvironmentBuildError` if uv fails, and `CancelledError` if stopped.
        """
        made = call_uv(
            # Relocatable, because it is built under another name and moved into place when it is complete.
            ["venv", "--no-project", "--relocatable", "--python", str(interpreter.path), str(folder)],
            on_line=builds.on_line,
            cancel=builds.cancel,
        )
        if not made.ok:
            raise self._failure(made, builds.python, lock)
        if lock:
            self._install(folder, lock, builds)
            # With the outer interpreter: the environment's own would run lines of *.pth files (decision 38).
            compile_below(folder / "lib", interpreter.path, builds.cancel)

    def _install(self, folder: Path, lock: tuple[str, ...], builds: Builds) -> None:
        """Install the lock in one call, from wheels alone; build the wheels that uv does not find.

        Raises `EnvironmentBuildError` if that fails, and `CancelledError` if stopped.
        """
        from packaging.utils import canonicalize_name

        from gistpoint.sandbox.environments.locking import wheelless

        built: dict[str, BuiltWheel] = {}
        while True:
            with scratch_folder("wheels") as shelf:
                for wheel in built.values():
                    shutil.copy(wheel.path, shelf)
                synced = call_uv(
                    ["pip", "sync", "--python", str(folder / "bin" / "python"), *_SYNC, *WHEELS_ALONE, "-"],
                    standard_input="".join(f"{_with_built(line, built)}\n" for line in lock),
                    shelf=shelf,
                    on_line=builds.on_line,
                    cancel=builds.cancel,
                )
            if synced.ok:
                return
            missing = [
                line
                for line in _lines_of(lock, wheelless(synced))
                if canonicalize_name(line.name) not in built
            ]
            if not missing:
                raise self._failure(synced, builds.python, lock)
            for line in missing:
                built[canonicalize_name(line.name)] = builds.wheel(line.name, line.version, line.hashes)

    def _failure(self, result: UvResult, python: str, lock: tuple[str, ...]) -> EnvironmentBuildError:
        from gistpoint.sandbox.environments.locking import build_failure

        return build_failure(result, lock, self.cache / "logs" / f"{self._key(python, lock)}.log")


def _lines_of(lock: tuple[str, ...], names: list[str]) -> list[LockLine]:
    from packaging.utils import canonicalize_name

    lines = [line for line in map(read_lock_line, lock) if line is not None]
    return [line for line in lines if canonicalize_name(line.name) in names]


def _with_built(text: str, built: Mapping[str, BuiltWheel]) -> str:
    """Return a line of a lock, with the hash of the wheel that was built for it, if any."""
    from packaging.utils import canonicalize_name

    line = read_lock_line(text)
    wheel = built.get(canonicalize_name(line.name)) if line is not None else None
    if line is None or wheel is None:
        return text
    return str(replace(line, hashes=(sha256_of(wheel.path),)))
