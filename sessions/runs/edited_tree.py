"""The files of a repository while the changes of a run are applied to them one by one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.diffs import FileDiff
from gistpoint.core.errors import TaskError
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.changes import (
    Change,
    NotAppliedError,
    Patched,
    Redefined,
    Restored,
    Undone,
    Unrecorded,
    Written,
)

_SYSTEM = frozenset({"usr", "lib", "etc", "proc", "dev", "sys", "opt", "var", "tmp"})
"""Folders of the system: a file below one of them is outside the repository, whatever its name."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file after a step; `data` is its content if it `differs` from the start, None if it was deleted."""

    differs: bool
    data: bytes | None = None


class EditedTree:
    """The files of a repository, by path from its root; unrecorded content is never guessed."""

    def __init__(self, tree: SourceTree | None) -> None:
        """`tree` contains the files at the start of the run; None if those files are unknown."""
        self._tree = tree
        self._files: dict[str, bytes | None] = {}
        self._before: dict[str, list[bytes | None]] = {}
        self._roots: list[str] = []
        self._touched: set[str] = set()

    def take_touched(self) -> dict[str, FileState]:
        """Return the states of the files that changed since the last call, by path."""
        touched, self._touched = self._touched, set()
        return {path: self._state(path) for path in touched}

    def _state(self, path: str) -> FileState:
        if path not in self._files:
            return FileState(differs=False)
        data = self._files[path]
        return FileState(data != self.original(path), data)

    def original(self, path: str) -> bytes | None:
        """Return a file as it was at the start; None if it did not exist or is unknown."""
        if self._tree is None or not self._tree.is_file(path):
            return None
        try:
            return self._tree.read(path)
        except (OSError, TaskError):
            return None

    def reset(self) -> None:
        """Discard all changes, so that every file is as it was at the start."""
        self._touched.update(self._files)
        self._files.clear()
        self._before.clear()

    def look(self, path: str) -> None:
        """Infer the repository's root from the absolute path of a file read by a step."""
        if path.startswith("/"):
            with suppress(NotAppliedError):
                self._path(path)

    def apply(self, change: Change) -> None:
        """Apply a change. If that is impossible, raise `NotAppliedError` and leave the files unchanged."""
        if isinstance(change, Unrecorded):
            where = change.path or "no file is given"
            raise NotAppliedError(f"Only a part of an edit is recorded: {where}", is_wrong=True)
        if isinstance(change, Restored) and not change.path:
            self.reset()
            return
        path = self._path(change.path)
        if isinstance(change, Undone):
            self._undo(path)
            return
        if change.is_cut:
            raise NotAppliedError(f"The edit of {path} is too long to follow.", is_wrong=True)
        after = self.original(path) if isinstance(change, Restored) else self._after(path, change)
        self._before.setdefault(path, []).append(self._content(path))
        self._set(path, after)

    def patch_from_start(self, diff: FileDiff) -> None:
        """Apply a diff to the file as it was at the start. Raises `NotAppliedError` if it does not fit."""
        path = self._path(diff.path)
        old = ""
        before: bytes | None = b""
        if diff.old_path:
            old = self._path(diff.old_path)
            before = self.original(old)
        if before is None:
            raise NotAppliedError(f"{old} is not in the tree.", is_wrong=True)
        after = None
        if diff.new_path is not None:
            after = Patched(path, diff).applied(path, before)
        self._set(path, after)
        was_renamed = bool(old) and old != path and not diff.copied
        if was_renamed and old not in self._files:  # the file may have been replaced
            self._set(old, None)

    def _set(self, path: str, data: bytes | None) -> None:
        self._files[path] = data
        self._touched.add(path)

    def _content(self, path: str) -> bytes | None:
        if path in self._files:
            return self._files[path]
        return self.original(path)

    def _after(self, path: str, change: Change) -> bytes | None:
        if isinstance(change, Written):
            return change.applied(path, b"")
        before = self._content(path)
        if isinstance(change, Patched):
            deletes_file = change.diff.new_path is None
            if deletes_file:
                return None
            adds_file = change.diff.old_path is None
            if adds_file and before is None:
                before = b""
        if before is None:
            raise NotAppliedError(f"The text of {path} is not known.", is_wrong=self._tree is not None)
        if isinstance(change, Redefined):
            return self._redefined(path, before, change)
        return change.applied(path, before)

    def _redefined(self, path: str, before: bytes, change: Redefined) -> bytes:
        if self._tree is None:
            raise NotAppliedError(f"The text of {path} is not known.", is_wrong=False)
        try:
            definition = index_source(path, before).find(change.name)
            tree = self._tree.with_files({path: before})
            changed = Replacement(path, definition.ref.qualname, change.code).on(tree)
        except CodeError as error:
            raise NotAppliedError(str(error), is_wrong=True) from error
        return changed.read(path)

    def _undo(self, path: str) -> None:
        states = self._before.get(path)
        if not states:
            raise NotAppliedError(f"An edit of {path} was undone, but no such edit is known.", is_wrong=True)
        self._set(path, states.pop())

    def place(self, recorded: str) -> str:
        """Return the repository path of a recorded path, or `recorded` if it leaves the repository."""
        try:
            return self._path(recorded)
        except NotAppliedError:
            return recorded

    def _path(self, recorded: str) -> str:
        """Return the repository path of a recorded path.

        The root of an absolute path is a known root, or else the part before a known file, or else the part
        before a known folder; if there is none, the whole path counts as relative. Raises `NotAppliedError`
        for a path that leaves the repository.
        """
        plain = recorded.replace("\\", "/").removeprefix("./")
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        leaves_repository = ".." in parts or "\0" in plain
        if leaves_repository or not parts:
            raise NotAppliedError(f"The path {recorded!r} does not stay in the repository.", is_wrong=True)
        joined = "/".join(parts)
        if not plain.startswith("/"):
            return joined
        root = self._root_of(plain)
        if root is not None:
            return plain.removeprefix(root).lstrip("/")
        if parts[0] in _SYSTEM:
            return joined
        for is_found, start in product((self._is_known, self._is_new_in_folder), range(len(parts))):
            candidate = "/".join(parts[start:])
            if is_found(candidate):
                self._add_root("/" + "/".join(parts[:start]))
                return candidate
        return joined

    def _root_of(self, path: str) -> str | None:
        """Return the known root that contains an absolute path; None if there is none."""
        for root in self._roots:
            if path.startswith(root + "/"):
                return root
        return None

    def is_outside(self, change: Change) -> bool:
        """Return whether a change is outside the repository: in a system folder, and below no known root.

        While the files at the start are unknown, only a change with unrecorded content counts as outside.
        """
        path = change.path
        if not path.startswith("/"):
            return False
        top_folder = path.split("/")[1]
        if top_folder not in _SYSTEM:
            return False
        if self._root_of(path) is not None:
            return False
        return self._tree is not None or isinstance(change, Unrecorded)

    def _add_root(self, root: str) -> None:
        is_new = root not in self._roots
        if is_new and root != "/":
            self._roots.append(root)

    def _is_known(self, path: str) -> bool:
        if path in self._files:
            return True
        return self._tree is not None and self._tree.is_file(path)

    def _is_new_in_folder(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        if self._tree is None or not folder:
            return False
        return self._tree.is_directory(folder)
