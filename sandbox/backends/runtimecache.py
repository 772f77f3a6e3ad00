"""Runtimes kept on the disk: the list of each one's parts, and a folder that is laid out after it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from gistpoint.core.locations import Locations
from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.runtime import (
    PLACES,
    RECIPE,
    Part,
    Runtime,
    modules_in,
    programs_alone,
    runtime_of,
)
from gistpoint.sandbox.envcache import build_once

_LOADERS_LIST = Path("/etc/ld.so.cache")
_WRITABLE = 0o222


class RuntimeCache:
    """The runtimes below one folder: the user's cache, unless another is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[tuple[object, ...], Runtime] = {}

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self._folder or Locations.of_user().runtimes

    def of(self, environment: Environment, shows: tuple[Path, ...] = ()) -> Runtime:
        """Return what a run in `environment` is shown, with `shows` beyond the usual; listed once, and kept."""
        known = self._known.get((environment.folder, shows))
        if known is None:
            known = self._known[environment.folder, shows] = self._of(environment, shows)
        return known

    def of_programs(self, names: tuple[str, ...]) -> Runtime:
        """Return what a run is shown that finds the programs `names` and no interpreter."""
        known = self._known.get(names)
        if known is None:
            known = self._known[names] = self._kept([], names, lambda: programs_alone(names))
        return known

    def laid_out(self, runtime: Runtime, mounted: Sequence[str], written: Mapping[str, str]) -> Path:
        """Return a folder with the files and links of `runtime`, for a run to see as its root; made once, and kept.

        What `runtime` shows of the system by whole folders are empty ones there, to mount the machine's own on, and so
        are those named by `mounted`. `written` are texts of further files, by path.
        """

        def build(folder: Path) -> None:
            _lay_out(runtime, folder)
            for place in mounted:
                (folder / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
            for path, text in written.items():
                (folder / path.lstrip("/")).write_text(text, "utf-8")

        return build_once(self.folder / _digest([runtime.key, mounted, written]), build)

    def _of(self, environment: Environment, shows: tuple[Path, ...]) -> Runtime:
        library = environment.prefix / "lib" / f"python{environment.version}"
        watched = [environment.interpreter, library, library / "lib-dynload"]
        if environment.folder.stat().st_mode & _WRITABLE:
            if any(True for _ in modules_in(environment)):
                return runtime_of(environment, shows)  # it may still change
        else:
            watched.append(environment.folder)
        return self._kept(watched, [str(path) for path in shows], lambda: runtime_of(environment, shows))

    def _kept(self, watched: Iterable[Path], names: Iterable[str], make: Callable[[], Runtime]) -> Runtime:
        """Return what `make` gives, or what it gave when everything that it looks at was as it is now."""
        states = [_state(path) for path in (*watched, _LOADERS_LIST, *map(Path, PLACES))]
        file = self.folder / f"{_digest([RECIPE, *names, states])}.json"
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            told = json.loads(file.read_text("utf-8"))
            interpreter, system = (tuple(Part(*part) for part in told[name]) for name in ("interpreter", "system"))
            return Runtime(told["key"], interpreter, system)
        made = make()
        with contextlib.suppress(OSError):
            _write(file, made)
        return made


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _state(path: Path) -> list[object]:
    try:
        stat = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns]


def _write(file: Path, runtime: Runtime) -> None:
    """Write a list whole, or not at all: another process may be reading it."""
    interpreter, system = ([astuple(part) for part in parts] for parts in (runtime.interpreter, runtime.system))
    told = {"key": runtime.key, "interpreter": interpreter, "system": system}
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as beside:
        json.dump(told, beside)
    Path(name).replace(file)


def _lay_out(runtime: Runtime, folder: Path) -> None:
    for part in runtime.parts:
        target = folder / part.path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if part.link:
            target.symlink_to(part.link)
        elif not part.folder:
            shutil.copy2(part.path, target)  # with its times, by which bytecode is known
        elif part in runtime.interpreter:
            shutil.copytree(part.path, target, symlinks=True)
        else:
            target.mkdir()
