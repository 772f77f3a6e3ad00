"""Tests that examine a task from inside its sandbox, where they read their parameters from a file.

The file's name is this module's file name with `.json` added. It contains `packages` that can be imported
from the workspace, `answer` (the path of a file that must not be readable), `name` of the distribution,
`everywhere` (whether to search every visible file, or only those that Python imports from) and `targets`,
each with the `file` of its module as it is imported, the `names` in its qualified name, and `lines` of the
original, joined by spaces; empty if they are not distinctive.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from itertools import islice
from typing import Any

_HERE = os.path.abspath(__file__)
_PASSED_OVER = ("/proc", "/sys", "/dev", "/gistpoint/tree")
_MOST = 4_000_000
_MOST_FOUND = 3
_ARCHIVES = (".zip", ".whl", ".egg", ".pyz")
_METADATA = (".dist-info", ".egg-info")
_LISTS = ("RECORD", "SOURCES.txt", "installed-files.txt")


def _order() -> dict[str, Any]:
    with open(_HERE + ".json", encoding="utf-8") as file:
        order: dict[str, Any] = json.load(file)
    return order


def _inside(path: str) -> bool:
    root = os.path.realpath(os.path.dirname(_HERE))
    return (os.path.realpath(path) + os.sep).startswith(root + os.sep)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class CorruptedModule:
    """A corrupted module, as in `targets`."""

    def __init__(self, target: dict[str, Any]) -> None:
        self.file: str = target["file"]
        self.names = [name.encode() for name in target["names"]]
        self.defined = re.compile(rb"(?:def|class) " + re.escape(self.names[-1]) + rb"\b")
        self.lines: str = target["lines"]
        # Most files don't contain the longest word of the lines and need no closer look.
        self.word = max(self.lines.split(), key=len, default="").encode()
        folder, name = os.path.split(self.file)
        self.places = (f"/{self.file}", f"/{self.file}c")
        self.compiled = os.path.join("/", folder, "__pycache__", name[: -len("py")])

    def copied_in(self, path: str, data: bytes) -> str:
        """Return why a file counts as a copy of the original code; empty if it doesn't count."""
        if self.word and self.word in data and self.lines in _folded(data.decode("utf-8", "replace")):
            return "contains lines of the original"
        compiled = path.endswith(".pyc")
        if not path.endswith(self.places) and not (compiled and self.compiled in path):
            return ""
        defines = all(name in data for name in self.names) and (compiled or self.defined.search(data))
        return f"is another copy of {self.file}" if defines else ""


class CopySearch:
    """A search for copies of the package under repair."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.modules = [CorruptedModule(target) for target in order["targets"]]
        self.distribution = _plain(order["name"])
        self.seen: set[tuple[int, int]] = set()

    def below(self, folder: str) -> Iterator[str]:
        """Yield a sentence for each copy below `folder`: a file, an archive's member, or a distribution."""
        for place, folders, files in os.walk(folder) if self._is_new(folder) else ():
            folders[:] = [name for name in folders if self._is_new(os.path.join(place, name))]
            for name in folders:
                if self._is_distribution(os.path.join(place, name)):
                    yield f"{os.path.join(place, name)} belongs to the same distribution"
            for name in files:
                path = os.path.join(place, name)
                try:
                    yield from self._archive(path) if name.endswith(_ARCHIVES) else self._file(path)
                except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
                    continue

    def _is_new(self, folder: str) -> bool:
        if folder in _PASSED_OVER or os.path.islink(folder) or _inside(folder):
            return False
        try:
            status = os.stat(folder)
        except OSError:
            return False
        known = (status.st_dev, status.st_ino)
        if known in self.seen:
            return False
        self.seen.add(known)
        return True

    def _is_distribution(self, folder: str) -> bool:
        """Return whether a folder describes an installed distribution of this name, with a list of files."""
        name = os.path.basename(folder)
        if not name.endswith(_METADATA) or _plain(re.split(r"-\d|\.egg-info$", name)[0]) != self.distribution:
            return False
        return any(os.path.exists(os.path.join(folder, name)) for name in _LISTS)

    def _file(self, path: str) -> Iterator[str]:
        if not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            yield from self._judged(path, path, file.read(_MOST))

    def _archive(self, path: str) -> Iterator[str]:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.file_size <= _MOST:
                    yield from self._judged(
                        f"{path}/{member.filename}", f"/{member.filename}", archive.read(member)
                    )

    def _judged(self, shown: str, path: str, data: bytes) -> Iterator[str]:
        for module in self.modules:
            copied = module.copied_in(path, data)
            if copied:
                yield f"{shown} {copied}"


def test_packages_come_from_the_workspace() -> None:
    packages = _order()["packages"]
    for name in packages:
        try:
            module = importlib.import_module(name)
        except BaseException:
            continue
        place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), None)
        assert place is None or _inside(place), f"{name} is imported from outside the workspace"
    for folder in sys.path:
        if not folder or not os.path.isdir(folder) or _inside(folder):
            continue
        for name in packages:
            for copy in (name, name + ".py"):
                assert not os.path.exists(os.path.join(folder, copy)), (
                    f"another copy of {name} can be imported"
                )


def test_no_copy_of_the_original_can_be_seen() -> None:
    order = _order()
    own = sysconfig.get_path("stdlib")
    folders = [
        folder for folder in (*sys.path, sys.prefix, sys.base_prefix, own) if folder and not _inside(folder)
    ]
    if order["everywhere"]:
        # If the root can't be listed, the folders that Python imports from still can.
        folders = ["/", *folders]
    search = CopySearch(order)
    found = list(islice((copy for folder in folders for copy in search.below(folder)), _MOST_FOUND))
    assert not found, "; ".join(found)


def test_answer_is_out_of_reach() -> None:
    try:
        with open(_order()["answer"], "rb") as file:
            file.read(1)
    except OSError:
        return
    raise AssertionError("the answer can be read from inside")
