"""Reads a repository's own description from its files: name, version, requirements, package folders."""

from __future__ import annotations

import ast
import configparser
import posixpath
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from gistpoint.core.code.nodes import only
from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.locations import LARGEST_RECORDS, parsed_toml, read_regular_text
from gistpoint.core.text import whole_number
from gistpoint.sandbox.environments.requirement import (
    Metadata,
    applies,
    read_metadata,
    requirement_of,
    runtime_requirements,
)

Table = Mapping[str, object]


def table(source: Table, key: str) -> Table:
    """Return the table under `key`; empty if there is none."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def text_of(source: Table, key: str) -> str:
    """Return the string under `key`; empty if there is none."""
    value = source.get(key)
    return value if isinstance(value, str) else ""


def texts_of(source: Table, key: str) -> tuple[str, ...]:
    """Return the strings in the list under `key`; empty if there is no list."""
    value = source.get(key)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()


_USUAL = ("src", "lib", "python")
_NOT_PACKAGES = {
    "tests",
    "test",
    "testing",
    "docs",
    "doc",
    "examples",
    "example",
    "benchmarks",
    "scripts",
    "tools",
}


def find_import_roots(folder: Path, pyproject: Table) -> tuple[str, ...]:
    """Return the folders from which packages are imported, relative to `folder`.

    They are the folders in the build settings; by default, `src` or a similar folder, or otherwise `.`.
    """
    named = [root for root in _configured_folders(folder, pyproject) if _holds_code(folder / root)]
    if named:
        return tuple(dict.fromkeys(named))
    for root in _USUAL:
        is_package = (folder / root / "__init__.py").exists()
        if not is_package and _holds_code(folder / root):
            return (root,)
    return (".",)


def _configured_folders(folder: Path, pyproject: Table) -> Iterator[str]:
    """Yield the folders of packages in the settings of build backends, each within the repository."""
    tool = table(pyproject, "tool")
    setuptools = table(tool, "setuptools")
    places = [text_of(table(setuptools, "package-dir"), "")]
    places += texts_of(table(table(setuptools, "packages"), "find"), "where")
    packages = table(tool, "poetry").get("packages")
    if isinstance(packages, list):
        places += [text_of(package, "from") for package in packages if isinstance(package, dict)]
    places.append(text_of(table(table(tool, "pdm"), "build"), "package-dir"))
    places.append(text_of(table(table(tool, "uv"), "build-backend"), "module-root"))
    wheel = table(table(table(table(tool, "hatch"), "build"), "targets"), "wheel")
    places += map(posixpath.dirname, texts_of(wheel, "packages"))
    places.append(_setup_cfg_root(folder))
    for place in filter(None, places):
        normal = posixpath.normpath(place)
        if normal != "." and not normal.startswith(("/", "..")):
            yield normal


def _setup_cfg_root(folder: Path) -> str:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(folder / "setup.cfg", "utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return ""
    if parser.has_option("options.packages.find", "where"):
        return parser.get("options.packages.find", "where").strip()
    if parser.has_option("options", "package_dir"):
        for line in parser.get("options", "package_dir").split("\n"):
            key, _, value = line.partition("=")
            if not key.strip() and value.strip():
                return value.strip()
    return ""


def _holds_code(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return any(map(_is_code, folder.iterdir()))


TEST_GROUPS = ("test", "tests", "testing")
_LEGACY = "setuptools.build_meta:__legacy__"
_SETUPTOOLS = ("setuptools>=40.8.0",)


@dataclass(frozen=True, slots=True)
class Project:
    """The description that a repository gives of itself."""

    name: str
    version: str
    described_in: str
    """The file from which a build backend starts, `pyproject.toml` or `setup.py`; empty if there is none."""
    requirements: tuple[str, ...] | None
    """The project's requirements at run time; None if only its build backend can compute them."""
    test_requirements: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    requires_python: str = ""
    import_roots: tuple[str, ...] = (".",)
    entry_points: str = ""
    """The project's entry points, in the format of `entry_points.txt`."""
    plugins: tuple[str, ...] = ()
    """The names of the pytest plugins that the project provides."""

    def metadata(self) -> dict[str, str]:
        """Return what `importlib.metadata` will report for the project.

        The keys are `name`, `version` and, if there are any, `entry_points`.
        """
        known = {"name": self.name, "version": self.version}
        if self.entry_points:
            return {**known, "entry_points": self.entry_points}
        return known


