"""Validations of tasks, folded from the operations of validators, which may be in any order.

They are stored apart from the tasks, whose folders are never written to (decision 22).
"""

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
    """The kinds of operations on validations."""

    SEEN = "seen"
    """The validator looked at the task."""
    VERDICT = "verdict"
    COMMENT = "comment"
    TRIAL = "trial"
    """The validator ran the suite on the corrupted tree, the original or their own fix, or ran a gist."""
    CHECK = "check"
    """The validator ran `task check`."""
    REVEALED = "revealed"
    """The verdicts of the other validators were shown; later verdicts are not independent."""
    ADJUDICATION = "adjudication"
    """The validator decided a task on which the validators disagree."""
    DELETE = "delete"
    """Withdraws the operation whose uuid is `target`."""


class TaskVerdict(StrEnum):
    """A validator's verdict on a task; stored as `task_validation`."""

    ACCEPT = "accept"
    REJECT_UNSOLVABLE = "reject_unsolvable"
    """The information available to a solver does not suffice to find the repair."""
    REJECT_UNSPECIFIED = "reject_unspecified"
    """Neither the code, the documentation nor the failing tests specify what the function should do."""
    REJECT_UNFAIR_TESTS = "reject_unfair_tests"
    """A correct repair may fail, because the tests require a particular one."""
    REJECT_LEAK = "reject_leak"
    """The workspace or the brief reveals the answer."""
    REJECT_FLAKY = "reject_flaky"
    REJECT_TOO_EASY = "reject_too_easy"
    REJECT_DUPLICATE = "reject_duplicate"
    """Another task of the set has the same fault."""
    NEEDS_DISCUSSION = "needs_discussion"

    @property
    def words(self) -> str:
        """The verdict in words for people."""
        return self.value.removeprefix("reject_").replace("_", " ")


class ValidationOperation(Operation, frozen=True, omit_defaults=True, rename={"subject": "task"}):
    """One validator's operation on a task."""

    subject: Text
    """The full id of the task."""


class ValidationError(UserError):
    """A validation can't be read or written as requested."""


CODEC = Codec(
    "gistpoint.validations",
    1,
    ValidationOperation,
    "validation",
    ValidationError,
    kinds=frozenset(ValidationOperationKind),
)


class TaskVerdictData(msgspec.Struct, frozen=True):
    """The data of a `verdict` operation: the verdict and its evidence.

    The evidence consists of the uuids of the validator's earlier trials and of the last check. It
    distinguishes a well-founded verdict from one given at a glance (decision 22).
    """

    verdict: TaskVerdict
    evidence: tuple[str, ...] = ()


class AdjudicationData(TaskVerdictData, frozen=True):
    """The data of an `adjudication` operation, with the uuids of the verdicts on which it decides."""

    decides: tuple[str, ...] = ()


class GistData(msgspec.Struct, frozen=True):
    """The gist of a trial: its hash, and its rates, which are None if they were not judged."""

    sha256: str
    line_execution: float | None = None
    line_existence: float | None = None


class TrialData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `trial` operation: a run of the suite, or of a gist."""

    subject: TrialSubject
    status: str
    odd: tuple[str, ...]
    """The ids of tests whose results contradicted the task; at most `MOST_IDS`."""
    odd_count: int
    score: float
    solved: bool
    passing: int
    failing: int
    seconds: float
    backend: str
    isolated: bool
    suspicious: tuple[str, ...] = ()
    """The reasons why a passing fix must be reviewed."""
    fix: dict[str, str] = {}
    """The hashes of a fix's code, by `path::qualname`."""
    gist: GistData | None = None


class FindingData(msgspec.Struct, frozen=True):
    """One finding of a check."""

    name: str
    passed: bool
    reduced: bool
    detail: str


class CheckData(msgspec.Struct, frozen=True):
    """The data of a `check` operation."""

    findings: tuple[FindingData, ...]
    backend: str


@dataclass(frozen=True, slots=True)
class TaskVerdictGiven:
    """A verdict on a task; only a validator's last one counts."""

    op: str
    verdict: TaskVerdict
    evidence: tuple[str, ...]
    """The uuids of the validator's trials, and of the last check, before the verdict."""
    utc_ms: int


class Adjudication(AdjudicationData, frozen=True, kw_only=True):
    """A decision on a task on which the validators disagree."""

    op: str
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class TaskComment:
    """A comment on a task."""

    op: str
    text: str
    utc_ms: int


class TrialMade(TrialData, frozen=True, kw_only=True):
    """A run of the suite, or of a gist, that a validator requested."""

    op: str
    reviewer: str
    utc_ms: int

    @property
    def result(self) -> AttemptResult:
        """The result of the trial before any review."""
        return result_of(self.solved, self.suspicious)

    @property
    def finished(self) -> bool:
        """Whether the run was completed, so that its result counts."""
        return self.status == RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class CheckMade:
    """The result of `task check`: the name, `passed`, `reduced` and detail of each finding."""

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
    """One validator's annotations of one task, by time."""

    task: str
    reviewer: str
    verdict: TaskVerdictGiven | None = None
    comments: tuple[TaskComment, ...] = ()
    trials: tuple[TrialMade, ...] = ()
    check: CheckMade | None = None
    seen: bool = False
    undoable: tuple[str, ...] = ()
    """The uuids of the verdicts, decisions and comments that were not withdrawn, the latest last."""
    independent: TaskVerdictGiven | None = None
    """The last verdict before the verdicts of others were shown; `verdict` if they were not."""
    adjudication: Adjudication | None = None
    """The person's last decision; only decisions on the current verdicts count."""
    revealed: bool = False
    """Whether the verdicts of others were shown to this person."""


