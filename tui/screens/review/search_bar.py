"""The line that a search is typed into, and the list of what it found."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from gistpoint.sessions.runs.parts import Scope
from gistpoint.sessions.runs.searching import Hit
from gistpoint.tui.screens.review.searching import Wanted
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import Piece, RecordList

_TYPING_S = 0.12
SCOPES: tuple[tuple[str, tuple[Scope, ...]], ...] = (
    ("everywhere", tuple(Scope)),
    ("thoughts", (Scope.THOUGHT,)),
    ("texts", (Scope.TEXT,)),
    ("calls", (Scope.CALL,)),
    ("results", (Scope.RESULT,)),
    ("diffs", (Scope.DIFF,)),
    ("what is also recorded", (Scope.ALSO,)),
)


class SearchBar(Horizontal):
    """Searches as one types; Enter goes to the first hit, Escape closes it."""

    DEFAULT_CSS = """
    SearchBar { height: 1; display: none; background: $surface; }
    SearchBar Input { width: 1fr; height: 1; border: none; padding: 0 1; }
    SearchBar Plain { width: auto; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "regex", "Regular expression", id="search.regex", show=True, priority=True),
        Binding("ctrl+s", "scope", "Where", id="search.scope", show=True, priority=True),
        Binding("ctrl+t", "runs", "All runs", id="search.runs", show=True, priority=True),
        Binding("escape", "close", "Close", id="search.close", show=True, priority=True),
    ]

    class Asked(Message):
        """Something is to be searched; None for nothing any more."""

        def __init__(self, wanted: Wanted | None) -> None:
            super().__init__()
            self.wanted = wanted

    class Left(Message):
        """The bar is left: `go` for the hits."""

        def __init__(self, *, go: bool) -> None:
            super().__init__()
            self.go = go

    def __init__(self, *, id: str, runs: tuple[str, ...] = ()) -> None:
        super().__init__(id=id)
        self.runs = runs
        self.all_runs = False
        self.regex = False
        self.scope = 0
        self._typing: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the field and what it means."""
        yield Input(placeholder="search", compact=True, select_on_focus=True)
        yield Plain("", id="search-ways")

    def open(self, *, all_runs: bool = False) -> None:
        """Show the line and let words be typed."""
        self.all_runs = all_runs or self.all_runs
        self.display = True
        self.query_one(Input).focus()
        self._say()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the line work while it is open; there are other runs only in a list of them."""
        return self.display and (action != "runs" or len(self.runs) > 1)

    @property
    def wanted(self) -> Wanted | None:
        """What is to be searched; None for nothing."""
        pattern = self.query_one(Input).value
        if not pattern:
            return None
        return Wanted(pattern, self.regex, SCOPES[self.scope][1], self.runs if self.all_runs else ())

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Search when no key has been pressed for a moment."""
        event.stop()
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_TYPING_S, self._ask)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Go to the hits."""
        event.stop()
        if self._typing is not None:
            self._ask()
        self.post_message(self.Left(go=True))

    def action_close(self) -> None:
        """Close the line; hits stay."""
        self.display = False
        self.post_message(self.Left(go=False))

    def action_regex(self) -> None:
        """Search for a regular expression, or for text."""
        self.regex = not self.regex
        self._changed()

    def action_scope(self) -> None:
        """Search in other parts of the steps."""
        self.scope = (self.scope + 1) % len(SCOPES)
        self._changed()

    def action_runs(self) -> None:
        """Search in all runs, or in this one."""
        self.all_runs = not self.all_runs
        self._changed()

    def _changed(self) -> None:
        self._say()
        self._ask()

    def _ask(self) -> None:
        if self._typing is not None:
            self._typing.stop()
            self._typing = None
        self.post_message(self.Asked(self.wanted))

    def _say(self) -> None:
        ways = ["regex" if self.regex else "text", SCOPES[self.scope][0], "all runs" if self.all_runs else "this run"]
        self.query_one("#search-ways", Plain).update(" · ".join(ways))


class HitList(RecordList):
    """What a search found, a row each."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.hits: list[Hit] = []
        self.names_runs = False

    def show(self, hits: list[Hit], *, names_runs: bool) -> None:
        """Show hits; the list may grow by itself."""
        self.hits, self.names_runs = hits, names_runs
        self.set_count(len(hits))

    def row(self, index: int, width: int) -> list[Piece]:
        """Return run, step, part and line of a hit."""
        hit = self.hits[index]
        run = [(f"{PurePath(hit.run).name[-28:]:<28} ", "$text-secondary")] if self.names_runs else []
        return [
            *run,
            (f"{hit.step + 1:>6} ", "$foreground 60%"),
            (f"{hit.scope.value:<8}", "$text-primary"),
            (hit.line.strip(), ""),
        ]
