"""A repository's own description in its files: name, version, requirements, folders of its packages."""

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

from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.locations import LARGEST_RECORDS, parsed_toml, read_regular_text
from gistpoint.sandbox.environments.requirement import (
    Metadata,
    applies,
    read_metadata,
    requirement_of,
    runtime_requirements,
)

Table = Mapping[str, object]


def table(of: Table, key: str) -> Table:
    """Return the table under `key`, empty if there is none."""
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def text_of(of: Table, key: str) -> str:
    """Return the text under `key`, empty if there is none."""
    value = of.get(key)
    return value if isinstance(value, str) else ""


def texts_of(of: Table, key: str) -> tuple[str, ...]:
    """Return the texts of the list under `key`."""
    value = of.get(key)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


_USUAL = ("src", "lib", "python")
_NOT_PACKAGES = {"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "tools"}


def find_import_roots(folder: Path, pyproject: Table) -> tuple[str, ...]:
    """Return the roots, relative to `folder`: those in the build settings, else `src` and similar folders, else `.`."""
    named = tuple(dict.fromkeys(root for root in _named(folder, pyproject) if _holds_code(folder / root)))
    if named:
        return named
    for root in _USUAL:
        if not (folder / root / "__init__.py").exists() and _holds_code(folder / root):
            return (root,)
    return (".",)


def _named(folder: Path, pyproject: Table) -> Iterator[str]:
    tool = table(pyproject, "tool")
    setuptools = table(tool, "setuptools")
    places = [text_of(table(setuptools, "package-dir"), "")]
    places += texts_of(table(table(setuptools, "packages"), "find"), "where")
    packages = table(tool, "poetry").get("packages")
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict):
            places.append(text_of(package, "from"))
    places.append(text_of(table(table(tool, "pdm"), "build"), "package-dir"))
    places.append(text_of(table(table(tool, "uv"), "build-backend"), "module-root"))
    wheel = table(table(table(table(tool, "hatch"), "build"), "targets"), "wheel")
    places += [posixpath.dirname(package) for package in texts_of(wheel, "packages")]
    places.append(_setup_cfg_root(folder))
    for place in places:
        normal = posixpath.normpath(place) if place else ""
        if normal and not normal.startswith(("/", "..")) and normal != ".":
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
    return any(
        (path.suffix == ".py" and path.is_file())
        or (path.is_dir() and path.name not in _NOT_PACKAGES and any(path.rglob("*.py")))
        for path in folder.iterdir()
    )


TEST_GROUPS = ("test", "tests", "testing")
_LEGACY, _SETUPTOOLS = "setuptools.build_meta:__legacy__", ("setuptools>=40.8.0",)


@dataclass(frozen=True, slots=True)
class Project:
    """A repository's own description."""

    name: str
    version: str
    described_in: str
    """The file that a build backend starts from: `pyproject.toml` or `setup.py`; empty if there is neither."""
    requirements: tuple[str, ...] | None
    """Its requirements at run time; None if only its build backend can compute them."""
    test_requirements: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    requires_python: str = ""
    import_roots: tuple[str, ...] = (".",)
    entry_points: str = ""
    """In the format of `entry_points.txt`."""
    plugins: tuple[str, ...] = ()
    """The pytest plugins that it provides itself."""

    def metadata(self) -> dict[str, str]:
        """Return the data that `importlib.metadata` will report for it."""
        known = {"name": self.name, "version": self.version}
        return {**known, "entry_points": self.entry_points} if self.entry_points else known


@dataclass(frozen=True, slots=True)
class BuildSystem:
    """The builder of a source tree (PEP 517): `module` or `module:object`, and the folders of the tree with it."""

    backend: str
    path: tuple[str, ...]
    requirements: tuple[str, ...]


def read_build_system(folder: Path) -> BuildSystem:
    """Read it from `pyproject.toml`; the default is setuptools. Raises as `read_project`."""
    stated = table(_pyproject(folder), "build-system")
    requirements = texts_of(stated, "requires") if "requires" in stated else _SETUPTOOLS
    return BuildSystem(text_of(stated, "build-backend") or _LEGACY, texts_of(stated, "backend-path"), requirements)


