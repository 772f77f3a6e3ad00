"""Pages under tabs: each is made when it is first gone to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget

from gistpoint.core.text import visible_line
from gistpoint.tui.widgets.plain import Plain


class PageTab(Plain):
    """The name of a page, to click."""

    class Clicked(Message):
        """A page is wanted."""

        def __init__(self, page: str) -> None:
            super().__init__()
            self.page = page

    DEFAULT_CSS = """
    PageTab { width: auto; height: 1; color: $text-muted; }
    PageTab.-active { color: $text-primary; text-style: bold; }
    """

    def __init__(self, page: str, name: str, number: int) -> None:
        super().__init__(f" F{number} {name} ", classes="page-tab")
        self.page = page

    def on_click(self, event: events.Click) -> None:
        """Ask for the page."""
        event.stop()
        self.post_message(self.Clicked(self.page))


class Pages(Vertical):
    """Tabs, a note, and the page in sight; F2 and the keys after it belong to the pages in their order."""

    DEFAULT_CSS = """
    Pages { height: 1fr; width: 1fr; }
    Pages #page-tabs { height: 1; background: $surface; }
    Pages #page-note { height: 1; padding: 0 1; background: $surface; color: $text-warning; text-wrap: nowrap;
        text-overflow: ellipsis; }
    """

    def __init__(self, names: Mapping[str, str], makers: Mapping[str, Callable[[], Widget]]) -> None:
        """`names` are what the tabs say by page, `makers` make the widget of each; the first page is made at once."""
        super().__init__(id="pages")
        self._names, self._makers = names, makers
        self.made: dict[str, Widget] = {}
        self.current = next(iter(names))
        self._noted = ""

    def compose(self) -> ComposeResult:
        """Lay out tabs and the first page."""
        with Horizontal(id="page-tabs"):
            for number, (page, name) in enumerate(self._names.items(), 2):
                yield PageTab(page, name, number)
        yield Plain("", id="page-note")
        self.made[self.current] = self._makers[self.current]()
        yield self.made[self.current]

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
