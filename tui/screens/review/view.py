"""The interfaces of the review screen and the visible run for their parts, which know nothing else.

So each part can be read without the screen and without the other parts (decision 55).
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


class RunInSight(Protocol):
    """The run under review as parts see it. Everything except the loader belongs to the UI thread."""

    name: str
    loader: RunLoader
    header: Run | None
    step: Step | None
    """The current step; None before one was read."""
    hides: bool
    """Whether model and outcome are hidden."""


class ReviewView(JobOwner, Protocol):
    """The review screen as its parts see it. Everything belongs to the UI thread."""

    settings: ReviewSettings

    @property
    def run(self) -> RunInSight:
        """The visible run."""
        ...

    @property
    def is_at_hit(self) -> bool:
        """Whether a hit of a search is shown."""
        ...

    @property
    def steps(self) -> StepList:
        """The list of steps, with its cursor on the current step."""
        ...

    @property
    def pages(self) -> Pages:
        """The pages."""
        ...

    @property
    def step_page(self) -> StepPage:
        """The page of the step itself."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call a function once after the given seconds."""
        ...

    def open(self, screen: Screen[Answer], answered: Callable[[Answer | None], None] | None = None) -> None:
        """Open a dialog or another screen. `answered` gets its result."""
        ...

    def show_error(self, error: UserError) -> None:
        """Show a problem that the user can fix."""
        ...

    def say(self, words: str) -> None:
        """Show a line above the keys."""
        ...

    def show_hits_along(self, steps: Sequence[int]) -> None:
        """Show the number of hits in each step along the course. `steps` has one entry per hit."""
        ...

    def draw_title(self) -> None:
        """Show the run and the step's number in the line at the top."""
        ...

    def review_changed(self, review: Review) -> None:
        """Show the current annotations."""
        ...

    def show_step(self) -> None:
        """Show the step again, since its content has changed."""
        ...

    def fill_page(self, *, reload: bool = False) -> None:
        """Load the current page if it was not loaded for this step yet, or always with `reload`."""
        ...

    def show_step_page(self) -> None:
        """Show the page of the step, which has all its texts, instead of another one."""
        ...

    def open_run(self, name: str) -> None:
        """Open another run on top of this one."""
        ...

    def go_to_run(self, name: str, *, found: FoundHits | None = None) -> None:
        """Show another run of the list instead of this one. `found` are hits to continue from."""
        ...
