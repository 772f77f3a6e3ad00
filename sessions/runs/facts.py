"""Facts of steps: purpose, budget spent, waste, and whether the right code was reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import DiffLineKind, FileDiff
from gistpoint.core.kinds.registry import submits
from gistpoint.core.tasks.model import Answer
from gistpoint.sessions.records.model import Actor, Json, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.runs.changes import (
    Change,
    Inserted,
    Patched,
    Redefined,
    Relined,
    Replaced,
    Restored,
    Undone,
    Untold,
    Written,
    changes_of,
)
from gistpoint.sessions.runs.commands import END, ViewedPart, looks_of, same_path
from gistpoint.sessions.runs.document import RunDocument

_LOOKING = frozenset({StepKind.VIEW, StepKind.EXECUTE, StepKind.TOOL})
_TELLING = 6
"""Characters from which a line is distinctive enough for a function."""

_TELLING_ALONE = 12


@dataclass(frozen=True, slots=True)
class Goal:
    """A function that has to be found and repaired; `text` is the corrupted one, empty if it is unknown."""

    path: str
    qualname: str
    text: str = ""
    _lines: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lines = {line.strip() for line in self.text.split("\n")}
        object.__setattr__(self, "_lines", frozenset(line for line in lines if len(line) >= _TELLING))

    @property
    def ref(self) -> FunctionRef:
        """The reference to it."""
        return FunctionRef(self.path, self.qualname)

    def reads_file(self, step: Step) -> bool:
        """Whether a step reads the file, or a part of it."""
        return any(same_path(look.path, self.path) for call in step.calls for look in looks_of(call)) and (
            step.kind in _LOOKING
        )

    def views_function(self, step: Step) -> bool:
        """Whether a step shows the function itself: requested by name, or its `def` is in the result.

        If the results were not recorded, reading the whole file counts.
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
        """Whether a change affects the function, as far as the change itself shows."""
        if not same_path(change.path, self.path):
            return False
        if isinstance(change, Untold):
            return bool(self._definition.search(change.command)) or any(
                line in change.command for line in self._lines if len(line) >= _TELLING_ALONE
            )
        if isinstance(change, Redefined):
            return self._is_named(change.name)
        if isinstance(change, Replaced):
            # A replaced text is unique in the file: if it is in the function, it is nowhere else.
            inside = not change.every and "\n" not in change.old.strip() and change.old.strip() in self.text
            return inside or self._holds(change.old.split("\n")) or bool(self._definition.search(change.old))
        if isinstance(change, Patched):
            return self.is_edited_in(change.diff)
        if isinstance(change, Relined):
            return self._holds(change.text.split("\n"))
        if isinstance(change, Inserted):
            return bool(self._definition.search(change.text))
        return isinstance(change, Written) and bool(self._lines) and not self._stands_in(change.text)

    def is_edited_in(self, diff: FileDiff) -> bool:
        """Whether a diff of the file removes a line of the function, or changes lines directly below its `def`."""
        if not same_path(diff.path, self.path):
            return False
        for hunk in diff.hunks:
            removed = [line.text for line in hunk.lines if line.kind is DiffLineKind.REMOVED]
            before = [line.text for line in hunk.lines if line.kind is not DiffLineKind.ADDED]
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
        """Whether some of the lines, and half of the distinctive ones, are the function's."""
        telling = [text for line in lines if len(text := line.strip()) >= _TELLING]
        own = sum(text in self._lines for text in telling)
        return own > 0 and own * 2 >= len(telling)

    def _stands_in(self, text: str) -> bool:
        return self.text.strip() in text


def goals_of(answer: Answer) -> tuple[Goal, ...]:
    """Return the functions that a task's answer names."""
    return tuple(Goal(target.path, target.qualname, target.corrupted) for target in answer.targets)


class StepMark(StrEnum):
    """Properties of a step."""

    SUBMISSION = "submission"
    ERROR = "error"
    EDIT = "edit"
    TEST_RUN = "test_run"
    FIRST_READ_RIGHT_FILE = "first_read_right_file"
    FIRST_VIEW_RIGHT_FUNCTION = "first_view_right_function"
    FIRST_EDIT_RIGHT_FUNCTION = "first_edit_right_function"
    REPEATED_COMMAND = "repeated_command"
    """The same call as before, without an edit in between."""
    REREAD = "reread"
    """A part of a file that was read before, and the file was not edited in between."""
    REVERT = "revert"
    """An edit that undoes an earlier one."""


