"""Jump mode: letters on all visible tabs and focusable widgets. Typing a letter goes to its tab or widget."""

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
    """The place and width of a letter, and the function that goes to its target."""

    widget: Widget
    """The widget that takes the focus, or the one with the tab."""
    at: Offset
    cells: int
    go: Callable[[], object]


def places(screen: Screen[object]) -> Mapping[str, JumpTarget]:
    """Return the targets by letter: the widgets in the order of Tab, followed by the tabs.

    The letter of the only such widget in a pane is in the pane's frame. The letter of any other widget is in
    or next to its first line, if possible where it covers no text. Targets for which no letter is left are
    dropped.
    """
    seen = list(_in_sight(screen))
    panes = Counter(pane_around(widget) for widget, _ in seen)
    strips = screen._compositor.render_strips()  # private: the rendered cells of the screen
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
    """Return the first free place at or above a widget's first line, and its width in cells.

    A place is free if it contains neither letters nor digits. If there is none, return one cell of the
    widget.
    """
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
    """The letters over the screen. A letter goes to its target; any other key or a click removes them all."""

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
    HELP_PAGE = "jump"

    def __init__(self, places: Mapping[str, JumpTarget]) -> None:
        super().__init__()
        self._places = places

    def compose(self) -> ComposeResult:
        """Lay out a letter at each place."""
        for letter, target in self._places.items():
            shown = Plain(letter.center(target.cells))
            shown.styles.offset = target.at
            yield shown

    def on_key(self, event: events.Key) -> None:
        """Dismiss with the target of the letter, or with None for any other key."""
        event.stop()
        self.dismiss(self._places.get(event.key))

    def on_click(self) -> None:
        """Dismiss with None."""
        self.dismiss(None)
