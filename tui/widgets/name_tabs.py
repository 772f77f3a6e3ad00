"""A line of names, one of them current. A click asks for another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from gistpoint.core.text import visible_line
from gistpoint.tui import signs

_BEFORE = signs.CUT_LEFT
"""The symbol in place of the names before the first visible one."""


class NameTabs(Widget):
    """A line with as many names as fit, always including the current one, in brackets."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"name-tabs--current"}
    DEFAULT_CSS = """
    NameTabs { height: 1; background: $surface; color: $text-muted; }
    NameTabs > .name-tabs--current { color: $text-primary; text-style: bold; }
    """
    ALLOW_SELECT = False

    current: reactive[str] = reactive("")
    """The key of the current name."""

    class Clicked(Message):
        """A request for the name that was clicked."""

        def __init__(self, target: str) -> None:
            super().__init__()
            self.target = target

    def __init__(self, words: Mapping[str, str]) -> None:
        """`words` are the displayed names, by key."""
        super().__init__()
        self._names = {target: visible_line(name) for target, name in words.items()}

    def mark(self, target: str) -> None:
        """Make a name the current one."""
        self.current = target

    @property
    def _tabs(self) -> list[tuple[str, str]]:
        """The names as they are drawn, by key: two spaces apart, or one space if they don't fit otherwise."""
        has_room = sum(cell_len(name) + 2 for name in self._names.values()) <= self.size.width
        end = " " if has_room else ""
        tabs = [
            (key, f"[{name}]" if key == self.current else f" {name}{end}")
            for key, name in self._names.items()
        ]

        def width(tabs: list[tuple[str, str]]) -> int:
            return sum(cell_len(words) for _, words in tabs)

        at = next((place for place, (key, _) in enumerate(tabs) if key == self.current), 0)
        first = 0
        while first < at and width(tabs[first : at + 1]) + bool(first) > self.size.width:
            first += 1
        return [(tabs[first - 1][0], _BEFORE), *tabs[first:]] if first else tabs

    def render_line(self, y: int) -> Strip:
        """Draw the names."""
        background = self.rich_style
        current = background + self.get_component_rich_style("name-tabs--current")
        pieces = [Segment(words, current if key == self.current else background) for key, words in self._tabs]
        return Strip(pieces if not y else []).adjust_cell_length(self.size.width, background)

    def places(self) -> list[tuple[str, int]]:
        """Return the key of each visible name but the current one, with the column of the space before it."""
        found, at = [], 0
        for key, words in self._tabs:
            if key != self.current and words != _BEFORE and at < self.size.width:
                found.append((key, at))
            at += cell_len(words)
        return found

    def ask_for(self, key: str) -> None:
        """Ask for the name with a key."""
        self.post_message(self.Clicked(key))

    def on_click(self, event: events.Click) -> None:
        """Ask for the clicked name."""
        event.stop()
        at = 0
        for key, words in self._tabs:
            if at <= event.x < at + cell_len(words):
                self.ask_for(key)
            at += cell_len(words)
