"""Facts about the steps of a run: marks, budget used, waste, and whether the broken code was reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import compress

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import DiffLineKind, FileDiff, Hunk
from gistpoint.core.tasks.model import Answer
from gistpoint.sessions.formats.shared.calls import is_shell
from gistpoint.sessions.records.model import Actor, Json, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.runs.changes import (
    Change,
    Inserted,
    Patched,
    Redefined,
    Relined,
    Replaced,
    Restored,
    Undone,
    Unrecorded,
    Written,
    changes_of,
    is_among,
)
from gistpoint.sessions.runs.commands import END, ViewedPart, file_name, same_path, views_in
from gistpoint.sessions.runs.document import RunDocument

_LOOKING = frozenset({StepKind.VIEW, StepKind.EXECUTE, StepKind.TOOL})
_DISTINCTIVE = 6
"""The minimum length in characters of a line that, together with others, identifies a function."""

_DISTINCTIVE_ALONE = 12
"""The minimum length in characters of a line that identifies a function on its own."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A function to find and repair; `text` is its corrupted source, empty if that is unknown."""

    path: str
    qualname: str
    text: str = ""
    _lines: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lines = {line.strip() for line in self.text.split("\n")}
        object.__setattr__(self, "_lines", frozenset(line for line in lines if len(line) >= _DISTINCTIVE))

    @property
    def ref(self) -> FunctionRef:
        """The function's reference."""
        return FunctionRef(self.path, self.qualname)

    def reads_file(self, step: Step) -> bool:
        """Return whether a step reads the function's file or a part of it."""
        if step.kind not in _LOOKING:
            return False
        return any(same_path(view.path, self.path) for view in views_in(step))

    def views_function(self, step: Step) -> bool:
        """Return whether a step shows the function itself: a call names it, or a result contains its `def`.

        If the results were not recorded, reading the whole file counts.
        """
        if step.kind not in _LOOKING:
            return False
        views = (view for view in views_in(step) if same_path(view.path, self.path))
        return any(self._is_shown_by(view, step.results) for view in views)

    def _is_shown_by(self, view: ViewedPart, results: Sequence[Result]) -> bool:
        if view.name:
            return self._is_named(view.name)
        if results:
            return any(self._defines(result.text) for result in results)
        return view.first <= 1 and view.last == END

    def is_edited_by(self, change: Change) -> bool:
        """Return whether a change affects the function, judging by the change alone."""
        if not same_path(change.path, self.path):
            return False
        match change:
            case Unrecorded():
                return self._defines(change.command) or self._is_quoted_in(change.command)
            case Redefined():
                return self._is_named(change.name)
            case Replaced():
                return self._is_replaced_by(change)
            case Patched():
                return self.is_edited_in(change.diff)
            case Relined():
                return self._contains_function(change.text.split("\n"))
            case Inserted():
                return self._defines(change.text)
            case Written():
                return bool(self._lines) and self.text.strip() not in change.text
        return False

    def _is_replaced_by(self, change: Replaced) -> bool:
        # Unless every occurrence was replaced, the file contained the text exactly once.
        old = change.old.strip()
        is_part_of_line = not change.every and "\n" not in old
        if is_part_of_line and old in self.text:
            return True
        return self._contains_function(change.old.split("\n")) or self._defines(change.old)

    def _is_quoted_in(self, command: str) -> bool:
        distinctive = [line for line in self._lines if len(line) >= _DISTINCTIVE_ALONE]
        return any(line in command for line in distinctive)

    def is_edited_in(self, diff: FileDiff) -> bool:
        """Return whether a diff of the file removes lines of the function or changes lines near its `def`."""
        if not same_path(diff.path, self.path):
            return False
        return any(map(self._is_edited_by_hunk, diff.hunks))

    def _is_edited_by_hunk(self, hunk: Hunk) -> bool:
        removed = [line.text for line in hunk.lines if line.kind is DiffLineKind.REMOVED]
        before = [line.text for line in hunk.lines if line.kind is not DiffLineKind.ADDED]
        if self._contains_function(removed):
            return True
        may_be_function = not self._lines or self._contains_function(before)
        if not may_be_function:
            return False
        return any(map(self._defines, (hunk.section, *before)))

    def _defines(self, text: str) -> bool:
        return self._definition.search(text) is not None

    @property
    def _definition(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:def|class)\s+{re.escape(self.ref.name)}\b")

    def _is_named(self, name: str) -> bool:
        plain = name.rpartition("::")[2].partition("#")[0]
        return plain == self.ref.plain or self.ref.plain.endswith("." + plain)

    def _contains_function(self, lines: list[str]) -> bool:
        """Return whether at least one distinctive line, and at least half of them, belong to the function."""
        stripped = (line.strip() for line in lines)
        distinctive = [text for text in stripped if len(text) >= _DISTINCTIVE]
        own = sum(text in self._lines for text in distinctive)
        if not own:
            return False
        return own * 2 >= len(distinctive)


