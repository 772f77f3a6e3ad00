"""An entrypoint's file somewhere else: alone, under another name, with its fixtures but none of its surroundings."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.gist.entrypoints import Entrypoint, EntrypointKind
from gistpoint.core.trees import SourceTree


def moved_files(tree: SourceTree, entrypoint: Entrypoint) -> tuple[dict[str, bytes], Entrypoint]:
    """Return the files of the other place by path, and the entrypoint as it is called there.

    A test takes along the `conftest.py` of each folder above it, and the modules of folders of tests that are no tests
    themselves, those of their inner packages too. A script goes alone; a module has no file of its own to move.
    """
    if entrypoint.kind is EntrypointKind.MODULE:
        return {}, entrypoint
    source = tree.read(entrypoint.target)
    if entrypoint.kind is EntrypointKind.SCRIPT:
        return {"moved.py": source}, replace(entrypoint, target="moved.py")
    files: dict[str, bytes] = {}
    parts = PurePosixPath(entrypoint.target).parent.parts
    place = ""
    for depth in range(len(parts) + 1):
        folder = "/".join(parts[:depth])
        place = "/".join(f"moved_{level}" for level in range(1, depth + 1))
        for name in _taken_along(tree, folder):
            files[posixpath.join(place, name)] = tree.read(posixpath.join(folder, name))
    target = posixpath.join(place, "test_moved.py")
    files[target] = source
    return files, replace(entrypoint, target=target)


def _taken_along(tree: SourceTree, folder: str) -> Iterator[str]:
    """Yield, relative to `folder`, its `conftest.py`; of a folder of tests also what its tests may import."""
    of_tests = bool(folder) and is_test_path(f"{folder}/module.py")
    for name, kind in tree.entries(folder):
        if kind == "file" and (name == "conftest.py" or (of_tests and _may_be_imported(name))):
            yield name
    for path in tree.files(".py") if of_tests else ():
        below = path.removeprefix(f"{folder}/")
        if below != path and "/" in below and _may_be_imported(posixpath.basename(path)):
            yield below


def _may_be_imported(name: str) -> bool:
    stem, dot, suffix = name.rpartition(".")
    return dot + suffix == ".py" and stem != "conftest" and not (stem.startswith("test_") or stem.endswith("_test"))
