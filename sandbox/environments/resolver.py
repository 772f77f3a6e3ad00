"""Determines the requirements of a repository's suite, and pins each by version and hash.

`sandbox.environments.projects` reads the requirements from the repository's files without running its code.
If they are not listed there but computed, `sandbox.environments.builds` runs the repository's build backend
in isolation.
"""

from __future__ import annotations

import configparser
import datetime
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import EnvironmentPins, fault_in, quoted
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.builds import Builds
from gistpoint.sandbox.environments.interpreters import own_version
from gistpoint.sandbox.environments.projects import Project, read_project
from gistpoint.sandbox.environments.requirement import (
    applies,
    named_requirement,
    requirement_of,
    runtime_requirements,
)
from gistpoint.sandbox.environments.store import EnvironmentStore

RUNNER = "pytest>=8.2,<10"
# Plugins that tests do not need, but that change how tests run; a task's arguments can still name them.
_NOT_LOADED = {"xdist", "xdist.looponfail", "rerunfailures", "randomly", "random_order", "testmon"}


class UvResolver:
    """A resolver that uses uv, and builds on `backend`."""

    def __init__(
        self,
        environments: EnvironmentStore,
        backend: Backend,
        *,
        python: str | None = None,
        on_line: Callable[[str], None] | None = None,
        cancel: CancelToken = NEVER,
    ) -> None:
        self._environments = environments
        self._backend = backend
        self._python = python or own_version()
        self._on_line = on_line
        self._cancel = cancel

    def resolve(
        self,
        folder: Path,
        *,
        extra_requirements: tuple[str, ...],
        exclude_newer: str | None,
        pytest_args: tuple[str, ...],
    ) -> EnvironmentPins:
        """Return the pins of the suite in `folder`, after building the environment once to find its plugins.

        Raises `EnvironmentBuildError` if a package can't be resolved or built, and if pytest or one of its
        plugins needs the project, because replacing a function of the project would break the runner. Raises
        `CancelledError` if stopped.
        """
        project = read_project(folder)
        self._check_python(project)
        lines, parents = self._pin(folder, project, extra_requirements, exclude_newer)
        refuse_runner_part(project.name, parents, {"pytest"})
        own = canonicalize_name(project.name)
        # The project is imported from the workspace; another copy of it would contain the answer.
        lock = tuple(line for line in lines if _name_of(line) != own)
        pins = EnvironmentPins(
            python=self._python,
            lock=lock,
            resolved=exclude_newer or datetime.datetime.now(datetime.UTC).date().isoformat(),
            import_roots=project.import_roots,
            pytest_args=pytest_args,
            metadata=project.metadata(),
        )
        # Built once to find its packages' plugins, because only installed metadata names them.
        environment = self._environments.get(pins, self._backend, on_line=self._on_line, cancel=self._cancel)
        installed = installed_in(environment.folder).values()
        plugins = usable_plugins(project.name, installed, self._python, parents)
        pins = replace(pins, plugins=(*plugins, *project.plugins))
        if fault := fault_in(pins):
            raise EnvironmentBuildError(f"A task can't be made from {quoted(project.name)}: {fault}")
        return pins

    def _check_python(self, project: Project) -> None:
        try:
            fits = SpecifierSet(project.requires_python).contains(f"{self._python}.99", prereleases=True)
        except InvalidSpecifier:
            return
        if not fits:
            raise EnvironmentBuildError(
                f"{project.name} needs Python {project.requires_python}; the environment would have"
                f" {self._python}.",
                hint="Choose another version of the source, or another Python.",
            )

    def _pin(
        self, folder: Path, project: Project, extra: tuple[str, ...], exclude_newer: str | None
    ) -> tuple[tuple[str, ...], dict[str, set[str]]]:
        builds = Builds(
            self._environments,
            self._backend,
            self._python,
            exclude_newer,
            on_line=self._on_line,
            cancel=self._cancel,
        )
        needed = project.requirements
        if needed is None:
            needed = runtime_requirements(builds.repository_metadata(folder, project.name))
        pinned = builds.pin(without_own([RUNNER, *extra, *project.test_requirements, *needed], project))
        return pinned.lines, pinned.parents


