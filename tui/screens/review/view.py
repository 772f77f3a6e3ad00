"""The interfaces through which the parts of the review screen use the screen and the visible run.

With them, each part can be read without the screen and the other parts (decision 55).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from textual.screen import Screen
from textual.timer import Timer

from gistpoint.core.errors import UserError
from gistpoint.sessions.records.model import Run, Step
from gistpoint.tui.jobs import JobOwner
from gistpoint.tui.screens.review.loading import RunLoader
from gistpoint.tui.screens.review.settings import FoundHits, ReviewSettings
from gistpoint.tui.screens.review.step_list import StepList
from gistpoint.tui.screens.review.step_view import StepPage
from gistpoint.tui.widgets.pages import Pages

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import Review

Answer = TypeVar("Answer")


class VisibleRun(Protocol):
    """The run under review, as used by the parts. Everything except the loader is used on the UI thread."""

    name: str
    loader: RunLoader
    header: Run | None
    step: Step | None
    """The current step; None until one has been read."""

    @property
    def hides(self) -> bool:
        """Whether model and outcome are hidden."""
        ...


class ReviewView(JobOwner, Protocol):
    """The review screen, as used by its parts on the UI thread."""

    settings: ReviewSettings

    @property
    def run(self) -> VisibleRun:
        """The visible run."""
        ...

    @property
    def is_at_hit(self) -> bool:
        """Whether a hit of the current search was shown."""
        ...

    @property
    def steps(self) -> StepList:
        """The list of steps, with its cursor on the current step."""
        ...

    @property
    def pages(self) -> Pages:
        """The tabbed pages."""
        ...

    @property
    def step_page(self) -> StepPage:
        """The page of the step itself."""
        ...

    def hold_keys(self, cancel: Callable[[], bool] | None = None) -> Callable[[], None]:
        """Hold all typing until the returned function is called; Escape calls `cancel`."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call a function once after a number of seconds, and return the timer."""
        ...

    def open(self, screen: Screen[Answer], answered: Callable[[Answer | None], None] | None = None) -> None:
        """Open a dialog or another screen. `answered` is called with its result."""
        ...

    def show_error(self, error: UserError) -> None:
        """Show a problem that the user can fix."""
        ...

    def show_message(self, words: str) -> None:
        """Show a message above the keys; an empty one hides the line."""
        ...

    def show_hits_along(self, steps: Sequence[int]) -> None:
        """Draw the hits on the strip. `steps` has an entry for each hit."""
        ...

    def draw_title(self) -> None:
        """Show the run and the number of the step in the header."""
        ...

    def review_changed(self, review: Review) -> None:
        """Draw changed annotations."""
        ...

    def show_step(self) -> None:
        """Draw the step again, because its content has changed."""
        ...

    def fill_page(self, *, reload: bool = False) -> None:
        """Load the current page unless it is already loaded for this step. `reload` loads it in any case."""
        ...

    def show_step_page(self) -> None:
        """Show the page with the text of the step in place of any other page."""
        ...

    def open_run(self, name: str) -> None:
        """Open another run on top of this one."""
        ...

    def go_to_run(self, name: str, *, found: FoundHits | None = None) -> None:
        """Replace the run with another one of the list. `found` are hits to continue from."""
        ...
