"""Validations: the operations of validators, folded. The result depends only on the set of operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from gistpoint.core.attempts.state import AttemptResult, result_of
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.operations import Operation, Text, standing
from gistpoint.core.outcomes import RunStatus
from gistpoint.sessions.annotations.side_files import Book, Codec, CommentData


class ValidationOperationKind(StrEnum):
    """The kinds of operations."""

    SEEN = "seen"
    """The task was looked at."""
    VERDICT = "verdict"
    COMMENT = "comment"
    TRIAL = "trial"
    """The suite was run, on the corrupted tree, the original or the validator's own fix."""
    CHECK = "check"
    """`task check` was run."""
    DELETE = "delete"
    """Withdraws the operation whose uuid is `target`."""


class TaskVerdict(StrEnum):
    """A validator's verdict on a task, `task_validation`."""

    ACCEPT = "accept"
    REJECT_UNSOLVABLE = "reject_unsolvable"
    """The repair can't be found from what a solver may see."""
    REJECT_UNSPECIFIED = "reject_unspecified"
    """Neither code, docs nor failing tests specify what the function has to do."""
    REJECT_UNFAIR_TESTS = "reject_unfair_tests"
    """A correct repair may fail: the tests require one way of doing it."""
    REJECT_LEAK = "reject_leak"
    """The workspace or the brief gives the answer away."""
    REJECT_FLAKY = "reject_flaky"
    """The tests are flaky."""
    REJECT_TOO_EASY = "reject_too_easy"
    REJECT_DUPLICATE = "reject_duplicate"
    """Another task of the set asks the same question."""
    NEEDS_DISCUSSION = "needs_discussion"

    @property
    def words(self) -> str:
        """The verdict in words for people."""
        return self.value.removeprefix("reject_").replace("_", " ")


class ValidationOperation(Operation, frozen=True, omit_defaults=True, rename={"subject": "task"}):
    """One validator's operation on a task, by its whole id."""

    subject: Text
    """The whole id of the task."""


class ValidationError(UserError):
    """A validation can't be read or written as requested."""


CODEC = Codec("gistpoint.validations", 1, ValidationOperation, "validation", ValidationError)


class TaskVerdictData(msgspec.Struct, frozen=True):
    """Data of `verdict`: the verdict, and uuids of the trials and checks that the validator had run before."""

    verdict: TaskVerdict
    evidence: tuple[str, ...] = ()


class GistData(msgspec.Struct, frozen=True):
    """The gist of a trial: its hash, and those of its rates that were judged."""

    sha256: str
    line_execution: float | None = None
    line_existence: float | None = None


