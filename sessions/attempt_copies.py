"""Finds folders with a copy of another folder's journal: the same attempt id, and the same first lines.

The id of an attempt is in its journal, and also names its folder. A folder copied under another name would
count as an additional attempt in lists and analyses. A journal that differs is not a copy: two branches of an
attempt are both listed (decision 185).
"""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.locations import read_regular
from gistpoint.sessions.journal import JOURNAL


class AttemptCopies:
    """Finds copies among folders of attempts, which are passed to `is_copy` one after another."""

    def __init__(self, root: Path) -> None:
        """`root` is the folder that contains the folders of the attempts."""
        self._root = root
        self._met: dict[str, list[str]] = {}
        """The folders that are not copies although they are not named by their attempt's id, by that id."""
        self.found: dict[str, str] = {}
        """The name of each copy's original folder, by the name of the copy."""

    def is_copy(self, name: str, attempt_id: str) -> bool:
        """Return whether a folder contains a copy, or only the beginning, of another folder's journal.

        `attempt_id` is the id in the folder's journal; empty for a journal of a release that wrote none.
        """
        if attempt_id in ("", name):
            return False
        met = self._met.setdefault(attempt_id, [])
        original = next((other for other in (attempt_id, *met) if self._contains(other, name)), None)
        if original is None:
            met.append(name)
        else:
            self.found[name] = original
        return original is not None

    def _contains(self, original: str, name: str) -> bool:
        try:
            whole = read_regular(self._root / original / JOURNAL)
            return whole.startswith(read_regular(self._root / name / JOURNAL))
        except (OSError, ValueError):
            return False
