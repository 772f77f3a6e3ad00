"""Summarises a run: its work over time, waste, test runs, context, and when the broken code was reached.

The steps are read once. The size of a profile is limited, however long the run is. No model is involved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.model import CutText, Run, Step, StepKind, Tokens
from gistpoint.sessions.runs.commands import path_of, same_path, views_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import (
    FIRSTS,
    Goal,
    MarkTracker,
    Spent,
    StepMark,
    StepMarks,
    is_of_solver,
)
from gistpoint.sessions.runs.times import Timekeeper
from gistpoint.sessions.runs.work import WORKS, Work, work_of

MOST_BINS = 480
"""The maximum number of bins in a profile; beyond it, adjacent bins are merged in pairs."""
MOST_TEST_RUNS = 500
MOST_MOVES = 400
_MOST_NAMED = 20
"""The maximum number of steps of a kind that are listed; all of them are counted."""
_TAIL = 4000
"""The number of characters at the end of a result that are searched for the counts of a test runner."""


@dataclass(slots=True)
class Bin:
    """Consecutive steps: how many are of each kind of work, failed or were wasted, and the largest context.

    `work` is in the order of `WORKS`; `context` is in tokens, 0 if it is unknown.
    """

    work: list[int] = field(default_factory=lambda: [0] * len(WORKS))
    failed: int = 0
    wasted: int = 0
    context: int = 0

    def add(self, other: Bin) -> None:
        """Merge the next bin into this one."""
        self.work = [one + two for one, two in zip(self.work, other.work, strict=True)]
        self.failed += other.failed
        self.wasted += other.wasted
        self.context = max(self.context, other.context)

    @property
    def main(self) -> Work | None:
        """The most frequent kind of work, or the last in `WORKS` of equally frequent ones; None if none."""
        most = max(self.work)
        if not most:
            return None
        return max(WORKS, key=lambda work: (self.work[WORKS.index(work)], WORKS.index(work)))


@dataclass(slots=True)
class Counted:
    """The number of steps of some kind, and the first of them."""

    count: int = 0
    steps: list[int] = field(default_factory=list)

    def add(self, step: int) -> None:
        """Count a step, and list it if fewer than `_MOST_NAMED` are listed."""
        self.count += 1
        if len(self.steps) < _MOST_NAMED:
            self.steps.append(step)


@dataclass(slots=True)
class WorkShare:
    """The number of steps in one kind of work, and the seconds they took."""

    steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TestRunCounts:
    """The result of a test run; counts are None if the results do not show them."""

    __test__ = False

    step: int
    passed: int | None = None
    failed: int | None = None
    went_well: bool | None = None
    """Whether tests passed and none failed; None if that is unknown."""


@dataclass(frozen=True, slots=True)
class GoalReached:
    """The steps at which a broken function's file was first read, and the function first seen and edited.

    A step is None if the event did not happen.
    """

    function: str
    read: int | None = None
    seen: int | None = None
    edited: int | None = None


@dataclass(frozen=True, slots=True)
class SolverMove:
    """A step of the solver in short: its kind of work, and the file that it concerns, if it names one."""

    step: int
    work: Work
    path: str = ""

    def is_like(self, other: SolverMove) -> bool:
        """Return whether two moves are the same kind of work on the same file."""
        if self.work is not other.work:
            return False
        return self.path == other.path or same_path(self.path, other.path)

    def __str__(self) -> str:
        return f"{self.work.value} {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a run; steps are indices, counted from 0."""

    steps: int
    bins: tuple[Bin, ...]
    bin_steps: int
    """The number of steps in a bin; the last bin may have fewer."""
    shares: Mapping[Work, WorkShare]
    """The kinds of work that occur, in the order of `WORKS`."""
    reached: tuple[GoalReached, ...]
    """An item for each broken function; empty if the functions are unknown."""
    first_edit: int | None
    submissions: Counted
    failing: Counted
    repeated: Counted
    reread: Counted
    reverted: Counted
    wasted: int
    """The number of steps with a call that failed, repeated a call, reread the same part or undid an edit."""
    test_runs: tuple[TestRunCounts, ...]
    more_test_runs: int
    """The number of test runs after the first `MOST_TEST_RUNS`."""
    condensed: Counted
    """The steps at which the context was condensed or copied."""
    last_context: int | None
    spent: Spent
    moves: tuple[SolverMove, ...]
    """The first `MOST_MOVES` steps of the solver with a call."""
    timed: bool
    """Whether times or durations are recorded."""

    @property
    def worked(self) -> int:
        """The number of the solver's steps with a call."""
        return sum(share.steps for share in self.shares.values())

    @property
    def fullest(self) -> int | None:
        """The number of tokens in the largest request; None if no step counts them."""
        return max((found.context for found in self.bins), default=0) or None


