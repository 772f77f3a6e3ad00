"""Compares two runs of one task, aligned by milestones rather than by step numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.records.model import Step, StepKind, call_text
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import (
    FIRSTS,
    Goal,
    Marked,
    MarkTracker,
    Spent,
    StepMark,
    StepMarks,
    is_of_solver,
)
from gistpoint.sessions.runs.repository import RepositoryHistory, RepositoryState


class RunMilestone(StrEnum):
    """Milestones that runs of one task can share."""

    START = "start"
    READ_RIGHT_FILE = "read right file"
    VIEWED_RIGHT_FUNCTION = "viewed right function"
    FIRST_EDIT = "first edit"
    EDITED_RIGHT_FUNCTION = "edited right function"
    FIRST_TEST_RUN = "first test run"
    SUBMISSION = "submission"
    END = "end"


@dataclass(frozen=True, slots=True, order=True)
class Milestone:
    """An event of a run; `number` counts submissions from 1, or the broken functions if there are several."""

    event: RunMilestone
    number: int = 0

    def __str__(self) -> str:
        return f"{self.event.value} {self.number}" if self.number else self.event.value


@dataclass(frozen=True, slots=True)
class Reached:
    """A milestone of a run, the step that reached it, and the budget used up to that step."""

    milestone: Milestone
    step: int
    spent: Spent


_EVENTS: dict[StepMark, RunMilestone] = dict(
    zip(
        FIRSTS,
        (
            RunMilestone.READ_RIGHT_FILE,
            RunMilestone.VIEWED_RIGHT_FUNCTION,
            RunMilestone.EDITED_RIGHT_FUNCTION,
        ),
        strict=True,
    )
)


def milestones(marks: Sequence[StepMarks], *, start: int = 0) -> tuple[Reached, ...]:
    """Return the milestones of a run in the order in which it reached them.

    `start` is the step of the solver's first call.
    """
    several = any((item.goal or 0) > 0 for step in marks for item in step.marked)
    found: dict[Milestone, Reached] = {}
    submissions = 0
    for step in marks:
        reached = [Milestone(RunMilestone.START)] if step.index == start else []
        reached += [_of_goal(item, item.goal, several) for item in step.marked if item.goal is not None]
        reached += [Milestone(event) for mark, event in _ONCE.items() if mark in step.marks]
        if StepMark.SUBMISSION in step.marks:
            submissions += 1
            reached.append(Milestone(RunMilestone.SUBMISSION, submissions))
        for milestone in reached:
            found.setdefault(milestone, Reached(milestone, step.index, step.spent))
    if marks:
        found.setdefault(_END, Reached(_END, marks[-1].index, marks[-1].spent))
    return tuple(found.values())


_ONCE = {StepMark.EDIT: RunMilestone.FIRST_EDIT, StepMark.TEST_RUN: RunMilestone.FIRST_TEST_RUN}
"""Marks whose first occurrence is a milestone."""
_END = Milestone(RunMilestone.END)


def _of_goal(item: Marked, goal: int, several: bool) -> Milestone:
    return Milestone(_EVENTS[item.mark], goal + 1 if several else 0)


@dataclass(frozen=True, slots=True)
class AlignedRow:
    """A step of each run, or None for a gap; both runs reach the `milestones` in this row."""

    left: int | None
    right: int | None
    milestones: tuple[Milestone, ...] = ()


_NO_CALL = frozenset({StepKind.MESSAGE, StepKind.NOTE, StepKind.STATE, StepKind.PAUSE})
"""Kinds of steps in which nothing is called."""
Steps = Collection[int]
"""Indices of some steps of a run, such as hidden ones, or asides, in which nothing is called."""


def align(
    left: Sequence[Reached],
    right: Sequence[Reached],
    left_steps: int,
    right_steps: int,
    asides: tuple[Steps, Steps] = ((), ()),
    hidden: tuple[Steps, Steps] = ((), ()),
) -> tuple[AlignedRow, ...]:
    """Return the rows of two runs; steps at which both reached the same milestone share a row.

    If the runs reached milestones in different orders, as many as possible are aligned. Between two aligned
    rows the steps are paired in order, calls with calls, and asides with asides; a step without a partner is
    next to a gap. Hidden steps are only in rows of milestones.
    """
    anchors = _anchors(left, right)
    rows: list[AlignedRow] = []
    at_left = at_right = 0
    for one, other, meet in (*anchors, (left_steps, right_steps, ())):
        shown_left = [step for step in range(at_left, one) if step not in hidden[0]]
        shown_right = [step for step in range(at_right, other) if step not in hidden[1]]
        rows += _between(shown_left, shown_right, asides)
        if meet:
            rows.append(AlignedRow(one, other, meet))
        at_left, at_right = one + 1, other + 1
    return tuple(rows)


def _between(left: Sequence[int], right: Sequence[int], asides: tuple[Steps, Steps]) -> Iterator[AlignedRow]:
    while left or right:
        one = left[0] if left else None
        other = right[0] if right else None
        is_pair = bool(left) and bool(right)
        is_aside = one in asides[0]
        if is_pair and is_aside != (other in asides[1]):
            one, other = (one, None) if is_aside else (None, other)
        yield AlignedRow(one, other)
        left, right = left[int(one is not None) :], right[int(other is not None) :]


def _anchors(
    left: Sequence[Reached], right: Sequence[Reached]
) -> list[tuple[int, int, tuple[Milestone, ...]]]:
    """Return the pairs of steps that share a row, with their milestones.

    The pairs form a chain with increasing steps on both sides and the most milestones.
    """
    places = {reached.milestone: reached.step for reached in right}
    meeting: dict[tuple[int, int], list[Milestone]] = {}
    for reached in left:
        if reached.milestone in places:
            pair = (reached.step, places[reached.milestone])
            meeting.setdefault(pair, []).append(reached.milestone)
    pairs = sorted(meeting)
    best: list[tuple[int, int]] = []
    """The number of milestones in the best chain up to each pair, and the previous pair in that chain."""
    for number, (one, other) in enumerate(pairs):
        before = [(best[k][0], k) for k in range(number) if pairs[k][0] < one and pairs[k][1] < other]
        count, previous = max(before, default=(0, -1))
        best.append((count + len(meeting[one, other]), previous))
    chain: list[tuple[int, int, tuple[Milestone, ...]]] = []
    at = max(range(len(best)), key=lambda number: best[number][0], default=-1)
    while at >= 0:
        one, other = pairs[at]
        chain.append((one, other, tuple(meeting[one, other])))
        at = best[at][1]
    return chain[::-1]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two compared runs."""

    marks: tuple[StepMarks, ...]
    milestones: tuple[Reached, ...]
    history: RepositoryHistory
    done: tuple[str, ...]
    """A hash of each step's calls and results; empty for steps without a call."""

    def repository(self, step: int) -> RepositoryState:
        """Return the repository after a step, with its cumulative diff.

        Raises IndexError if there is none.
        """
        return self.history.at(step)

    def spent(self, step: int) -> Spent:
        """Return the budget used up to and including a step."""
        return self.marks[step].spent

    def reached(self, milestone: Milestone) -> Reached | None:
        """Return how the run reached a milestone, namely the step and the budget used; None if it did not."""
        for reached in self.milestones:
            if reached.milestone == milestone:
                return reached
        return None


