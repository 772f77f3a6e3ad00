"""The rulings of reviewers on a pass, which decide whether it counts as solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gistpoint.sessions.annotations.keys import attempt_key, successive_keys
from gistpoint.sessions.annotations.reviewer import Reviewer
from gistpoint.sessions.annotations.reviews import (
    ExcludeReason,
    ReviewBook,
    ReviewOperation,
    RunVerdict,
    RunVerdictGiven,
    annotated_key,
)

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.kept import KeptRun


def ruling_on(book: ReviewBook, run: str) -> bool | None:
    """Return whether reviewers accept a run's pass; None if there is no ruling or they disagree.

    "Not solved", and an exclusion for a shortcut, reject the pass; any other exclusion does not affect it.
    """
    rulings = {_rules(given) for given in verdicts(book, run)} - {None}
    return rulings.pop() if len(rulings) == 1 else None


def verdicts(book: ReviewBook, run: str) -> tuple[RunVerdictGiven, ...]:
    """Return the last verdict of each reviewer on a run."""
    given = (book.review(run, reviewer).verdict for reviewer in book.reviewers_of(run))
    return tuple(verdict for verdict in given if verdict is not None)


def _rules(given: RunVerdictGiven) -> bool | None:
    if given.verdict in (RunVerdict.ACCEPT, RunVerdict.ACCEPT_CORRECTED_TIME, RunVerdict.SOLVED):
        return True
    if given.verdict is RunVerdict.NOT_SOLVED:
        return False
    return False if ExcludeReason.SHORTCUT in given.reasons else None


def settle(document: RunDocument, book: ReviewBook, key: str = "") -> RunDocument:
    """Set `accepted` of an open run to the reviewers' ruling, and return the run.

    `key` is the key under which the run is annotated; empty if it is not known.
    """
    document.accepted = ruling_on(book, key or annotated_key(document, book))
    return document


def first_key(document: RunDocument) -> str:
    """Return the key of a run's beginning, which does not change when the run grows."""
    return next(successive_keys(document))


def key_of_kept(kept: KeptRun, book: ReviewBook, reopened: Callable[[], RunDocument]) -> str:
    """Return the key under which a stored run is annotated.

    The run is `reopened` only if a run with the same beginning has annotations under another key.
    """
    if book.runs_like(kept.key) - {kept.key}:
        return annotated_key(reopened(), book)
    return kept.key


def accept_attempt(reviewer: Reviewer, attempt_id: str, note: str = "") -> ReviewOperation:
    """Record that a reviewer accepts an attempt's pass, so that it counts."""
    return reviewer.verdict(attempt_key(attempt_id), RunVerdict.ACCEPT, note=note)


def reject_attempt(reviewer: Reviewer, attempt_id: str, why: str) -> ReviewOperation:
    """Record that a reviewer rejects an attempt's pass as illegitimate."""
    reasons = (ExcludeReason.SHORTCUT,)
    return reviewer.verdict(attempt_key(attempt_id), RunVerdict.EXCLUDE, reasons=reasons, note=why)