def goals_of(answer: Answer) -> tuple[Goal, ...]:
    """Return the functions that a task's answer names."""
    return tuple(Goal(target.path, target.qualname, target.corrupted) for target in answer.targets)


class StepMark(StrEnum):
    """The purpose or effect of a step in its run."""

    SUBMISSION = "submission"
    ERROR = "error"
    EDIT = "edit"
    TEST_RUN = "test_run"
    FIRST_READ_RIGHT_FILE = "first_read_right_file"
    FIRST_VIEW_RIGHT_FUNCTION = "first_view_right_function"
    FIRST_EDIT_RIGHT_FUNCTION = "first_edit_right_function"
    REPEATED_COMMAND = "repeated_command"
    """A call that was made before, with no edit in between."""
    REREAD = "reread"
    """A part of a file that was read before, with no edit of the file in between."""
    REVERT = "revert"
    """An edit that undoes an earlier one."""


FIRSTS = (
    StepMark.FIRST_READ_RIGHT_FILE,
    StepMark.FIRST_VIEW_RIGHT_FUNCTION,
    StepMark.FIRST_EDIT_RIGHT_FUNCTION,
)
"""Marks that occur once in a run for each broken function."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark of a step; `other` is the index of the earlier step that it repeats or undoes, if any."""

    mark: StepMark
    other: int | None = None
    goal: int | None = None
    """The index of the broken function that the mark is about; None for all other marks."""


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The marks of a step, and the budget used up to and including it."""

    index: int
    kind: StepKind
    marked: tuple[Marked, ...]
    spent: Spent

    @property
    def marks(self) -> frozenset[StepMark]:
        """The marks without the steps and functions to which they refer."""
        return frozenset(item.mark for item in self.marked)

    def other(self, mark: StepMark) -> int | None:
        """Return the earlier step to which a mark refers; None if there is none."""
        for item in self.marked:
            if item.mark is mark:
                return item.other
        return None


class MarkTracker:
    """Marks the steps of one run, which are fed in order; stores only hashes and numbers."""

    def __init__(
        self, header: Run | None = None, goals: Iterable[Goal] = (), *, target: FunctionRef | None = None
    ) -> None:
        """`goals` are the broken functions, if known; `target` is the function that the brief names."""
        self.goals = tuple(goals)
        self._target = target
        if target is None and len(self.goals) == 1:
            self._target = self.goals[0].ref
        self._spending = Spending(header)
        self._waste = Waste()
        self._reached: set[tuple[StepMark, int]] = set()

    def feed(self, step: Step) -> StepMarks:
        """Return the marks of the next step; for a step that is not the solver's, only whether it failed."""
        changes = changes_of(step, self._target)
        if not is_of_solver(step):
            self._waste.feed(step, changes)
            marked = [Marked(StepMark.ERROR)] if has_error(step) else []
            return StepMarks(step.index, step.kind, tuple(marked), self._spending.feed(step))
        marked = [Marked(mark) for mark in marks_alone(step, changes)]
        for number, goal in enumerate(self.goals):
            marked += [Marked(mark, goal=number) for mark in self._firsts(step, changes, number, goal)]
        wasted = self._waste.feed(step, changes)
        found = {
            StepMark.REPEATED_COMMAND: wasted.repeats,
            StepMark.REREAD: wasted.rereads,
            StepMark.REVERT: wasted.reverts,
        }
        marked += [Marked(mark, other) for mark, other in found.items() if other is not None]
        return StepMarks(step.index, step.kind, tuple(marked), self._spending.feed(step))

    def _firsts(self, step: Step, changes: tuple[Change, ...], number: int, goal: Goal) -> Iterator[StepMark]:
        for mark in FIRSTS:
            if (mark, number) in self._reached:
                continue
            if _reaches(mark, goal, step, changes):
                self._reached.add((mark, number))
                yield mark


