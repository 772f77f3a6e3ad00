"""What a run changed in its tree, and whether what was to stay as it is has stayed so, seen from outside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Command, Ended
from gistpoint.sandbox.backends.treeparts import TreeParts
from gistpoint.sandbox.inside.tree_states import changed_entries, changed_folders, states_of

if TYPE_CHECKING:
    from gistpoint.sandbox.inside.tree_states import States

_READ_BY_PYTHON = (".py", ".so", ".pth")
_READ_BY_PYTEST = {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"}


@dataclass(frozen=True, slots=True)
class TreeStates:
    """The state in which a tree was laid out."""

    parts: TreeParts
    before: States

    @classmethod
    def of(cls, parts: TreeParts) -> TreeStates:
        """Look at the tree of `parts` before the run."""
        return cls(parts, states_of(str(parts.tree)))

    def completed(self, ended: Ended, command: Command) -> Ended:
        """Return `ended` with what `command` changed in the tree."""
        now = states_of(str(self.parts.tree))
        altered = () if command.writable is None else self._altered(now)
        changed = Writable(tuple(changed_folders(self.before, now)), tuple(changed_entries(self.before, now)))
        return replace(ended, altered=altered, writes=changed if command.watch else None)

    def _altered(self, now: States) -> tuple[str, ...]:
        """Return, sorted, what was changed that is not writable, and what was added for pytest or Python to read."""
        changed = {path for path in changed_entries(self.before, now) if not self.parts.is_own(path)}
        added = {path for path in now if path not in self.before and not self.parts.is_own(path)}
        return tuple(sorted(changed | {path for path in added if self._is_read(path)}))

    def _is_read(self, path: str) -> bool:
        """Whether Python or pytest reads a new file of this name as a part of the suite."""
        name = PurePosixPath(path).name
        if name == "conftest.py" or name.endswith(".pyc"):
            return True
        in_writable = not set(self.parts.folders).isdisjoint(map(str, PurePosixPath(path).parents))
        return not in_writable and (name.endswith(_READ_BY_PYTHON) or name in _READ_BY_PYTEST)
