"""Validations as rows for a spreadsheet or a script: one for each verdict, comment, trial and check that stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gistpoint.core.attempts.result import AttemptResult
from gistpoint.sessions.sidefiles.rows import Row, utc_text
from gistpoint.sessions.validations.state import Validation, ValidationBook

COLUMNS = (
    "task", "reviewer", "utc", "kind", "verdict", "text", "subject", "status", "score", "solved", "suspicious",
    "passing", "failing", "odd", "seconds", "backend", "clean", "evidence", "op",
)  # fmt: skip
"""Columns of the CSV and keys of the JSON lines. `odd` are ids in which a run was not as the task says."""


def rows(book: ValidationBook, tasks: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of some tasks: by task, validator and time."""
    wanted = frozenset(tasks)
    for validation in book.states():
        if validation.task in wanted:
            yield from sorted(_of(validation), key=lambda row: (str(row["utc"]), str(row["op"])))


def _of(said: Validation) -> Iterator[Row]:
    if said.verdict is not None:
        given = said.verdict
        values: Row = {"kind": "verdict", "verdict": given.verdict.value, "evidence": [*given.evidence]}
        yield _row(said, given.op, given.utc_ms, values)
    for comment in said.comments:
        yield _row(said, comment.op, comment.utc_ms, {"kind": "comment", "text": comment.text})
    for trial in said.trials:
        values = {
            "kind": "trial",
            "subject": trial.subject.value,
            "status": trial.status,
            "score": trial.score,
            "solved": trial.result is AttemptResult.SOLVED,
            "suspicious": [*trial.suspicious],
            "passing": trial.passing,
            "failing": trial.failing,
            "odd": [*trial.odd],
            "seconds": trial.seconds,
            "backend": trial.backend,
        }
        yield _row(said, trial.op, trial.utc_ms, values)
    if said.check is not None:
        wrong = "; ".join(f"{name}: {detail}" for name, passed, _, detail in said.check.findings if not passed)
        values = {"kind": "check", "clean": said.check.clean, "backend": said.check.backend, "text": wrong or None}
        yield _row(said, said.check.op, said.check.utc_ms, values)


def _row(said: Validation, op: str, utc_ms: int, values: Row) -> Row:
    known: Row = {"task": said.task, "reviewer": said.reviewer, "utc": utc_text(utc_ms), "op": op}
    return dict.fromkeys(COLUMNS) | known | values