def _reaches(mark: StepMark, goal: Goal, step: Step, changes: Sequence[Change]) -> bool:
    if mark is StepMark.FIRST_READ_RIGHT_FILE:
        return goal.reads_file(step)
    if mark is StepMark.FIRST_VIEW_RIGHT_FUNCTION:
        return goal.views_function(step)
    return any(map(goal.is_edited_by, changes))


def marks_alone(step: Step, changes: Sequence[Change]) -> Iterator[StepMark]:
    """Yield the marks of a step that don't depend on other steps; `changes` are the step's own."""
    certain = [change for change in changes if not isinstance(change, Unrecorded)]
    applies = {
        StepMark.SUBMISSION: submissions_in(step) > 0,
        StepMark.ERROR: has_error(step),
        # A shell command may only seem to change files, so an uncertain change counts only if the step is an
        # edit.
        StepMark.EDIT: bool(changes if step.kind is StepKind.EDIT else certain),
        StepMark.TEST_RUN: step.kind is StepKind.TEST or "test_run" in step.state,
    }
    return compress(applies.keys(), applies.values())


def edits_in(step: Step, changes: Sequence[Change]) -> int:
    """Return how many changes to files a step makes (see `StepMark.EDIT`); `changes` are the step's own."""
    if step.kind is StepKind.EDIT:
        return len(changes)
    return sum(not isinstance(change, Unrecorded) for change in changes)


def has_error(step: Step) -> bool:
    """Return whether something failed in a step, other than tests or a search without results."""
    if step.kind in (StepKind.ERROR, StepKind.DAMAGED) or "error" in step.flags:
        return True
    if any(result.is_error for result in step.results):
        return True
    # Failing tests and searches without a match also exit with a code other than 0.
    if step.kind in (StepKind.TEST, StepKind.SEARCH):
        return False
    return any(result.returncode for result in step.results)


def marks_of(
    document: RunDocument, goals: Iterable[Goal] = (), *, target: FunctionRef | None = None
) -> Iterator[StepMarks]:
    """Yield the marks of a run's steps; the index is built first, because results may follow much later."""
    tracker = MarkTracker(document.header, goals, target=target)
    for step in document.steps():
        yield tracker.feed(step)


@dataclass(frozen=True, slots=True)
class Spent:
    """The budget used up to and including a step; None for a value that was not recorded."""

    calls: int = 0
    submissions: int = 0
    calls_left: int | None = None
    submissions_left: int | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    """The cost in US dollars; None if it is unknown."""
    elapsed_s: float | None = None
    """The seconds since the first recorded time; the sum of the durations if there are no times."""
    derived: frozenset[str] = frozenset()
    """The fields that were inferred: budgets that were counted down, and durations that were added up."""


class Spending:
    """Adds up the budget that the steps of a run use; they are fed in order."""

    def __init__(self, header: Run | None = None) -> None:
        self._calls, self._submissions = _budgets({} if header is None else header.extra)
        self._spent = Spent(calls_left=self._calls, submissions_left=self._submissions)
        self._started: float | None = None
        self._durations: float | None = None
        self._recorded = False

    def feed(self, step: Step) -> Spent:
        """Return the budget used up to and including the next step."""
        before = self._spent
        calls, submissions = before.calls, before.submissions
        if is_of_solver(step):
            calls += len(step.calls)
            submissions += submissions_in(step)
        calls_left, submissions_left, counted_down = self._remaining_budgets(step, calls, submissions)
        elapsed, is_summed = self._time(step)
        self._spent = Spent(
            calls,
            submissions,
            calls_left,
            submissions_left,
            before.tokens + step.tokens,
            _sum(before.cost, step.cost),
            elapsed,
            counted_down | ({"elapsed_s"} if is_summed else set()),
        )
        return self._spent

    def _remaining_budgets(
        self, step: Step, calls: int, submissions: int
    ) -> tuple[int | None, int | None, frozenset[str]]:
        """Return the calls and submissions left, and the names of the counts that are derived, not recorded.

        A count is None if it is unknown. A recorded budget takes precedence, even if it is from an earlier
        step.
        """
        budget = step.state.get("budget")
        if isinstance(budget, dict):
            self._recorded = True
            calls_left, submissions_left = _two_counts(budget, "tool_uses", "submissions")
            return calls_left, submissions_left, frozenset()
        if self._recorded:
            return self._spent.calls_left, self._spent.submissions_left, frozenset()
        counted = frozenset(compress(("calls_left", "submissions_left"), (self._calls, self._submissions)))
        return _remaining(self._calls, calls), _remaining(self._submissions, submissions), counted

    def _time(self, step: Step) -> tuple[float | None, bool]:
        """Return the seconds since the start, None if unknown, and whether they merely sum up durations."""
        durations = [result.duration_s for result in step.results if result.duration_s is not None]
        if durations:
            self._durations = _sum(self._durations, sum(durations))
        at = step.started if step.ended is None else step.ended
        if at is not None:
            if self._started is None:
                self._started = at if step.started is None else step.started
            # A clock that was set back must not reduce the elapsed time.
            return max(at - self._started, self._spent.elapsed_s or 0.0), False
        if self._started is not None:
            return self._spent.elapsed_s, False
        return self._durations, bool(durations)


