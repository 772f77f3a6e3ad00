"""Reviews as rows for a spreadsheet or a script: one for each label, comment and verdict that stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.reviews.state import Review, ReviewBook
from gistpoint.sessions.sidefiles.rows import Row, jsonl_lines, utc_text
from gistpoint.sessions.sidefiles.rows import csv_lines as columned

__all__ = ["COLUMNS", "csv_lines", "jsonl_lines", "rows"]

COLUMNS = (
    "run", "file", "reviewer", "utc", "kind", "set", "label", "step", "step_id", "scope", "part", "start", "end",
    "text", "verdict", "reasons", "corrected_time_s", "minutes", "blind", "steps_seen", "op",
)  # fmt: skip
"""Columns of the CSV and keys of the JSON lines. `step` counts from 1, as on the screen; ranges are code points."""


def rows(book: ReviewBook, reviewers: Iterable[str] = ()) -> Iterator[Row]:
    """Yield the rows of all reviewers, or of some: by run, reviewer and time."""
    wanted = frozenset(reviewers)
    for review in book.reviews():
        if not wanted or review.reviewer in wanted:
            yield from sorted(_of(review), key=lambda row: (str(row["utc"]), str(row["op"])))


def _of(review: Review) -> Iterator[Row]:
    for given in review.labels:
        values: Row = {"kind": "label", "set": given.set, "label": given.label, **_place(given.step, given.range)}
        yield _row(review, given.op, given.utc_ms, values)
    for said in review.comments:
        values = {"kind": "comment", "text": said.text, **_place(said.step, said.range)}
        yield _row(review, said.op, said.utc_ms, values)
    verdict = review.verdict
    if verdict is not None:
        values = {
            "kind": "verdict",
            "verdict": verdict.verdict.value,
            "reasons": [reason.value for reason in verdict.reasons],
            "text": verdict.note,
            "corrected_time_s": verdict.corrected_time_s,
            "minutes": verdict.minutes,
            "blind": verdict.blind,
        }
        yield _row(review, verdict.op, verdict.utc_ms, values)


def _place(step: StepKey | None, place: TextRange | None) -> Row:
    found: Row = {} if step is None else {"step": step.index + 1, "step_id": step.id}
    return found if place is None else {**found, **place.to_json()}


def _row(review: Review, op: str, utc_ms: int, values: Row) -> Row:
    known: Row = {
        "run": review.run,
        "file": review.name,
        "reviewer": review.reviewer,
        "utc": utc_text(utc_ms),
        "steps_seen": len(review.seen),
        "op": op,
    }
    return dict.fromkeys(COLUMNS) | known | values


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a CSV with a heading, see `sidefiles.rows.csv_lines`."""
    return columned(rows, COLUMNS)
