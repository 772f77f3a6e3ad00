"""The find bar: a line below a text view that searches while the query is typed."""

from __future__ import annotations

from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.getters import query_one
from textual.timer import Timer
from textual.widgets import Input

from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.drafts import DraftPlace
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain

_LONG_TEXT = 1_000_000
"""The length, in characters, above which text is searched only after a pause in typing."""
_PAUSE_S = 0.15
_QUERY = "words"
"""The name of the query among the drafts."""
_TYPING = f"Enter keeps it  {signs.UP_KEY} {signs.DOWN_KEY} others  Esc ends"
_READING = "n next  N before  Esc ends"


def find_in(view: CodeView) -> None:
    """Open the find bar for a text view, with the view's query or else the last one on the screen."""
    found = view.screen.query(FindBar)
    if found:
        found.first().open(view)
    else:
        view.screen.mount(FindBar(view), before=view.screen.query_one(KeyBar))


class FindBar(Horizontal):
    """A bar with the query, the number of matches, and the keys.

    Enter focuses the text, where `n` and `N` continue; Escape ends the search.
    """

    DEFAULT_CSS = """
    FindBar { height: 1; background: $panel; }
    FindBar Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    FindBar Plain { width: auto; height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "Previous match", show=False, id="find.before"),
        Binding("down", "step(1)", "Next match", show=False, id="find.after"),
        Binding("escape", "end_search", "End the search", show=False, id="find.end"),
    ]

    words = query_one("#find-words", Input)
    count = query_one("#find-count", Plain)

    def __init__(self, view: CodeView) -> None:
        super().__init__()
        self._view = view
        self._start = (1, 0)
        """The line and column of the cursor when the bar was opened."""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the prompt, the field and the count."""
        yield Plain("/")
        yield Input(
            id="find-words", placeholder="text, in upper or lower case", compact=True, select_on_focus=True
        )
        yield Plain("", id="find-count")

    def on_mount(self) -> None:
        """Open the bar for the text it was made for."""
        self.open(self._view)

    def open(self, view: CodeView) -> None:
        """Show the bar for a text view, and focus the query."""
        self._view = view
        self._start = (view.cursor_line, view.cursor_column)
        self.watch(view, "found", self._draw, init=False)
        self.watch(view, "has_focus", self._text_left, init=False)
        view.finding = True
        self.display = True
        given_up = "" if view.pattern else self._drafts.read().get(_QUERY, "")
        with self.prevent(Input.Changed):
            self.words.value = view.pattern or given_up
        self.words.focus()
        if given_up:
            self._search()
        self._draw()

    @property
    def _drafts(self) -> DraftPlace:
        """The place of the query's draft, which is offered again after Escape has ended the search.

        The end of the program deletes it: a query is a word, which is typed in a second.
        """
        return cast("BaseScreen[object]", self.screen).draft("find", lasting=False)

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Search from where the cursor was when the bar was opened; in long text, after a pause in typing."""
        event.stop()
        self._drafts.write({_QUERY: event.value})
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if len(self._view.text) > _LONG_TEXT:
            self._timer = self.set_timer(_PAUSE_S, self._search)
        else:
            self._search()

    def _search(self) -> None:
        self._view.search(self.words.value, start=self._start)
        self._draw()

    @on(Input.Submitted)
    def keep(self, event: Input.Submitted) -> None:
        """Focus the text if there are matches; an empty query ends the search."""
        event.stop()
        if not self.words.value:
            self.action_end_search()
        elif self._view.match_place[1]:
            self._view.focus()

    def action_step(self, by: int) -> None:
        """Move to another match while the query keeps the focus."""
        if by > 0:
            self._view.next_match()
        else:
            self._view.previous_match()

    def action_end_search(self) -> None:
        """End the search, and restore the cursor's position."""
        self._view.search("")
        self._view.go_to(*self._start)
        self._view.focus()
        self.close()

    def close(self) -> None:
        """Hide the bar. The matches remain marked."""
        self._view.finding = False
        self.display = False

    def _text_left(self, has_focus: bool) -> None:
        if not has_focus and self.display:
            self.call_after_refresh(self._close_if_left)

    def _close_if_left(self) -> None:
        """Hide the bar if the focus is neither in it nor in its text."""
        if self.display and self.screen.focused not in (self._view, self.words):
            self.close()

    def on_descendant_blur(self) -> None:
        """Hide the bar if the focus has left both it and its text, and show the keys that now apply."""
        self.call_after_refresh(self._close_if_left)
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if not self.display:
            return
        if not self._view.finding:
            self.close()
            return
        at, of = self._view.match_place
        if not self._view.pattern:
            count = Content("")
        elif of:
            count = Content.styled(f"{at} of {of}  ", "bold")
        else:
            count = Content.styled(f"{signs.BAD} not found  ", "bold $text-error")
        keys = _READING if self._view.has_focus else _TYPING
        self.count.update(Content.assemble(count, (keys, "$foreground 60%")))
