"""The app of `gistpoint glance`: functions to be read blind, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gistpoint.core.corruption.blind import BlindItem
from gistpoint.core.locations import Locations
from gistpoint.sessions.annotations.glance_reader import GlanceReader
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.glance.reading import GlanceScreen


class GlanceApp(BaseApp):
    """Shows the functions; the program ends with it."""

    def __init__(
        self,
        locations: Locations,
        items: Sequence[BlindItem],
        reader: GlanceReader,
        *,
        at_once: bool = False,
        told: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(locations, "screens/glance/glance.tcss")
        self._items, self._reader, self._at_once, self._told = items, reader, at_once, told

    def first_screen(self) -> GlanceScreen:
        """Return the first function that was not read yet."""
        return GlanceScreen(self._items, self._reader, at_once=self._at_once, told=self._told)
