"""A validator at work on tasks."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import UserError
from gistpoint.core.generation.check import Finding
from gistpoint.core.generation.trials import Subject, Trial
from gistpoint.core.kinds.gist.check import ScoreTrial
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.sidefiles.store import LONGEST_NAME, Codec, SideFileStore, is_reviewer
from gistpoint.sessions.validations.state import (
    FORMAT,
    Kind,
    Operation,
    TaskVerdict,
    Validation,
    ValidationBook,
    decode,
    encode,
)


class ValidationError(UserError):
    """A validation can't be read or written as asked."""


CODEC = Codec(FORMAT.header, encode, decode, "validation", ValidationError)


class ValidationStore(SideFileStore[Operation, ValidationBook]):
    """Those of every validator are read, each operation is added to its validator's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read what is there; the folder is made when something is written."""
        super().__init__(folder, clock, CODEC, ValidationBook)


@dataclass(frozen=True, slots=True)
class Draft:
    """A comment, and code by `path::qualname`."""

    comment: str = ""
    fixes: Mapping[str, str] = field(default_factory=dict)


class Drafts:
    """The drafts of one validator below a folder. One that can't be read counts as none, and is kept aside."""

    def __init__(self, folder: Path, reviewer: str) -> None:
        self.folder = folder / quote(reviewer, safe=" @+-_").replace(".", "%2E")

    def read(self, task: str) -> Draft:
        """Return the draft of a task."""
        path = self._path(task)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            comment, fixes = value["comment"], value["fixes"]
            if isinstance(comment, str) and all(isinstance(code, str) for code in fixes.values()):
                return Draft(comment, fixes)
        except FileNotFoundError:
            return Draft()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        path.replace(path.with_suffix(".damaged"))
        return Draft()

    def write(self, task: str, draft: Draft) -> None:
        """Keep a draft in place of the one before; an empty one is removed. Raises OSError."""
        path = self._path(task)
        if not draft.comment and not draft.fixes:
            path.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"comment": draft.comment, "fixes": dict(draft.fixes)}), encoding="utf-8")
        fresh.replace(path)

    def _path(self, task: str) -> Path:
        return self.folder / f"{task}.json"


MOST_IDS = 200
"""Ids that one trial names; their number is written besides."""
LONGEST_COMMENT = 20_000


@dataclass(slots=True)
class Validator:
    """One validator at work: each method is one operation, on the disk when it returns."""

    store: ValidationStore
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.strip()
        if not is_reviewer(self.name):
            raise ValidationError(
                "The validator has no name that can be used.",
                hint=f"Take a pseudonym of at most {LONGEST_NAME} characters.",
            )

    def validation(self, task: str) -> Validation:
        """Return what this validator has said about a task."""
        return self.store.book.state(task, self.name)

    def seen(self, task: str) -> None:
        """Note that a task was looked at; nothing is written where that is known."""
        if not self.validation(task).seen:
            self._add(task, Kind.SEEN, {})

    def verdict(self, task: str, verdict: TaskVerdict) -> Operation:
        """Give a verdict, with the evidence that there is by now."""
        known = self.validation(task)
        evidence: list[Json] = [trial.op for trial in known.trials]
        evidence += [known.check.op] if known.check is not None else []
        return self._add(task, Kind.VERDICT, {"verdict": verdict.value, "evidence": evidence})

    def comment(self, task: str, text: str) -> Operation:
        """Say something about a task. Raises `ValidationError` for nothing, and for more than is kept."""
        text = text.strip()
        if not text or len(text) > LONGEST_COMMENT:
            raise ValidationError(f"A comment has 1 to {LONGEST_COMMENT} characters.")
        return self._add(task, Kind.COMMENT, {"text": text})

    def trial(self, task: str, trial: Trial, fix: Mapping[str, str] | None = None) -> Operation:
        """Record a run of the suite; of a fix, the hash of each function's code as well."""
        report, score = trial.judgement.report, trial.judgement.score
        odd: list[Json] = [*trial.odd[:MOST_IDS]]
        data: dict[str, Json] = {
            "subject": trial.subject.value,
            "status": report.status.value,
            "odd": odd,
            "odd_count": len(trial.odd),
            "score": round(score.value, 6),
            "solved": trial.judgement.solved,
            "passing": score.passing,
            "failing": len(score.failing),
            "seconds": round(report.seconds, 3),
            "backend": report.backend.name,
            "isolated": report.backend.isolated,
        }
        if trial.judgement.suspicious:
            data["suspicious"] = [*trial.judgement.suspicious]
        if fix:
            data["fix"] = {name: sha256_of_text(code) for name, code in fix.items()}
        return self._add(task, Kind.TRIAL, data)

    def score_trial(self, task: str, trial: ScoreTrial) -> Operation:
        """Record a run of a gist task; of a gist, its hash and its rates as well."""
        odd: list[Json] = [*trial.odd[:MOST_IDS]]
        data: dict[str, Json] = {
            "subject": trial.subject.value,
            "status": trial.status.value,
            "odd": odd,
            "odd_count": len(trial.odd),
            "score": float(trial.solved),
            "solved": trial.solved,
            "passing": trial.passing,
            "failing": trial.failing,
            "seconds": round(trial.seconds, 3),
            "backend": trial.backend.name,
            "isolated": trial.backend.isolated,
        }
        if trial.subject is not Subject.ORIGINAL:
            score = trial.verdict.score if trial.verdict is not None else None
            execution, existence = (score.execution, score.existence) if score is not None else (None, None)
            data["gist"] = {
                "sha256": sha256_of_text(trial.text),
                "line_execution": execution.rate if execution is not None else None,
                "line_existence": existence.rate if existence is not None else None,
            }
        return self._add(task, Kind.TRIAL, data)

    def check(self, task: str, findings: Iterable[Finding], backend: str) -> Operation:
        """Record what `task check` found."""
        rows: list[Json] = [
            {"name": f.name, "passed": f.passed, "reduced": f.reduced, "detail": f.detail[:2000]} for f in findings
        ]
        return self._add(task, Kind.CHECK, {"findings": rows, "backend": backend})

    def undo(self, task: str) -> Operation | None:
        """Take back the last verdict or comment that stands, and return it; None where there is none."""
        standing = self.validation(task).undoable
        target = self.store.book.get(standing[-1]) if standing else None
        if target is not None:
            self._add(task, Kind.DELETE, {"target": target.op})
        return target

    def _add(self, task: str, kind: Kind, data: Mapping[str, Json]) -> Operation:
        at = self.store.next_ms(self.name)
        operation = Operation(str(uuid.uuid4()), self.name, at, task, kind.value, data)
        self.store.append([operation])
        return operation