def tokens_of(run: Run, profile: Profile) -> Tokens:
    """Return the tokens that a run's header records, or else the sum over its steps."""
    return run.tokens if run.tokens else profile.spent.tokens


def cost_of(run: Run, profile: Profile) -> float | None:
    """Return the cost in US dollars that a run's header records, or else the sum over its steps.

    None if neither is known.
    """
    return profile.spent.cost if run.cost is None else run.cost


def seconds_of(run: Run, profile: Profile) -> float | None:
    """Return the seconds that a run took according to its header, or else its steps; None if unknown."""
    return profile.spent.elapsed_s if run.duration_s is None else run.duration_s


def missing_in(run: Run, profile: Profile) -> tuple[str, ...]:
    """Return the facts missing from a profile because the run does not record them, each in a few words."""
    uncounted = sum(found.passed is None for found in profile.test_runs)
    found = (
        (not profile.worked, "what was done (no step of the solver calls a tool)"),
        (not profile.reached, "when the right code was found (the answer of its task is not here)"),
        (bool(uncounted), f"numbers of tests for {uncounted} of {len(profile.test_runs)} test runs"),
        (profile.fullest is None, "how full the context was (no step counts its tokens)"),
        (cost_of(run, profile) is None, "cost"),
        (seconds_of(run, profile) is None, "time"),
    )
    return tuple(words for applies, words in found if applies)


