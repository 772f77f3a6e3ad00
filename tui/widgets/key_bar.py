"""The line of keys at the bottom: a single widget, whereas Textual's footer has one for each key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Button, Input

from gistpoint.core.text import visible_line
from gistpoint.tui import signs

_DISABLED = Style(dim=True)
_MORE = signs.CUT_RIGHT
_MOST = 10
"""The maximum number of keys on a screen that sets no other number."""
WAYS_OUT = ("leave", "leave_program", "back", "home", "cancel")
"""The actions that leave a view."""
_AT_THE_END = (*WAYS_OUT, "help")
"""The actions whose keys stay at the right end of the line."""
_TYPED_CHARACTERS = {"slash": "/", "backslash": "\\", "at": "@", "minus": "-", "plus": "+", "underscore": "_"}
"""The characters of keys for which Textual reports none, so that a field seems not to use them."""


class ShownKey(NamedTuple):
    """A key in the line. `tooltip` explains it under the mouse."""

    key: str
    display: str
    name: str
    tooltip: str
    enabled: bool

    @property
    def width(self) -> int:
        """The width in cells, with a space on both sides of the key and one after the name."""
        return cell_len(self.display) + cell_len(self.name) + (3 if self.name else 2)


def _pressed_by_enter(focused: Widget | None) -> str:
    """Return what Enter does on a button, in a field, or on a widget with `enter_words`; otherwise empty."""
    if isinstance(focused, Button):
        return visible_line(str(focused.label))
    if isinstance(focused, Input):
        return str(getattr(focused.screen, "field_words", ""))
    return str(getattr(focused, "enter_words", ""))


class KeyBar(Widget):
    """The keys that work now, in the order of the bindings. A click on a key presses it.

    A screen's `key_names` replaces the names of actions; an action with the name None is left out.
    The keys that leave a view and the key for help are always at the right end. A screen shows at most
    `MOST_KEYS`; the help lists all. No key is cut: the mouse wheel, or a click on the symbol for more, shows
    the keys that don't fit.
    """

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
        self._fixed: tuple[ShownKey, ...] = ()
        self._first = 0
        self._hovered: int | None = None

    def on_mount(self) -> None:
        """Subscribe to changes of the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        """Unsubscribe from changes of the bindings."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if not self.app.app_focus or not self.is_attached or screen is not self.screen:
            return
        found = self._keys_of(screen)
        fixed = tuple(found[action] for action in _AT_THE_END if action in found)
        keys = tuple(key for action, key in found.items() if action not in _AT_THE_END)
        keys = keys[: max(0, getattr(screen, "MOST_KEYS", _MOST) - len(fixed))]
        if (keys, fixed) != (self._keys, self._fixed):
            self._keys, self._fixed = keys, fixed
            self._first = 0
            self._hover(None)
            self.refresh()

    def _keys_of(self, screen: Screen[object]) -> dict[str, ShownKey]:
        """Return the keys to show on a screen, by their actions."""
        found: dict[str, ShownKey] = {}
        focused = screen.focused
        if pressed := _pressed_by_enter(focused):
            found["enter"] = ShownKey("enter", "Enter", pressed, "", True)
        for _, binding, enabled, tooltip in screen.active_bindings.values():
            is_typed = focused is not None and focused.check_consume_key(
                binding.key, _TYPED_CHARACTERS.get(binding.key)
            )
            is_shown = binding.show and binding.action not in found and not is_typed
            if is_shown:
                display = visible_line(self.app.get_key_display(binding))
                name = getattr(screen, "key_names", {}).get(binding.action, binding.description)
                if name is not None:
                    found[binding.action] = ShownKey(binding.key, display, name, tooltip, enabled)
        return found

    @property
    def _room(self) -> int:
        """The number of cells to the left of the keys at the right end."""
        return max(0, self.size.width - sum(key.width for key in self._fixed))

    @property
    def _in_sight(self) -> Sequence[ShownKey]:
        """The keys that fit from the first visible one on; a cell is left for the symbol if more follow."""
        rest = self._keys[self._first :]
        ends = list(accumulate(key.width for key in rest))
        if not ends or ends[-1] <= self._room:
            return rest
        return rest[: bisect_right(ends, self._room - 1)]

    @property
    def _more(self) -> bool:
        return self._first + len(self._in_sight) < len(self._keys)

    def render_line(self, y: int) -> Strip:
        """Draw the keys that fit."""
        background = self.rich_style
        if y:
            return Strip.blank(self.size.width, background)
        seen = self._in_sight
        left = self._drawn(seen, self._first)
        if self._more and self._room:
            left = Strip([*left.extend_cell_length(self._room - 1, background), Segment(_MORE, background)])
        right = self._drawn(self._fixed, len(self._keys))
        return Strip.join([left.extend_cell_length(self._room, background), right]).crop(0, self.size.width)

    def _drawn(self, keys: Sequence[ShownKey], first: int) -> Strip:
        """Return drawn keys, the first of which has the index `first` in `shown`."""
        background = self.rich_style
        key_style = background + self.get_component_rich_style("key-bar--key")
        name_style = background + self.get_component_rich_style("key-bar--name")
        hover_style = self.get_component_rich_style("key-bar--hover")
        pieces: list[Segment] = []
        for number, key in enumerate(keys, first):
            styles = [key_style, name_style]
            if number == self._hovered:
                styles = [style + hover_style for style in styles]
            if not key.enabled:
                styles = [style + _DISABLED for style in styles]
            pieces.append(Segment(f" {key.display} ", styles[0]))
            if key.name:
                pieces.append(Segment(f"{key.name} ", styles[1]))
        return Strip(pieces)

    @property
    def shown(self) -> tuple[ShownKey, ...]:
        """All keys of the line, with those at the right end last."""
        return (*self._keys, *self._fixed)

    def key_at(self, x: int) -> int | None:
        """Return the index in `shown` of the key in column `x`; None if there is none."""
        start, first, keys = (0, self._first, self._in_sight)
        if x >= self._room:
            start, first, keys = self._room, len(self._keys), self._fixed
        number = bisect_right(list(accumulate(key.width for key in keys)), x - start)
        return first + number if number < len(keys) else None

    def _hover(self, number: int | None) -> None:
        if number != self._hovered:
            self._hovered = number
            tooltip = self.shown[number].tooltip if number is not None else ""
            self.tooltip = Content(visible_line(tooltip)) if tooltip else None
            self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlight and explain the key under the mouse."""
        self._hover(self.key_at(event.x))

    def on_leave(self) -> None:
        """Stop highlighting a key."""
        self._hover(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the key under the mouse, or show more keys."""
        number = self.key_at(event.x)
        if number is None:
            self._show_from(self._first + len(self._in_sight) if self._more else 0)
            return
        if self.shown[number].enabled:
            self.app.simulate_key(self.shown[number].key)
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
        if by < 0 or self._more:
            self._show_from(max(0, self._first + by))

    def _show_from(self, first: int) -> None:
        self._first = first
        self._hover(None)
        self.refresh()
