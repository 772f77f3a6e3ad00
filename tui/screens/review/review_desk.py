"""What a reviewer says about the run that is open; writing happens in the reader's thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.message_pump import MessagePump

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.errors import UserError
from gistpoint.sessions.reviews.keys import StepKey, TextRange, key_of, place_of, run_key
from gistpoint.sessions.reviews.reviewing import Reviewer, ReviewStore
from gistpoint.sessions.reviews.settling import settle
from gistpoint.sessions.reviews.state import ExcludeReason, LabelSet, Review, Verdict, read_label_sets
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
        self._key = ""
        self._document: RunDocument | None = None
        self._places: dict[StepKey, int | None] = {}
        self._begun = time.monotonic()
        self.sets: tuple[LabelSet, ...] = ()
        self.review: Review | None = None

    def open(self, document: RunDocument) -> None:
        """Read what was said before."""

        def job() -> None:
            locations = self._settings.locations
            self.sets = read_label_sets(locations.config)
            self._reviewer = Reviewer(ReviewStore(locations.reviews, SystemTime()), self._settings.reviewer)
            self._document = document
            self._key = run_key(document)
            settle(document, self._reviewer.store.book)
            before = self._reviewer.review(self._key)
            blind = self._settings.blind or before.blind
            review = self._reviewer.open(self._key, document.name, blind=blind) if blind else before
            if review.stopped is not None:
                while not document.finished and document.numbered(review.stopped.index)[-1] >= document.step_count:
                    document.ensure(document.numbered(review.stopped.index)[-1])
            self._take(review)
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
            review = self._reviewer.review(self._key)
            self._take(review)
            if self._document is not None:
                settle(self._document, self._reviewer.store.book)
            self._owner.post_message(ReviewChanged(review, said))

        self._do(lambda: self._guarded(job))

    def _take(self, review: Review) -> None:
        """Take in what was said, and find the steps that it was said of if they have moved."""
        self.review = review
        if self._document is not None and self._document.renumbered:
            said = [label.step for label in review.labels] + [comment.step for comment in review.comments]
            for key in (*said, *review.seen, review.stopped):
                if key is not None:
                    self._places[key] = place_of(self._document, key)

    def place(self, key: StepKey) -> int | None:
        """Return where the step of a key stands."""
        return self._places.get(key, key.index)

    def look_again(self) -> None:
        """Find the steps again that something was said of, once all are known."""
        if self._document is not None and self._document.renumbered:
            self._change(lambda _reviewer, _run: "")

    def set_blind(self, name: str, blind: bool) -> None:
        """Hide model and outcome until the verdict, or no longer."""

        def act(reviewer: Reviewer, key: str) -> str:
            reviewer.open(key, name, blind=blind)
            return "Model and outcome are hidden until the verdict." if blind else "Nothing is hidden."

        self._change(act)

    def seen(self, step: Step) -> bool:
        """Note a step as seen; False where it was before, or nothing can be noted yet."""
        reviewer, run, document = self._reviewer, self._key, self._document
        if reviewer is None or self.review is None or document is None:
            return False
        key = key_of(document, step)
        if key in self.review.seen:
            return False

        def job() -> None:
            reviewer.seen(run, [key])
            self._take(reviewer.review(run))

        self._do(lambda: self._guarded(job))
        return True

    def stopped(self, step: Step) -> None:
        """Note where the reviewer stops; written at once, for the program may end."""
        if self._reviewer is not None and self._document is not None and self.review is not None and self.review.seen:
            try:
                self._reviewer.stopped(self._key, key_of(self._document, step))
            except UserError as error:
                self._owner.post_message(ReadingFailed(error))

    def toggle(self, label: str, name: str, label_set: str, step: Step | None, place: TextRange | None) -> None:
        """Put a label on a step or a range of it, or on the run, or take it back."""

        def act(reviewer: Reviewer, run: str) -> str:
            key = key_of(self._document, step) if step is not None and self._document is not None else None
            stands = reviewer.toggle(run, label, key, place=place, label_set=label_set)
            where = "the run" if step is None else f"step {step.index + 1}" + (", what is selected" if place else "")
            return f"{'+' if stands else '−'} {name} on {where}"

        self._change(act)

    def comment(self, text: str, step: Step, place: TextRange | None) -> None:
        """Say something about a step, or a range of it."""

        def act(reviewer: Reviewer, run: str) -> str:
            key = key_of(self._document, step) if self._document is not None else None
            reviewer.comment(run, text, key, place=place)
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

    def removable(self, step: int, name_of: Callable[[str], str]) -> list[tuple[str, str]]:
        """Return what can be taken back of a step: the operation, and what people read."""
        if self.review is None:
            return []
        labels = [
            (given.op, f"⚑ {name_of(given.label)}")
            for given in self.review.labels
            if given.step and self.place(given.step) == step
        ]
        comments = [
            (said.op, f"✎ {said.text}") for said in self.review.comments if said.step and self.place(said.step) == step
        ]
        return labels + comments
