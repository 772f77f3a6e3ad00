"""Finding out what a repository's suite needs, and pinning it: every package by version and hash.

What the repository says of itself comes from `sandbox.projects`, without running its code where it is written down;
where it is computed, uv asks the repository's build backend, which runs code of the repository.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.ports import EnvironmentPins
from gistpoint.sandbox.builder import call_uv
from gistpoint.sandbox.environments import EnvironmentStore, build_failure
from gistpoint.sandbox.installed import Installed, installed_in
from gistpoint.sandbox.interpreters import own_version
from gistpoint.sandbox.projects import Project, read_project
from gistpoint.sandbox.requirement import requirement_of

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

_RUNNER = "pytest>=8.2,<10"
_LOCK_LINE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)")
# Plugins that change how a run is done rather than what its tests need: named by the task's own arguments if wanted.
_NOT_LOADED = {"xdist", "xdist.looponfail", "rerunfailures", "randomly", "random_order", "testmon"}


class UvResolver:
    """Resolves with uv; implements `gistpoint.core.ports.EnvironmentResolver`."""

    def __init__(
        self,
        environments: EnvironmentStore,
        *,
        python: str | None = None,
        on_line: Callable[[str], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> None:
        self._environments = environments
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
        """Pin what the suite in `folder` needs, and build it once to see which plugins came along.

        Raises `EnvironmentBuildError` for what can't be resolved or built, and for a package that pytest or one of
        its plugins itself needs: replacing a function of it would break the runner.
        """
        project = read_project(folder)
        self._check_python(project)
        lines, parents = self._compile(folder, project, extra_requirements, exclude_newer)
        refuse_runner_part(project.name, parents, {"pytest"})
        own = canonicalize_name(project.name)
        lock = tuple(line for line in lines if _name_of(line) != own)
        pins = EnvironmentPins(
            python=self._python,
            lock=lock,
            resolved=exclude_newer or datetime.datetime.now(datetime.UTC).date().isoformat(),
            import_roots=project.import_roots,
            pytest_args=pytest_args,
            metadata=project.metadata(),
        )
        environment = self._environments.get(pins, on_line=self._on_line, cancel=self._cancel)
        installed = installed_in(environment.folder)
        chains = {**parents, **_parents_among(installed.values(), self._python)}
        refuse_runner_part(project.name, chains, {"pytest", *(d.name for d in installed.values() if d.plugins)})
        plugins = sorted({plugin for d in installed.values() for plugin in d.plugins} - _NOT_LOADED)
        return EnvironmentPins(
            python=pins.python,
            lock=lock,
            resolved=pins.resolved,
            import_roots=pins.import_roots,
            plugins=(*plugins, *project.plugins),
            pytest_args=pytest_args,
            metadata=pins.metadata,
        )

    def _check_python(self, project: Project) -> None:
        try:
            fits = SpecifierSet(project.requires_python).contains(f"{self._python}.99", prereleases=True)
        except InvalidSpecifier:
            return
        if not fits:
            raise EnvironmentBuildError(
                f"{project.name} needs Python {project.requires_python}; the environment would have {self._python}.",
                hint="Choose another version of the source, or another Python.",
            )

    def _compile(
        self, folder: Path, project: Project, extra: tuple[str, ...], exclude_newer: str | None
    ) -> tuple[list[str], dict[str, set[str]]]:
        requirements = [_RUNNER, *extra, *project.test_requirements]
        sources = ["-"]
        if project.requirements is not None:
            requirements += project.requirements
        else:
            sources.append(str(folder / project.described_in))
        arguments = ["pip", "compile", *sources, "--generate-hashes", "--no-header", "--annotation-style", "split"]
        arguments += ["--python-version", self._python, "--no-emit-index-url", "--no-sources", "--quiet"]
        arguments += ["--exclude-newer", exclude_newer] if exclude_newer else []
        given = without_own(requirements, project, self._python)
        result = call_uv(arguments, standard_input="\n".join(given) + "\n", on_line=self._on_line, cancel=self._cancel)
        if not result.ok:
            raise build_failure(result, (), None)
        return read_lock(result.output)


def read_lock(text: str) -> tuple[list[str], dict[str, set[str]]]:
    """Return the lines of a compiled lock, each with its hashes, and for every name which others brought it."""
    lines: list[str] = []
    parents: dict[str, set[str]] = {}
    for raw in text.splitlines():
        line = raw.strip().removesuffix("\\").strip()
        match = _LOCK_LINE.match(line)
        if match and not raw.startswith((" ", "#")):
            lines.append(line)
            parents.setdefault(canonicalize_name(match.group(1)), set())
        elif line.startswith("--hash=") and lines:
            lines[-1] += " " + line
        elif line.startswith("#") and lines:
            parent = line.lstrip("# ").removeprefix("via").strip()
            if parent and not parent.startswith("-"):
                parents[_name_of(lines[-1])].add(canonicalize_name(parent.partition(" ")[0]))
        elif line:
            raise EnvironmentBuildError(
                f"A requirement can't be pinned by version and hash: {line[:200]}.",
                hint="Name packages of an index, not addresses or folders.",
            )
    return lines, parents


def refuse_runner_part(name: str, parents: Mapping[str, Iterable[str]], runners: set[str]) -> None:
    """Raise `EnvironmentBuildError` where one of `runners` needs `name`, directly or through others."""
    start = str(canonicalize_name(name))
    roots: set[str] = {canonicalize_name(runner) for runner in runners}
    chains = [[start]]
    seen: set[str] = {start}
    while chains:
        chain = chains.pop(0)
        if chain[0] in roots:
            told = " needs ".join(chain) if len(chain) > 1 else chain[0]
            raise EnvironmentBuildError(
                f"{name} can't be the target: it is part of what runs the tests ({told}).",
                hint="Choose another library, or leave out the plugin.",
            )
        for parent in sorted(parents.get(chain[0], ())):
            if parent not in seen:
                seen.add(parent)
                chains.append([parent, *chain])


def without_own(requirements: Iterable[str], project: Project, python: str) -> list[str]:
    """Return the requirements without the project itself; `name[extra]` of itself becomes what that extra lists."""
    own = canonicalize_name(project.name)
    waiting, found, expanded = list(requirements), list[str](), set[str]()
    while waiting:
        text = waiting.pop(0)
        try:
            requirement = requirement_of(text)
        except InvalidRequirement:
            raise EnvironmentBuildError(
                f"{text!r} is no requirement.", hint="Write a package name, with versions if needed: `name>=1.2`."
            ) from None
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
