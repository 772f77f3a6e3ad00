"""Patches of a task's repository, as others hand them in."""

from __future__ import annotations

from gistpoint.core.diffs import DiffError, apply, parse
from gistpoint.core.trees import SourceTree


def patched(tree: SourceTree, patch: str) -> dict[str, bytes | None]:
    """Return the files that a patch in unified form changes, by path; None for a file that it removes.

    Raises `DiffError` if a line is not what the patch says, or if it has no text to apply.
    """
    found: dict[str, bytes | None] = {}
    for diff in parse(patch):
        if diff.binary:
            raise DiffError(f"The patch of {diff.path} is binary.")
        before = "" if diff.old_path is None else _text(tree, diff.old_path)
        after = apply(before, diff)
        if diff.old_path is not None:
            found[diff.old_path] = None
        if diff.new_path is not None:
            found[diff.new_path] = after.encode("utf-8", "surrogateescape")
    if patch.strip() and not found:
        raise DiffError("It is not a patch in unified form.")
    return found


def _text(tree: SourceTree, path: str) -> str:
    try:
        return tree.read(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise DiffError(f"The repository has no file {path!r}.") from None
