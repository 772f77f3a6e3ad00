"""The tree of a run: what of it the run may change, and what it changed, seen from outside."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Command, Ended
from gistpoint.sandbox.inside.tree_states import changed_entries, changed_folders, states_of

if TYPE_CHECKING:
    from gistpoint.sandbox.inside.tree_states import States


RESERVED = ("conftest.py", "__pycache__")
"""Names that pytest and Python look for beside a file that they read: in a writable folder that lacks them they are
empty folders, which are nobody's to replace and hold nothing to read."""


@dataclass(frozen=True, slots=True)
class TreeParts:
    """What of a tree that was laid out as files is writable: paths that are there, none of them through a link."""

    tree: Path
    folders: tuple[str, ...]
    """Sorted; `.` is the tree itself."""
    paths: tuple[str, ...]
    """Sorted; none lies below another."""

    @classmethod
    def of(cls, tree: Path, writable: Writable) -> TreeParts:
        """Return the parts of `tree`; a path that leads out of it, or through a link, is left out."""
        paths = sorted({path for path in writable.paths if _is_plain(tree, path)})
        own = [path for path in paths if not set(map(str, PurePosixPath(path).parents)) & set(paths)]
        folders = {path for path in writable.folders if _is_plain(tree, path) and (tree / path).is_dir()}
        return cls(tree, tuple(sorted(folders)), tuple(own))

    def is_own(self, path: str) -> bool:
        """Whether `path` is the run's own, or lies in what is."""
        return path in self.paths or not set(self.paths).isdisjoint(map(str, PurePosixPath(path).parents))

    def children(self, folder: str) -> Iterator[str]:
        """Yield the paths of what stands in a folder, sorted."""
        for child in sorted((self.tree / folder).iterdir()):
            yield child.relative_to(self.tree).as_posix()


def reserve(parts: TreeParts) -> None:
    """Make the folders that keep `RESERVED` names from the run in its writable folders."""
    for folder in parts.folders:
        for name in RESERVED:
            with contextlib.suppress(FileExistsError):
                (parts.tree / folder / name).mkdir()
                (parts.tree / folder / name).chmod(0o755)


def give_away(places: Iterable[Path], user: int) -> None:
    """Make `user` the owner of files and folders and of all that lies below them."""
    for own in places:
        os.chown(own, user, user, follow_symlinks=False)
        for place, folders, files in os.walk(own):
            for name in (*folders, *files):
                os.chown(Path(place, name), user, user, follow_symlinks=False)


def _is_plain(tree: Path, path: str) -> bool:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or "\0" in path:
        return False
    places = [tree / Path(*pure.parts[:depth]) for depth in range(1, len(pure.parts) + 1)]
    return not any(place.is_symlink() for place in places) and (tree / path).exists()


@dataclass(frozen=True, slots=True)
class TreeStates:
    """The state in which a tree was laid out."""

    parts: TreeParts
    before: States

    @classmethod
    def of(cls, parts: TreeParts) -> TreeStates:
        """Look at the tree of `parts` before the run."""
        return cls(parts, states_of(str(parts.tree)))

    def completed(self, ended: Ended, command: Command) -> Ended:
        """Return `ended` with what `command` changed in the tree."""
        now = states_of(str(self.parts.tree))
        altered = () if command.writable is None else self._altered(now)
        changed = Writable(tuple(changed_folders(self.before, now)), tuple(changed_entries(self.before, now)))
        return replace(ended, altered=altered, writes=changed if command.watch else None)

    def _altered(self, now: States) -> tuple[str, ...]:
        """Return what was changed that is not writable, then folders that something came into or went from."""
        folders = (path for path in changed_folders(self.before, now) if path not in self.parts.folders)
        changed = dict.fromkeys((*changed_entries(self.before, now), *folders))
        return tuple(path for path in changed if not self.parts.is_own(path))
