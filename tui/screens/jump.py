"""Jump mode: a letter over everything in sight that takes the focus, and one key goes there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from textual import events
from textual.app import ComposeResult
from textual.errors import NoWidget
from textual.geometry import Offset
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from gistpoint.tui.widgets.frames import pane_around
from gistpoint.tui.widgets.plain import Plain

LETTERS = "asdfghjklqwertyuiopzxcvbnm"


def places(screen: Screen[object]) -> Mapping[str, tuple[Widget, Offset]]:
    """Return what takes the focus by its letter, with the place of the letter, in the order of Tab.

    The letter of a pane with one such widget stands in the pane's frame, any other at the corner of its widget.
    """
    seen = list(_in_sight(screen))
    panes = Counter(pane_around(widget) for widget, _ in seen)
    found: dict[str, tuple[Widget, Offset]] = {}
    for letter, (widget, corner) in zip(LETTERS, seen, strict=False):
        pane = pane_around(widget)
        if pane is not None and panes[pane] == 1:
            corner = pane.region.offset
        found[letter] = (widget, corner)
    return found


def _in_sight(screen: Screen[object]) -> Iterator[tuple[Widget, Offset]]:
    for widget in screen.focus_chain:
        try:
            region = screen.find_widget(widget).visible_region
        except NoWidget:
            continue
        if region.area:
            yield widget, region.offset


class JumpScreen(ModalScreen[Widget]):
    """The letters; any other key, and a click, ends it."""

    DEFAULT_CSS = """
    JumpScreen { background: $background 20%; }
    JumpScreen Plain {
        position: absolute;
        width: 3;
        height: 1;
        background: $warning;
        color: $background;
        text-style: bold;
    }
    JumpScreen Plain:nocolor { text-style: bold reverse; }
    """

    def __init__(self, places: Mapping[str, tuple[Widget, Offset]]) -> None:
        super().__init__()
        self._places = places

    def compose(self) -> ComposeResult:
        """Lay a letter over each place."""
        for letter, (_, corner) in self._places.items():
            shown = Plain(f" {letter} ")
            shown.styles.offset = corner
            yield shown

    def on_key(self, event: events.Key) -> None:
        """Go to the place of the letter."""
        event.stop()
        widget, _ = self._places.get(event.key, (None, None))
        self.dismiss(widget)

    def on_click(self) -> None:
        """End it."""
        self.dismiss(None)
