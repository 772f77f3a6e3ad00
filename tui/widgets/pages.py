"""Pages under tabs: each is made when it is first shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from gistpoint.core.text import visible_line
from gistpoint.tui.widgets.plain import Plain

_BEFORE = "‹"


class PageTabs(Widget):
    """The names of the pages in one line, to click; the current one is always in sight."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"page-tabs--current"}
    DEFAULT_CSS = """
    PageTabs { height: 1; background: $surface; color: $text-muted; }
    PageTabs > .page-tabs--current { color: $text-primary; text-style: bold; }
    """

    current: reactive[str] = reactive("")
    """The current page."""

    class Clicked(Message):
        """Asks for a page."""

        def __init__(self, page: str) -> None:
            super().__init__()
            self.page = page

    hidden: reactive[frozenset[str]] = reactive(frozenset())
    """Pages without a tab."""

    def __init__(
        self, names: Mapping[str, str], hidden: frozenset[str] = frozenset(), keys: Mapping[str, str] | None = None
    ) -> None:
        """`names` are the labels by page; `hidden` pages have no tab at first, and are second once shown.

        `keys` are shown with the names; F2 and the keys after it belong to the pages in their order otherwise.
        """
        super().__init__(id="page-tabs")
        shown = {page: f"F{number}" for number, page in enumerate(names, 2)} | dict(keys or {})
        tabs = [(page, f" {shown[page]} {name} ") for page, name in names.items()]
        late = [tab for tab in tabs if tab[0] in hidden]
        self._all = [*tabs[:1], *late, *(tab for tab in tabs[1:] if tab not in late)]
        self.set_reactive(PageTabs.hidden, hidden)
        self.set_reactive(PageTabs.current, next(iter(names)))

    @property
    def _tabs(self) -> list[tuple[str, str]]:
        """The tabs from the first with which the current one fits; a sign stands for those before it."""
        tabs = [(page, words) for page, words in self._all if page not in self.hidden or page == self.current]
        last = next(place for place, (page, _) in enumerate(tabs) if page == self.current)
        first, end = 0, sum(len(words) for _, words in tabs[: last + 1])
        while first < last and end > self.size.width:
            end -= len(tabs[first][1]) - (0 if first else len(_BEFORE))
            first += 1
        return [(tabs[first - 1][0], _BEFORE), *tabs[first:]] if first else tabs

    def render_line(self, y: int) -> Strip:
        """Draw the names."""
        ground = self.rich_style
        current = ground + self.get_component_rich_style("page-tabs--current")
        pieces = [Segment(words, current if page == self.current else ground) for page, words in self._tabs]
        return Strip(pieces if not y else []).adjust_cell_length(self.size.width, ground)

    def on_click(self, event: events.Click) -> None:
        """Ask for the page whose name was clicked."""
        event.stop()
        at = 0
        for page, words in self._tabs:
            if at <= event.x < at + len(words):
                self.post_message(self.Clicked(page))
            at += len(words)


class Pages(Vertical):
    """Tabs, a note, and the current page."""

    DEFAULT_CSS = """
    Pages { height: 1fr; width: 1fr; }
    Pages #page-note { height: 1; padding: 0 1; background: $surface; color: $text-warning; text-wrap: nowrap;
        text-overflow: ellipsis; }
    """

    def __init__(
        self,
        names: Mapping[str, str],
        makers: Mapping[str, Callable[[], Widget]],
        *,
        later: frozenset[str] = frozenset(),
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """`names` are the labels by page, `makers` make the widget of each; the first page is made at once.

        Pages in `later` have no tab until they are offered; `keys` as for `PageTabs`.
        """
        super().__init__(id="pages")
        self._names, self._makers, self._later = names, makers, later
        self._keys = keys
        self.made: dict[str, Widget] = {}
        self.current = next(iter(names))
        self._noted = ""

    def compose(self) -> ComposeResult:
        """Lay out tabs and the first page."""
        yield PageTabs(self._names, self._later, self._keys)
        yield Plain("", id="page-note")
        self.made[self.current] = self._makers[self.current]()
        yield self.made[self.current]

    async def show(self, page: str) -> Widget:
        """Show a page, and return its widget."""
        if page not in self.made:
            widget = self.made[page] = self._makers[page]()
            widget.display = False
            await self.mount(widget)
        self.current = page
        for name, widget in self.made.items():
            widget.display = name == page
        self.query_one(PageTabs).current = page
        return self.made[page]

    def offer(self, page: str) -> None:
        """Give a page its tab."""
        self.hide_tabs(self.query_one(PageTabs).hidden - {page})

    def hide_tabs(self, pages: frozenset[str]) -> None:
        """Hide the tabs of some pages, and show all others."""
        self.query_one(PageTabs).hidden = pages

    def note(self, words: str) -> None:
        """Show a line above the page: the source of its content, or what is missing."""
        if words != self._noted:
            self._noted = words
            self.query_one("#page-note", Plain).update(visible_line(words), layout=False)