def read_project(folder: Path) -> Project:
    """Read `pyproject.toml`, `setup.cfg` and an sdist's `PKG-INFO`, in this order, each filling what is missing.

    Raises `EnvironmentBuildError` for a `pyproject.toml` that is not valid TOML.
    """
    pyproject = _pyproject(folder)
    project, setup_cfg, info = table(pyproject, "project"), _setup_cfg(folder), _package_info(folder)
    dynamic = set(texts_of(project, "dynamic"))
    name = text_of(project, "name") or setup_cfg.get("name", "") or str(info.get("Name", "")) or folder.name
    version = text_of(project, "version") or str(info.get("Version", "")) or setup_cfg.get("version", "")
    extras = _extras(project, info)
    groups: dict[str, object] = {
        canonicalize_name(key): value for key, value in table(pyproject, "dependency-groups").items()
    }
    tests = [line for group in TEST_GROUPS for line in _group(groups, group, ())]
    tests += [line for group in TEST_GROUPS for line in extras.get(group, ())]
    points = _entry_points(project)
    described = next((file for file in ("pyproject.toml", "setup.py") if (folder / file).is_file()), "")
    if described == "pyproject.toml" and not project and (folder / "setup.py").is_file():
        described = "setup.py"
    roots = find_import_roots(folder, pyproject)
    return Project(
        name=name,
        version=version if version and not version.startswith("attr:") else _version_in_code(folder, roots) or "0",
        described_in=described,
        requirements=_requirements(project, dynamic, info, described),
        test_requirements=tuple(dict.fromkeys(tests)),
        extras=extras,
        requires_python=text_of(project, "requires-python") or str(info.get("Requires-Python", "")),
        import_roots=roots,
        entry_points=points,
        plugins=tuple(table(table(project, "entry-points"), "pytest11")),
    )


def _pyproject(folder: Path) -> Table:
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        return parsed_toml(read_regular_text(path, LARGEST_RECORDS, errors="replace"))
    except tomllib.TOMLDecodeError as error:
        raise EnvironmentBuildError(f"pyproject.toml of the repository is not valid TOML: {error}.") from error


def _setup_cfg(folder: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(folder / "setup.cfg", "utf-8")
        return dict(parser["metadata"]) if parser.has_section("metadata") else {}
    except (configparser.Error, UnicodeDecodeError):
        return {}


def _package_info(folder: Path) -> Metadata:
    try:
        return read_metadata((folder / "PKG-INFO").read_text("utf-8", "replace"))
    except OSError:
        return {}


def _requirements(project: Table, dynamic: set[str], info: Metadata, described: str) -> tuple[str, ...] | None:
    if project and "dependencies" not in dynamic:
        return texts_of(project, "dependencies")
    stated = str(info.get("Metadata-Version", "0")).split(".")
    if [int(part) for part in stated if part.isdecimal()] >= [2, 2] and "Requires-Dist" not in info.get("Dynamic", []):
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
    """Return the lines of a dependency group, with those that it includes (PEP 735)."""
    lines: list[str] = []
    content = groups.get(canonicalize_name(name))
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
    """Return the first `__version__ = "..."` of a package's own modules, without running them."""
    for root in roots:
        names = ("__init__.py", "_version.py", "version.py", "__about__.py")
        paths = [path for name in names for path in sorted((folder / root).glob(f"*/{name}"))]
        for path in [*paths, *sorted((folder / root).glob("*.py"))]:
            try:
                tree = parse(path.read_bytes())
            except (SyntaxError, ValueError, OSError):
                continue
            for node in tree.body:
                if (
                    isinstance(node, ast.Assign)
                    and any(isinstance(target, ast.Name) and target.id == "__version__" for target in node.targets)
                    and isinstance(node.value, ast.Constant)
                    and isinstance(node.value.value, str)
                ):
                    return node.value.value
    return ""
