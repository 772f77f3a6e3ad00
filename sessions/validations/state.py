"""The fold from operations to what validators have said by now; it depends on the set of operations alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.core.attempts.state import AttemptResult, result_of
from gistpoint.core.generation.trials import Subject
from gistpoint.core.outcomes import RunStatus
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.sidefiles.store import Book, Format, in_time, others, required, write

FORMAT = Format("gistpoint.validations", 1)


class Kind(StrEnum):
    """What an operation does."""

    SEEN = "seen"
    """The task was looked at."""
    VERDICT = "verdict"
    COMMENT = "comment"
    TRIAL = "trial"
    """The suite was run, on the corrupted tree, the original or a fix of the validator's own."""
    CHECK = "check"
    """`task check` was run."""
    DELETE = "delete"
    """Takes back the operation whose uuid is `target`."""


class TaskVerdict(StrEnum):
    """A validator's verdict on a task, `task_validation`."""

    ACCEPT = "accept"
    REJECT_UNSOLVABLE = "reject_unsolvable"
    """Nobody could find the repair from what a solver may see."""
    REJECT_UNSPECIFIED = "reject_unspecified"
    """Neither code, docs nor failing tests say what the function has to do."""
    REJECT_UNFAIR_TESTS = "reject_unfair_tests"
    """A right repair may fail: the tests ask for one way of doing it."""
    REJECT_LEAK = "reject_leak"
    """Something in the workspace or the brief gives the answer away."""
    REJECT_FLAKY = "reject_flaky"
    """The tests do not say the same each time."""
    REJECT_TOO_EASY = "reject_too_easy"
    REJECT_DUPLICATE = "reject_duplicate"
    """Another task of the set asks the same."""
    NEEDS_DISCUSSION = "needs_discussion"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.removeprefix("reject_").replace("_", " ")


@dataclass(frozen=True, slots=True)
class Operation:
    """One act of a validator; `kind` may be one that a newer program wrote, which is kept and passed over."""

    op: str
    """uuid."""
    reviewer: str
    utc_ms: int
    task: str
    """The whole id."""
    kind: str
    data: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Members of the line that nobody here knows."""

    @property
    def subject(self) -> str:
        """What it is about: the id of the task."""
        return self.task

    def text(self, name: str) -> str:
        """Return a string of the data, empty where there is none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of a list of the data."""
        value = self.data.get(name)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def number(self, name: str) -> float | None:
        """Return a number of the data."""
        value = self.data.get(name)
        return float(value) if isinstance(value, int | float) and type(value) is not bool else None


_KNOWN = frozenset({"op", "reviewer", "utc_ms", "task", "kind", "data"})


def encode(operation: Operation) -> bytes:
    """Return the line of an operation, with its newline."""
    line: dict[str, Json] = {
        **operation.extra,
        "op": operation.op,
        "reviewer": operation.reviewer,
        "utc_ms": operation.utc_ms,
        "task": operation.task,
        "kind": operation.kind,
    }
    if operation.data:
        line["data"] = dict(operation.data)
    return write(line)


def decode(line: bytes) -> Operation | None:
    """Read a line; None for a header. Raises ValueError, with a sentence, for what is no operation."""
    value = FORMAT.read(line)
    if value is None:
        return None
    op, reviewer, at, task, kind = required(value, "task")
    data = value.get("data", {})
    if not isinstance(data, dict):
        raise ValueError("Its data are of another kind.")
    return Operation(op, reviewer, at, task, kind, data, others(value, _KNOWN))


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    """A verdict on a task; the last one of a validator counts."""

    op: str
    verdict: TaskVerdict
    evidence: tuple[str, ...]
    """uuids of the trials and checks that the validator had run by then."""
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Comment:
    """A remark on a task."""

    op: str
    text: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class TrialMade:
    """A run of the suite that a validator asked for."""

    op: str
    subject: Subject
    status: str
    odd: tuple[str, ...]
    """Ids in which it was not as the task says; at most as many as were written."""
    odd_count: int
    score: float
    solved: bool
    passing: int
    failing: int
    seconds: float
    backend: str
    reviewer: str
    utc_ms: int
    suspicious: tuple[str, ...] = ()
    """Why a fix that passes is to be read."""

    @property
    def result(self) -> AttemptResult:
        """What a fix comes to before anybody has read it."""
        return result_of(self.solved, self.suspicious)

    @property
    def finished(self) -> bool:
        """Whether the run proves anything."""
        return self.status == RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class CheckMade:
    """What `task check` found: (name, passed, reduced, detail) of each finding."""

    op: str
    findings: tuple[tuple[str, bool, bool, str], ...]
    backend: str
    utc_ms: int

    @property
    def clean(self) -> bool:
        """Whether every finding passed."""
        return all(passed for _, passed, _, _ in self.findings)


@dataclass(frozen=True, slots=True)
class Validation:
    """What one validator has said about one task, in the order of time."""

    task: str
    reviewer: str
    verdict: VerdictGiven | None = None
    comments: tuple[Comment, ...] = ()
    trials: tuple[TrialMade, ...] = ()
    check: CheckMade | None = None
    seen: bool = False
    undoable: tuple[str, ...] = ()
    """uuids of the verdicts and comments that stand, the last one last."""


class ValidationBook(Book[Operation, Validation]):
    """All operations known, by task and validator."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        super().__init__(fold, operations)

    def trials(self, task: str) -> tuple[TrialMade, ...]:
        """Return the runs that anybody asked for: they are facts, and no opinions."""
        return tuple(trial for reviewer in self.reviewers for trial in self.state(task, reviewer).trials)


