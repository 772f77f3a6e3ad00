"""When a run comes to the function that is broken: its file read, itself seen, itself edited. Told by rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import FileDiff, LineKind
from gistpoint.core.tasks.model import Answer
from gistpoint.sessions.runs.changes import (
    Change,
    Inserted,
    Patched,
    Redefined,
    Replaced,
    Untold,
    Written,
)
from gistpoint.sessions.runs.commands import END, looks_of, same_path
from gistpoint.sessions.runs.model import Step, StepKind

_LOOKING = frozenset({StepKind.VIEW, StepKind.EXECUTE, StepKind.TOOL})
_TELLING = 6
"""Characters of a line from which it tells one function from another."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A function that has to be found and repaired; `text` is the corrupted one, empty where nobody knows it."""

    path: str
    qualname: str
    text: str = ""
    _lines: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lines = {line.strip() for line in self.text.split("\n")}
        object.__setattr__(self, "_lines", frozenset(line for line in lines if len(line) >= _TELLING))

    @property
    def ref(self) -> FunctionRef:
        """Its name."""
        return FunctionRef(self.path, self.qualname)

    def reads_file(self, step: Step) -> bool:
        """Whether a step reads the file, or a part of it."""
        return any(same_path(look.path, self.path) for call in step.calls for look in looks_of(call)) and (
            step.kind in _LOOKING
        )

    def views_function(self, step: Step) -> bool:
        """Whether a step shows the function itself: asked for by name, or its `def` stands in what came back.

        Where the results were not recorded, the file read whole counts.
        """
        if step.kind not in _LOOKING:
            return False
        for call in step.calls:
            for look in looks_of(call):
                if not same_path(look.path, self.path):
                    continue
                if look.name:
                    if self._is_named(look.name):
                        return True
                elif step.results:
                    if any(self._definition.search(result.text) for result in step.results):
                        return True
                elif look.first <= 1 and look.last == END:
                    return True
        return False

    def is_edited_by(self, change: Change) -> bool:
        """Whether a change touches the function, as far as the change itself tells."""
        if isinstance(change, Untold) or not same_path(change.path, self.path):
            return False
        if isinstance(change, Redefined):
            return self._is_named(change.name)
        if isinstance(change, Replaced):
            return self._holds(change.old.split("\n")) or bool(self._definition.search(change.old))
        if isinstance(change, Patched):
            return self.is_edited_in(change.diff)
        if isinstance(change, Inserted):
            return bool(self._definition.search(change.text))
        return isinstance(change, Written) and bool(self._lines) and not self._stands_in(change.text)

    def is_edited_in(self, diff: FileDiff) -> bool:
        """Whether a diff of the file takes away a line of the function, or changes lines right under its `def`."""
        if not same_path(diff.path, self.path):
            return False
        for hunk in diff.hunks:
            removed = [line.text for line in hunk.lines if line.kind is LineKind.REMOVED]
            before = [line.text for line in hunk.lines if line.kind is not LineKind.ADDED]
            named = self._definition.search(hunk.section) or any(self._definition.search(line) for line in before)
            if (named and (self._holds(before) or not self._lines)) or (removed and self._holds(removed)):
                return True
        return False

    @property
    def _definition(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:def|class)\s+{re.escape(self.ref.name)}\b")

    def _is_named(self, name: str) -> bool:
        plain = name.rpartition("::")[2].partition("#")[0]
        return plain == self.ref.plain or self.ref.plain.endswith("." + plain)

    def _holds(self, lines: list[str]) -> bool:
        """Whether some of the lines, and half of those that tell anything, are the function's."""
        telling = [text for line in lines if len(text := line.strip()) >= _TELLING]
        own = sum(text in self._lines for text in telling)
        return own > 0 and own * 2 >= len(telling)

    def _stands_in(self, text: str) -> bool:
        return self.text.strip() in text


def goals_of(answer: Answer) -> tuple[Goal, ...]:
    """Return the functions that a task's answer names."""
    return tuple(Goal(target.path, target.qualname, target.corrupted) for target in answer.targets)
