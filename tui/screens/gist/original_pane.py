"""A gist that was scored, with its gutter, and the original of the line at the cursor one key away."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.widgets import ContentSwitcher

from gistpoint.core.trees import SourceTree
from gistpoint.tui.gist_marks import LEGEND, Marks, words_of
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.gist_view import GistView
from gistpoint.tui.widgets.plain import Plain


class ScoredGist(Vertical):
    """`show` fills it; Enter on a line shows its original, Enter there goes back."""

    DEFAULT_CSS = """
    ScoredGist .gist-legend { height: 1; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "Back to the gist", show=False, id="gist.back"),
    ]

    switcher = query_one(ContentSwitcher)
    gist = query_one("#scored-text", GistView)
    original = query_one("#scored-original", CodeView)
    legend = query_one(".gist-legend", Plain)

    def __init__(self, tree: SourceTree | None, *, id: str | None = None) -> None:
        """`tree` is the codebase, where it is here."""
        super().__init__(id=id)
        self._tree = tree

    def compose(self) -> ComposeResult:
        """Lay out legend and views."""
        yield Plain(LEGEND, classes="gist-legend")
        with ContentSwitcher(initial="scored-text"):
            yield GistView(id="scored-text")
            yield CodeView(id="scored-original")

    def show(self, text: str, marks: Marks) -> None:
        """Show a gist and the evidence of its lines."""
        self.gist.show_gist(text, marks)
        self.switcher.current = "scored-text"

    def focus(self, scroll_visible: bool = True) -> ScoredGist:
        """Give the keys to what is in sight."""
        (self.gist if self.switcher.current == "scored-text" else self.original).focus(scroll_visible)
        return self

    @on(GistView.CursorMoved)
    def say(self) -> None:
        """Say what is known of the line at the cursor."""
        if self.switcher.current == "scored-text":
            evidence = self.gist.evidence.get(self.gist.cursor_index + 1)
            self.legend.update(words_of(evidence) if evidence is not None else LEGEND)

    @on(GistView.OriginalAsked)
    def original_asked(self, message: GistView.OriginalAsked) -> None:
        """Show the original line."""
        message.stop()
        place = message.evidence.original if message.evidence is not None else None
        if place is None or self._tree is None or not self._tree.is_file(place.path):
            self.app.bell()
            return
        self.original.load(self._tree.read(place.path).decode("utf-8", "replace"), title=place.path)
        self.switcher.current = "scored-original"
        self.original.go_to(place.line)
        self.original.focus()
        self.legend.update(f"{place.path}:{place.line}   Enter goes back to the gist")

    def action_back(self) -> None:
        """Show the gist again."""
        if self.switcher.current == "scored-original":
            self.switcher.current = "scored-text"
            self.gist.focus()
