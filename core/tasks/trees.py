"""The trees of a repair: corrupted, repaired or patched."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gistpoint.core.code.splice import with_definition
from gistpoint.core.diffs import DiffError, FileDiff, apply, parse
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree


def corrupted_tree(tree: SourceTree, targets: tuple[Target, ...]) -> SourceTree:
    """Return `tree` with every target's corrupted text.

    Raises `CodeError` if one does not fit, and `FileNotFoundError` if its file is missing.
    """
    for target in targets:
        tree = with_definition(tree, target.path, target.qualname, target.corrupted)
    return tree


def repaired_tree(tree: SourceTree, targets: tuple[Target, ...]) -> SourceTree:
    """Return a corrupted tree with every target's original text.

    Raises `CodeError` if one does not fit, and `FileNotFoundError` if its file is missing.
    """
    for target in targets:
        tree = with_definition(tree, target.path, target.qualname, target.original)
    return tree


# Patches of a task's repository, as handed in by other programs


_LONGEST_PATH = 4096


def patched(tree: SourceTree, patch: str) -> dict[str, bytes | None]:
    """Return the files changed by a unified diff, by path; None for a removed file.

    As in Git, renamed and copied files start from the tree's contents, whatever else the patch changes.
    Raises `DiffError` if the patch does not apply to the tree, is binary, names a path that is too long, or
    is not a unified diff.
    """
    diffs = parse(patch)
    left = {diff.old_path for diff in diffs if diff.old_path != diff.new_path and not diff.copied}
    found: dict[str, bytes | None] = {}
    added: set[str] = set()
    for diff in diffs:
        _require_usable(diff)
        old, new, is_moved = diff.old_path, diff.new_path, _is_moved(diff)
        before = _text_before(tree, diff, found, added)
        if new is not None and old != new:
            if new in added or new not in left:
                _require_free(tree, new, found)
            added.add(new)
        found |= _changed(diff, apply(before, diff), keeps_old=diff.copied or (is_moved and old in added))
    if not diffs and patch.strip():
        raise DiffError("It is not a patch in unified form.")
    return found


def _is_moved(diff: FileDiff) -> bool:
    """Return whether a file gets the contents of another file by a rename or copy."""
    return diff.old_path is not None and diff.new_path not in (None, diff.old_path)


def _changed(diff: FileDiff, after: str, *, keeps_old: bool) -> dict[str, bytes | None]:
    """Return a file diff's changes: the old file as removed, unless it is kept, and the new file's text."""
    removed: dict[str, bytes | None] = {} if diff.old_path is None or keeps_old else {diff.old_path: None}
    return removed | ({} if diff.new_path is None else {diff.new_path: _bytes(after, diff.new_path)})


def _require_usable(diff: FileDiff) -> None:
    if diff.binary:
        raise DiffError(f"The patch of {diff.path} is binary.")
    if len(diff.old_path or "") > _LONGEST_PATH or len(diff.new_path or "") > _LONGEST_PATH:
        raise DiffError(f"The patch names a file by more than {_LONGEST_PATH} characters.")


def _text_before(
    tree: SourceTree, diff: FileDiff, found: Mapping[str, bytes | None], added: Collection[str]
) -> str:
    """Return the text to which a diff applies; for a moved file, the text in the tree, as in Git."""
    old = diff.old_path
    if old is None:
        return ""
    if not _is_moved(diff):
        return _text(tree, old, found)
    if old not in added and found.get(old) is not None:
        raise DiffError(f"The patch changes {old!r} before it moves or copies that file.")
    return _text(tree, old, {})


def _require_free(tree: SourceTree, path: str, changed: Mapping[str, bytes | None]) -> None:
    if _is_there(tree, path, changed):
        raise DiffError(f"The repository already has a file {path!r}.")


def _text(tree: SourceTree, path: str, changed: Mapping[str, bytes | None]) -> str:
    if not _is_there(tree, path, changed):
        raise DiffError(f"The repository has no file {path!r}.")
    data = changed[path] if path in changed else tree.read(path)
    return (data or b"").decode("utf-8", "surrogateescape")


def _is_there(tree: SourceTree, path: str, changed: Mapping[str, bytes | None]) -> bool:
    return changed[path] is not None if path in changed else tree.is_file(path)


def _bytes(text: str, path: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise DiffError(f"The patch of {path!r} contains characters that no file can contain.") from None