def refuse_runner_part(name: str, parents: Mapping[str, Iterable[str]], runners: set[str]) -> None:
    """Raise `EnvironmentBuildError` if one of `runners` is `name`, or needs it directly or through others."""
    start = str(canonicalize_name(name))
    roots: set[str] = {canonicalize_name(runner) for runner in runners}
    chains = [[start]]
    seen: set[str] = {start}
    while chains:
        chain = chains.pop(0)
        if chain[0] in roots:
            chain_text = " needs ".join(chain) if len(chain) > 1 else chain[0]
            raise EnvironmentBuildError(
                f"{name} can't be the target, because it is part of the test runner ({chain_text}).",
                hint="Choose another library, or leave out the plugin.",
            )
        for parent in sorted(parents.get(chain[0], ())):
            if parent not in seen:
                seen.add(parent)
                chains.append([parent, *chain])


def usable_plugins(
    name: str,
    installed: Collection[Installed],
    python: str,
    parents: Mapping[str, Iterable[str]] | None = None,
) -> tuple[str, ...]:
    """Return the names of the pytest plugins that runs of the project `name` load, sorted.

    Raises `EnvironmentBuildError` if pytest or one of the plugins needs the project. `parents` contains
    further known requirements: the packages that need a package, by its canonical name.
    """
    chains = {**(parents or {}), **_parents_among(installed, python)}
    refuse_runner_part(name, chains, {"pytest", *(one.name for one in installed if one.plugins)})
    return tuple(sorted({plugin for one in installed for plugin in one.plugins} - _NOT_LOADED))


def without_own(requirements: Iterable[str], project: Project) -> list[str]:
    """Return the requirements after replacing each of the project's own extras with its requirements.

    Raises `EnvironmentBuildError` for an invalid requirement.
    """
    own = canonicalize_name(project.name)
    waiting = list(requirements)
    found = list[str]()
    expanded = set[str]()
    while waiting:
        text = waiting.pop(0)
        requirement = named_requirement(text)
        if canonicalize_name(requirement.name) != own:
            if text not in found:
                found.append(text)
            continue
        for extra in requirement.extras - expanded:
            expanded.add(extra)
            waiting += project.extras.get(canonicalize_name(extra), ())
    return found


def _parents_among(distributions: Iterable[Installed], python: str) -> dict[str, set[str]]:
    parents: dict[str, set[str]] = {}
    for distribution in distributions:
        for needed in distribution.needs(python):
            parents.setdefault(needed, set()).add(distribution.name)
    return parents


def _name_of(line: str) -> str:
    return canonicalize_name(line.partition("==")[0].partition("[")[0].strip())


@dataclass(frozen=True, slots=True)
class Installed:
    """One distribution, with its canonical name, its requirement lines and its pytest plugins' names."""

    name: str
    requirements: tuple[str, ...]
    plugins: tuple[str, ...]

    def needs(self, python: str) -> set[str]:
        """Return the canonical names of the requirements on Python `python` (`3.11`), without extras.

        Invalid requirements are left out.
        """
        found: set[str] = set()
        for line in self.requirements:
            try:
                requirement = requirement_of(line)
            except InvalidRequirement:
                continue
            surroundings = {"extra": "", "python_version": python, "python_full_version": f"{python}.0"}
            if applies(requirement, surroundings):
                found.add(canonicalize_name(requirement.name))
        return found


def installed_in(environment: Path) -> dict[str, Installed]:
    """Return the distributions of a virtual environment by canonical name."""
    found: dict[str, Installed] = {}
    for info in sorted(environment.glob("lib/python*/site-packages/*.dist-info")):
        headers = HeaderParser().parsestr((info / "METADATA").read_text("utf-8", "replace"))
        name = canonicalize_name(str(headers.get("Name", info.name.partition("-")[0])))
        requirements = tuple(str(line) for line in headers.get_all("Requires-Dist", []))
        points = info / "entry_points.txt"
        text = points.read_text("utf-8", "replace") if points.is_file() else ""
        found[name] = Installed(name, requirements, entry_points_of(text, "pytest11"))
    return found


def entry_points_of(text: str, group: str) -> tuple[str, ...]:
    """Return the names of the entry points of `group` in an `entry_points.txt`.

    The result is empty if there are none, or if the file is damaged.
    """
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names keep their case, as documented
    try:
        parser.read_string(text)
    except configparser.Error:
        return ()
    if parser.has_section(group):
        return tuple(parser.options(group))
    return ()
