"""The queue: the tasks of the set, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gistpoint.core.tasks.model import Task
from gistpoint.sessions.validations.state import TaskVerdict, Validation
from gistpoint.tui.screens.validate.lines import BAD, GOOD, MUTED, ODD
from gistpoint.tui.widgets.record_list import Piece, RecordList


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A task with what this validator has said about it."""

    task: Task
    said: Validation

    @property
    def verdict(self) -> TaskVerdict | None:
        """The verdict that stands."""
        return self.said.verdict.verdict if self.said.verdict is not None else None

    @property
    def mode(self) -> str:
        """The mode, several targets told apart."""
        return "several" if self.task.several else self.task.mode.value

    def fits(self, words: str) -> bool:
        """Whether the row holds all words, and none that begins with `-`."""
        verdict = self.verdict.value if self.verdict else "unjudged"
        state = "judged" if self.verdict else ""
        seen = "seen" if self.said.seen else "unseen"
        name = f"{self.task.source.name} {self.task.source.revision}"
        held = f"{self.task.id} {self.mode} {name} {verdict} {verdict.replace('_', ' ')} {state} {seen}".lower()
        return all(word.removeprefix("-") not in held if _negated(word) else word in held for word in _words(words))


def _words(text: str) -> list[str]:
    return text.lower().split()


def _negated(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def look_of(verdict: TaskVerdict | None) -> Piece:
    """Return the sign of a verdict and its style."""
    if verdict is None:
        return "·", MUTED
    if verdict is TaskVerdict.ACCEPT:
        return "✓", f"bold {GOOD}"
    return ("?", f"bold {ODD}") if verdict is TaskVerdict.NEEDS_DISCUSSION else ("✗", f"bold {BAD}")


class QueueList(RecordList):
    """Seen mark, verdict, id, mode and source of each task."""

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.rows: Sequence[QueueRow] = ()

    def show(self, rows: Sequence[QueueRow], *, task: str = "") -> None:
        """Show other rows, with the cursor on a task if it is among them."""
        self.rows = rows
        at = next((n for n, row in enumerate(rows) if row.task.id == task), None)
        self.set_count(len(rows), cursor=at)

    @property
    def current(self) -> QueueRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the pieces of a task's row."""
        row = self.rows[index]
        sign, style = look_of(row.verdict)
        words = row.verdict.words if row.verdict is not None else ""
        comments = f"✎{len(row.said.comments)} " if row.said.comments else ""
        return [
            (" " if row.said.seen else "•", "$text-primary"),
            (f"{sign} ", style),
            (row.task.short_id[:8], ""),
            (f" {row.mode:<9} ", MUTED),
            (f"{words} " if words else "", style),
            (comments, "$text-accent"),
            (f"{row.task.source.name} {row.task.source.revision[:12]}", MUTED),
        ]