FIRSTS = (StepMark.FIRST_READ_RIGHT_FILE, StepMark.FIRST_VIEW_RIGHT_FUNCTION, StepMark.FIRST_EDIT_RIGHT_FUNCTION)
"""Marks that a run gets once for each broken function."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark of a step; `other` is the number of the earlier step that is repeated or undone."""

    mark: StepMark
    other: int | None = None
    goal: int | None = None
    """The index of the broken function concerned."""


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The marks of a step, and the budget used up to and including it."""

    index: int
    kind: StepKind
    marked: tuple[Marked, ...]
    spent: Spent

    @property
    def marks(self) -> frozenset[StepMark]:
        """The marks alone."""
        return frozenset(item.mark for item in self.marked)

    def other(self, mark: StepMark) -> int | None:
        """Return the earlier step that a mark refers to."""
        return next((item.other for item in self.marked if item.mark is mark), None)


class MarkTracker:
    """Marks the steps of one run, fed in order as they are read; stores only hashes and numbers."""

    def __init__(
        self, header: Run | None = None, goals: Iterable[Goal] = (), *, target: FunctionRef | None = None
    ) -> None:
        """`goals` are the broken functions, if a task's answer is known; `target` is the one that a brief names."""
        self.goals = tuple(goals)
        self._target = target or (self.goals[0].ref if len(self.goals) == 1 else None)
        self._spending = Spending(header)
        self._waste = Waste()
        self._reached: set[tuple[StepMark, int]] = set()

    def feed(self, step: Step) -> StepMarks:
        """Mark the next step."""
        changes = changes_of(step, self._target)
        marked = [Marked(mark) for mark in _plain(step, changes)]
        for number, goal in enumerate(self.goals):
            marked += [Marked(mark, goal=number) for mark in self._firsts(step, changes, number, goal)]
        wasted = self._waste.feed(step, changes)
        for mark, other in (
            (StepMark.REPEATED_COMMAND, wasted.repeats),
            (StepMark.REREAD, wasted.rereads),
            (StepMark.REVERT, wasted.reverts),
        ):
            if other is not None:
                marked.append(Marked(mark, other))
        return StepMarks(step.index, step.kind, tuple(marked), self._spending.feed(step))

    def _firsts(self, step: Step, changes: tuple[Change, ...], number: int, goal: Goal) -> Iterator[StepMark]:
        for mark in FIRSTS:
            if (mark, number) not in self._reached and _comes_to(mark, goal, step, changes):
                self._reached.add((mark, number))
                yield mark


def _comes_to(mark: StepMark, goal: Goal, step: Step, changes: Sequence[Change]) -> bool:
    if mark is StepMark.FIRST_READ_RIGHT_FILE:
        return goal.reads_file(step)
    if mark is StepMark.FIRST_VIEW_RIGHT_FUNCTION:
        return goal.views_function(step)
    return any(goal.is_edited_by(change) for change in changes)


def _plain(step: Step, changes: Sequence[Change]) -> Iterator[StepMark]:
    if submissions_in(step):
        yield StepMark.SUBMISSION
    if has_error(step):
        yield StepMark.ERROR
    if any(step.kind is StepKind.EDIT or not isinstance(change, Untold) for change in changes):
        yield StepMark.EDIT
    if step.kind is StepKind.TEST or "test_run" in step.state:
        yield StepMark.TEST_RUN


def has_error(step: Step) -> bool:
    """Whether something failed in a step, other than tests or a search without results."""
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


@dataclass(frozen=True, slots=True)
class Spent:
    """The budget used up to and including a step. None: not recorded."""

    calls: int = 0
    submissions: int = 0
    calls_left: int | None = None
    submissions_left: int | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    """US dollars."""
    elapsed_s: float | None = None
    """Seconds since the first recorded time; the sum of the durations if there are no times."""
    derived: frozenset[str] = frozenset()
    """The fields that were inferred and not recorded: budgets that were counted down, times that were summed."""


