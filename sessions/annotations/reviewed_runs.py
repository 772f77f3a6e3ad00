"""Runs with their reviews: rows for an export, and counts by model and by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from gistpoint.sessions.annotations.reviews import Review, ReviewBook, RunVerdict, annotated_key
from gistpoint.sessions.annotations.rows import REVIEW_COLUMNS, Row, review_rows
from gistpoint.sessions.records.model import Actor, Run
from gistpoint.sessions.runs.document import RunDocument

RUN_COLUMNS = ("path", "task", "model", "agent", "outcome", "end_reason")
"""The columns of an export that describe the run: the path of its file, and facts from the file."""
COLUMNS = (*RUN_COLUMNS, *REVIEW_COLUMNS)


@dataclass(frozen=True, slots=True)
class ReviewedRun:
    """A recorded run, and every review of it."""

    path: str
    """The path as the user gave it, with `#ID` for one of several runs in a file."""
    header: Run
    key: str
    """The key under which the run is annotated, which other runs may share."""
    reviews: tuple[Review, ...]

    @property
    def model(self) -> str:
        """The model, or else `person` or the agent; empty if none is recorded."""
        return self.header.model or ("person" if self.header.actor is Actor.PERSON else self.header.agent)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts of all reviewers, in the order of their names."""
        given = sorted(self.reviews, key=lambda review: review.reviewer)
        return tuple(name_of(review.verdict.verdict) for review in given if review.verdict is not None)


def reviewed_run(path: str, document: RunDocument, header: Run, book: ReviewBook) -> ReviewedRun:
    """Return a run with its reviews; if there are none, `reviews` is empty."""
    key = annotated_key(document, book)
    found = (book.review(key, reviewer) for reviewer in book.reviewers)
    return ReviewedRun(path, header, key, tuple(review for review in found if _has_content(review)))


def name_of(verdict: RunVerdict) -> str:
    """Return the name of a verdict in words.

    A reviewer's own words for a verdict do not make it a different verdict.
    """
    return verdict.value.replace("_", " ")


def _has_content(review: Review) -> bool:
    return bool(review.verdict or review.labels or review.comments)


def reviewed_rows(runs: Iterable[ReviewedRun], book: ReviewBook, reviewers: Sequence[str]) -> Iterator[Row]:
    """Yield a row with the columns in `COLUMNS` for each annotation, by run, reviewer and time."""
    by_key: dict[str, list[Row]] = {}
    for row in review_rows(book, reviewers):
        by_key.setdefault(str(row["run"]), []).append(row)
    for run in runs:
        known: Row = {
            "path": run.path,
            "task": run.header.task,
            "model": run.header.model,
            "agent": run.header.agent,
            "outcome": run.header.verdict,
            "end_reason": run.header.exit_status,
        }
        yield from (known | row for row in by_key.get(run.key, ()))


@dataclass(slots=True)
class ReviewCounts:
    """The counts of judgements on the runs of one model, or of one task."""

    name: str
    runs: int = 0
    judged: int = 0
    """The number of runs with at least one verdict."""
    verdicts: Counter[str] = field(default_factory=Counter)
    """Runs by verdict. A run counts under each verdict that any reviewer gave it."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Runs by the reasons given for their verdicts."""
    labels: Counter[str] = field(default_factory=Counter)
    """Runs by label, on the run or on any of its steps."""
    pairs: int = 0
    """The number of pairs of reviewers who both judged a run."""
    agreed: int = 0
    """The number of these pairs who gave the same verdict."""

    def add(self, run: ReviewedRun) -> None:
        """Count one more run."""
        self.runs += 1
        self.judged += bool(run.verdicts)
        self.verdicts.update(set(run.verdicts))
        given = [review.verdict for review in run.reviews if review.verdict is not None]
        self.reasons.update({reason.value for verdict in given for reason in verdict.reasons})
        self.labels.update({label.label for review in run.reviews for label in review.labels})
        pairs = [first == second for first, second in combinations(run.verdicts, 2)]
        self.pairs += len(pairs)
        self.agreed += sum(pairs)


def counts_by(runs: Iterable[ReviewedRun], name: Callable[[ReviewedRun], str]) -> list[ReviewCounts]:
    """Return the counts of each group of runs, such as those of a model, in the order of the names."""
    found: dict[str, ReviewCounts] = {}
    for run in runs:
        group = name(run)
        found.setdefault(group, ReviewCounts(group)).add(run)
    return [found[group] for group in sorted(found)]