def fold(task: str, reviewer: str, operations: Iterable[Operation]) -> Validation:
    """Return what a validator's operations on one task amount to; a deletion counts wherever it stands."""
    known = sorted(operations, key=in_time)
    gone = {item.text("target") for item in known if item.kind == Kind.DELETE}
    standing = [item for item in known if item.op not in gone]
    comments: list[Comment] = []
    trials: list[TrialMade] = []
    verdict: VerdictGiven | None = None
    check: CheckMade | None = None
    undoable: list[str] = []
    for item in standing:
        if item.kind == Kind.VERDICT and item.text("verdict") in set(TaskVerdict):
            verdict = VerdictGiven(item.op, TaskVerdict(item.text("verdict")), item.texts("evidence"), item.utc_ms)
            undoable.append(item.op)
        elif item.kind == Kind.COMMENT:
            comments.append(Comment(item.op, item.text("text"), item.utc_ms))
            undoable.append(item.op)
        elif item.kind == Kind.TRIAL and item.text("subject") in set(Subject):
            trials.append(_trial(item))
        elif item.kind == Kind.CHECK:
            check = _check(item)
    return Validation(task, reviewer, verdict, tuple(comments), tuple(trials), check, bool(standing), tuple(undoable))


def _trial(item: Operation) -> TrialMade:
    odd = item.texts("odd")
    return TrialMade(
        op=item.op,
        subject=Subject(item.text("subject")),
        status=item.text("status"),
        odd=odd,
        odd_count=int(item.number("odd_count") or len(odd)),
        score=item.number("score") or 0.0,
        solved=item.data.get("solved") is True,
        passing=int(item.number("passing") or 0),
        failing=int(item.number("failing") or 0),
        seconds=item.number("seconds") or 0.0,
        backend=item.text("backend"),
        reviewer=item.reviewer,
        utc_ms=item.utc_ms,
        suspicious=item.texts("suspicious"),
    )


def _check(item: Operation) -> CheckMade:
    rows = item.data.get("findings")
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    findings = tuple(
        (str(row.get("name", "")), row.get("passed") is True, row.get("reduced") is True, str(row.get("detail", "")))
        for row in found
    )
    return CheckMade(item.op, findings, item.text("backend"), item.utc_ms)


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