def _sum(one: float | None, other: float | None) -> float | None:
    """Return the sum of the recorded values; None if neither is recorded."""
    return one if other is None else (one or 0.0) + other


def _remaining(budget: int | None, used: int) -> int | None:
    return None if budget is None else max(0, budget - used)


def is_of_solver(step: Step) -> bool:
    """Return whether the step was made by the solver, who may be an agent or a person."""
    return step.actor in (Actor.AGENT, Actor.PERSON)


def _submits(tool: str) -> bool:
    if is_shell(tool):
        return False
    from gistpoint.core.kinds.registry import submits  # loads all kinds, which most runs do not need

    return submits(tool)


def submissions_in(step: Step) -> int:
    """Return how many submissions a step makes."""
    submissions = sum(_submits(call.tool) for call in step.calls)
    if step.kind is StepKind.SUBMIT:
        return max(1, submissions)
    if "refused" in step.flags:
        return 0
    return submissions


def _budgets(extra: Mapping[str, Json]) -> tuple[int | None, int | None]:
    """Return the calls and submissions that a run's header allows; None for an unknown budget."""
    budgets = extra.get("budgets")
    if isinstance(budgets, dict):
        return _two_counts(budgets, "tool_uses", "submissions")
    return _two_counts(extra, "tool_uses", "test_runs")


def _two_counts(values: Mapping[str, Json], one: str, other: str) -> tuple[int | None, int | None]:
    return _count(values.get(one)), _count(values.get(other))