@dataclass(frozen=True, slots=True)
class BuildSystem:
    """The build system of a source tree (PEP 517)."""

    backend: str
    """`module` or `module:object`."""
    path: tuple[str, ...]
    """The folders of the tree in which the backend is searched for first."""
    requirements: tuple[str, ...]
    """What must be installed for a build."""


def read_build_system(folder: Path) -> BuildSystem:
    """Return the build system in `pyproject.toml`; the default is setuptools.

    Raises `EnvironmentBuildError` if that file is not valid TOML.
    """
    stated = table(_pyproject(folder), "build-system")
    requirements = texts_of(stated, "requires") if "requires" in stated else _SETUPTOOLS
    return BuildSystem(
        text_of(stated, "build-backend") or _LEGACY, texts_of(stated, "backend-path"), requirements
    )


def _is_code(path: Path) -> bool:
    """Whether a path is a module, or a folder that may be a package and contains modules."""
    if path.is_dir():
        return path.name not in _NOT_PACKAGES and any(path.rglob("*.py"))
    return path.suffix == ".py" and path.is_file()


def read_project(folder: Path) -> Project:
    """Return the description from `pyproject.toml`, or from `setup.cfg` and an sdist's `PKG-INFO`.

    The default of the name is that of the folder; the default of the version is a `__version__` in the code,
    otherwise `0`. Raises `EnvironmentBuildError` if `pyproject.toml` is not valid TOML.
    """
    pyproject = _pyproject(folder)
    project = table(pyproject, "project")
    info = _package_info(folder)
    described = _described_in(folder, project)
    roots = find_import_roots(folder, pyproject)
    setup_cfg = _setup_cfg(folder)
    extras = _extras(project, info)
    names = (text_of(project, "name"), setup_cfg.get("name", ""), str(info.get("Name", "")), folder.name)
    # setup.cfg comes last: its version may be a directive (`attr:`), whose result an sdist contains.
    versions = (text_of(project, "version"), str(info.get("Version", "")), setup_cfg.get("version", ""))
    version = _first(versions)
    if not version or version.startswith("attr:"):
        version = _version_in_code(folder, roots) or "0"
    return Project(
        name=_first(names),
        version=version,
        described_in=described,
        requirements=_requirements(project, set(texts_of(project, "dynamic")), info, described),
        test_requirements=_test_requirements(pyproject, extras),
        extras=extras,
        requires_python=text_of(project, "requires-python") or str(info.get("Requires-Python", "")),
        import_roots=roots,
        entry_points=_entry_points(project),
        plugins=tuple(table(table(project, "entry-points"), "pytest11")),
    )


def _pyproject(folder: Path) -> Table:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        return parsed_toml(read_regular_text(path, LARGEST_RECORDS, errors="replace"))
    except tomllib.TOMLDecodeError as error:
        raise EnvironmentBuildError(
            f"pyproject.toml of the repository is not valid TOML: {error}."
        ) from error


