"""The packages and modules that can be imported from a tree."""

from __future__ import annotations

import posixpath

from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.trees import SourceTree

_SCRIPTS = {"setup.py", "noxfile.py", "conftest.py", "fabfile.py", "tasks.py"}


def packages_of(tree: SourceTree, import_roots: tuple[str, ...]) -> list[str]:
    """Return the names that can be imported from a tree's import roots, without tests."""
    names: set[str] = set()
    for root in import_roots or (".",):
        folder = "" if root in (".", "") else posixpath.normpath(root)
        if not tree.is_directory(folder):
            continue
        prefix = f"{folder}/" if folder else ""
        for entry, kind in tree.entries(folder):
            path = prefix + entry
            if kind == "dir" and tree.is_file(f"{path}/__init__.py") and not is_test_path(f"{path}/__init__.py"):
                names.add(entry)
            elif kind == "file" and entry.endswith(".py") and not is_test_path(path) and entry not in _SCRIPTS:
                names.add(entry.removesuffix(".py"))
    return sorted(name for name in names if name.isidentifier())
