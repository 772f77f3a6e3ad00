"""The outcomes of a task's checks, and the search for leaks, shared by all kinds."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.source_text import python_text
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The outcome of one check; an incomplete check is `reduced`, which is not a failure."""

    name: str
    passed: bool
    detail: str
    reduced: bool = False


_HISTORY = frozenset({".git", ".hg", ".svn", ".bzr"})
_BYTECODE = (".pyc", ".pyo", ".pyd")
_CACHES = frozenset({"__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_LINKS = (".egg-link", ".pth")
_MAX_TEXT = 4 * 1024 * 1024
_LEAST_CHARACTERS = 60
"""The minimum length, in characters, of removed lines that prove a copy; shorter lines are too common."""


def leaks_of(tree: SourceTree, targets: tuple[Target, ...]) -> Iterator[str]:
    """Yield a sentence for every leak of the original in a tree."""
    for path in tree.members:
        if leak := _leak_by_name(tree, path):
            yield f"{path} {leak}"
    yield from _copies(tree, targets)


def _leak_by_name(tree: SourceTree, path: str) -> str:
    """Return the leak in a path's name or link; empty if there is none."""
    parts = set(path.split("/"))
    if _HISTORY & parts:
        return "is version history"
    if path.endswith(_BYTECODE) or _CACHES & parts:
        return "is a cache that may contain the original"
    if path.endswith(_LINKS):
        return "can lead to an installed copy"
    if posixpath.basename(path) == "pyvenv.cfg":
        return "is part of a virtual environment"
    if tree.members[path].link and tree.resolve(path) is None:
        return "is a link that leads out of the tree"
    return ""


def _copies(tree: SourceTree, targets: tuple[Target, ...]) -> Iterator[str]:
    """Yield a sentence for each copy of a target's original lines in a file of up to 4 MiB.

    Lines in the target's own definition are not a copy.
    """
    wanted = [(target, telling) for target in targets if (telling := telling_lines(target))]
    if not wanted:
        return
    for path in tree.files():
        if tree.size(path) > _MAX_TEXT:
            continue
        text = _folded(python_text(tree.read(path)))
        for target, telling in wanted:
            if telling in text and not _is_own_place(tree, path, target, telling):
                yield f"{path} contains the original lines of {target.name}"


def telling_lines(target: Target) -> str:
    """Return the longest run of original lines missing from the corrupted text.

    Whitespace is collapsed. The result is empty if the run is too short.
    """
    corrupted = {line.strip() for line in target.corrupted.splitlines()}
    best, run = "", [""]
    for line in [*target.original.splitlines(), ""]:
        if line.strip() and line.strip() not in corrupted:
            run.append(line)
            continue
        text = _folded("\n".join(run))
        best, run = max(best, text, key=len), [""]
    return best if len(best) >= _LEAST_CHARACTERS else ""


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _is_own_place(tree: SourceTree, path: str, target: Target, telling: str) -> bool:
    """Return whether the lines are in the target's own definition, where the original has them too.

    False if the file can't be parsed or does not define the target.
    """
    if path != target.path:
        return False
    try:
        own = index_source(path, tree.read(path)).get(target.qualname).source
    except CodeError:
        return False
    return telling in _folded(own)
