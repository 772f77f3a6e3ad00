"""What stands out in a run, step by step, and what each step has left and has cost: told by rules, without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.names import FunctionRef
from gistpoint.sessions.runs.changes import Change, Untold, changes_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.goals import Goal
from gistpoint.sessions.runs.model import Run, Step, StepKind
from gistpoint.sessions.runs.spending import Spending, Spent, submissions_in
from gistpoint.sessions.runs.waste import Waste


class Mark(StrEnum):
    """What may be said of a step."""

    SUBMISSION = "submission"
    ERROR = "error"
    EDIT = "edit"
    TEST_RUN = "test_run"
    FIRST_READ_RIGHT_FILE = "first_read_right_file"
    FIRST_VIEW_RIGHT_FUNCTION = "first_view_right_function"
    FIRST_EDIT_RIGHT_FUNCTION = "first_edit_right_function"
    REPEATED_COMMAND = "repeated_command"
    """The same call as before, and nothing was edited in between."""
    REREAD = "reread"
    """A part of a file that was read before, and the file was not edited in between."""
    REVERT = "revert"
    """An edit that takes back an earlier one."""


FIRSTS = (Mark.FIRST_READ_RIGHT_FILE, Mark.FIRST_VIEW_RIGHT_FUNCTION, Mark.FIRST_EDIT_RIGHT_FUNCTION)
"""Marks that a run has once for each function that is broken."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark of a step; `other` is the number of the earlier step that is repeated or taken back."""

    mark: Mark
    other: int | None = None
    goal: int | None = None
    """Which of the broken functions it is about."""


@dataclass(frozen=True, slots=True)
class StepMarks:
    """What a step is marked with, and what was used up to and with it."""

    index: int
    kind: StepKind
    marked: tuple[Marked, ...]
    spent: Spent

    @property
    def marks(self) -> frozenset[Mark]:
        """The marks alone."""
        return frozenset(item.mark for item in self.marked)

    def other(self, mark: Mark) -> int | None:
        """Return the earlier step that a mark points to."""
        return next((item.other for item in self.marked if item.mark is mark), None)


class MarkTracker:
    """Marks the steps of one run, fed in order as they are read; memory grows by hashes and numbers only."""

    def __init__(
        self, header: Run | None = None, goals: Iterable[Goal] = (), *, target: FunctionRef | None = None
    ) -> None:
        """`goals` are the broken functions, where a task's answer is known; `target` the one that a brief names."""
        self.goals = tuple(goals)
        self._target = target or (self.goals[0].ref if len(self.goals) == 1 else None)
        self._spending = Spending(header)
        self._waste = Waste()
        self._reached: set[tuple[Mark, int]] = set()

    def feed(self, step: Step) -> StepMarks:
        """Mark the next step."""
        changes = changes_of(step, self._target)
        marked = [Marked(mark) for mark in _plain(step, changes)]
        for number, goal in enumerate(self.goals):
            marked += [Marked(mark, goal=number) for mark in self._firsts(step, changes, number, goal)]
        wasted = self._waste.feed(step, changes)
        for mark, other in (
            (Mark.REPEATED_COMMAND, wasted.repeats),
            (Mark.REREAD, wasted.rereads),
            (Mark.REVERT, wasted.reverts),
        ):
            if other is not None:
                marked.append(Marked(mark, other))
        return StepMarks(step.index, step.kind, tuple(marked), self._spending.feed(step))

    def _firsts(self, step: Step, changes: tuple[Change, ...], number: int, goal: Goal) -> Iterator[Mark]:
        for mark in FIRSTS:
            if (mark, number) not in self._reached and _comes_to(mark, goal, step, changes):
                self._reached.add((mark, number))
                yield mark


def _comes_to(mark: Mark, goal: Goal, step: Step, changes: Sequence[Change]) -> bool:
    if mark is Mark.FIRST_READ_RIGHT_FILE:
        return goal.reads_file(step)
    if mark is Mark.FIRST_VIEW_RIGHT_FUNCTION:
        return goal.views_function(step)
    return any(goal.is_edited_by(change) for change in changes)


def _plain(step: Step, changes: Sequence[Change]) -> Iterator[Mark]:
    if submissions_in(step):
        yield Mark.SUBMISSION
    if has_error(step):
        yield Mark.ERROR
    if step.kind is StepKind.EDIT or any(not isinstance(change, Untold) for change in changes):
        yield Mark.EDIT
    if step.kind is StepKind.TEST or "test_run" in step.state:
        yield Mark.TEST_RUN


def has_error(step: Step) -> bool:
    """Whether something failed in a step, other than tests or a search that found nothing."""
    if step.kind in (StepKind.ERROR, StepKind.DAMAGED) or "error" in step.flags:
        return True
    if any(result.is_error for result in step.results):
        return True
    counts = step.kind not in (StepKind.TEST, StepKind.SEARCH)
    return counts and any(result.returncode not in (None, 0) for result in step.results)


def marks_of(
    document: RunDocument, goals: Iterable[Goal] = (), *, target: FunctionRef | None = None
) -> Iterator[StepMarks]:
    """Yield the marks of a run's steps; its index is completed first, because results may come late."""
    tracker = MarkTracker(document.header, goals, target=target)
    for step in document.steps():
        yield tracker.feed(step)
