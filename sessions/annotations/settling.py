"""The rulings of reviewers on a pass, which decide whether it counts as solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.sessions.annotations.keys import attempt_key
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


def ruling_on(book: ReviewBook, run: str) -> bool | None:
    """Return whether reviewers accept a run's pass; None if there is no ruling or they disagree.

    "Not solved", and an exclusion for a shortcut, reject the pass; any other exclusion does not affect it.
    """
    rulings = {_rules(given) for given in verdicts(book, run)} - {None}
    return rulings.pop() if len(rulings) == 1 else None


def verdicts(book: ReviewBook, run: str) -> tuple[RunVerdictGiven, ...]:
    """Return the last verdict of each reviewer on a run."""
    given = (book.review(run, reviewer).verdict for reviewer in book.reviewers)
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


def accept_attempt(reviewer: Reviewer, attempt_id: str, note: str = "") -> ReviewOperation:
    """Record that a reviewer accepts an attempt's pass, so that it counts."""
    return reviewer.verdict(attempt_key(attempt_id), RunVerdict.ACCEPT, note=note)


def reject_attempt(reviewer: Reviewer, attempt_id: str, why: str) -> ReviewOperation:
    """Record that a reviewer rejects an attempt's pass as unearned."""
    reasons = (ExcludeReason.SHORTCUT,)
    return reviewer.verdict(attempt_key(attempt_id), RunVerdict.EXCLUDE, reasons=reasons, note=why)
