"""What a run of an entrypoint is shown, and the command line that it is started with."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import gistpoint.sandbox.inject
import gistpoint.sandbox.inside
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.kinds.gist.entrypoints import Entrypoint, EntrypointKind
from gistpoint.core.kinds.gist.shell_rules import PRELUDE, READING
from gistpoint.core.ports import EnvironmentPins
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Invocation, Places
from gistpoint.sandbox.environments.projects import write_metadata
from gistpoint.sandbox.testruns import BUILD_STEPS, RESULTS_PLUGIN, building

_INJECT = Path(gistpoint.sandbox.inject.__file__).parent
_INSIDE = Path(gistpoint.sandbox.inside.__file__).parent
EMPTY_SETTINGS = "empty.ini"
_PYTEST = ("-p", "no:cacheprovider", "--assert=plain", "-q", "--tb=short", "--color=no", "--no-summary", "--maxfail=0")


def write_control(folder: Path, pins: EnvironmentPins) -> None:
    """Write what a run needs of ours."""
    folder.mkdir()
    for source in sorted(_INJECT.glob("*.py")):
        if source.name != "__init__.py":
            shutil.copyfile(source, folder / source.name)
    for name in (RESULTS_PLUGIN, BUILD_STEPS):
        shutil.copyfile(_INSIDE / name, folder / name)
    (folder / EMPTY_SETTINGS).write_text("[pytest]\n", "utf-8")
    (folder / "metadata").mkdir()
    if pins.metadata:
        shutil.rmtree(folder / "metadata")
        write_metadata(folder / "metadata", pins.metadata)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def pytest_words(places: Places, pins: EnvironmentPins, *, alone: bool, settings: bool) -> list[str]:
    """Return pytest's arguments, but for what to run.

    `alone` keeps `conftest.py` files out; without `settings` the repository's own settings are left aside.
    """
    words = ["pytest", *_PYTEST, f"--rootdir={places.workspace}", f"--confcutdir={places.workspace}"]
    for plugin in pins.plugins:
        words += ["-p", plugin]
    if alone:
        words.append("--noconftest")
    if not settings:
        words += ["-c", f"{places.folders['control']}/{EMPTY_SETTINGS}"]
    return [*words, *pins.pytest_args]


def roots_in(place: str, pins: EnvironmentPins) -> list[str]:
    """Return the folders below `place` from which the repository's packages are imported."""
    return [posixpath.normpath(f"{place}/{root}") for root in pins.import_roots]


def invocation_of(
    places: Places,
    pins: EnvironmentPins,
    order: Mapping[str, Any],
    *,
    importable: list[str],
    hash_seed: int,
    build: bool,
) -> Invocation:
    """Return the command line and the whole environment of a run.

    `importable` are folders for child processes too; `build` says that the build steps run before it.
    """
    control = places.folders["control"]
    launcher = [places.python, f"{control}/launcher.py"]
    if order["argv"][0] == "pytest":
        arguments = [*launcher, json.dumps({**order, "plugin": f"{control}/{RESULTS_PLUGIN}"})]
    else:
        outer = {"folder": places.workspace, "files": order.get("files", ())}
        arguments = [places.python, "-I", f"{control}/program_runner.py", json.dumps(outer), *launcher]
        arguments.append(json.dumps(dict(order)))
    if build:
        arguments = building(places, pins, arguments)
    environment = {
        **plain_environment(places, hash_seed),
        "PYTHONPATH": os.pathsep.join((*importable, f"{control}/metadata")),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GISTPOINT_ROOT": places.workspace,
        "GISTPOINT_RESULTS": str(places.results_fd),
    }
    return Invocation(tuple(arguments), environment)


def plain_environment(places: Places, hash_seed: int) -> dict[str, str]:
    """Return the environment that every run has."""
    return {
        "PATH": os.pathsep.join((posixpath.dirname(places.python), "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": places.home,
        "TMPDIR": places.temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "120",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }


_PYTEST_IN_SHELL = 'pytest() { python -m pytest "$@"; }\n'
READING_PROGRAMS = ("bash", "sh", *sorted(READING))
"""All that a command finds which may only read; some of them are scripts for `sh`."""
_READING_PATH = "/usr/bin:/bin"


def shell_invocation(command: str, places: Places, importable: list[str], *, execution: bool) -> Invocation:
    """Return how bash is started: with the repository's Python at hand, or for commands that read alone.

    Without execution brace expansion is off too: it could spell words that the rules never saw, and the refusal would
    not be the one that explains.
    """
    environment = plain_environment(places, 0)
    if execution:
        environment |= {"PYTHONPATH": os.pathsep.join(importable), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return Invocation(("/bin/bash", "-c", _PYTEST_IN_SHELL + command), environment)
    environment["PATH"] = _READING_PATH
    return Invocation(("/bin/bash", "+B", "-c", PRELUDE + command), environment)


def moved_files(tree: SourceTree, entrypoint: Entrypoint) -> tuple[dict[str, bytes], Entrypoint]:
    """Return the files of the other place by path, and the entrypoint as it is called there.

    A test takes along the `conftest.py` of each folder above it, and the modules of folders of tests that are no tests
    themselves, those of their inner packages too. A script goes alone; a module has no file of its own to move.
    """
    if entrypoint.kind is EntrypointKind.MODULE:
        return {}, entrypoint
    source = tree.read(entrypoint.target)
    if entrypoint.kind is EntrypointKind.SCRIPT:
        return {"moved.py": source}, replace(entrypoint, target="moved.py")
    files: dict[str, bytes] = {}
    parts = PurePosixPath(entrypoint.target).parent.parts
    place = ""
    for depth in range(len(parts) + 1):
        folder = "/".join(parts[:depth])
        place = "/".join(f"moved_{level}" for level in range(1, depth + 1))
        for name in _taken_along(tree, folder):
            files[posixpath.join(place, name)] = tree.read(posixpath.join(folder, name))
    target = posixpath.join(place, "test_moved.py")
    files[target] = source
    return files, replace(entrypoint, target=target)


def _taken_along(tree: SourceTree, folder: str) -> Iterator[str]:
    """Yield, relative to `folder`, its `conftest.py`; of a folder of tests also what its tests may import."""
    of_tests = bool(folder) and is_test_path(f"{folder}/module.py")
    for name, kind in tree.entries(folder):
        if kind == "file" and (name == "conftest.py" or (of_tests and _may_be_imported(name))):
            yield name
    for path in tree.files(".py") if of_tests else ():
        below = path.removeprefix(f"{folder}/")
        if below != path and "/" in below and _may_be_imported(posixpath.basename(path)):
            yield below


def _may_be_imported(name: str) -> bool:
    stem, dot, suffix = name.rpartition(".")
    return dot + suffix == ".py" and stem != "conftest" and not (stem.startswith("test_") or stem.endswith("_test"))