class Profiler:
    """Builds the profile of a run; the steps are fed in order."""

    def __init__(self, header: Run | None = None, goals: Iterable[Goal] = ()) -> None:
        self._marks = MarkTracker(header, goals)
        self._times = Timekeeper()
        self.fed = 0
        """The number of steps fed so far."""
        self._bins: list[Bin] = []
        self._bin_steps = 1
        self._shares: dict[Work, WorkShare] = {}
        self._firsts: dict[tuple[int, StepMark], int] = {}
        self._first_edit: int | None = None
        self._counted = {
            mark: Counted()
            for mark in (
                StepMark.SUBMISSION,
                StepMark.ERROR,
                StepMark.REPEATED_COMMAND,
                StepMark.REREAD,
                StepMark.REVERT,
            )
        }
        self._wasted = 0
        self._test_runs: list[TestRunCounts] = []
        self._more_test_runs = 0
        self._condensed = Counted()
        self._last_context: int | None = None
        self._spent = Spent()
        self._moves: list[SolverMove] = []
        self._timed = False

    def feed(self, step: Step) -> None:
        """Add the next step."""
        self.fed += 1
        marked = self._marks.feed(step)
        self._spent = marked.spent
        seconds = self._times.feed(step).busy
        self._timed = self._timed or step.started is not None or seconds > 0
        found = Bin()
        if is_of_solver(step):
            self._count(step, marked, found, seconds)
        if step.kind is StepKind.CONTEXT:
            self._condensed.add(step.index)
        for item in marked.marked:
            if item.goal is not None:
                self._firsts[item.goal, item.mark] = step.index
        self._add(found)

    def _count(self, step: Step, marked: StepMarks, found: Bin, seconds: float) -> None:
        """Count a step of the solver, and add it to `found`, its bin."""
        work = work_of(step)
        marks = marked.marks & self._counted.keys()
        if work is None:
            marks -= {StepMark.ERROR}  # no call was made because of an error of the program or its provider
        else:
            found.work[WORKS.index(work)] = 1
            self._add_work(step, work, seconds)
        for mark in marks:
            self._counted[mark].add(step.index)
        found.failed = int(StepMark.ERROR in marks)
        found.wasted = int(bool(marks - {StepMark.SUBMISSION, StepMark.ERROR}))
        self._wasted += work is not None and bool(marks - {StepMark.SUBMISSION})
        if StepMark.EDIT in marked.marks and self._first_edit is None:
            self._first_edit = step.index
        if StepMark.TEST_RUN in marked.marks:
            self._add_test_run(step)
        if step.tokens.prompt:
            found.context = self._last_context = step.tokens.prompt

    def _add_work(self, step: Step, work: Work, seconds: float) -> None:
        share = self._shares.setdefault(work, WorkShare())
        share.steps += 1
        share.seconds += seconds
        if len(self._moves) < MOST_MOVES:
            self._moves.append(SolverMove(step.index, work, _path(step, work)))

    def _add_test_run(self, step: Step) -> None:
        if len(self._test_runs) < MOST_TEST_RUNS:
            self._test_runs.append(test_run_of(step))
        else:
            self._more_test_runs += 1

    def _add(self, found: Bin) -> None:
        if (self.fed - 1) % self._bin_steps:
            self._bins[-1].add(found)
            return
        if len(self._bins) == MOST_BINS:
            for left, right in zip(self._bins[::2], self._bins[1::2], strict=True):
                left.add(right)
            self._bins = self._bins[::2]
            self._bin_steps *= 2
        self._bins.append(found)

    def profile(self) -> Profile:
        """Return the profile of the steps fed so far."""
        goals = (
            GoalReached(str(goal.ref), *(self._firsts.get((number, mark)) for mark in FIRSTS))
            for number, goal in enumerate(self._marks.goals)
        )
        return Profile(
            steps=self.fed,
            bins=tuple(self._bins),
            bin_steps=self._bin_steps,
            shares={work: self._shares[work] for work in WORKS if work in self._shares},
            reached=tuple(goals),
            first_edit=self._first_edit,
            submissions=self._counted[StepMark.SUBMISSION],
            failing=self._counted[StepMark.ERROR],
            repeated=self._counted[StepMark.REPEATED_COMMAND],
            reread=self._counted[StepMark.REREAD],
            reverted=self._counted[StepMark.REVERT],
            wasted=self._wasted,
            test_runs=tuple(self._test_runs),
            more_test_runs=self._more_test_runs,
            condensed=self._condensed,
            last_context=self._last_context,
            spent=self._spent,
            moves=tuple(self._moves),
            timed=self._timed,
        )


def profile_of(document: RunDocument, goals: Iterable[Goal] = (), *, cancel: CancelToken = NEVER) -> Profile:
    """Read a run to its end and return its profile. Raises `CancelledError` when cancelled."""
    document.build(cancel=cancel)
    profiler = Profiler(document.header, goals)
    for step in document.steps():
        cancel.check()
        profiler.feed(step)
    return profiler.profile()


def _path(step: Step, work: Work) -> str:
    if work not in (Work.READ, Work.EDIT):
        return ""
    return next(filter(None, _paths(step)), "")


def _paths(step: Step) -> Iterator[str]:
    yield from (edit.path for edit in step.edits)
    for call in step.calls:
        yield path_of(call)
        yield from (look.path for look in views_of(call))


# Test runs

