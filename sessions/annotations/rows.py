"""Reviews and validations as rows of CSV or JSON lines, for analysis."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.csv_text import csv_line
from gistpoint.core.readable import utc_datetime
from gistpoint.sessions.annotations.keys import StepKey, TextRange
from gistpoint.sessions.annotations.reviews import Review, ReviewBook
from gistpoint.sessions.annotations.validations import Validation, ValidationBook
from gistpoint.sessions.records.model import Json

Row = dict[str, Json]


def csv_lines(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a CSV (RFC 4180), with header and line endings; spaces separate list items."""
    yield csv_line(columns, end="\r\n")
    for row in rows:
        yield csv_line([_cell(row[column]) for column in columns], end="\r\n")


def jsonl_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield one JSON object per line, including the line ending; members that are None are left out."""
    for row in rows:
        yield (
            json.dumps({key: value for key, value in row.items() if value is not None}, ensure_ascii=True)
            + "\n"
        )


def _cell(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _utc_text(utc_ms: int) -> str:
    """Return a time in milliseconds since 1970 as ISO 8601."""
    return utc_datetime(utc_ms).isoformat(timespec="milliseconds")


# Reviews

REVIEW_COLUMNS = (
    *("run", "file", "reviewer", "utc", "kind", "set", "label", "step", "step_id"),
    *("scope", "part", "start", "end", "text", "verdict", "reasons", "corrected_time_s"),
    *("minutes", "blind", "steps_seen", "op"),
)
"""The columns of the CSV and keys of the JSON lines; `step` counts from 1, and ranges are in code points."""


def review_rows(book: ReviewBook, reviewers: Iterable[str] = ()) -> Iterator[Row]:
    """Yield the rows of some reviewers, by default of all, sorted by run, reviewer and time."""
    wanted = frozenset(reviewers)
    for review in book.reviews():
        if not wanted or review.reviewer in wanted:
            yield from sorted(_of_review(review), key=lambda row: (str(row["utc"]), str(row["op"])))


def _of_review(review: Review) -> Iterator[Row]:
    for given in review.labels:
        values: Row = {
            "kind": "label",
            "set": given.set,
            "label": given.label,
            **_place(given.step, given.range),
        }
        yield _review_row(review, given.op, given.utc_ms, values)
    for comment in review.comments:
        values = {"kind": "comment", "text": comment.text, **_place(comment.step, comment.range)}
        yield _review_row(review, comment.op, comment.utc_ms, values)
    verdict = review.verdict
    if verdict is not None:
        values = {
            "kind": "verdict",
            "verdict": verdict.verdict.value,
            "reasons": [reason.value for reason in verdict.reasons],
            "text": ": ".join(filter(None, [verdict.words, verdict.note])),
            "corrected_time_s": verdict.corrected_time_s,
            "minutes": verdict.minutes,
            "blind": verdict.blind,
        }
        yield _review_row(review, verdict.op, verdict.utc_ms, values)


def _place(step: StepKey | None, place: TextRange | None) -> Row:
    found: Row = {} if step is None else {"step": step.index + 1, "step_id": step.id}
    return found if place is None else {**found, **msgspec.to_builtins(place)}


def _review_row(review: Review, op: str, utc_ms: int, values: Row) -> Row:
    known: Row = {
        "run": review.run,
        "file": review.name,
        "reviewer": review.reviewer,
        "utc": _utc_text(utc_ms),
        "steps_seen": len(review.seen),
        "op": op,
    }
    return dict.fromkeys(REVIEW_COLUMNS) | known | values


# Validations

VALIDATION_COLUMNS = (
    *("task", "reviewer", "utc", "kind", "verdict", "text", "subject", "status", "score"),
    *("solved", "suspicious", "passing", "failing", "odd", "seconds", "backend"),
    *("clean", "evidence", "op", "decides"),
)
"""The columns of the CSV and keys of the JSON lines; `odd` lists the tests that contradicted the task."""


def validation_rows(book: ValidationBook, tasks: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of some tasks, sorted by task, validator and time."""
    wanted = frozenset(tasks)
    for validation in book.states():
        if validation.task in wanted:
            yield from sorted(_of_validation(validation), key=lambda row: (str(row["utc"]), str(row["op"])))


def _of_validation(validation: Validation) -> Iterator[Row]:
    if validation.verdict is not None:
        given = validation.verdict
        values: Row = {"kind": "verdict", "verdict": given.verdict.value, "evidence": [*given.evidence]}
        yield _validation_row(validation, given.op, given.utc_ms, values)
    if validation.adjudication is not None:
        decision = validation.adjudication
        values = {
            "kind": "adjudication",
            "verdict": decision.verdict.value,
            "evidence": [*decision.evidence],
            "decides": [*decision.decides],
        }
        yield _validation_row(validation, decision.op, decision.utc_ms, values)
    for comment in validation.comments:
        yield _validation_row(
            validation, comment.op, comment.utc_ms, {"kind": "comment", "text": comment.text}
        )
    for trial in validation.trials:
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
        yield _validation_row(validation, trial.op, trial.utc_ms, values)
    if validation.check is not None:
        wrong = "; ".join(
            f"{name}: {detail}" for name, passed, _, detail in validation.check.findings if not passed
        )
        values = {
            "kind": "check",
            "clean": validation.check.clean,
            "backend": validation.check.backend,
            "text": wrong or None,
        }
        yield _validation_row(validation, validation.check.op, validation.check.utc_ms, values)


def _validation_row(validation: Validation, op: str, utc_ms: int, values: Row) -> Row:
    known: Row = {
        "task": validation.task,
        "reviewer": validation.reviewer,
        "utc": _utc_text(utc_ms),
        "op": op,
    }
    return dict.fromkeys(VALIDATION_COLUMNS) | known | values
