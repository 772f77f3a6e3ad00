"""The repair made in an attempt: the functions it replaced, and the change shown to a blind reader.

A solver's repair and the original code of its task have the same type, so that they can be compared on
inputs, and mixed in a reader's queue without showing which is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gistpoint.core import diffs
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class AttemptRepair:
    """The replacements that repair a task, in their order."""

    task: str
    """The full id of the task."""
    replacements: tuple[Replacement, ...]
    """The replacements; a later one of the same function supersedes an earlier one."""

    @property
    def key(self) -> str:
        """The hash shared by all repairs of a task with the same code; it reveals nothing about the author.

        It has 32 hex digits. Whitespace around the code and at the ends of its lines is ignored; if
        a function is replaced twice, only the last code counts.
        """
        parts = [self.task]
        for name, code in sorted(self._code.items()):
            parts += [name, *(line.rstrip() for line in physical_lines(code.strip()))]
        return sha256_of_text("\n".join(parts))[:32]

    @property
    def _code(self) -> Mapping[str, str]:
        return {replacement.name: replacement.code for replacement in self.replacements}

    def on(self, tree: SourceTree) -> SourceTree:
        """Return a corrupted tree with the repair applied. Raises `CodeError` if the repair does not fit."""
        for replacement in self.replacements:
            tree = replacement.on(tree)
        return tree

    def change(self, tree: SourceTree) -> tuple[diffs.FileDiff, ...]:
        """Return the diffs that the repair makes in a corrupted tree, by file.

        Files are in the order of their paths. Bytes that are not UTF-8 are shown as replacement characters.
        """
        repaired = self.on(tree)
        found = []
        for path in sorted({replacement.path for replacement in self.replacements}):
            before = tree.read(path).decode("utf-8", "replace")
            after = repaired.read(path).decode("utf-8", "replace")
            found.append(diffs.compute(before, after, old_path=path, new_path=path))
        return tuple(found)


def original_of(task: Task, answer: Answer) -> AttemptRepair:
    """Return the original code of a task's corrupted functions as a repair."""
    return AttemptRepair(task.id, tuple(Replacement(t.path, t.qualname, t.original) for t in answer.targets))


def passing_repair(state: AttemptState) -> AttemptRepair | None:
    """Return the repair of the first submission that solved the task; None if none did, or for a gist.

    It consists of the persistent replacements up to that submission or, if that submission's replacement is
    not among them, of this replacement alone.
    """
    passing = next((s for s in state.submissions if s.solved), None)
    if passing is None or not passing.replacement.path:
        return None
    before = [s.replacement for s in state.submissions if s.number <= passing.number]
    kept = tuple(replacement for replacement in state.replacements if replacement in before)
    if passing.replacement not in kept:
        kept = (passing.replacement,)
    return AttemptRepair(state.header.task_id, kept)
