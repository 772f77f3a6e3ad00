"""The two trees of a repair: the original with its targets corrupted, and the corrupted one repaired."""

from __future__ import annotations

from gistpoint.core.code.splice import with_definition
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree


def corrupted_tree(tree: SourceTree, targets: tuple[Target, ...]) -> SourceTree:
    """Return `tree` with every target's corrupted text in place. Raises `CodeError` if one does not fit."""
    for target in targets:
        tree = with_definition(tree, target.path, target.qualname, target.corrupted)
    return tree


def repaired_tree(tree: SourceTree, targets: tuple[Target, ...]) -> SourceTree:
    """Return a corrupted tree with every target's original text in place."""
    for target in targets:
        tree = with_definition(tree, target.path, target.qualname, target.original)
    return tree
