"""What is known of the open run from elsewhere: its task, a gist that it writes, and what reviewers said of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from textual.message_pump import MessagePump

from gistpoint.tui.screens.review.gist_scoring import GistScoring
from gistpoint.tui.screens.review.loading import RunLoader, check_format, is_our_id, title_known
from gistpoint.tui.screens.review.view import ReviewView

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import Review
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.tui.screens.review.annotations import ReviewAnnotations

_DRAWN_S = 0.2
"""The time after which a run is surely drawn and being counted: what is read here imports as much as its screen."""


class FurtherView(ReviewView, Protocol):
    """The review screen, which is told what was found."""

    gist: GistScoring
    annotations: ReviewAnnotations | None

    def titled(self, title: str) -> None:
        """Show the title of the run's task; it is empty if not known."""
        ...

    def annotations_read(self, annotations: ReviewAnnotations) -> None:
        """Take what reviewers have said of the run."""
        ...

    def review_changed(self, review: Review) -> None:
        """Show the current annotations."""
        ...


def look_further(owner: MessagePump, view: FurtherView) -> None:
    """Read it in the loader's thread, once the run was drawn, unless another one came into sight."""
    owner.set_timer(_DRAWN_S, partial(_look, view, view.loader))


def _look(view: FurtherView, loader: RunLoader) -> None:
    document = loader.document
    if loader is not view.loader or document is None:
        return
    view.gist.look_for_gist()
    loader.do(lambda: _title(document, loader), view.titled, later=True)
    if view.annotations is None:
        loader.do(lambda: _annotations(view, document), view.annotations_read, later=True)
        loader.do(lambda: check_format(document), later=True)


def _title(document: RunDocument, loader: RunLoader) -> str:
    header = document.header
    return title_known(header, loader.task) if is_our_id(header.task) else ""


def _annotations(view: FurtherView, document: RunDocument) -> ReviewAnnotations:
    from gistpoint.tui.screens.review.annotations import ReviewAnnotations

    annotations = ReviewAnnotations(view, view.review_changed)
    annotations.read(document)
    return annotations
