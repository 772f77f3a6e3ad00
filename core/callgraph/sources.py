"""Source files as syntax trees, by the dotted names under which they are imported."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gistpoint.core.code.parsing import parse


@dataclass(slots=True, eq=False)
class SourceFile:
    """One parsed file; `package` is the dotted name of its package, or ""."""

    path: str
    tree: ast.Module
    name: str
    package: str
    is_package: bool


@dataclass(slots=True)
class Sources:
    """The parsed files by path and by dotted name, and the reasons why others were skipped."""

    files: dict[str, SourceFile] = field(default_factory=dict)
    by_name: dict[str, SourceFile] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)

    def find(self, dotted: str, near: SourceFile | None = None) -> SourceFile | None:
        """Return the module of an absolute name; None if there is none.

        A sibling of `near` is the fallback, and takes precedence if `near` is in no package.
        """
        found = self.by_name.get(dotted)
        if near is None:
            return found
        folder = posixpath.dirname(near.path)
        base = posixpath.join(folder, *dotted.split("."))
        neighbour = self.files.get(base + ".py") or self.files.get(posixpath.join(base, "__init__.py"))
        if found is None:
            return neighbour
        return neighbour if neighbour is not None and not near.package else found

    def relative(self, near: SourceFile, level: int, dotted: str) -> tuple[SourceFile | None, str]:
        """Return the module named by `from ..dotted` in `near`, or None, and its path without suffix."""
        folder = posixpath.dirname(near.path)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        base = posixpath.join(folder, *dotted.split(".")) if dotted else folder
        init = posixpath.join(base, "__init__.py")
        return self.files.get(init) or (self.files.get(base + ".py") if dotted else None), base


def parse_all(files: Mapping[str, bytes]) -> Sources:
    """Return the parsed `.py` files of `files` (bytes by path), in the order of their paths.

    Files that can't be parsed are listed in `skipped`.
    """
    sources = Sources()
    paths = sorted(path for path in files if path.endswith(".py"))
    folders = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == "__init__.py"}
    for path in paths:
        tree = _parse(path, files[path], sources.skipped)
        if tree is None:
            continue
        name, is_package = _dotted(path, folders)
        package = name if is_package else name.rpartition(".")[0]
        sources.files[path] = SourceFile(path, tree, name, package, is_package)
    _index(sources)
    return sources


def _parse(path: str, data: bytes, skipped: dict[str, str]) -> ast.Module | None:
    try:
        tree = parse(data)
    except SyntaxError as error:
        skipped[path] = f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except ValueError as error:
        skipped[path] = str(error)
    else:
        return tree
    return None


def _dotted(path: str, package_folders: set[str]) -> tuple[str, bool]:
    folder, base = posixpath.split(path)
    is_package = base == "__init__.py"
    parts: list[str] = [] if is_package else [base[:-3]]
    while folder in package_folders and folder:
        folder, last = posixpath.split(folder)
        parts.insert(0, last)
    return ".".join(parts), is_package


def _index(sources: Sources) -> None:
    """Index modules by their names from the topmost package, then by those from the folders above."""
    for file in sources.files.values():
        if file.name:
            sources.by_name.setdefault(file.name, file)
    for file in sources.files.values():
        for dotted in _longer_names(file):
            sources.by_name.setdefault(dotted, file)
    for name in sources.by_name:
        parts = name.split(".")
        sources.packages.update(".".join(parts[:end]) for end in range(1, len(parts)))


def _longer_names(file: SourceFile) -> Iterable[str]:
    stem = posixpath.dirname(file.path) if file.is_package else file.path[:-3]
    parts = stem.split("/")
    own = len(file.name.split(".")) if file.name else 0
    for start in range(len(parts) - own - 1, -1, -1):
        yield ".".join(parts[start:])
