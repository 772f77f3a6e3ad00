"""What a reviewer says about the run that is open; writing happens in the reader's thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.message_pump import MessagePump

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.errors import UserError
from gistpoint.sessions.reviews.keys import StepKey, TextRange, run_key
from gistpoint.sessions.reviews.labels import LabelSet, read_label_sets
from gistpoint.sessions.reviews.operations import ExcludeReason, Verdict
from gistpoint.sessions.reviews.reviewing import Reviewer
from gistpoint.sessions.reviews.settling import settle
from gistpoint.sessions.reviews.state import Review
from gistpoint.sessions.reviews.store import ReviewStore
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Step
from gistpoint.tui.screens.review.reader import ReadingFailed
from gistpoint.tui.screens.review.saying import ReviewChanged
from gistpoint.tui.screens.review.settings import ReviewSettings


class ReviewDesk:
    """Every method but `open` returns at once."""

    def __init__(self, owner: MessagePump, settings: ReviewSettings, do: Callable[[Callable[[], None]], None]) -> None:
        """`do` runs a job in the reader's thread."""
        self._owner, self._settings, self._do = owner, settings, do
        self._reviewer: Reviewer | None = None
        self._document: RunDocument | None = None
        self._key = ""
        self._begun = time.monotonic()
        self.sets: tuple[LabelSet, ...] = ()
        self.review: Review | None = None

    def open(self, document: RunDocument) -> None:
        """Read what was said before."""

        def job() -> None:
            locations = self._settings.locations
            self.sets = read_label_sets(locations.config)
            self._reviewer = Reviewer(ReviewStore(locations.reviews, SystemTime()), self._settings.reviewer)
            self._document, self._key = document, run_key(document)
            settle(document, self._reviewer.store.book)
            before = self._reviewer.review(self._key)
            blind = self._settings.blind or before.blind
            review = self._reviewer.open(self._key, document.name, blind=blind) if blind else before
            self.review = review
            self._owner.post_message(ReviewChanged(review, first=True))

        self._do(lambda: self._guarded(job))

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except UserError as error:
            self._owner.post_message(ReadingFailed(error))

    def _change(self, act: Callable[[Reviewer, str], str]) -> None:
        def job() -> None:
            if self._reviewer is None:
                return
            said = act(self._reviewer, self._key)
            self.review = self._reviewer.review(self._key)
            if self._document is not None:
                settle(self._document, self._reviewer.store.book)
            self._owner.post_message(ReviewChanged(self.review, said))

        self._do(lambda: self._guarded(job))

    def set_blind(self, name: str, blind: bool) -> None:
        """Hide model and outcome until the verdict, or no longer."""

        def act(reviewer: Reviewer, key: str) -> str:
            reviewer.open(key, name, blind=blind)
            return "Model and outcome are hidden until the verdict." if blind else "Nothing is hidden."

        self._change(act)

    def seen(self, step: Step) -> bool:
        """Note a step as seen; False where it was before, or nothing can be noted yet."""
        key, reviewer, run = StepKey.of(step), self._reviewer, self._key
        if reviewer is None or self.review is None or key in self.review.seen:
            return False

        def job() -> None:
            reviewer.seen(run, [key])
            self.review = reviewer.review(run)

        self._do(lambda: self._guarded(job))
        return True

    def stopped(self, step: Step) -> None:
        """Note where the reviewer stops; written at once, for the program may end."""
        if self._reviewer is not None and self.review is not None and self.review.seen:
            try:
                self._reviewer.stopped(self._key, StepKey.of(step))
            except UserError as error:
                self._owner.post_message(ReadingFailed(error))

    def toggle(self, label: str, name: str, label_set: str, step: Step | None, place: TextRange | None) -> None:
        """Put a label on a step or a range of it, or on the run, or take it back."""

        def act(reviewer: Reviewer, run: str) -> str:
            key = StepKey.of(step) if step is not None else None
            stands = reviewer.toggle(run, label, key, place=place, label_set=label_set)
            where = "the run" if step is None else f"step {step.index + 1}" + (", what is selected" if place else "")
            return f"{'+' if stands else '−'} {name} on {where}"

        self._change(act)

    def comment(self, text: str, step: Step, place: TextRange | None) -> None:
        """Say something about a step, or a range of it."""

        def act(reviewer: Reviewer, run: str) -> str:
            reviewer.comment(run, text, StepKey.of(step), place=place)
            return f"Comment on step {step.index + 1} kept"

        self._change(act)

    def remove(self, op: str) -> None:
        """Take back a label or a comment."""

        def act(reviewer: Reviewer, run: str) -> str:
            reviewer.delete(op)
            return "Taken back"

        self._change(act)

    def verdict(self, verdict: Verdict, reasons: tuple[ExcludeReason, ...], note: str, corrected: float | None) -> None:
        """Give a verdict on the run."""
        minutes = round((time.monotonic() - self._begun) / 60, 2)

        def act(reviewer: Reviewer, run: str) -> str:
            reviewer.verdict(run, verdict, reasons=reasons, note=note, corrected_time_s=corrected, minutes=minutes)
            return f"Verdict: {verdict.value.replace('_', ' ')}"

        self._change(act)


def removable(review: Review, step: int, name_of: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return what can be taken back of a step: the operation, and what people read."""
    labels = [
        (given.op, f"⚑ {name_of(given.label)}") for given in review.labels if given.step and given.step.index == step
    ]
    comments = [(said.op, f"✎ {said.text}") for said in review.comments if said.step and said.step.index == step]
    return labels + comments