class ValidationBook(Book[ValidationOperation, Validation]):
    """All known operations on validations, by task and validator."""

    def __init__(self, operations: Iterable[ValidationOperation] = ()) -> None:
        super().__init__(fold, operations)

    def trials(self, task: str) -> tuple[TrialMade, ...]:
        """Return the trials of all validators, which are facts and not opinions."""
        return tuple(trial for reviewer in self.reviewers for trial in self.state(task, reviewer).trials)

    def validations(self, task: str) -> tuple[Validation, ...]:
        """Return the validations of a task by everybody who has annotated it, sorted by name."""
        known = (self.state(task, reviewer) for reviewer in self.reviewers)
        return tuple(validation for validation in known if validation.seen)

    def adjudication(self, task: str) -> Adjudication | None:
        """Return the last decision on exactly the current verdicts on a task; None if there is none.

        A decision no longer counts if a verdict was changed, added or withdrawn after it.
        """
        validations = self.validations(task)
        verdicts = {one.verdict.op for one in validations if one.verdict is not None}
        decisions = [one.adjudication for one in validations if one.adjudication is not None]
        decisions = [decision for decision in decisions if set(decision.decides) == verdicts]
        return max(decisions, key=lambda decision: (decision.utc_ms, decision.op), default=None)


def fold(task: str, reviewer: str, operations: Iterable[ValidationOperation]) -> Validation:
    """Return the validation that results from a validator's operations on a task, in any order."""
    known = standing(operations)
    comments: list[TaskComment] = []
    trials: list[TrialMade] = []
    verdict: TaskVerdictGiven | None = None
    independent: TaskVerdictGiven | None = None
    adjudication: Adjudication | None = None
    check: CheckMade | None = None
    revealed = False
    undoable: list[str] = []
    for item in known:
        if item.kind == ValidationOperationKind.VERDICT and (given := item.read(TaskVerdictData)) is not None:
            verdict = TaskVerdictGiven(item.op, given.verdict, given.evidence, item.utc_ms)
            independent = independent if revealed else verdict
            undoable.append(item.op)
        elif item.kind == ValidationOperationKind.ADJUDICATION and (decision := item.read(Adjudication)):
            adjudication = decision
            undoable.append(item.op)
        elif item.kind == ValidationOperationKind.REVEALED:
            revealed = True
        elif item.kind == ValidationOperationKind.COMMENT and (remark := item.read(CommentData)) is not None:
            comments.append(TaskComment(item.op, remark.text, item.utc_ms))
            undoable.append(item.op)
        elif item.kind == ValidationOperationKind.TRIAL and (trial := item.read(TrialMade)) is not None:
            trials.append(trial)
        elif item.kind == ValidationOperationKind.CHECK and (found := item.read(CheckData)) is not None:
            findings = tuple((one.name, one.passed, one.reduced, one.detail) for one in found.findings)
            check = CheckMade(item.op, findings, found.backend, item.utc_ms)
    return Validation(
        task=task,
        reviewer=reviewer,
        verdict=verdict,
        comments=tuple(comments),
        trials=tuple(trials),
        check=check,
        seen=bool(known),
        undoable=tuple(undoable),
        independent=independent,
        adjudication=adjudication,
        revealed=revealed,
    )


class TaskStatus(StrEnum):
    """The state of a task according to its validators."""

    UNJUDGED = "unjudged"
    ACCEPTED = "accepted"
    """All validators who judged it accept it."""
    REJECTED = "rejected"
    """All validators who judged it reject it, possibly for different reasons."""
    DISPUTED = "disputed"
    """Some validators accept it and others reject it."""
    DISCUSSION = "discussion"
    """A validator wants to discuss it."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The verdicts and numbers of annotations of all validators on one task."""

    task: str
    verdicts: Mapping[str, TaskVerdict]
    """The verdicts by validator; only validators who gave a verdict."""
    seen: int
    """The number of validators who looked at the task."""
    comments: int
    trials: int
    decided: TaskVerdict | None = None
    """The verdict of the adjudication; None if there is no decision on exactly the current verdicts."""
    decided_by: str = ""

    @property
    def standing(self) -> TaskStatus:
        """The state of the task according to its adjudication; without one, to its validators."""
        given = set(self.verdicts.values()) if self.decided is None else {self.decided}
        if not given:
            return TaskStatus.UNJUDGED
        if TaskVerdict.NEEDS_DISCUSSION in given:
            return TaskStatus.DISCUSSION
        if given == {TaskVerdict.ACCEPT}:
            return TaskStatus.ACCEPTED
        return TaskStatus.DISPUTED if TaskVerdict.ACCEPT in given else TaskStatus.REJECTED


def progress(book: ValidationBook, tasks: Iterable[str]) -> tuple[TaskProgress, ...]:
    """Return the progress of each task, in the order of the tasks."""
    return tuple(_progress_of(book, task) for task in tasks)


def totals(rows: Iterable[TaskProgress]) -> dict[TaskStatus, int]:
    """Return the number of tasks in each state, including states without tasks."""
    counts = Counter(row.standing for row in rows)
    return {status: counts[status] for status in TaskStatus}


def _progress_of(book: ValidationBook, task: str) -> TaskProgress:
    validations = {reviewer: book.state(task, reviewer) for reviewer in book.reviewers}
    decision = book.adjudication(task)
    return TaskProgress(
        task,
        {reviewer: one.verdict.verdict for reviewer, one in validations.items() if one.verdict is not None},
        sum(one.seen for one in validations.values()),
        sum(len(one.comments) for one in validations.values()),
        sum(len(one.trials) for one in validations.values()),
        decision.verdict if decision is not None else None,
        decision.reviewer if decision is not None else "",
    )