def _setup_cfg(folder: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(folder / "setup.cfg", "utf-8")
        if parser.has_section("metadata"):
            return dict(parser["metadata"])
        return {}
    except (configparser.Error, UnicodeDecodeError):
        return {}


def _package_info(folder: Path) -> Metadata:
    try:
        return read_metadata((folder / "PKG-INFO").read_text("utf-8", "replace"))
    except OSError:
        return {}


def _first(texts: Iterable[str]) -> str:
    """Return the first string that is not empty; empty if there is none."""
    return next(filter(None, texts), "")


def _described_in(folder: Path, project: Table) -> str:
    """Return the file from which a build backend starts; empty if there is none.

    A `pyproject.toml` may only be for other tools.
    """
    has_setup = (folder / "setup.py").is_file()
    is_for_tools = has_setup and not project
    if is_for_tools or not (folder / "pyproject.toml").is_file():
        return "setup.py" if has_setup else ""
    return "pyproject.toml"


def _test_requirements(pyproject: Table, extras: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the suite's requirements, from the usual names of dependency groups and extras."""
    declared = table(pyproject, "dependency-groups")
    groups: dict[str, object] = {canonicalize_name(key): value for key, value in declared.items()}
    lines = list[str]()
    for group in TEST_GROUPS:
        lines += _group(groups, group, ())
    for group in TEST_GROUPS:
        lines += extras.get(group, ())
    return tuple(dict.fromkeys(lines))


def _requirements(
    project: Table, dynamic: set[str], info: Metadata, described: str
) -> tuple[str, ...] | None:
    if project and "dependencies" not in dynamic:
        return texts_of(project, "dependencies")
    stated = str(info.get("Metadata-Version", "0")).split(".")
    version = [number for part in stated if (number := whole_number(part)) is not None]
    # From 2.2 on, an sdist lists the fields that may differ in a wheel; in earlier versions, all may.
    if version >= [2, 2] and "Requires-Dist" not in info.get("Dynamic", []):
        return runtime_requirements(info)
    return None if described else ()


def _extras(project: Table, info: Metadata) -> dict[str, tuple[str, ...]]:
    declared = table(project, "optional-dependencies")
    if declared:
        return {canonicalize_name(name): texts_of(declared, name) for name in declared}
    found: dict[str, tuple[str, ...]] = {}
    for name in info.get("Provides-Extra", []):
        found[canonicalize_name(name)] = tuple(_of_extra(info.get("Requires-Dist", []), name))
    return found


def _of_extra(lines: Iterable[str], extra: str) -> Iterable[str]:
    for line in lines:
        try:
            requirement = requirement_of(line)
        except InvalidRequirement:
            continue
        if applies(requirement, {"extra": extra}) and not applies(requirement, {"extra": ""}):
            requirement.marker = None
            yield str(requirement)


def _group(groups: Mapping[str, object], name: str, within: tuple[str, ...]) -> list[str]:
    """Return the requirements of a dependency group, with those of the groups that it includes (PEP 735)."""
    lines: list[str] = []
    content = groups.get(canonicalize_name(name))
    # A group that includes itself is an error according to the PEP; here it adds nothing.
    if name in within or not isinstance(content, list):
        return lines
    for entry in content:
        if isinstance(entry, str):
            lines.append(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("include-group"), str):
            lines += _group(groups, entry["include-group"], (*within, name))
    return lines


def _entry_points(project: Table) -> str:
    groups = {"console_scripts": table(project, "scripts"), "gui_scripts": table(project, "gui-scripts")}
    declared = table(project, "entry-points")
    groups.update({name: table(declared, name) for name in declared})
    sections = []
    for group, points in groups.items():
        lines = [f"{name} = {value}" for name, value in points.items() if isinstance(value, str)]
        if lines:
            sections.append("\n".join([f"[{group}]", *lines]) + "\n")
    return "\n".join(sections)


def _version_in_code(folder: Path, roots: tuple[str, ...]) -> str:
    """Return the first `__version__ = "..."` in the modules of the packages; empty if there is none.

    The modules are not run.
    """
    names = ("__init__.py", "_version.py", "version.py", "__about__.py")
    for root in roots:
        paths = list[Path]()
        for name in names:
            paths += sorted((folder / root).glob(f"*/{name}"))
        for path in [*paths, *sorted((folder / root).glob("*.py"))]:
            version = _assigned_version(path)
            if version is not None:
                return version
    return ""


def _assigned_version(path: Path) -> str | None:
    """Return the string that a module's top level assigns to `__version__`.

    None if there is none, or if the module can't be read and parsed.
    """
    try:
        tree = parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return None
    for node in tree.body:
        match node:
            case ast.Assign(targets=targets, value=ast.Constant(value=str(version))):
                names = [target.id for target in only(ast.Name, targets)]
                if "__version__" in names:
                    return version
    return None
