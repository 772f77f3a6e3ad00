"""What a run changed in its tree, and whether what was to stay as it is has stayed so, seen from outside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Command, Ended
from gistpoint.sandbox.backends.treeparts import TreeParts
from gistpoint.sandbox.inside.tree_states import changed_entries, changed_folders, states_of

if TYPE_CHECKING:
    from gistpoint.sandbox.inside.tree_states import States


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
        """Return what was changed that is not writable, then folders that something came into or went from."""
        folders = (path for path in changed_folders(self.before, now) if path not in self.parts.folders)
        changed = dict.fromkeys((*changed_entries(self.before, now), *folders))
        return tuple(path for path in changed if not self.parts.is_own(path))
