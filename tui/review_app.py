"""The app of `gistpoint review`. It only loads recorded runs, so that it opens at once.

It draws the frame of its screen before it imports the code that reads a run (decision 106).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.screen import Screen

from gistpoint.core.locations import Locations
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.review.opening import OpeningRuns

MakeScreen = Callable[[], Screen[None]]


class ReviewApp(BaseApp):
    """An app that shows one screen, and ends when that screen is closed."""

    def __init__(
        self, locations: Locations, load: Callable[[], MakeScreen], names: Sequence[str] = ()
    ) -> None:
        """`load` imports the screen of the named runs, in a thread, and returns its constructor."""
        super().__init__(locations, "screens/review/review.tcss")
        self._load, self._names = load, names
        self._begun = False
        self._make: MakeScreen | None = None
        self._early_keys: list[events.Key] | None = None
        """The keys pressed before the screen could handle them; None once it can."""

    def first_screen(self) -> Screen[None]:
        """Return the frame of the screen. The screen replaces it as soon as the frame is drawn."""
        self._begun, self._make, self._early_keys = False, None, []
        return OpeningRuns(self._names, self._on_return)

    @property
    def is_open(self) -> bool:
        """Whether the screen has replaced its frame."""
        return self._early_keys is None

    def bottom_screen_drawn(self) -> None:
        """Start loading once the frame is drawn; loading earlier would slow down the drawing."""
        if not self._begun and isinstance(self.screen, OpeningRuns):
            self._begun = True
            self.in_thread(self._load_screen, holds=False)  # `_early_keys` holds the keys

    def _load_screen(self) -> None:
        make = self._load()
        self.call_from_thread(self._loaded, make)

    def _loaded(self, make: MakeScreen) -> None:
        self._make = make
        self._on_return()

    def _on_return(self) -> None:
        """Show the screen, unless a message covers its frame."""
        if self._make is not None and isinstance(self.screen, OpeningRuns):
            make, self._make = self._make, None
            # `switch_screen` removes the screen's callback, which a bottom screen does not have.
            self.screen._push_result_callback(self, None)
            self.switch_screen(self.set_bottom_screen(make()))
            self.call_later(self._replay_keys)

    async def _replay_keys(self) -> None:
        early, self._early_keys = self._early_keys, None
        for event in early or ():
            await self.on_event(event)

    async def on_event(self, event: events.Event) -> None:
        """Keep the keys for the screen that is being opened, except the key that ends the program."""
        if self._early_keys is not None and isinstance(event, events.Key) and self._is_kept(event.key):
            self._early_keys.append(event)
        else:
            await super().on_event(event)

    def _is_kept(self, key: str) -> bool:
        bound = self.screen.active_bindings.get(key)
        return isinstance(self.screen, OpeningRuns) and (
            bound is None or bound.binding.action != "leave_program"
        )
