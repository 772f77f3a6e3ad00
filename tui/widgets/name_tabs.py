"""Names in one line, one of them current; a click asks for another."""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from gistpoint.tui.widgets.plain import Plain


class NameTab(Plain):
    """One name; brackets, not colour alone, mark the current one."""

    class Clicked(Message):
        """Asks for the clicked name."""

        def __init__(self, target: str) -> None:
            super().__init__()
            self.target = target

    def __init__(self, target: str, words: str) -> None:
        super().__init__(f" {words} ")
        self.target, self._words = target, words

    def draw(self, *, current: bool) -> None:
        """Draw it as the current one or as another."""
        self.update(f"[{self._words}]" if current else f" {self._words} ")
        self.set_class(current, "-current")

    def on_click(self, event: events.Click) -> None:
        """Ask for the name."""
        event.stop()
        self.post_message(self.Clicked(self.target))


class NameTabs(Horizontal):
    """All the names."""

    DEFAULT_CSS = """
    NameTabs { height: 1; background: $surface; }
    NameTab { width: auto; height: 1; color: $text-muted; }
    NameTab.-current { color: $text-primary; text-style: bold; }
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        """`words` are the shown names by key."""
        super().__init__()
        self._names = words

    def compose(self) -> ComposeResult:
        """Lay out the names."""
        yield from (NameTab(target, words) for target, words in self._names.items())

    def mark(self, target: str) -> None:
        """Mark the current name."""
        for tab in self.query(NameTab):
            tab.draw(current=tab.target == target)
