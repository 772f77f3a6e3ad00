"""A tree of files to which the recorded changes of a run are applied, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from gistpoint.core.attempts.state import Replacement
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import index_source
from gistpoint.core.diffs import DiffError, FileDiff, apply
from gistpoint.core.errors import TaskError
from gistpoint.core.tools.replacement import with_replacement
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.changes import (
    Change,
    Inserted,
    Patched,
    Redefined,
    Replaced,
    Undone,
    Untold,
    Written,
)

_SYSTEM = frozenset({"usr", "lib", "etc", "proc", "dev", "sys", "tmp"})
"""Folders below which a file is none of the repository's, although one of its may have the same name."""


class NotAppliedError(Exception):
    """A change could not be applied; `is_wrong` tells that the files are not what the record says they were."""

    def __init__(self, message: str, *, is_wrong: bool) -> None:
        super().__init__(message)
        self.is_wrong = is_wrong


class EditedTree:
    """Files by their path from the root of the repository; what is not known of them is not made up."""

    def __init__(self, tree: SourceTree | None) -> None:
        self._tree = tree
        self._files: dict[str, bytes | None] = {}
        self._before: dict[str, list[bytes | None]] = {}
        self._roots: list[str] = []

    def changed(self) -> Mapping[str, bytes | None]:
        """Return the files that are not as they were at the start; None for those that are gone."""
        return {path: data for path, data in self._files.items() if data != self.original(path)}

    def original(self, path: str) -> bytes | None:
        """Return a file as it was at the start; None where there was none, or nobody knows."""
        if self._tree is None or not self._tree.is_file(path):
            return None
        try:
            return self._tree.read(path)
        except (OSError, TaskError):
            return None

    def reset(self) -> None:
        """Go back to the start."""
        self._files.clear()
        self._before.clear()

    def look(self, path: str) -> None:
        """Learn from a file that was read where the repository lies."""
        if path.startswith("/"):
            with suppress(NotAppliedError):
                self._path(path)

    def apply(self, change: Change) -> None:
        """Apply a change. Raises `NotAppliedError`, the files as they were, where that can't be done."""
        if isinstance(change, Untold):
            where = change.path or "Something"
            raise NotAppliedError(f"{where} was edited in a way that the record does not tell.", is_wrong=True)
        path = self._path(change.path)
        if isinstance(change, Undone):
            self._undo(path)
            return
        after = self._after(path, change)
        self._before.setdefault(path, []).append(self._content(path))
        self._files[path] = after

    def patch_from_start(self, diff: FileDiff) -> None:
        """Apply a diff against the file at the start. Raises `NotAppliedError` where it does not fit."""
        path = self._path(diff.path)
        old = self._path(diff.old_path) if diff.old_path else ""
        before = self.original(old) if old else b""
        if before is None:
            raise NotAppliedError(f"{old} is not in the tree.", is_wrong=True)
        self._files[path] = None if diff.new_path is None else _patched(path, before, diff)
        if old and old != path:
            self._files[old] = None

    def _content(self, path: str) -> bytes | None:
        return self._files[path] if path in self._files else self.original(path)

    def _after(self, path: str, change: Change) -> bytes | None:
        if isinstance(change, Written):
            return _bytes(change.text)
        before = self._content(path)
        if isinstance(change, Patched):
            if change.diff.new_path is None:
                return None
            if change.diff.old_path is None and before is None:
                before = b""
        if before is None:
            raise NotAppliedError(f"The text of {path} is not known.", is_wrong=self._tree is not None)
        if isinstance(change, Patched):
            return _patched(path, before, change.diff)
        if isinstance(change, Redefined):
            return self._redefined(path, before, change)
        if isinstance(change, Replaced):
            return _replaced(path, before, change)
        if isinstance(change, Inserted):
            return _inserted(path, before, change)
        raise AssertionError(change)

    def _redefined(self, path: str, before: bytes, change: Redefined) -> bytes:
        if self._tree is None:
            raise NotAppliedError(f"The text of {path} is not known.", is_wrong=False)
        try:
            definition = index_source(path, before).find(change.name)
            tree = self._tree.with_files({path: before})
            changed = with_replacement(tree, Replacement(path, definition.ref.qualname, change.code))
        except CodeError as error:
            raise NotAppliedError(str(error), is_wrong=True) from error
        return changed.read(path)

    def _undo(self, path: str) -> None:
        states = self._before.get(path)
        if not states:
            raise NotAppliedError(f"An edit of {path} was undone that is not known.", is_wrong=True)
        self._files[path] = states.pop()

    def _path(self, recorded: str) -> str:
        """Return where in the repository a recorded path leads: known files first, then known roots."""
        plain = recorded.replace("\\", "/").removeprefix("./")
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        if ".." in parts or "\0" in plain or not parts:
            raise NotAppliedError(f"The path {recorded!r} does not stay in the repository.", is_wrong=True)
        joined = "/".join(parts)
        if not plain.startswith("/"):
            return joined
        for root in self._roots:
            if plain.startswith(root + "/"):
                return plain[len(root) + 1 :].lstrip("/")
        if parts[0] not in _SYSTEM and self._tree is not None:
            for found in (self._tree.is_file, self._is_new_in_folder):
                for start in range(len(parts)):
                    rest = "/".join(parts[start:])
                    if found(rest):
                        self._learn("/" + "/".join(parts[:start]))
                        return rest
        return joined

    def _learn(self, root: str) -> None:
        if root != "/" and root not in self._roots:
            self._roots.append(root)

    def _is_new_in_folder(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        return bool(folder) and self._tree is not None and self._tree.is_directory(folder)


def _patched(path: str, before: bytes, diff: FileDiff) -> bytes:
    if diff.binary:
        raise NotAppliedError(f"{path} is binary; its new bytes are not recorded.", is_wrong=True)
    try:
        return _bytes(apply(before.decode("utf-8", "surrogateescape"), diff))
    except DiffError as error:
        raise NotAppliedError(f"{path}: {error}", is_wrong=True) from error


def _replaced(path: str, before: bytes, change: Replaced) -> bytes:
    text = before.decode("utf-8", "surrogateescape")
    count = text.count(change.old) if change.old else 0
    if not count or (count > 1 and not change.every):
        how = "is not in the file" if not count else f"is there {count} times"
        raise NotAppliedError(f"The text that was replaced in {path} {how}.", is_wrong=True)
    return _bytes(text.replace(change.old, change.new))


def _inserted(path: str, before: bytes, change: Inserted) -> bytes:
    lines = before.decode("utf-8", "surrogateescape").split("\n")
    if not 0 <= change.after <= len(lines):
        raise NotAppliedError(f"{path} has no line {change.after} to insert behind.", is_wrong=True)
    lines[change.after : change.after] = change.text.removesuffix("\n").split("\n")
    return _bytes("\n".join(lines))


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
