"""An environment of pytest alone, copied out of gistpoint's own: works without network and without a build.

The demo's library runs in it. Nothing else of gistpoint's environment is in it, so nothing else can be imported.
"""

from __future__ import annotations

import compileall
import hashlib
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.envcache import build_once
from gistpoint.sandbox.interpreters import find_interpreter, own_version
from gistpoint.sandbox.requirement import requirement_of

_COMPILED = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging")


def runner_distributions() -> dict[str, metadata.Distribution]:
    """Return pytest and everything it needs on this Python, by canonical name, from gistpoint's own environment."""
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
                hint="Install gistpoint again, with its dependencies.",
            ) from error
        for line in found[name].requires or ():
            requirement = requirement_of(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return dict(sorted(found.items()))


def host_environment(cache: Path) -> Environment:
    """Return the environment below `cache`, made at the first call."""
    interpreter = find_interpreter(own_version())
    distributions = runner_distributions()
    key = "\n".join([str(interpreter.path), *(f"{name}=={d.version}" for name, d in distributions.items())])
    digest = hashlib.sha256(key.encode()).hexdigest()[:24]

    def build(folder: Path) -> None:
        (folder / "bin").mkdir(parents=True)
        for name in ("python", "python3"):
            (folder / "bin" / name).symlink_to(interpreter.path)
        (folder / "pyvenv.cfg").write_text(
            f"home = {interpreter.path.parent}\ninclude-system-site-packages = false\nversion = {own_version()}\n"
        )
        site = folder / "lib" / f"python{own_version()}" / "site-packages"
        site.mkdir(parents=True)
        for distribution in distributions.values():
            for inner, source in _files(distribution):
                target = site / inner
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        for package in _COMPILED:
            compileall.compile_dir(site / package, quiet=2)

    folder = build_once(cache / "environments" / f"host-{digest}", build)
    return Environment(folder, interpreter.path, interpreter.prefix, interpreter.version)


def _files(distribution: metadata.Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    for file in distribution.files or ():
        if ".." in file.parts or file.is_absolute() or "__pycache__" in file.parts:
            continue
        source = Path(str(distribution.locate_file(file)))
        if source.is_file():
            yield PurePosixPath(file), source
