"""The importable packages and modules of a tree."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.trees import SourceTree

_SCRIPTS = {"setup.py", "noxfile.py", "conftest.py", "fabfile.py", "tasks.py"}


def packages_of(tree: SourceTree, import_roots: tuple[str, ...]) -> list[str]:
    """Return the sorted names of the packages and modules in a tree's import roots.

    Namespace packages, tests, and scripts such as `setup.py` are left out.
    """
    folders = ["" if root in (".", "") else posixpath.normpath(root) for root in import_roots or (".",)]
    names = {name for folder in filter(tree.is_directory, folders) for name in _names_in(tree, folder)}
    return sorted(filter(str.isidentifier, names))


def _names_in(tree: SourceTree, folder: str) -> Iterator[str]:
    """Yield the names of the packages and modules directly inside a folder."""
    for entry, kind in tree.entries(folder):
        path = posixpath.join(folder, entry)
        if kind == "dir":
            path = f"{path}/__init__.py"
            is_module = tree.is_file(path)
        else:
            is_module = _is_module(entry)
        if is_module and not is_test_path(path):
            yield entry.removesuffix(".py") if kind == "file" else entry


def _is_module(entry: str) -> bool:
    return entry.endswith(".py") and entry not in _SCRIPTS
