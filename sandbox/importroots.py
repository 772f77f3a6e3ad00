"""From which folders of a repository its packages are imported."""

from __future__ import annotations

import configparser
import posixpath
from collections.abc import Iterator
from pathlib import Path

from gistpoint.sandbox.tables import Table, table, text_of, texts_of

_USUAL = ("src", "lib", "python")
_NOT_PACKAGES = {"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "tools"}


def find_import_roots(folder: Path, pyproject: Table) -> tuple[str, ...]:
    """Return the roots, relative to `folder`: those that the build settings name, else `src` and its like, else `.`."""
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
