"""The states of all entries of a tree, and what they say of a change; imports nothing that the first process lacks.

What was written to and put back shows too: nobody but root can set when an entry was last changed (its ctime).
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    States = Mapping[str, tuple[int, ...]]


def states_of(tree: str) -> dict[str, tuple[int, ...]]:
    """Return the states of all entries by their paths, `.` for the tree itself.

    Each ends with the time of its last change, to which for a folder entries that came or went belong; what is gone
    meanwhile is left out.
    """
    found: dict[str, tuple[int, ...]] = {}
    for place, folders, files in os.walk(tree):
        for path in ([place] if place == tree else []) + [os.path.join(place, name) for name in (*folders, *files)]:
            try:
                told = os.lstat(path)
            except OSError:
                continue
            same = (told.st_dev, told.st_ino, told.st_mode, told.st_uid)
            more = () if stat.S_ISDIR(told.st_mode) else (told.st_size,)
            found[os.path.relpath(path, tree)] = (*same, *more, told.st_ctime_ns)
    return found


def changed_entries(before: States, after: States) -> list[str]:
    """Return, sorted, what was changed, replaced or removed; a folder is not changed by what comes or goes in it."""
    found = []
    for path, state in before.items():
        same = len(state) - 1 if stat.S_ISDIR(state[2]) else len(state)
        if after.get(path, ())[:same] != state[:same]:
            found.append(path)
    return sorted(found)


def changed_folders(before: States, after: States) -> list[str]:
    """Return, sorted, the folders that changed in any way, such as by entries that came or went."""
    found = [path for path, state in before.items() if stat.S_ISDIR(state[2]) and after.get(path, state) != state]
    return sorted(found)
