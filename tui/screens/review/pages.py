"""The pages of a step: made when they are first gone to."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget

from gistpoint.core.text import visible_line
from gistpoint.tui.widgets.plain import Plain

PAGES = {
    "step": "Step",
    "diff": "Diff",
    "so-far": "So far",
    "tests": "Tests",
    "raw": "Raw",
    "files": "Files",
    "hits": "Hits",
    "run": "Run",
    "replay": "Replay",
}


class PageTab(Plain):
    """The name of a page, to click."""

    class Clicked(Message):
        """A page is wanted."""

        def __init__(self, page: str) -> None:
            super().__init__()
            self.page = page

    def __init__(self, page: str, number: int) -> None:
        super().__init__(f" F{number} {PAGES[page]} ", classes="page-tab")
        self.page = page

    def on_click(self, event: events.Click) -> None:
        """Ask for the page."""
        event.stop()
        self.post_message(self.Clicked(self.page))


class Pages(Vertical):
    """Tabs, a note, and the page in sight."""

    def __init__(self, makers: dict[str, Callable[[], Widget]]) -> None:
        """`makers` make the widget of each page."""
        super().__init__(id="pages")
        self._makers = makers
        self.made: dict[str, Widget] = {}
        self.current = "step"
        self._noted = ""

    def compose(self) -> ComposeResult:
        """Lay out tabs and the first page."""
        with Horizontal(id="page-tabs"):
            for number, page in enumerate(PAGES, 2):
                yield PageTab(page, number)
        yield Plain("", id="page-note")
        self.made["step"] = self._makers["step"]()
        yield self.made["step"]

    def on_mount(self) -> None:
        """Mark the first tab."""
        self._mark()

    async def show(self, page: str) -> Widget:
        """Show a page, and return its widget."""
        if page not in self.made:
            widget = self.made[page] = self._makers[page]()
            widget.display = False
            await self.mount(widget)
        self.current = page
        for name, widget in self.made.items():
            widget.display = name == page
        self._mark()
        return self.made[page]

    def note(self, words: str) -> None:
        """Show a line above the page: where it comes from, or what is missing."""
        if words != self._noted:
            self._noted = words
            self.query_one("#page-note", Plain).update(visible_line(words), layout=False)

    def _mark(self) -> None:
        for tab in self.query(PageTab):
            tab.set_class(tab.page == self.current, "-active")
