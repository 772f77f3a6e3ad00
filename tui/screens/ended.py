"""What every summary of an ended attempt has: a headline, pages in tabs, and the way home."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from gistpoint.core.attempts.state import AttemptResult, AttemptState, attempt_result
from gistpoint.core.tasks.model import Task
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.summary_model import Rows, headline
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView


class PageTab(Plain):
    """The name of a page; a click goes there."""

    class Clicked(Message):
        """A page is wanted."""

        def __init__(self, page: str) -> None:
            super().__init__()
            self.page = page

    def __init__(self, page: str) -> None:
        super().__init__(classes="page-tab")
        self.page = page

    def on_click(self, event: events.Click) -> None:
        """Go to the page."""
        event.stop()
        self.post_message(self.Clicked(self.page))


class EndedScreen(Screen[None]):
    """An attempt that has ended; subclasses say which pages there are between the result and the notes."""

    CSS_PATH = "summary.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.SUMMARY)]
    HELP_PAGE = "summary"
    SCOPES = (Scope.SUMMARY,)
    PAGES: ClassVar[Mapping[str, str]] = {"page-result": "Result", "page-notes": "Notes"}
    INSIDE: ClassVar[Mapping[str, str]] = {}
    """What gets the keys on a page, where that is not the page itself."""

    pages = query_one("#summary-pages", ContentSwitcher)

    def __init__(self, task: Task, state: AttemptState, accepted: bool | None = None) -> None:
        """`accepted` is what reviewers have said of its pass."""
        super().__init__()
        self._ended_task, self._state, self._accepted = task, state, accepted

    def rows(self) -> list[tuple[str, Rows]]:
        """Return titled groups of named values for the first page; for subclasses."""
        return []

    def more_pages(self) -> Iterable[Widget]:
        """Return the widgets of the pages between the first and the last, with their ids; for subclasses."""
        return ()

    def compose(self) -> ComposeResult:
        """Lay out headline and pages."""
        counts = attempt_result(self._state, self._accepted) is AttemptResult.SOLVED
        words = headline(self._state, self._accepted)
        yield Plain(words, id="summary-headline", classes="-solved" if counts else "")
        with Horizontal(id="page-tabs"):
            yield from (PageTab(page) for page in self.PAGES)
        with ContentSwitcher(initial="page-result", id="summary-pages"):
            with VerticalScroll(id="page-result"):
                for title, rows in self.rows():
                    yield Plain(title, classes="summary-title")
                    for name, value in rows:
                        with Horizontal(classes="summary-row"):
                            yield Plain(name, classes="summary-name")
                            yield Plain(value, classes="summary-value")
            yield from self.more_pages()
            yield TextView(id="page-notes")
        yield KeyBar()

    def on_mount(self) -> None:
        """Fill what every summary has."""
        self.query_one("#page-notes", TextView).load(self._state.notes or "No notes were taken.")
        self._draw_tabs()
        self.query_one("#page-result").focus()

    def on_page_tab_clicked(self, message: PageTab.Clicked) -> None:
        """Turn to a page by the mouse."""
        self.turn_to(message.page)

    def action_section(self, by: int) -> None:
        """Turn to the next page or the one before."""
        pages = list(self.PAGES)
        self.turn_to(pages[(pages.index(self.pages.current or pages[0]) + by) % len(pages)])

    def turn_to(self, page: str) -> None:
        """Show a page and give it the keys."""
        self.pages.current = page
        self._draw_tabs()
        self.query_one(self.INSIDE.get(page, f"#{page}")).focus()

    def _draw_tabs(self) -> None:
        for tab in self.query(PageTab):
            active = tab.page == self.pages.current
            tab.update(f"[{self.PAGES[tab.page]}]" if active else f" {self.PAGES[tab.page]} ")
            tab.set_class(active, "-active")

    def action_home(self) -> None:
        """Back to tasks and attempts."""
        self.dismiss(None)