def _count(value: Json) -> int | None:
    """Return a value if it is a non-negative integer that JSON can hold exactly; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 53 else None


_REPEATABLE = frozenset({StepKind.VIEW, StepKind.SEARCH, StepKind.EXECUTE, StepKind.TEST, StepKind.TOOL})
_PARTIAL = re.compile(
    r"clipped|truncated|more lines (?:above|below)|too (?:large|long)|left out", re.IGNORECASE
)
_ENDS = 600
"""The number of characters at each end of a result that are searched for a note that something is missing."""


@dataclass(frozen=True, slots=True)
class Wasted:
    """The indices of the earlier steps that a step repeats or undoes; None if there is none."""

    repeats: int | None = None
    rereads: int | None = None
    reverts: int | None = None


class Waste:
    """Finds steps that repeat or undo earlier ones; they are fed in order. Stores hashes, never text."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._views: dict[str, list[tuple[ViewedPart, int]]] = {}
        """The parts that were read and their steps, by file name: a run may read thousands of files."""
        self._edits: dict[str, list[tuple[str, int]]] = {}
        """The states of each edited file or function, by hash, with the step that produced each."""
        self._inverse: dict[str, int] = {}
        self._last_edit: dict[str, int] = {}

    def feed(self, step: Step, changes: tuple[Change, ...]) -> Wasted:
        """Return the steps that the next step repeats or undoes; `changes` are the step's own."""
        repeats, rereads = self._repeated(step)
        reverts = self._reverted(step, changes)
        is_edit = bool(changes) or step.kind is StepKind.EDIT
        if is_edit or reverts is not None:
            self._calls.clear()
            self._forget(changes)
        if rereads is not None:
            repeats = None  # a step that reads the same part again counts once
        return Wasted(repeats, rereads, reverts)

    def _repeated(self, step: Step) -> tuple[int | None, int | None]:
        """Return the first steps that made the same calls, and that read the same parts; None if none did."""
        if step.kind not in _REPEATABLE or not step.calls:
            return None, None
        signatures = [_signature(call) for call in step.calls]
        earlier = [self._calls.get(signature) for signature in signatures]
        for signature in signatures:
            self._calls.setdefault(signature, step.index)
        # A test command names files but does not show them.
        views = () if step.kind is StepKind.TEST else views_in(step)
        read_at = [self._first_read(view) for view in views]
        is_partial = _is_partial(step)
        for view in compress(views, (at is None for at in read_at)):
            shown = view
            if is_partial:
                # A named part matches only the same request, not every line of the file.
                shown = replace(view, name=view.name or "a part")
            self._views.setdefault(file_name(view.path), []).append((shown, step.index))
        return _first_if_all(earlier), _first_if_all(read_at)

    def _first_read(self, view: ViewedPart) -> int | None:
        """Return the first step that showed all of this part of a file; None if there is none."""
        for known, at in self._views.get(file_name(view.path), ()):
            if known.covers(view):
                return at
        return None

    def _forget(self, changes: tuple[Change, ...]) -> None:
        """Forget the parts read of the edited files, or of all files if it is unknown which were edited."""
        of_unknown_files = [change for change in changes if isinstance(change, Unrecorded | Restored)]
        may_be_any_file = any(not change.path for change in of_unknown_files)
        if may_be_any_file or not changes:
            self._views.clear()
            return
        changed = [change.path for change in changes]
        for name in self._views.keys() & set(map(file_name, changed)):
            views = self._views[name]
            self._views[name] = [(view, at) for view, at in views if not is_among(view.path, changed)]

    def _reverted(self, step: Step, changes: tuple[Change, ...]) -> int | None:
        """Return the first step that a step's changes undo; None if the changes undo none."""
        found = [self._undone(step.index, change) for change in changes]
        if step.diff_so_far is not None:
            digest = sha256_of_text(step.diff_so_far.strip())
            found.append(self._state("", digest, step.index, first=_NO_DIFF))
        return next((at for at in found if at is not None), None)

    def _undone(self, index: int, change: Change) -> int | None:
        if isinstance(change, Undone | Restored):
            return self._set_back(change.path)
        self._last_edit[change.path] = index
        match change:
            case Written():
                return self._state(change.path, sha256_of_text(change.text), index)
            case Redefined():
                digest = sha256_of_text(change.code.strip())
                return self._state(f"{change.path}::{change.name}", digest, index)
            case Replaced():
                return self._replaced_back(index, change)
        return None

    def _replaced_back(self, index: int, change: Replaced) -> int | None:
        """Return the step whose replacement this one undoes; None if there is none."""
        back = self._inverse.pop(_pair(change.path, change.new, change.old), None)
        if back is None:
            self._inverse[_pair(change.path, change.old, change.new)] = index
        return back

    def _set_back(self, path: str) -> int | None:
        """Forget the edits of a file, or of all if `path` is empty; return the step of the last, or None."""
        restored = list(self._last_edit)
        if path:
            restored = [known for known in restored if same_path(known, path)]
        return max((self._last_edit.pop(known) for known in restored), default=None)

    def _state(self, what: str, digest: str, index: int, first: str = "") -> int | None:
        """Record the new state of `what`.

        If `what` has returned to an earlier state, return the step that ended that state; otherwise None.
        `first` is the state before any step.
        """
        states = self._edits.setdefault(what, [(first, -1)] if first else [])
        digests = [known for known, _ in states]
        if digests[-1:] == [digest]:
            return None
        if digest not in digests:
            states.append((digest, index))
            return None
        following = digests.index(digest) + 1
        _, left_at = states[following]
        del states[following:]
        return left_at


_NO_DIFF = sha256_of_text("")


def _first_if_all(steps: Sequence[int | None]) -> int | None:
    """Return the first of some steps; None if there are none or one of them is unknown."""
    if not steps or None in steps:
        return None
    return steps[0]


def _signature(call: RunCall) -> str:
    return sha256_of_text(f"{call.tool}\0{call.arguments.strip()}")


def _pair(path: str, old: str, new: str) -> str:
    return sha256_of_text(f"{path}\0{sha256_of_text(old)}\0{sha256_of_text(new)}")


def _is_partial(step: Step) -> bool:
    """Return whether a result reports that it left something out."""
    ends = (f"{result.text[:_ENDS]}\n{result.text[-_ENDS:]}" for result in step.results)
    return any(map(_PARTIAL.search, ends))