def read_side(
    document: RunDocument,
    goals: Iterable[Goal] = (),
    *,
    tree: SourceTree | None = None,
    target: FunctionRef | None = None,
) -> Side:
    """Read a run to its end and return it as a side of a comparison.

    `goals` are the broken functions, if they are known; `tree` contains the files at the start of the run.
    `target` is the function that the brief names; by default, that of the only goal.
    """
    goals = tuple(goals)
    if target is None and len(goals) == 1:
        target = goals[0].ref
    tracker = MarkTracker(document.header, goals, target=target)
    history = RepositoryHistory(tree, target=target)
    marks: list[StepMarks] = []
    done: list[str] = []
    first: dict[bool, int] = {}
    """The solver's first step with a call (True), and its first step without one (False)."""
    for step in document.steps():
        if is_of_solver(step):
            has_call = step.kind not in _NO_CALL
            first.setdefault(has_call, step.index)
        marks.append(tracker.feed(step))
        history.feed(step)
        done.append(_hash_of_calls(step))
    history.end(document.header.submission)
    start = first.get(True, first.get(False, 0))
    return Side(tuple(marks), milestones(marks, start=start), history, tuple(done))


@dataclass(frozen=True, slots=True)
class MilestoneRow:
    """A milestone, and the step at which each run reached it; None for a run that did not."""

    milestone: Milestone
    left: Reached | None
    right: Reached | None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two aligned runs of one task."""

    left: Side
    right: Side
    rows: tuple[AlignedRow, ...]
    different: frozenset[int]
    """The rows in which the runs make different calls, or the same calls with different results."""

    @property
    def milestones(self) -> tuple[MilestoneRow, ...]:
        """Every milestone of either run: those of the left run in its order, then those of only the right."""
        names = dict.fromkeys(
            reached.milestone for side in (self.left, self.right) for reached in side.milestones
        )
        return tuple(MilestoneRow(name, self.left.reached(name), self.right.reached(name)) for name in names)

    def places(self, row: int) -> tuple[int | None, int | None]:
        """Return the last step of each run in the rows up to and including `row`; None if there is none."""
        shown = self.rows[row::-1]
        left = next((found.left for found in shown if found.left is not None), None)
        right = next((found.right for found in shown if found.right is not None), None)
        return left, right


def compare(left: Side, right: Side, *, hidden: tuple[Steps, Steps] = ((), ())) -> RunComparison:
    """Return the comparison of two runs that were read to their ends, without their hidden steps."""
    asides = tuple({marks.index for marks in side.marks if marks.kind in _NO_CALL} for side in (left, right))
    rows = align(
        left.milestones,
        right.milestones,
        len(left.marks),
        len(right.marks),
        (asides[0], asides[1]),
        hidden,
    )
    different = frozenset(number for number, row in enumerate(rows) if _row_differs(row, left, right))
    return RunComparison(left, right, rows, different)


def _row_differs(row: AlignedRow, left: Side, right: Side) -> bool:
    """Return whether the calls of a row differ, or their results; text between calls never counts."""
    one = "" if row.left is None else left.done[row.left]
    other = "" if row.right is None else right.done[row.right]
    return one != other


def _hash_of_calls(step: Step) -> str:
    """Return a hash of a step's calls and results; empty if the step calls nothing."""
    if not step.calls:
        return ""
    calls = [(call.tool, call_text(call)) for call in step.calls]
    results = [(result.text, result.returncode, result.is_error) for result in step.results]
    return sha256_of_text(repr((calls, results)))
