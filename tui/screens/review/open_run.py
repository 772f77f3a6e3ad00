"""The run under review, with its loader, annotations, navigation, replay and gist scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gistpoint.sessions.records.model import Run, Step
from gistpoint.tui.held_action import HeldAction
from gistpoint.tui.screens.review.gist_scoring import GistScoring
from gistpoint.tui.screens.review.loading import RunLoader, check_format
from gistpoint.tui.screens.review.navigation import Navigation
from gistpoint.tui.screens.review.replay_job import ReplayJob
from gistpoint.tui.screens.review.run_task import is_our_id, title_known
from gistpoint.tui.screens.review.settings import FoundHits
from gistpoint.tui.screens.review.view import ReviewView

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import Review
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.tui.screens.review.annotations import ReviewAnnotations

_DRAWN_S = 0.2
"""Seconds until a run has been drawn. Reading further imports modules, which would delay the screen."""


class OpenRun:
    """A run under review. The screen replaces the whole object when it shows another run."""

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
        """`hides` and `opens_at` are as in `VisibleRun` and `Navigation`.

        `found` contains hits of a search to continue from.
        """
        self.name, self.loader, self._view = name, loader, view
        self.header: Run | None = None
        self._summed_up: RunDocument | None = None
        """The document whose header is complete; None until then."""
        self.title = ""
        """The title of the run's task; empty if it is unknown."""
        self.step: Step | None = None
        self._hides, self.found = hides, found
        loader.hide(hides)
        self.annotations: ReviewAnnotations | None = None
        """The annotations of the run; None while they are being read."""
        self._early_keys = ""
        """The keys typed before the annotations were read, after which a verdict among them is given."""
        self.pending_annotation = HeldAction(view)
        """An annotation that the reviewer requested before the annotations were read."""
        self.navigation = Navigation(self, view, opens_at=opens_at)
        self.replay, self.gist = ReplayJob(self, view), GistScoring(self, view)

    @property
    def review(self) -> Review | None:
        """The reviewer's annotations of the run; None while they are being read."""
        return self.annotations.review if self.annotations is not None else None

    @property
    def hides(self) -> bool:
        """Whether model and outcome are hidden."""
        return self._hides

    @hides.setter
    def hides(self, hides: bool) -> None:
        self._hides = hides
        self.loader.hide(hides)

    def stop(self) -> None:
        """Stop all work on the run."""
        self.pending_annotation.give_up()
        for part in (self.loader, self.replay, self.gist, self.navigation.player):
            part.stop()

    def left(self) -> None:
        """Record the step at which the reviewer leaves the run."""
        if self.annotations is not None and self.step is not None:
            self.annotations.stopped(self.step)

    def reopen(self, loader: RunLoader) -> None:
        """Switch to a loader of the file that now has the run's name, and keep the place in the run."""
        self.loader.stop()
        self.loader, self.header = loader, None
        loader.hide(self._hides)
        self.step = None if self.navigation.following else self.step

    def grew(self) -> None:
        """After all steps have been counted, use the final header and find the annotated steps again."""
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

    # Facts from outside the record

    def read_details(self) -> None:
        """Read the title, gist and annotations in the loader's thread, after the run has been drawn."""
        loader = self.loader
        self._view.set_timer(_DRAWN_S, lambda: self._read_details(loader))

    def _read_details(self, loader: RunLoader) -> None:
        document = loader.document
        if self._view.run is not self or loader is not self.loader or document is None:
            return
        self.gist.offer_gist_page()
        loader.do(lambda: _title(document, loader), self._show_title, later=True)
        if self.annotations is None:
            loader.do(lambda: self._annotations(document), self._annotations_read, later=True)
            loader.do(lambda: check_format(document), later=True)

    def _show_title(self, title: str) -> None:
        self.title = title
        self._view.draw_title()

    def _annotations(self, document: RunDocument) -> ReviewAnnotations:
        from gistpoint.tui.screens.review.annotations import ReviewAnnotations

        annotations = ReviewAnnotations(self, self._view)
        annotations.read(document)
        return annotations

    async def _annotations_read(self, annotations: ReviewAnnotations) -> None:
        self.annotations = annotations
        annotations.judge_by_key(self._early_keys)
        annotations.begin(resumes=not self._view.is_at_hit and not self.navigation.opens_at)
        await self.pending_annotation.ready()

    # Keys

    def go(self, what: str, by: int) -> None:
        """Move to the next or previous step of a kind."""
        annotations = self.annotations
        if what == "label":
            self.navigation.go_among(annotations.annotated() if annotations is not None else (), what, by)
        elif what == "turn":
            self.navigation.turn(by)
        elif what == "unseen":
            self.navigation.go_outside(annotations.seen if annotations is not None else (), what, by)
        else:
            self.navigation.go(what, by)

    def annotate(self, what: str) -> None:
        """Open the dialog for an annotation or a removal, or switch blind judging."""
        if self.annotations is not None:
            self.annotations.ask(what)
        else:
            self.pending_annotation.wait(partial(self.annotate, what))

    def annotate_by_key(self, character: str) -> bool:
        """Toggle the label or give the verdict that has a hot key. Return whether there is one.

        Before the annotations have been read, keep the key for them and return False.
        """
        annotations = self.annotations
        if annotations is None:
            self._early_keys += character
            return False
        return annotations.toggle_by_key(character) or annotations.judge_by_key(character)


def _title(document: RunDocument, loader: RunLoader) -> str:
    header = document.header
    return title_known(header, loader.task) if is_our_id(header.task) else ""
