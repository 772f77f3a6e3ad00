"""How far two reviewers agree, label by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.reviews.state import Review, ReviewBook
from gistpoint.sessions.sidefiles.agreement import Row, cohen_kappa, jsonl_lines, utc_text
from gistpoint.sessions.sidefiles.agreement import csv_lines as columned


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two reviewers on one label: units on which both, the first or second alone, or neither put it."""

    label: str
    both: int
    first_only: int
    second_only: int
    neither: int
    kappa: float | None

    @property
    def units(self) -> int:
        """How many units both have judged."""
        return self.both + self.first_only + self.second_only + self.neither

    @property
    def observed(self) -> float | None:
        """The share of units on which they agree."""
        return (self.both + self.neither) / self.units if self.units else None


@dataclass(frozen=True, slots=True)
class Agreements:
    """Two reviewers on the runs that both have reviewed."""

    first: str
    second: str
    runs: int
    steps: int
    """Steps that both have seen: the units of the labels on steps."""
    on_steps: tuple[Agreement, ...]
    """A label on a range counts for its step."""
    on_runs: tuple[Agreement, ...]
    """A label counts for its run wherever in it it stands."""
    verdicts: int
    """Runs to which both gave a verdict."""
    verdict_kappa: float | None


def agreement(book: ReviewBook, first: str, second: str) -> Agreements:
    """Compare two reviewers. A step was judged by whoever saw it, labelled it or commented on it.

    A run was reviewed by whoever judged a step of it, labelled it or gave it a verdict.
    """
    pairs = [(book.review(run, first), book.review(run, second)) for run in book.runs]
    pairs = [(one, other) for one, other in pairs if _is_reviewed(one) and _is_reviewed(other)]
    names = sorted({given.label for pair in pairs for review in pair for given in review.labels})
    units = [(one, other, step) for one, other in pairs for step in sorted(_judged(one) & _judged(other))]
    on_steps: list[Agreement] = []
    on_runs: list[Agreement] = []
    for name in names:
        places = {
            id(review): {given.step for given in review.labels if given.label == name} for p in pairs for review in p
        }
        by_step = [(step in places[id(one)], step in places[id(other)]) for one, other, step in units]
        by_run = [(bool(places[id(one)]), bool(places[id(other)])) for one, other in pairs]
        on_steps.append(_counted(name, by_step))
        on_runs.append(_counted(name, by_run))
    verdicts = [(one.verdict.verdict, other.verdict.verdict) for one, other in pairs if one.verdict and other.verdict]
    return Agreements(
        first,
        second,
        len(pairs),
        len(units),
        tuple(on_steps),
        tuple(on_runs),
        len(verdicts),
        cohen_kappa(verdicts),
    )


def _judged(review: Review) -> set[StepKey]:
    said = {given.step for given in review.labels} | {comment.step for comment in review.comments}
    return set(review.seen) | {step for step in said if step is not None}


def _is_reviewed(review: Review) -> bool:
    return bool(_judged(review) or review.labels or review.verdict)


def _counted(label: str, pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    counts = Counter(pairs)
    return Agreement(
        label,
        counts[(True, True)],
        counts[(True, False)],
        counts[(False, True)],
        counts[(False, False)],
        cohen_kappa(pairs),
    )


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
