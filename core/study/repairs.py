"""The repair that an attempt came to:
which functions it replaced by which code, and what a blind reader is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gistpoint.core import diffs
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class AttemptRepair:
    """The replacements that repair a task, in their order."""

    task: str
    """The whole id of the task."""
    replacements: tuple[Replacement, ...]

    @property
    def key(self) -> str:
        """What repairs of a task with the same code have in common:
        32 digits that reveal nothing about who made them.

        Blanks at the ends of lines don't count, and of a function that was replaced twice the last code does.
        """
        parts = [self.task]
        for name, code in sorted(self._code.items()):
            parts += [name, *(line.rstrip() for line in code.strip().splitlines())]
        return sha256_of_text("\n".join(parts))[:32]

    @property
    def _code(self) -> Mapping[str, str]:
        return {made.name: made.code for made in self.replacements}

    def on(self, tree: SourceTree) -> SourceTree:
        """Return a corrupted tree repaired. Raises `CodeError` if a replacement does not fit."""
        for made in self.replacements:
            tree = made.on(tree)
        return tree

    def change(self, tree: SourceTree) -> tuple[diffs.FileDiff, ...]:
        """Return what it changes in a corrupted tree, file by file."""
        repaired = self.on(tree)
        found = []
        for path in sorted({made.path for made in self.replacements}):
            before = tree.read(path).decode("utf-8", "replace")
            after = repaired.read(path).decode("utf-8", "replace")
            found.append(diffs.compute(before, after, old_path=path, new_path=path))
        return tuple(found)


def original_of(task: Task, answer: Answer) -> AttemptRepair:
    """Return the original code of a task's corrupted functions, as if somebody had written it."""
    return AttemptRepair(task.id, tuple(Replacement(t.path, t.qualname, t.original) for t in answer.targets))


def passing_repair(state: AttemptState) -> AttemptRepair | None:
    """Return the repair of the first submission that solved the task; None if none did, or for a gist.

    It consists of the replacements that persist up to it, or of its own.
    """
    passing = next((s for s in state.submissions if s.solved), None)
    if passing is None or not passing.replacement.path:
        return None
    before = [s.replacement for s in state.submissions if s.number <= passing.number]
    kept = tuple(made for made in state.replacements if made in before)
    if passing.replacement not in kept:
        kept = (passing.replacement,)
    return AttemptRepair(state.header.task_id, kept)


def _up_to(persistent: Iterable[Replacement], before: list[Replacement]) -> tuple[Replacement, ...]:
    return tuple(made for made in persistent if made in before)
