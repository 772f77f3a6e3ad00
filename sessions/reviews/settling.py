"""What reviewers have said of a pass: whether it counts as solved."""

from __future__ import annotations

from gistpoint.sessions.reviews.keys import attempt_key, run_key
from gistpoint.sessions.reviews.reviewing import Reviewer
from gistpoint.sessions.reviews.state import ExcludeReason, Operation, ReviewBook, Verdict, VerdictGiven
from gistpoint.sessions.runs.document import RunDocument


def accepted(book: ReviewBook, run: str) -> bool | None:
    """Return whether a run's pass was accepted or rejected; None while nobody has, or reviewers do not agree.

    An exclusion for a shortcut rejects it; one for any other reason says nothing of the pass.
    """
    said = {_rules(given) for given in verdicts(book, run)} - {None}
    return said.pop() if len(said) == 1 else None


def verdicts(book: ReviewBook, run: str) -> tuple[VerdictGiven, ...]:
    """Return the verdicts on a run that stand, one a reviewer."""
    given = (book.review(run, reviewer).verdict for reviewer in book.reviewers)
    return tuple(verdict for verdict in given if verdict is not None)


def _rules(given: VerdictGiven) -> bool | None:
    if given.verdict in (Verdict.ACCEPT, Verdict.ACCEPT_CORRECTED_TIME):
        return True
    return False if ExcludeReason.SHORTCUT in given.reasons else None


def settle(document: RunDocument, book: ReviewBook) -> RunDocument:
    """Have a run that is open tell what reviewers have made of its pass."""
    document.accepted = accepted(book, run_key(document))
    return document


def accept_attempt(reviewer: Reviewer, attempt_id: str, note: str = "") -> Operation:
    """Let an attempt's pass count."""
    return reviewer.verdict(attempt_key(attempt_id), Verdict.ACCEPT, note=note)


def reject_attempt(reviewer: Reviewer, attempt_id: str, why: str) -> Operation:
    """Say that an attempt's pass was not earned."""
    reasons = (ExcludeReason.SHORTCUT,)
    return reviewer.verdict(attempt_key(attempt_id), Verdict.EXCLUDE, reasons=reasons, note=why)
