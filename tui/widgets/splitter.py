"""Framed panes next to or below one another, with frames that the mouse or keys can move."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar
from weakref import WeakKeyDictionary

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.css.scalar import Unit
from textual.widget import Widget

_LEAST = {"horizontal": 16, "vertical": 4}
"""The minimum number of cells in a pane, by direction."""
_STEP = {"horizontal": 4, "vertical": 2}
"""The number of cells by which a key moves a frame, by direction."""
_SIZES: WeakKeyDictionary[App[object], dict[str, int]] = WeakKeyDictionary()
"""The chosen sizes in each app, by direction and id of the pane."""


class Splits(Container):
    """A container with its panes in a row, or in a column if `vertical` is set.

    A chosen size is kept until the program ends. A pane has a size in cells, or shares the remaining space if
    its size is in `fr`. Of the two panes at a frame, the one with a size in cells is resized. Call `fit`
    after showing or hiding a pane, or changing a natural size.
    """

    DEFAULT_CSS = """
    Splits { layout: horizontal; width: 1fr; height: 1fr; }
    Splits.-vertical { layout: vertical; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "left_curly_bracket,alt+left_curly_bracket",
            "resize(-1)",
            "Smaller",
            show=False,
            id="split.smaller",
        ),
        Binding(
            "right_curly_bracket,alt+right_curly_bracket",
            "resize(1)",
            "Larger",
            show=False,
            id="split.larger",
        ),
    ]

    def __init__(self, *panes: Widget, vertical: bool = False, id: str | None = None) -> None:
        super().__init__(*panes, id=id, classes="-vertical" if vertical else None)
        self._direction = "vertical" if vertical else "horizontal"
        self._dragged: tuple[Widget, Widget] | None = None
        self.natural: Mapping[str, int] = {}
        """The widths in cells that panes in a row have until the user resizes them, by the pane's id."""

    def turn(self, *, vertical: bool) -> None:
        """Lay the panes out in a column or in a row."""
        direction = "vertical" if vertical else "horizontal"
        if direction != self._direction:
            for pane in self.children:
                self._set(pane, None)
            self._direction = direction
            self.set_class(vertical, "-vertical")
            self.fit()

    @property
    def panes(self) -> list[Widget]:
        """The visible panes."""
        return [pane for pane in self.children if pane.display]

    def suggest(self, pane: Widget, width: int) -> None:
        """Give a pane the width that its content needs, if it is in a row and no width was chosen."""
        if pane.id is not None and self.natural.get(pane.id) != width:
            self.natural = {**self.natural, pane.id: width}
            self.fit()

    def fit(self) -> None:
        """Apply the chosen sizes to the visible panes. A single pane takes all the space."""
        panes = self.panes
        sizes = _SIZES.get(self.app, {})
        natural = self.natural if self._direction == "horizontal" else {}
        for pane in self.children:
            wanted = None
            if len(panes) > 1 and pane in panes:
                wanted = sizes.get(f"{self._direction} {pane.id}", natural.get(pane.id or ""))
            self._set(pane, None if wanted is None else self._possible(wanted))

    def on_resize(self) -> None:
        """Limit the chosen sizes to the possible range."""
        self.fit()

    def action_resize(self, by: int) -> None:
        """Make the focused pane larger or smaller."""
        panes, focused = self.panes, self.screen.focused
        around = focused.ancestors_with_self if focused is not None else []
        at = next((number for number, pane in enumerate(panes) if pane in around), 0)
        before, after = (panes[at - 1], panes[at]) if at == len(panes) - 1 else (panes[at], panes[at + 1])
        resized = self._resized(before, after)
        grows = by if resized is panes[at] else -by
        self._resize(resized, self._length(resized) + grows * _STEP[self._direction])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys only if there are two panes; otherwise the enclosing panes handle them."""
        return len(self.panes) > 1 if action == "resize" else super().check_action(action, parameters)

    # The mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Grab the frame under the mouse, if it is between two panes."""
        at = self._place(event)
        panes = self.panes
        for before, after in pairwise(panes):
            if at in (self._end(before) - 1, self._start(after)):
                event.stop()
                self._dragged = (before, after)
                self.screen.clear_selection()
                self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the frame that was grabbed."""
        if self._dragged is None:
            return
        event.stop()
        before, after = self._dragged
        at = self._place(event)
        if self._resized(before, after) is before:
            self._resize(before, at - self._start(before) + 1)
        else:
            self._resize(after, self._end(after) - at)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Release the frame."""
        if self._dragged is not None:
            event.stop()
            self._dragged = None
            self.release_mouse()
            self.screen.clear_selection()

    # Sizes in the direction of the layout

    def _place(self, event: events.MouseEvent) -> int:
        return int(event.screen_x if self._direction == "horizontal" else event.screen_y)

    def _start(self, pane: Widget) -> int:
        return pane.region.x if self._direction == "horizontal" else pane.region.y

    def _end(self, pane: Widget) -> int:
        return pane.region.right if self._direction == "horizontal" else pane.region.bottom

    def _length(self, pane: Widget) -> int:
        return pane.region.width if self._direction == "horizontal" else pane.region.height

    def _resized(self, before: Widget, after: Widget) -> Widget:
        """Return the pane to resize: the first, unless only that one shares the remaining space."""
        return after if self._shares(before) and not self._shares(after) else before

    def _shares(self, pane: Widget) -> bool:
        size = pane.styles.width if self._direction == "horizontal" else pane.styles.height
        return size is None or size.unit is Unit.FRACTION

    def _possible(self, size: int) -> int:
        least = _LEAST[self._direction]
        room = self.size.width if self._direction == "horizontal" else self.size.height
        return max(least, min(size, room - least * (len(self.panes) - 1)))

    def _resize(self, pane: Widget, size: int) -> None:
        size = self._possible(size)
        _SIZES.setdefault(self.app, {})[f"{self._direction} {pane.id}"] = size
        self._set(pane, size)

    def _set(self, pane: Widget, size: int | None) -> None:
        if self._direction == "horizontal":
            pane.styles.width = size
        else:
            pane.styles.height = size
