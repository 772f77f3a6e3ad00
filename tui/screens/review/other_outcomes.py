"""Whether the outcomes of runs that are not open are hidden from the reviewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.tui.screens.review.run_rows import hides_outcome
from gistpoint.tui.screens.review.settings import ReviewSettings

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviewer import Reviewer
    from gistpoint.sessions.runs.document import RunDocument


class OtherOutcomes:
    """Answers by the reviewer's own reviews, which are read when the first run is asked about."""

    def __init__(self, settings: ReviewSettings) -> None:
        self._settings = settings
        self._reviewer: Reviewer | None = None

    def hides(self, document: RunDocument) -> bool:
        """Whether the model and the outcome of a run are hidden, as in the list of runs. Used in a thread."""
        from gistpoint.core.attempts.clock import SystemTime
        from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
        from gistpoint.sessions.annotations.reviews import annotated_key

        settings = self._settings
        if self._reviewer is None:
            self._reviewer = Reviewer(ReviewStore(settings.reviews, SystemTime()), settings.reviewer)
        review = self._reviewer.review(annotated_key(document, self._reviewer.store.book))
        return hides_outcome(review, blind=settings.blind)
