"""A gist to read, with a gutter that shows for each line whether it ran and whether it is in the original."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import ContentSwitcher, TextArea

from gistpoint.core.kinds.gist.reference import undefined_names
from gistpoint.core.kinds.gist.score import LineEvidence
from gistpoint.core.trees import SourceTree
from gistpoint.tui.gist_marks import LEGEND, Marks, MissingLine, glyphs, missing_lines, words_of
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.line_canvas import laid_over
from gistpoint.tui.widgets.plain import Plain


class GistGutter(Widget):
    """Two glyphs per line; nothing if `marks` is empty."""

    DEFAULT_CSS = """
    GistGutter { width: 3; height: 1fr; background: $background; }
    """

    def __init__(self, editor: TextArea, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._editor = editor
        self._marks: Marks = {}

    def on_mount(self) -> None:
        """Follow the editor."""
        self.watch(self._editor, "scroll_y", self._follow, init=False)

    def _follow(self) -> None:
        self.refresh()

    @property
    def marks(self) -> Marks:
        """The evidence on the lines."""
        return self._marks

    @marks.setter
    def marks(self, marks: Marks) -> None:
        self._marks = marks
        self.display = bool(marks)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the glyphs of the line at `y` of the view."""
        ran, stands = glyphs(self._marks.get(round(self._editor.scroll_y) + y + 1))
        return Strip([self._segment(*ran), self._segment(*stands), Segment(" ", self._style(""))], 3)

    def _segment(self, text: str, style: str) -> Segment:
        return Segment(text, self._style(style))

    def _style(self, style: str) -> RichStyle:
        return laid_over(self.visual_style, style)


class GistView(CodeView):
    """`show_gist` shows a text with its evidence; Enter asks for the original line."""

    HELP = "● ran, ○ did not; = stands in the original, + does not, ~ is glue. Enter shows the original line."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "original", "Original line", show=False, id="gist.original_line"),
    ]

    class OriginalAsked(Message):
        """Asks for the original of the line at the cursor."""

        def __init__(self, evidence: LineEvidence | None) -> None:
            super().__init__()
            self.evidence = evidence

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.evidence: Marks = {}

    def show_gist(self, text: str, evidence: Marks, *, title: str = "") -> None:
        """Show a gist and the evidence on its lines."""
        self.evidence = evidence
        self.load(text, title=title)

    def gutter_width(self) -> int:
        """Two cells wider than for code."""
        return super().gutter_width() + 3

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Both glyphs of a line in front of its number."""
        ran, stands = glyphs(None if continued else self.evidence.get(line + 1))
        return [ran, stands, (" ", ""), *super().line_gutter(line, continued=continued)]

    def action_original(self) -> None:
        """Ask for the original line."""
        self.post_message(self.OriginalAsked(self.evidence.get(self.cursor_index + 1)))


class ScoredGist(Vertical):
    """`show` fills it; Enter on a line shows its original, Enter there goes back, Alt+N goes to the next flaw."""

    DEFAULT_CSS = """
    ScoredGist .gist-legend { height: auto; max-height: 2; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "Back to the gist", show=False, id="gist.back"),
        Binding("alt+n", "next_lack", "Next lack", show=False, id="gist.next_lack"),
    ]

    switcher = query_one(ContentSwitcher)
    gist = query_one("#scored-text", GistView)
    original = query_one("#scored-original", CodeView)
    figures = query_one("#scored-figures", Plain)
    legend = query_one("#scored-legend", Plain)

    def __init__(self, tree: SourceTree | None = None, *, id: str | None = None) -> None:
        """`tree` is the codebase, if it is available."""
        super().__init__(id=id)
        self._tree = tree
        self._shown: tuple[str, Marks] | None = None

    def compose(self) -> ComposeResult:
        """Lay out figures, legend and views."""
        yield Plain("", id="scored-figures", classes="gist-legend")
        yield Plain(LEGEND, id="scored-legend", classes="gist-legend")
        with ContentSwitcher(initial="scored-text"):
            yield GistView(id="scored-text")
            yield CodeView(id="scored-original")

    def on_mount(self) -> None:
        """Fold long lines."""
        self.gist.wrap = self.original.wrap = True

    def show(self, text: str, marks: Marks, *, figures: str = "", tree: SourceTree | None = None) -> None:
        """Show a gist and the evidence of its lines; the cursor keeps its place if the text is the same."""
        self._tree = tree or self._tree
        found = self.lacks_of(text, marks)
        mend = f"  {len(found)} to mend: Alt+N" if found and figures else ""
        self.figures.display = bool(figures)
        self.figures.update(f"{figures}{mend}")
        self.legend.display = bool(marks)
        if self._shown is not None and self._shown[0] == text:
            self.gist.evidence = marks
            self.gist.redraw()
        else:
            self.gist.show_gist(text, marks)
            self.switcher.current = "scored-text"
            self.legend.update(LEGEND)
        self._shown = text, marks

    def focus(self, scroll_visible: bool = True) -> ScoredGist:
        """Focus the visible view."""
        (self.gist if self.switcher.current == "scored-text" else self.original).focus(scroll_visible)
        return self

    @staticmethod
    def lacks_of(text: str, marks: Marks) -> list[MissingLine]:
        """Return the lines that lower the scores of a gist; nothing if it was not scored."""
        return missing_lines(marks.values(), undefined_names(text)) if marks else []

    @on(GistView.CursorMoved)
    def say(self) -> None:
        """Show the evidence on the line at the cursor."""
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
            self.say()

    def action_next_lack(self) -> None:
        """Go to the next line that lowers a score, and show why."""
        found = self.lacks_of(*self._shown) if self._shown is not None else []
        if not found:
            self.app.notify("Nothing is known that would raise the scores.")
            return
        self.action_back()
        here = self.gist.cursor_index + 1
        at = next((lack for lack in found if lack.line > here), found[0])
        self.gist.go_to(at.line)
        same = [lack.words for lack in found if lack.line == at.line]
        self.app.notify(f"line {at.line}: {', '.join(same)}")
