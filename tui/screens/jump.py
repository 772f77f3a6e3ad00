"""Jump mode: a letter on every visible widget that takes the focus and on every tab; its key goes there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from textual import events
from textual.app import ComposeResult
from textual.errors import NoWidget
from textual.geometry import Offset, Region
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.widget import Widget

from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.widgets.frames import pane_around
from gistpoint.tui.widgets.name_tabs import NameTabs
from gistpoint.tui.widgets.plain import Plain

LETTERS = "asdfghjklqwertyuiopzxcvbnm"


@dataclass(frozen=True, slots=True)
class JumpTarget:
    """The place and width of a letter, and what going there does."""

    widget: Widget
    """The widget that takes the focus or contains the tab."""
    at: Offset
    cells: int
    go: Callable[[], object]


def places(screen: Screen[object]) -> Mapping[str, JumpTarget]:
    """Return what takes the focus by its letter, in the order of Tab, followed by the tabs.

    A letter covers no text: it is in the frame of a pane with one such widget, else next to its widget.
    """
    seen = list(_in_sight(screen))
    panes = Counter(pane_around(widget) for widget, _ in seen)
    strips = screen._compositor.render_strips()  # private: the content of the screen's cells
    found: list[JumpTarget] = []
    for widget, region in seen:
        pane = pane_around(widget)
        at, cells = (
            (pane.region.offset, 3) if pane is not None and panes[pane] == 1 else _free_place(region, strips)
        )
        found.append(JumpTarget(widget, at, cells, partial(screen.set_focus, widget)))
    for tabs in screen.query(NameTabs):
        found += [
            JumpTarget(tabs, tabs.region.offset + Offset(x, 0), 1, partial(tabs.ask_for, key))
            for key, x in (tabs.places() if tabs.region.area else ())
        ]
    return dict(zip(LETTERS, found, strict=False))


def _in_sight(screen: Screen[object]) -> Iterator[tuple[Widget, Region]]:
    for widget in screen.focus_chain:
        try:
            region = screen.find_widget(widget).visible_region
        except NoWidget:
            continue
        if region.area:
            yield widget, region


def _free_place(region: Region, strips: Sequence[Strip]) -> tuple[Offset, int]:
    """Return the first place at or above the widget's first line that contains no letter or digit."""
    x, y, right = region.x, region.y, region.right
    for left, row, cells in (
        (x - 3, y, 3),
        (x, y, 3),
        (right - 3, y, 3),
        (x, y - 1, 3),
        (x, y, 1),
        (x - 1, y, 1),
    ):
        if left >= 0 <= row < len(strips) and not any(
            map(str.isalnum, strips[row].crop(left, left + cells).text)
        ):
            return Offset(left, row), cells
    return region.offset, 1


class JumpScreen(ModalScreen[JumpTarget], BaseScreen[JumpTarget]):
    """The letters. Any other key, or a click, ends it."""

    DEFAULT_CSS = """
    JumpScreen { background: $background 20%; }
    JumpScreen Plain {
        position: absolute;
        width: auto;
        height: 1;
        background: $warning;
        color: $background;
        text-style: bold;
    }
    JumpScreen Plain:nocolor { text-style: bold reverse; }
    """

    def __init__(self, places: Mapping[str, JumpTarget]) -> None:
        super().__init__()
        self._places = places

    def compose(self) -> ComposeResult:
        """Put a letter on each place."""
        for letter, target in self._places.items():
            shown = Plain(letter.center(target.cells))
            shown.styles.offset = target.at
            yield shown

    def on_key(self, event: events.Key) -> None:
        """Go to the place of the letter."""
        event.stop()
        self.dismiss(self._places.get(event.key))

    def on_click(self) -> None:
        """End it."""
        self.dismiss(None)
