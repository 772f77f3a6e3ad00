"""The fold from operations to what validators have said by now; it depends on the set of operations alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gistpoint.core.attempts.result import AttemptResult, result_of
from gistpoint.core.generation.trials import Subject
from gistpoint.core.outcomes import RunStatus
from gistpoint.sessions.sidefiles.book import Book, in_time
from gistpoint.sessions.validations.operations import Kind, Operation, TaskVerdict


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
