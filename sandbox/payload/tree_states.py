"""The states of all entries of a tree, and their differences.

The first process of a container uses this module too, so it imports only Python's own modules. Changes that
were undone are visible too: only root can set when an entry was last changed (its ctime).
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

    Each state ends with the time of the last change, in nanoseconds; for a folder, adding and removing
    entries counts as a change. Entries that disappear meanwhile are left out.
    """
    found: dict[str, tuple[int, ...]] = {}
    for place, folders, files in os.walk(tree):
        for path in ([place] if place == tree else []) + [
            os.path.join(place, name) for name in (*folders, *files)
        ]:
            try:
                status = os.lstat(path)
            except OSError:
                continue
            same = (status.st_dev, status.st_ino, status.st_mode, status.st_uid)
            # The size of a folder depends on its entries, whose changes are counted separately.
            more = () if stat.S_ISDIR(status.st_mode) else (status.st_size,)
            found[os.path.relpath(path, tree)] = (*same, *more, status.st_ctime_ns)
    return found


def changed_entries(before: States, after: States) -> list[str]:
    """Return the sorted paths that were changed, replaced or removed.

    Changes to the entries of a folder do not count as a change of the folder.
    """
    found = []
    for path, state in before.items():
        same = len(state) - 1 if stat.S_ISDIR(state[2]) else len(state)
        if after.get(path, ())[:same] != state[:same]:
            found.append(path)
    return sorted(found)


def changed_folders(before: States, after: States) -> list[str]:
    """Return the sorted folders that still exist and changed in any way, such as by added entries."""
    found = [
        path for path, state in before.items() if stat.S_ISDIR(state[2]) and after.get(path, state) != state
    ]
    return sorted(found)
