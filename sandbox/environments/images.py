"""Reads a Docker image as a repository with its environment: one of its folders and its interpreter."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gistpoint.core.errors import EnvironmentBuildError, SourceError
from gistpoint.core.pins import EnvironmentPins, ImagePins, fault_in, is_image_path, quoted
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.text import visible_line
from gistpoint.core.trees import SourceTree, is_left_out, write_tree
from gistpoint.sandbox.environments.projects import Project, read_project
from gistpoint.sandbox.environments.requirement import requirement_of
from gistpoint.sandbox.environments.resolver import RUNNER, Installed, entry_points_of, usable_plugins
from gistpoint.sandbox.environments.sdists import unpack

if TYPE_CHECKING:
    from gistpoint.sandbox.backends.docker.taskimages import ImageReport

_INSTALLED_FROM_IT = "Install it in the image (`python -m pip install '{runner}'`), and give the new digest."


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """An image as the user names it, and the settings of its suite."""

    reference: str
    """The image's name, as `NAME@sha256:DIGEST`, `NAME:TAG` or `NAME`."""
    workdir: str
    python: str = ""
    """The path of the image's interpreter; empty to search for it."""
    pull: bool = False
    """Whether the image may be pulled if it is not on the engine."""
    pytest_args: tuple[str, ...] = ()
    build_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchedImage:
    """The repository in an image, and the record of the image for the tasks' answers."""

    repository: Repository
    record: dict[str, Any]


def fetch_image(spec: ImageSpec, scratch: Path, *, run: RunContext = UNATTENDED) -> FetchedImage:
    """Copy the repository from an image, prepare the image for runs, and return both.

    Raises `SourceError` for an image that is missing or unusable or has no such folder,
    `EnvironmentBuildError` for an image in which the suite can't run, and `CancelledError` if stopped.
    """
    from gistpoint.sandbox.backends.docker import taskimages
    from gistpoint.sandbox.backends.docker.engine import EngineError, connect, engine_errors

    for option, path in (("--workdir", spec.workdir), ("--python", spec.python)):
        if path and not is_image_path(path):
            raise SourceError(
                f"{option} is not an absolute path in the image: {quoted(path)}.",
                hint="For example /testbed.",
            )
    try:
        engine = connect()
        with engine_errors(engine.address):
            run.step(f"looking into {visible_line(spec.reference)}")
            image = taskimages.find_image(engine, spec.reference, pull=spec.pull, run=run)
            platform = taskimages.platform_of(engine, image)
            name, digest = taskimages.digest_in(image, spec.reference)
            with taskimages.container_files(engine, image) as inside:
                with (scratch / "workdir.tar").open("wb") as tar:
                    inside.copy(spec.workdir, tar, keeps=_is_kept)
                # Searched in a container that is never started, so none of the image's code has run by now.
                python = spec.python or taskimages.find_python(inside, image)
            pins = ImagePins(name, digest, platform, spec.workdir, python, taskimages.passed_on(image))
            if fault := fault_in(EnvironmentPins(python="3.8", image=pins)):
                raise SourceError(
                    f"A task can't be made from the image: {fault}", hint="Name another with `--python`."
                )
            run.step(f"preparing {pins.reference}")
            # The report lists installations from the workdir, which are removed for runs (decision 78).
            found = taskimages.report_on(engine, pins)
    except EngineError as error:
        raise SourceError(f"{error.message[:1].upper()}{error.message[1:]}.", hint=error.fix) from error
    folder = unpack(scratch / "workdir.tar", scratch / "source")
    return _fetched(spec, pins, found, folder, scratch)


def _is_kept(path: str) -> bool:
    """Whether a member of the copied folder belongs to a tree; its path begins with the folder's name."""
    return not is_left_out(posixpath.relpath(path, path.split("/", 1)[0]))


def _fetched(
    spec: ImageSpec, pins: ImagePins, found: ImageReport, folder: Path, scratch: Path
) -> FetchedImage:
    project = _project(folder, found)
    _require_runner(pins, found)
    environment = EnvironmentPins(
        python=found.version,
        import_roots=project.import_roots,
        plugins=_plugins(project, found),
        pytest_args=spec.pytest_args,
        build_steps=spec.build_steps,
        metadata=project.metadata(),
        image=pins,
    )
    if fault := fault_in(environment):
        raise EnvironmentBuildError(f"A task can't be made from {quoted(pins.reference)}: {fault}")
    write_tree(folder, scratch / "tree.tar")
    tree = SourceTree.open(scratch / "tree.tar")
    if not tree.members:
        raise SourceError(
            f"The folder {pins.workdir} of the image does not contain any files.",
            hint="Name another `--workdir`.",
        )
    record = {
        "image": pins.reference,
        "python": found.full_version,
        "distributions": [f"{one.name}=={one.version}" for one in found.distributions],
        "removed": list(found.removed),
    }
    # The image's digest serves as the revision, as in the task's id (decision 78).
    source = Source("image", project.name, pins.digest)
    return FetchedImage(Repository(source, tree, environment, found.importable), record)


def _project(folder: Path, found: ImageReport) -> Project:
    """Return the project in the workdir, described by its files and by its installation."""
    project = read_project(folder)
    own = [one for one in found.distributions if one.own]
    wanted = canonicalize_name(project.name)
    of_name = [one for one in own if canonicalize_name(one.name) == wanted]
    roots = [root for root in found.roots if (folder / root).is_dir()]
    project = replace(project, import_roots=tuple(dict.fromkeys((*roots, *project.import_roots))))
    installed = next(iter([*of_name, *own]), None)
    if installed is None:
        return project
    points = installed.entry_points or project.entry_points
    named = replace(project, name=installed.name, version=installed.version, entry_points=points)
    return replace(named, plugins=entry_points_of(points, "pytest11") or project.plugins)


def _plugins(project: Project, found: ImageReport) -> tuple[str, ...]:
    others = [
        Installed(canonicalize_name(one.name), one.requires, entry_points_of(one.entry_points, "pytest11"))
        for one in found.distributions
        if not one.own
    ]
    return (*usable_plugins(project.name, others, found.version), *project.plugins)


def _require_runner(pins: ImagePins, found: ImageReport) -> None:
    """Raise `EnvironmentBuildError` unless the image has a version of pytest that runs can use."""
    runner = requirement_of(RUNNER)
    hint = _INSTALLED_FROM_IT.format(runner=RUNNER)
    version = next(
        (one.version for one in found.distributions if canonicalize_name(one.name) == runner.name), ""
    )
    if not version:
        raise EnvironmentBuildError(f"{pins.python} of the image has no pytest.", hint=hint)
    try:
        fits = runner.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        fits = False
    if not fits:
        raise EnvironmentBuildError(
            f"{pins.python} of the image has pytest {visible_line(version)[:40]}; runs need"
            f" {runner.specifier}.",
            hint=hint,
        )
