"""A validator, their drafts, and the store of all validations of tasks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.kinds.kind import Trial
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.sessions.annotations.side_files import CommentData, DeleteData, SideFileStore, file_name_of
from gistpoint.sessions.annotations.validations import (
    CODEC,
    AdjudicationData,
    CheckData,
    FindingData,
    GistData,
    TaskVerdict,
    TaskVerdictData,
    TrialData,
    Validation,
    ValidationBook,
    ValidationError,
    ValidationOperation,
    ValidationOperationKind,
)


class ValidationStore(SideFileStore[ValidationOperation, ValidationBook]):
    """The validations of all validators; each operation is appended to its validator's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read the files; the folder is created at the first write."""
        super().__init__(folder, clock, CODEC, ValidationBook)


@dataclass(frozen=True, slots=True)
class Draft:
    """An unfinished comment, and unfinished fixes by `path::qualname`."""

    comment: str = ""
    fixes: Mapping[str, str] = field(default_factory=dict)


class Drafts:
    """The drafts of one validator, in files below a folder."""

    def __init__(self, folder: Path, reviewer: str) -> None:
        self.folder = folder / file_name_of(reviewer)

    def read(self, task: str) -> Draft:
        """Return the draft of a task, which may be empty.

        An unreadable file gets the suffix `.damaged`, unless it can't be renamed.
        """
        path = self._path(task)
        try:
            value = json.loads(read_regular(path))
            comment, fixes = value["comment"], value["fixes"]
            if isinstance(comment, str) and all(isinstance(code, str) for code in fixes.values()):
                return Draft(comment, fixes)
        except FileNotFoundError:
            return Draft()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        with suppress(OSError):
            path.replace(path.with_suffix(".damaged"))
        return Draft()

    def write(self, task: str, draft: Draft) -> None:
        """Replace the draft of a task; the file of an empty draft is removed.

        Raises `OSError` if it can't be written.
        """
        path = self._path(task)
        if not draft.comment and not draft.fixes:
            path.unlink(missing_ok=True)
            return
        text = json.dumps({"comment": draft.comment, "fixes": dict(draft.fixes)})
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("ascii"), durable=False)

    def _path(self, task: str) -> Path:
        return self.folder / f"{task}.json"


MOST_IDS = 200
"""The maximum number of test ids that a trial lists; the number of all of them is also recorded."""
LONGEST_COMMENT = 20_000


@dataclass(slots=True)
class Validator:
    """One validator; an operation is on disk when its method returns."""

    store: ValidationStore
    name: str

    def __post_init__(self) -> None:
        self.name = CODEC.name_of(self.name, "validator")

    def validation(self, task: str) -> Validation:
        """Return this validator's validation of a task."""
        return self.store.book.state(task, self.name)

    def seen(self, task: str) -> None:
        """Record that the validator looked at a task, unless that is already recorded."""
        if not self.validation(task).seen:
            self._add(task, ValidationOperationKind.SEEN)

    def verdict(self, task: str, verdict: TaskVerdict) -> ValidationOperation:
        """Give a verdict on a task; the validator's trials so far and last check are its evidence."""
        return self._add(
            task, ValidationOperationKind.VERDICT, TaskVerdictData(verdict, self._evidence(task))
        )

    def reveal(self, task: str) -> tuple[Validation, ...]:
        """Return all validators' validations of a task, and record that this validator was shown them."""
        if not self.validation(task).revealed:
            self._add(task, ValidationOperationKind.REVEALED)
        return self.store.book.validations(task)

    def adjudicate(self, task: str, verdict: TaskVerdict) -> ValidationOperation:
        """Decide a task on which validators disagree; the decision holds until their verdicts change.

        Raises `ValidationError` if nobody has given a verdict on the task.
        """
        validations = self.store.book.validations(task)
        decides = tuple(sorted(one.verdict.op for one in validations if one.verdict is not None))
        if not decides:
            raise ValidationError("There is no verdict on this task, so there is nothing to decide.")
        data = AdjudicationData(verdict, self._evidence(task), decides)
        return self._add(task, ValidationOperationKind.ADJUDICATION, data)

    def _evidence(self, task: str) -> tuple[str, ...]:
        """Return the uuids of this validator's trials and last check."""
        known = self.validation(task)
        check = (known.check.op,) if known.check is not None else ()
        return (*(trial.op for trial in known.trials), *check)

    def comment(self, task: str, text: str) -> ValidationOperation:
        """Comment on a task. Raises `ValidationError` if the text is empty or too long."""
        text = text.strip()
        if not text or len(text) > LONGEST_COMMENT:
            raise ValidationError(f"A comment must have 1 to {LONGEST_COMMENT} characters.")
        return self._add(task, ValidationOperationKind.COMMENT, CommentData(text))

    def trial(self, task: str, trial: Trial) -> ValidationOperation:
        """Record a trial of a task, with the hashes of the code or gist and at most `MOST_IDS` test ids."""
        scored = trial.scored
        data = TrialData(
            subject=trial.subject,
            status=trial.status.value,
            odd=tuple(trial.odd[:MOST_IDS]),
            odd_count=len(trial.odd),
            score=round(trial.score, 6),
            solved=trial.solved,
            passing=trial.passing,
            failing=trial.failing,
            seconds=round(trial.seconds, 3),
            backend=trial.backend.name,
            isolated=trial.backend.isolated,
            suspicious=tuple(trial.suspicious),
            fix={name: sha256_of_text(code) for name, code in trial.fix.items()},
            gist=None
            if scored is None
            else GistData(sha256_of_text(scored.text), scored.execution, scored.existence),
        )
        return self._add(task, ValidationOperationKind.TRIAL, data)

    def check(self, task: str, findings: Iterable[CheckFinding], backend: str) -> ValidationOperation:
        """Record the findings of `task check`, with details of at most 2,000 characters."""
        rows = tuple(FindingData(f.name, f.passed, f.reduced, f.detail[:2000]) for f in findings)
        return self._add(task, ValidationOperationKind.CHECK, CheckData(rows, backend))

    def undo(self, task: str) -> ValidationOperation | None:
        """Withdraw the last verdict, decision or comment in force, and return it; None if there is none."""
        undoable = self.validation(task).undoable
        target = self.store.book.get(undoable[-1]) if undoable else None
        if target is not None:
            self._add(task, ValidationOperationKind.DELETE, DeleteData(target.op))
        return target

    def _add(
        self, task: str, kind: ValidationOperationKind, data: msgspec.Struct | None = None
    ) -> ValidationOperation:
        at = self.store.next_ms(self.name)
        written = {} if data is None else msgspec.to_builtins(data)
        operation = ValidationOperation(str(uuid.uuid4()), self.name, at, task, kind.value, written)
        self.store.append([operation])
        return operation