class TrialData(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of `trial`: a run of the suite, or of a gist."""

    subject: TrialSubject
    status: str
    odd: tuple[str, ...]
    """Ids in which it contradicted the task; at most 200."""
    odd_count: int
    score: float
    solved: bool
    passing: int
    failing: int
    seconds: float
    backend: str
    isolated: bool
    suspicious: tuple[str, ...] = ()
    """Why a passing fix has to be read."""
    fix: dict[str, str] = {}
    """Hashes of the code of a fix, by `path::qualname`."""
    gist: GistData | None = None


class FindingData(msgspec.Struct, frozen=True):
    """One finding of a check."""

    name: str
    passed: bool
    reduced: bool
    detail: str


class CheckData(msgspec.Struct, frozen=True):
    """Data of `check`."""

    findings: tuple[FindingData, ...]
    backend: str


@dataclass(frozen=True, slots=True)
class TaskVerdictGiven:
    """A verdict on a task; the last one of a validator counts."""

    op: str
    verdict: TaskVerdict
    evidence: tuple[str, ...]
    """uuids of the trials and checks that the validator had run before."""
    utc_ms: int


@dataclass(frozen=True, slots=True)
class TaskComment:
    """A remark on a task."""

    op: str
    text: str
    utc_ms: int


class TrialMade(TrialData, frozen=True, kw_only=True):
    """A run of the suite requested by a validator."""

    op: str
    reviewer: str
    utc_ms: int

    @property
    def result(self) -> AttemptResult:
        """The result of a fix before it has been read."""
        return result_of(self.solved, self.suspicious)

    @property
    def finished(self) -> bool:
        """Whether the run was completed, so that it proves something."""
        return self.status == RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class CheckMade:
    """A result of `task check`: (name, passed, reduced, detail) of each finding."""

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
    """One validator's annotations of one task, in the order of their times."""

    task: str
    reviewer: str
    verdict: TaskVerdictGiven | None = None
    comments: tuple[TaskComment, ...] = ()
    trials: tuple[TrialMade, ...] = ()
    check: CheckMade | None = None
    seen: bool = False
    undoable: tuple[str, ...] = ()
    """uuids of the verdicts and comments that were not withdrawn, the latest last."""


class ValidationBook(Book[ValidationOperation, Validation]):
    """All known operations, by task and validator."""

    def __init__(self, operations: Iterable[ValidationOperation] = ()) -> None:
        super().__init__(fold, operations)

    def trials(self, task: str) -> tuple[TrialMade, ...]:
        """Return the runs of all validators: they are facts, not opinions."""
        return tuple(trial for reviewer in self.reviewers for trial in self.state(task, reviewer).trials)


def fold(task: str, reviewer: str, operations: Iterable[ValidationOperation]) -> Validation:
    """Return the validation that results from a validator's operations on one task; deletions apply in any
    order.
    """
    known = standing(operations)
    comments: list[TaskComment] = []
    trials: list[TrialMade] = []
    verdict: TaskVerdictGiven | None = None
    check: CheckMade | None = None
    undoable: list[str] = []
    for item in known:
        if item.kind == ValidationOperationKind.VERDICT and (given := item.read(TaskVerdictData)) is not None:
            verdict = TaskVerdictGiven(item.op, given.verdict, given.evidence, item.utc_ms)
            undoable.append(item.op)
        elif item.kind == ValidationOperationKind.COMMENT and (remark := item.read(CommentData)) is not None:
            comments.append(TaskComment(item.op, remark.text, item.utc_ms))
            undoable.append(item.op)
        elif item.kind == ValidationOperationKind.TRIAL and (trial := item.read(TrialMade)) is not None:
            trials.append(trial)
        elif item.kind == ValidationOperationKind.CHECK and (found := item.read(CheckData)) is not None:
            findings = tuple((one.name, one.passed, one.reduced, one.detail) for one in found.findings)
            check = CheckMade(item.op, findings, found.backend, item.utc_ms)
    return Validation(
        task, reviewer, verdict, tuple(comments), tuple(trials), check, bool(known), tuple(undoable)
    )


class TaskStatus(StrEnum):
    """The state of a task according to its validators."""

    UNJUDGED = "unjudged"
    ACCEPTED = "accepted"
    """By everybody who judged it."""
    REJECTED = "rejected"
    """By everybody who judged it, possibly for different reasons."""
    DISPUTED = "disputed"
    """Some accept and some reject it."""
    DISCUSSION = "discussion"
    """A validator wants it discussed."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The verdicts and annotations of all validators on one task."""

    task: str
    verdicts: Mapping[str, TaskVerdict]
    """By validator; only those who gave one."""
    seen: int
    """Validators who looked at it."""
    comments: int
    trials: int

    @property
    def standing(self) -> TaskStatus:
        """The state of the task according to its validators."""
        given = set(self.verdicts.values())
        if not given:
            return TaskStatus.UNJUDGED
        if TaskVerdict.NEEDS_DISCUSSION in given:
            return TaskStatus.DISCUSSION
        if given == {TaskVerdict.ACCEPT}:
            return TaskStatus.ACCEPTED
        return TaskStatus.DISPUTED if TaskVerdict.ACCEPT in given else TaskStatus.REJECTED


def progress(book: ValidationBook, tasks: Iterable[str]) -> tuple[TaskProgress, ...]:
    """Return a row for each task, in their order."""
    return tuple(_of(book, task) for task in tasks)


def totals(rows: Iterable[TaskProgress]) -> dict[TaskStatus, int]:
    """Count the tasks by state; every state has a count."""
    counts = Counter(row.standing for row in rows)
    return {status: counts[status] for status in TaskStatus}


def _of(book: ValidationBook, task: str) -> TaskProgress:
    remark = {reviewer: book.state(task, reviewer) for reviewer in book.reviewers}
    return TaskProgress(
        task,
        {reviewer: v.verdict.verdict for reviewer, v in remark.items() if v.verdict is not None},
        sum(v.seen for v in remark.values()),
        sum(len(v.comments) for v in remark.values()),
        sum(len(v.trials) for v in remark.values()),
    )
