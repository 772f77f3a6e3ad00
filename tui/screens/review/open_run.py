"""The run in sight with everything that belongs to it alone; another run has an object of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.sessions.records.model import Run, Step
from gistpoint.tui.screens.review.gist_scoring import GistScoring
from gistpoint.tui.screens.review.loading import RunLoader, check_format, is_our_id, title_known
from gistpoint.tui.screens.review.navigation import Navigation
from gistpoint.tui.screens.review.replay_job import ReplayJob
from gistpoint.tui.screens.review.settings import FoundHits
from gistpoint.tui.screens.review.view import ReviewView

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import Review
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.tui.screens.review.annotations import ReviewAnnotations

_DRAWN_S = 0.2
"""The time after which a run is surely drawn and being counted: what is read here imports as much as its screen."""


class OpenRun:
    """A run under review; the screen replaces it whole when another run comes into sight."""

    def __init__(
        self,
        name: str,
        loader: RunLoader,
        view: ReviewView,
        *,
        hides: bool,
        opens_at: str = "",
        found: FoundHits | None = None,
    ) -> None:
        """`hides` and `opens_at` are those of `RunInSight` and `Navigation`; `found` are hits to continue from."""
        self.name, self.loader, self._view = name, loader, view
        self.header: Run | None = None
        self._summed_up: RunDocument | None = None
        """The run whose header was read when it was complete."""
        self.title = ""
        """The title of the run's task, if it is known here."""
        self.step: Step | None = None
        self.hides, self.found = hides, found
        self.annotations: ReviewAnnotations | None = None
        """The annotations of the run; None while they are being read."""
        self._early = ""
        """What was typed before the annotations were read: a verdict counts all the same."""
        self.navigation = Navigation(self, view, opens_at=opens_at)
        self.replay, self.gist = ReplayJob(self, view), GistScoring(self, view)

    @property
    def review(self) -> Review | None:
        """The reviewer's annotations of the run; None while they are being read."""
        return self.annotations.review if self.annotations is not None else None

    def stop(self) -> None:
        """Stop everything that runs for it."""
        for part in (self.loader, self.replay, self.gist, self.navigation.player):
            part.stop()

    def left(self) -> None:
        """Note the step at which the reviewer leaves the run."""
        if self.annotations is not None and self.step is not None:
            self.annotations.stopped(self.step)

    def read_anew(self, loader: RunLoader) -> None:
        """Take another loader, as another file has the run's name now; the place in it stays."""
        self.loader.stop()
        self.loader, self.header = loader, None
        self.step = None if self.navigation.following else self.step

    def grew(self) -> None:
        """Take up what the header says at the end of the run, and find annotated steps again."""
        document = self.loader.document
        if document is None or not document.finished:
            return
        if self.header is None or self.header.step_count != document.step_count:
            self.header = document.header
            self.loader.forget_history()
        if document.summed_up and self._summed_up is not document:
            self.header, self._summed_up = document.header, document
        if self.annotations is not None:
            self.annotations.find_again()

    # What is known of it from elsewhere

    def look_further(self) -> None:
        """Read task, gist and annotations in the loader's thread, once the run was drawn."""
        loader = self.loader
        self._view.set_timer(_DRAWN_S, lambda: self._look(loader))

    def _look(self, loader: RunLoader) -> None:
        document = loader.document
        if self._view.run is not self or loader is not self.loader or document is None:
            return
        self.gist.look_for_gist()
        loader.do(lambda: _title(document, loader), self._titled, later=True)
        if self.annotations is None:
            loader.do(lambda: self._annotations(document), self._annotations_read, later=True)
            loader.do(lambda: check_format(document), later=True)

    def _titled(self, title: str) -> None:
        self.title = title
        self._view.draw_title()

    def _annotations(self, document: RunDocument) -> ReviewAnnotations:
        from gistpoint.tui.screens.review.annotations import ReviewAnnotations

        annotations = ReviewAnnotations(self, self._view)
        annotations.read(document)
        return annotations

    def _annotations_read(self, annotations: ReviewAnnotations) -> None:
        self.annotations = annotations
        annotations.judge_by_key(self._early)
        annotations.begin(resumes=not self._view.is_at_hit and not self.navigation.opens_at)

    # Keys

    def go(self, what: str, by: int) -> None:
        """Go to the next or previous step of a kind."""
        said = self.annotations
        if what == "label":
            self.navigation.go_among(said.annotated() if said is not None else (), what, by)
        elif what == "turn":
            self.navigation.turn(by)
        elif what == "unseen":
            self.navigation.go_outside(said.seen if said is not None else (), what, by)
        else:
            self.navigation.go(what, by)

    def annotate(self, what: str) -> None:
        """Label, comment or judge, take an annotation back, or hide what could bias the verdict."""
        if self.annotations is not None:
            self.annotations.ask(what)

    def annotate_by_key(self, character: str) -> bool:
        """Give the label or the verdict with a hot key; return whether there is one."""
        said = self.annotations
        if said is None:
            self._early += character
            return False
        return said.toggle_by_key(character) or said.judge_by_key(character)


def _title(document: RunDocument, loader: RunLoader) -> str:
    header = document.header
    return title_known(header, loader.task) if is_our_id(header.task) else ""
