"""The folder of ours that a run of an entrypoint is shown, and the command line that it is started with."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gistpoint.sandbox.inject
import gistpoint.sandbox.inside
from gistpoint.core.ports import EnvironmentPins
from gistpoint.sandbox.backends.base import Invocation, Places
from gistpoint.sandbox.metadata import write_metadata
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