class Spending:
    """Adds up the steps of a run, in order."""

    def __init__(self, header: Run | None = None) -> None:
        self._calls, self._submissions = _budgets({} if header is None else header.extra)
        self._spent = Spent(calls_left=self._calls, submissions_left=self._submissions)
        self._started: float | None = None
        self._durations: float | None = None
        self._recorded = False

    def feed(self, step: Step) -> Spent:
        """Return the budget used up to and including the next step."""
        before = self._spent
        solver = step.actor in (Actor.AGENT, Actor.PERSON)
        calls = before.calls + (len(step.calls) if solver else 0)
        submissions = before.submissions + (submissions_in(step) if solver else 0)
        calls_left, submissions_left, derived = self._left(step, calls, submissions)
        elapsed, summed = self._time(step)
        self._spent = Spent(
            calls,
            submissions,
            calls_left,
            submissions_left,
            before.tokens + step.tokens,
            before.cost if step.cost is None else (before.cost or 0.0) + step.cost,
            elapsed,
            derived | ({"elapsed_s"} if summed else set()),
        )
        return self._spent

    def _left(self, step: Step, calls: int, submissions: int) -> tuple[int | None, int | None, frozenset[str]]:
        spent_so_far = step.state.get("budget")
        if isinstance(spent_so_far, dict):
            self._recorded = True
            return _whole(spent_so_far.get("tool_uses")), _whole(spent_so_far.get("submissions")), frozenset()
        if self._recorded:
            return self._spent.calls_left, self._spent.submissions_left, frozenset()
        counted = {
            name for name, known in (("calls_left", self._calls), ("submissions_left", self._submissions)) if known
        }
        return (
            None if self._calls is None else max(0, self._calls - calls),
            None if self._submissions is None else max(0, self._submissions - submissions),
            frozenset(counted),
        )

    def _time(self, step: Step) -> tuple[float | None, bool]:
        spent = [result.duration_s for result in step.results if result.duration_s is not None]
        if spent:
            self._durations = (self._durations or 0.0) + sum(spent)
        at = step.started if step.ended is None else step.ended
        if at is None:
            return (self._spent.elapsed_s, False) if self._started is not None else (self._durations, bool(spent))
        if self._started is None:
            self._started = at if step.started is None else step.started
        # A clock that was set back must not reduce the elapsed time.
        return max(at - self._started, self._spent.elapsed_s or 0.0), False


class StepClock:
    """Tells how long each step of a run took, in order."""

    def __init__(self) -> None:
        self._last_start: float | None = None

    def feed(self, step: Step) -> float:
        """Return the seconds of the next step: by its own times, its results' durations or the step before; else 0."""
        durations = sum(result.duration_s or 0.0 for result in step.results)
        if step.started is None:
            return durations
        before, self._last_start = self._last_start, step.started
        if step.ended is not None and step.ended > step.started:
            return step.ended - step.started
        return durations or (0.0 if before is None else max(0.0, step.started - before))


def submissions_in(step: Step) -> int:
    """Return how many submissions a step makes."""
    submissions = sum(submits(call.tool) for call in step.calls)
    if step.kind is StepKind.SUBMIT:
        return max(1, submissions)
    return 0 if "refused" in step.flags else submissions


def _budgets(extra: Mapping[str, Json]) -> tuple[int | None, int | None]:
    spent_so_far = extra.get("budgets")
    if isinstance(spent_so_far, dict):
        return _whole(spent_so_far.get("tool_uses")), _whole(spent_so_far.get("submissions"))
    return _whole(extra.get("tool_uses")), _whole(extra.get("test_runs"))


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


_REPEATABLE = frozenset({StepKind.VIEW, StepKind.SEARCH, StepKind.EXECUTE, StepKind.TEST, StepKind.TOOL})
_PARTIAL = re.compile(r"clipped|truncated|more lines (?:above|below)|too (?:large|long)|left out", re.IGNORECASE)
_ENDS = 600
"""Characters at either end of a result in which a tool reports that it left something out."""


@dataclass(frozen=True, slots=True)
class Wasted:
    """Earlier steps that a step repeats or undoes, by number; None if there is none."""

    repeats: int | None = None
    rereads: int | None = None
    reverts: int | None = None


