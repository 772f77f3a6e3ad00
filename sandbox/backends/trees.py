"""The tree of a run: the parts that the run may change, and its changes as seen from outside."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gistpoint.core.outcomes import Writable
from gistpoint.sandbox.backends.base import Command, Ended
from gistpoint.sandbox.payload.tree_states import changed_entries, changed_folders, states_of

if TYPE_CHECKING:
    from gistpoint.sandbox.payload.tree_states import States


RESERVED = ("conftest.py", "__pycache__")
"""The names that pytest and Python look for next to a file that they read.

A writable folder without these entries gets empty folders of these names, which the run can't replace.
"""


@dataclass(frozen=True, slots=True)
class TreeParts:
    """The writable parts of a tree on disk: existing paths, none of which leads through a link."""

    tree: Path
    folders: tuple[str, ...]
    """The folders to which the run may add entries, sorted; `.` is the tree itself."""
    paths: tuple[str, ...]
    """The paths that belong to the run, with everything below them, sorted; none is below another."""

    @classmethod
    def of(cls, tree: Path, writable: Writable) -> TreeParts:
        """Return the parts of `tree`, without missing paths and those that lead out or through a link."""
        paths = sorted({path for path in writable.paths if _is_plain(tree, path)})
        # A path below another path in `paths` already belongs to the run.
        own = [path for path in paths if _parents(path).isdisjoint(paths)]
        plain = {path for path in writable.folders if _is_plain(tree, path)}
        folders = [path for path in sorted(plain) if (tree / path).is_dir()]
        return cls(tree, tuple(folders), tuple(own))

    def is_own(self, path: str) -> bool:
        """Whether `path` belongs to the run, itself or through a folder above it."""
        return path in self.paths or not _parents(path).isdisjoint(self.paths)

    def children(self, folder: str) -> Iterator[str]:
        """Yield the paths of a folder's entries, sorted."""
        for child in sorted((self.tree / folder).iterdir()):
            yield child.relative_to(self.tree).as_posix()


def laid_out(command: Command, work: Path) -> TreeParts:
    """Copy the command's tree to `work`/repo, and return its writable parts.

    A home and a temporary folder are made next to the tree, and writable folders get empty folders with the
    `RESERVED` names, so that the run can't use these.
    """
    shutil.copytree(command.tree, work / "repo", symlinks=True, copy_function=shutil.copy)
    for folder in ("home", "tmp"):
        (work / folder).mkdir()
    parts = TreeParts.of(work / "repo", command.writable or Writable(paths=(".",)))
    # Empty folders occupy the names that pytest or Python would load from a writable folder (decision 41).
    for folder in parts.folders:
        for name in RESERVED:
            with contextlib.suppress(FileExistsError):
                (parts.tree / folder / name).mkdir()
                (parts.tree / folder / name).chmod(0o755)
    return parts


def change_owner(places: Iterable[Path], user: int) -> None:
    """Make `user` the owner of files and folders and of everything below them."""
    for own in places:
        os.chown(own, user, user, follow_symlinks=False)
        for place, folders, files in os.walk(own):
            for name in (*folders, *files):
                os.chown(Path(place, name), user, user, follow_symlinks=False)


def _is_plain(tree: Path, path: str) -> bool:
    """Whether a path is normalised, exists in the tree, and does not lead through a link."""
    pure = PurePosixPath(path)
    leads_out = pure.is_absolute() or ".." in pure.parts
    is_odd = "\0" in path or str(pure) != path
    if leads_out or is_odd:
        return False
    places = [tree / Path(*pure.parts[:depth]) for depth in range(1, len(pure.parts) + 1)]
    if any(place.is_symlink() for place in places):
        return False
    return (tree / path).exists()


def _parents(path: str) -> set[str]:
    return set(map(str, PurePosixPath(path).parents))


@dataclass(frozen=True, slots=True)
class TreeStates:
    """The states of a tree's entries before a run, to be compared with those after it."""

    parts: TreeParts
    before: States

    @classmethod
    def of(cls, parts: TreeParts) -> TreeStates:
        """Return the present states of the tree of `parts`."""
        return cls(parts, states_of(str(parts.tree)))

    def completed(self, ended: Ended, command: Command) -> Ended:
        """Return `ended` with the changes that `command` made to the tree.

        `altered` is empty if everything is writable, and `writes` is None unless changes are watched.
        """
        now = states_of(str(self.parts.tree))
        altered = () if command.writable is None else self._altered(now)
        writes = None
        if command.watch:
            writes = Writable(
                tuple(changed_folders(self.before, now)), tuple(changed_entries(self.before, now))
            )
        return replace(ended, altered=altered, writes=writes)

    def _altered(self, now: States) -> tuple[str, ...]:
        """Return the changed paths that are not writable, then such folders with added or removed entries."""
        folders = [path for path in changed_folders(self.before, now) if path not in self.parts.folders]
        changed = dict.fromkeys((*changed_entries(self.before, now), *folders))
        return tuple(path for path in changed if not self.parts.is_own(path))
