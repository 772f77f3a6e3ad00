"""Pages in a frame, with tabs in the title and a note in the lower edge.

A page is made when it is first shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from gistpoint.core.text import shortened, visible_line
from gistpoint.tui import signs
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.plain import plain_line

BEFORE = signs.CUT_LEFT
"""The tab that replaces those that don't fit on the left. A click on it shows the last of them."""
_CORNERS = 6
"""The cells of the frame's upper edge that a title can't use."""


class Pages(Vertical):
    """A set of pages, of which the current one is visible.

    A click on a tab runs the screen's action `page` with the name of the page, as the page's key does.
    """

    DEFAULT_CSS = """
    Pages { height: 1fr; width: 1fr; }
    """

    def __init__(
        self,
        names: Mapping[str, str],
        makers: Mapping[str, Callable[[], Widget]],
        *,
        later: frozenset[str] = frozenset(),
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """`names` are the titles of the pages, `makers` return their widgets. The first page is made at once.

        Pages in `later` have no tab until they are offered; their tabs then follow the first one. `keys` are
        shown with the titles if there is room; by default, the pages have F2 and the following keys in order.
        """
        super().__init__(id="pages")
        self._makers, self._hidden = makers, later
        shown = {page: f"F{number}" for number, page in enumerate(names, 2)} | dict(keys or {})
        first, *others = names
        order = [
            first,
            *(page for page in others if page in later),
            *(page for page in others if page not in later),
        ]
        self._tabs = {page: (shown[page], names[page]) for page in order}
        self.made: dict[str, Widget] = {}
        self.current = first
        self._note = ""

    def compose(self) -> ComposeResult:
        """Lay out the first page."""
        self.made[self.current] = self._makers[self.current]()
        yield self.made[self.current]

    def on_resize(self) -> None:
        """Draw as many tabs as fit."""
        self._draw()

    async def show(self, page: str) -> Widget:
        """Show a page, making it if necessary, and return its widget."""
        if page not in self.made:
            widget = self.made[page] = self._makers[page]()
            widget.display = False
            await self.mount(widget)
        return self.bring(page)

    def bring(self, page: str) -> Widget:
        """Show a page that has already been made, and return its widget."""
        self.current = page
        for name, widget in self.made.items():
            widget.display = name == page
        self._draw()
        return self.made[page]

    def offer(self, page: str) -> None:
        """Show the tab of a page."""
        self.hide_tabs(self._hidden - {page})

    def hide_tabs(self, pages: frozenset[str]) -> None:
        """Hide the tabs of some pages, and show all others."""
        self._hidden = pages
        self._draw()

    def note(self, words: str) -> None:
        """Show a note in the lower edge, such as the origin of the page's content."""
        if words != self._note:
            self._note = words
            self._draw()

    def _draw(self) -> None:
        if self.outer_size.width:
            room = self.outer_size.width - _CORNERS
            framed(self, self.tabs(room), shortened(visible_line(self._note), room))

    def tabs(self, width: int) -> Content:
        """Return the tabs, with their keys if all of them fit into `width` cells.

        If even the titles alone don't fit, tabs on the left are left out until the current one fits.
        """

        def length(tabs: list[tuple[str, str]]) -> int:
            return sum(len(words) + 2 for _, words in tabs)

        pages = [page for page in self._tabs if page not in self._hidden or page == self.current]
        for with_keys in (True, False):
            tabs = [(page, " ".join(self._tabs[page][not with_keys :]).strip()) for page in pages]
            if length(tabs) - 2 <= width:
                break
        last, first = pages.index(self.current) + 1, 0
        while first < last - 1 and length(tabs[first:last]) + len(BEFORE) >= width:
            first += 1
        if first:
            tabs = [(pages[first - 1], BEFORE), *tabs[first:]]
        return Content("  ").join(self._tab(page, words) for page, words in tabs)

    def _tab(self, page: str, words: str) -> Content:
        if page == self.current and words != BEFORE:
            return plain_line(words).stylize("bold reverse")
        return plain_line(words).stylize(Style.from_meta({"@click": f"screen.page({page!r})"}))
