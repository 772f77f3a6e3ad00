"""Merges the files of others into a store of annotations, and reports what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.annotations.side_files import MergeResult, SideFileStore


def merge_files(store: SideFileStore[Any, Any], paths: Iterable[Path]) -> MergeResult:
    """Merge files and folders of files, print each problem to standard error, and return the result.

    Raises `UserError` if nothing in them could be read, and the store's error for a file that can't be read.
    """
    merged = store.merge(paths)
    if merged.problems and not merged.added + merged.known:
        first, *more = merged.problems
        raise UserError(f"Nothing was merged. {visible_line(first)}", hint=visible_line(" ".join(more[:1])))
    for problem in merged.problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)
    return merged


def counts_of(merged: MergeResult) -> str:
    """Return a sentence on how many operations were added, in whose names, and how many were known."""
    names = [f"{visible_line(name)} {count:,}" for name, count in sorted(merged.by.items())]
    shown = [*names[:_MOST_NAMES], *([f"{len(names) - _MOST_NAMES:,} more"] if names[_MOST_NAMES:] else [])]
    by = f" ({', '.join(shown)})" if shown else ""
    added, were = plural(merged.added, "operation"), "was" if merged.known == 1 else "were"
    return f"{added} added{by}, {merged.known} {were} already known."


_MOST_NAMES = 20
