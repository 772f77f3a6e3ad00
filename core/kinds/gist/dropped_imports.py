"""Removes imports of the codebase from the text of an original test or of an example in a docstring."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gistpoint.core.kinds.gist.lines import bodies_in, column_of, import_texts, last_line

IsDropped = Callable[[str], bool]
"""Returns whether to remove the normalised import of one name."""
_Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class _Removal:
    """An import statement, with the imports that remain of it; without any, the statement is removed."""

    node: _Import
    kept: tuple[str, ...]


def without_imports(
    lines: Sequence[str], root: ast.AST, dropped: IsDropped, *, first: int = 1, in_place: bool = False
) -> list[str]:
    """Return the lines of code without the imports at and below `root` that are `dropped`.

    `first` is the line number that the first of `lines` has in the tree. An import of several names keeps the
    others. A statement alone on its lines is replaced by one line for each remaining name; if no name
    remains, its lines are removed, or `pass` takes their place if the block would be empty. A statement that
    shares a line with other code becomes `pass` or the remaining imports in its place, as does every
    statement if `in_place`.
    """
    result = list(lines)
    removals = _removals(root, dropped)
    fillers = _fillers(root, removals)
    # Imports are removed from the end, so that the line numbers of earlier imports stay valid.
    for one in sorted(removals, key=lambda one: (one.node.lineno, one.node.col_offset), reverse=True):
        top, end = one.node.lineno - first, last_line(one.node) - first
        before = result[top][: column_of(result[top], one.node.col_offset)]
        after = result[end][column_of(result[end], one.node.end_col_offset or 0) :]
        is_alone = not before.strip() and after.strip()[:1] in ("", "#")
        if in_place or not is_alone:
            result[top : end + 1] = [before + ("; ".join(one.kept) or "pass") + after]
        else:
            kept = one.kept or (("pass",) if one.node in fillers else ())
            result[top : end + 1] = [before + text for text in kept]
    return result


def _removals(root: ast.AST, dropped: IsDropped) -> list[_Removal]:
    found = []
    for node in ast.walk(root):
        if isinstance(node, _Import):
            texts = import_texts(node)
            kept = tuple(text for text in texts if not dropped(text))
            if len(kept) < len(texts):
                found.append(_Removal(node, kept))
    return found


def _fillers(root: ast.AST, removals: Sequence[_Removal]) -> set[ast.stmt]:
    """Return the first statement of each block that the removal would leave empty."""
    gone: set[ast.stmt] = {one.node for one in removals if not one.kept}
    return {body[0] for body in bodies_in(root) if gone.issuperset(body)}
