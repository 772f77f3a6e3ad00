"""The line of keys at the bottom: one widget in place of the thirty of Textual's footer."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from gistpoint.core.text import visible_line

_DISABLED = Style(dim=True)


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key as the line shows it; `tooltip` explains it under the mouse."""

    key: str
    display: str
    name: str
    tooltip: str
    enabled: bool

    @property
    def width(self) -> int:
        """Cells: a blank on either side of the key, and one after the name."""
        return cell_len(self.display) + cell_len(self.name) + (3 if self.name else 2)


class KeyBar(Widget):
    """The keys that work now, in the order of the bindings; a click presses one, the wheel scrolls the line."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-bar--key", "key-bar--name", "key-bar--hover"}
    DEFAULT_CSS = """
    KeyBar {
        dock: bottom;
        height: 1;
        background: $footer-background;
    }
    KeyBar > .key-bar--key {
        color: $footer-key-foreground;
        background: $footer-key-background;
        text-style: bold;
    }
    KeyBar > .key-bar--name {
        color: $footer-description-foreground;
        background: $footer-description-background;
    }
    KeyBar > .key-bar--hover {
        background: $block-hover-background;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[ShownKey, ...] = ()
        self._ends: list[int] = []
        self._from = 0
        self._hovered: int | None = None

    def on_mount(self) -> None:
        """Follow changes of the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        """Stop following the screen."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if not self.app.app_focus or not self.is_attached or screen is not self.screen:
            return
        found: dict[str, ShownKey] = {}
        for _, binding, enabled, tooltip in screen.active_bindings.values():
            if binding.show and binding.action not in found:
                display = visible_line(self.app.get_key_display(binding))
                found[binding.action] = ShownKey(binding.key, display, binding.description, tooltip, enabled)
        keys = tuple(found.values())
        if keys != self._keys:
            self._keys = keys
            self._ends = list(accumulate(key.width for key in keys))
            self._from = min(self._from, self._furthest)
            self._hover(None)
            self.refresh()

    @property
    def _furthest(self) -> int:
        return max(0, (self._ends[-1] if self._ends else 0) - self.size.width)

    def render_line(self, y: int) -> Strip:
        """Draw the keys that fit."""
        ground = self.rich_style
        if y:
            return Strip.blank(self.size.width, ground)
        key_style = ground + self.get_component_rich_style("key-bar--key")
        name_style = ground + self.get_component_rich_style("key-bar--name")
        hover_style = self.get_component_rich_style("key-bar--hover")
        pieces: list[Segment] = []
        for number, key in enumerate(self._keys):
            styles = [key_style, name_style]
            if number == self._hovered:
                styles = [style + hover_style for style in styles]
            if not key.enabled:
                styles = [style + _DISABLED for style in styles]
            pieces.append(Segment(f" {key.display} ", styles[0]))
            if key.name:
                pieces.append(Segment(f"{key.name} ", styles[1]))
        strip = Strip(pieces)
        return strip.crop(self._from, self._from + self.size.width).extend_cell_length(self.size.width, ground)

    def key_at(self, x: int) -> int | None:
        """Return the index of the key that is drawn in column `x`."""
        number = bisect_right(self._ends, x + self._from)
        return number if number < len(self._keys) else None

    def _hover(self, number: int | None) -> None:
        if number != self._hovered:
            self._hovered = number
            tooltip = self._keys[number].tooltip if number is not None else ""
            self.tooltip = Content(visible_line(tooltip)) if tooltip else None
            self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark and explain the key under the mouse."""
        self._hover(self.key_at(event.x))

    def on_leave(self) -> None:
        """Unmark the key."""
        self._hover(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the key that is clicked."""
        number = self.key_at(event.x)
        if number is None:
            return
        if self._keys[number].enabled:
            self.app.simulate_key(self._keys[number].key)
        else:
            self.app.bell()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Show keys further right."""
        self._scroll(1, event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Show keys further left."""
        self._scroll(-1, event)

    def _scroll(self, by: int, event: events.MouseEvent) -> None:
        event.stop()
        self._from = min(max(0, self._from + 8 * by), self._furthest)
        self.refresh()