class Waste:
    """Follows the steps of a run, in order; stores hashes, never texts."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._looks: list[tuple[ViewedPart, int]] = []
        self._edits: dict[str, list[tuple[str, int]]] = {}
        """The states of each edited thing, by hash, with the step that produced each."""
        self._inverse: dict[str, int] = {}
        self._last_edit: dict[str, int] = {}

    def feed(self, step: Step, changes: tuple[Change, ...]) -> Wasted:
        """Return the steps that the next step repeats; `changes` are its own."""
        repeats, rereads = self._repeated(step)
        reverts = self._reverted(step, changes)
        if changes or step.kind is StepKind.EDIT or reverts is not None:
            self._calls.clear()
            self._forget(changes)
        return Wasted(repeats if rereads is None else None, rereads, reverts)

    def _repeated(self, step: Step) -> tuple[int | None, int | None]:
        if step.kind not in _REPEATABLE or not step.calls:
            return None, None
        earlier = [self._calls.get(_signature(call)) for call in step.calls]
        looks = [look for call in step.calls for look in looks_of(call)] if step.kind is not StepKind.TEST else []
        partial = _is_partial(step)
        read = [next((at for known, at in self._looks if known.covers(look)), None) for look in looks]
        for call in step.calls:
            self._calls.setdefault(_signature(call), step.index)
        for look, at in zip(looks, read, strict=True):
            if at is None:
                shown = replace(look, name=look.name or "a part") if partial else look
                self._looks.append((shown, step.index))
        return (None if None in earlier else earlier[0]), (read[0] if read and None not in read else None)

    def _forget(self, changes: tuple[Change, ...]) -> None:
        """Forget the files that were edited, or all if it is unknown which."""
        if not changes or any(isinstance(change, Untold | Restored) and not change.path for change in changes):
            self._looks.clear()
            return
        self._looks = [
            (look, at) for look, at in self._looks if not any(same_path(look.path, change.path) for change in changes)
        ]

    def _reverted(self, step: Step, changes: tuple[Change, ...]) -> int | None:
        found = [self._undone(step.index, change) for change in changes]
        if step.diff_so_far is not None:
            found.append(self._state("", sha256_of_text(step.diff_so_far.strip()), step.index, first=_NO_DIFF))
        return next((at for at in found if at is not None), None)

    def _undone(self, index: int, change: Change) -> int | None:
        if isinstance(change, Undone | Restored):
            return self._set_back(change.path)
        self._last_edit[change.path] = index
        if isinstance(change, Written):
            return self._state(change.path, sha256_of_text(change.text), index)
        if isinstance(change, Redefined):
            return self._state(f"{change.path}::{change.name}", sha256_of_text(change.code.strip()), index)
        if isinstance(change, Replaced):
            forth, back = _pair(change.path, change.old, change.new), _pair(change.path, change.new, change.old)
            found = self._inverse.pop(back, None)
            if found is None:
                self._inverse[forth] = index
            return found
        assert isinstance(change, Inserted | Relined | Patched | Untold)
        return None

    def _set_back(self, path: str) -> int | None:
        """Forget the edits of a file, of all files if `path` is empty; return the last of them."""
        gone = [known for known in self._last_edit if not path or same_path(known, path)]
        return max((self._last_edit.pop(known) for known in gone), default=None)

    def _state(self, what: str, digest: str, index: int, first: str = "") -> int | None:
        """Record a state; return the step that left it, if it existed before and was left since."""
        states = self._edits.setdefault(what, [(first, -1)] if first else [])
        if states and states[-1][0] == digest:
            return None
        place = next((place for place, (known, _) in enumerate(states) if known == digest), None)
        found = None if place is None else states[place + 1][1]
        if place is None:
            states.append((digest, index))
        else:
            del states[place + 1 :]
        return found


_NO_DIFF = sha256_of_text("")


def _signature(call: RunCall) -> str:
    return sha256_of_text(f"{call.tool}\0{call.arguments.strip()}")


def _pair(path: str, old: str, new: str) -> str:
    return sha256_of_text(f"{path}\0{sha256_of_text(old)}\0{sha256_of_text(new)}")


def _is_partial(step: Step) -> bool:
    return any(_PARTIAL.search(result.text[:_ENDS] + "\n" + result.text[-_ENDS:]) for result in step.results)
