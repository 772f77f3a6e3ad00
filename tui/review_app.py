"""The app of `gistpoint review`: recorded runs alone, so that it opens at once."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from gistpoint.core.locations import Locations
from gistpoint.tui.base_app import BaseApp


class ReviewApp(BaseApp):
    """Shows one screen; the program ends with it."""

    def __init__(self, locations: Locations, first: Callable[[], Screen[None]]) -> None:
        """`first` makes the screen."""
        super().__init__(locations, "screens/review/review.tcss")
        self._first = first

    def first_screen(self) -> Screen[None]:
        """Return the requested screen."""
        return self._first()
