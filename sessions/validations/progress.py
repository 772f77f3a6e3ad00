"""How far the validation of a set of tasks is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.sessions.validations.operations import TaskVerdict
from gistpoint.sessions.validations.state import ValidationBook


class Standing(StrEnum):
    """Where a task stands among its validators."""

    UNJUDGED = "unjudged"
    ACCEPTED = "accepted"
    """By everybody who judged it."""
    REJECTED = "rejected"
    """By everybody who judged it, be it for different reasons."""
    DISPUTED = "disputed"
    """Some accept and some reject it."""
    DISCUSSION = "discussion"
    """Somebody wants it discussed."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """What validators made of one task."""

    task: str
    verdicts: Mapping[str, TaskVerdict]
    """By validator, of those who gave one."""
    seen: int
    """Validators who looked at it."""
    comments: int
    trials: int

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        given = set(self.verdicts.values())
        if not given:
            return Standing.UNJUDGED
        if TaskVerdict.NEEDS_DISCUSSION in given:
            return Standing.DISCUSSION
        if given == {TaskVerdict.ACCEPT}:
            return Standing.ACCEPTED
        return Standing.DISPUTED if TaskVerdict.ACCEPT in given else Standing.REJECTED


def progress(book: ValidationBook, tasks: Iterable[str]) -> tuple[TaskProgress, ...]:
    """Return a row for each task, in their order."""
    return tuple(_of(book, task) for task in tasks)


def totals(rows: Iterable[TaskProgress]) -> dict[Standing, int]:
    """Count the tasks by where they stand, every standing named."""
    counts = Counter(row.standing for row in rows)
    return {standing: counts[standing] for standing in Standing}


def _of(book: ValidationBook, task: str) -> TaskProgress:
    said = {reviewer: book.state(task, reviewer) for reviewer in book.reviewers}
    return TaskProgress(
        task,
        {reviewer: v.verdict.verdict for reviewer, v in said.items() if v.verdict is not None},
        sum(v.seen for v in said.values()),
        sum(len(v.comments) for v in said.values()),
        sum(len(v.trials) for v in said.values()),
    )