_COUNTS = re.compile(r"(\d{1,7}) (passed|failed|errors?)\b")
_OF_SNAPSHOTS = "Snapshots:"
"""The start of Jest's line about snapshots, which follows its line about tests."""
_OF_A_PROGRAM = "test result: "
"""The start of Cargo's line about a test program."""
_UNITTEST = re.compile(r"^Ran (\d{1,7}) tests? in ", re.MULTILINE)
_UNITTEST_END = re.compile(r"^(OK|FAILED)(?: \(([^)]{1,200})\))?[ \r]*$", re.MULTILINE)
_UNITTEST_COUNT = re.compile(r"([a-z ]*[a-z])=(\d{1,7})")


def test_run_of(step: Step) -> TestRunCounts:
    """Return the counts of a test run: recorded ones, or those that its runner printed at the end.

    The known runners are pytest, unittest, Jest and Cargo.
    """
    match step.state.get("test_run"):
        case {"passed": int(passed), "failing": [*failing]}:
            return _counted_run(step, passed, len(failing))
    for result in reversed(step.results):
        counts = None if isinstance(result.text, CutText) else _counts(result.text[-_TAIL:])
        if counts is not None:
            return _counted_run(step, *counts)
    has_failed = any(result.returncode or result.is_error for result in step.results)
    return TestRunCounts(step.index, went_well=False if has_failed else None)


def _counted_run(step: Step, passed: int, failed: int) -> TestRunCounts:
    return TestRunCounts(step.index, passed, failed, not failed and passed > 0)


test_run_of.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it because of its name


def _counts(text: str) -> tuple[int, int] | None:
    """Return how many tests passed and failed according to the last line with counts; None without one."""
    *_, ran = (None, *_UNITTEST.finditer(text))
    if ran is not None:
        ended = _UNITTEST_END.search(text, ran.end())
        if ended is None:
            return None
        counts = Counter(
            {what.strip(): int(count) for what, count in _UNITTEST_COUNT.findall(ended[2] or "")}
        )
        failed = counts["failures"] + counts["errors"] + counts["unexpected successes"]
        return max(0, int(ran[1]) - failed - counts["skipped"]), failed
    found = [line[:1000] for line in text.split("\n") if _COUNTS.search(line[:1000])]
    lines = [line for line in found if not line.lstrip().startswith(_OF_SNAPSHOTS)]
    if not lines:
        return None
    # Cargo reports each of a package's test programs; other runners, all tests together.
    of_programs = [line for line in lines if line.startswith(_OF_A_PROGRAM)]
    counts = Counter()
    for line in of_programs if lines[-1].startswith(_OF_A_PROGRAM) else lines[-1:]:
        for count, what in _COUNTS.findall(line):
            counts[what] += int(count)
    passed = counts.pop("passed", 0)
    return passed, counts.total()


# Sets of runs


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where runs of one task diverge: the first `place` in their moves, counted from 0, at which they differ.

    `ways` lists each different move and the numbers of the runs that make it; the move is None for runs that
    have ended.
    """

    place: int
    ways: tuple[tuple[SolverMove | None, tuple[int, ...]], ...]


def divergence_of(profiles: list[Profile]) -> Divergence | None:
    """Return where runs diverge; None if all stored moves are alike, or there are fewer than two runs."""
    for place in range(max((len(profile.moves) for profile in profiles), default=0)):
        ways: list[tuple[SolverMove | None, list[int]]] = []
        for number, profile in enumerate(profiles):
            move = profile.moves[place] if place < len(profile.moves) else None
            same = next((runs for other, runs in ways if _alike(move, other)), None)
            if same is None:
                ways.append((move, [number]))
            else:
                same.append(number)
        if len(ways) > 1:
            return Divergence(place, tuple((move, tuple(runs)) for move, runs in ways))
    return None


def _alike(one: SolverMove | None, other: SolverMove | None) -> bool:
    return one is other if one is None or other is None else one.is_like(other)
