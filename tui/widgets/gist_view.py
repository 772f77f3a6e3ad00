"""A view of a gist with a gutter that shows which lines ran and which are in the original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, ClassVar

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

from gistpoint.core.code.parsing import Fault
from gistpoint.core.kinds.gist.failures import ErrorKind
from gistpoint.core.kinds.gist.rates import ExistenceReason
from gistpoint.core.kinds.gist.reference import undefined_names
from gistpoint.core.kinds.gist.score import LineEvidence
from gistpoint.core.trees import SourceTree
from gistpoint.tui import signs
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.line_canvas import laid_over
from gistpoint.tui.widgets.plain import Plain

Marks = Mapping[int, LineEvidence]
"""The evidence on lines, by number, counted from 1. Blank lines, comments and lines of the test have none."""

RAN, NOT_RUN, NO_RUN = signs.FULL, signs.EMPTY, "·"
FOUND, GLUE, INVENTED = "=", "~", "+"
LEGEND = f"{RAN} ran  {NOT_RUN} did not  {FOUND} is in the original  {INVENTED} is not  {GLUE} glue"


@dataclass(frozen=True, slots=True)
class MissingLine:
    """A line of the gist (counted from 1) that lowers a score, and the reason."""

    line: int
    words: str


def marks_of(lines: Iterable[LineEvidence]) -> dict[int, LineEvidence]:
    """Return the evidence by the first line of each statement.

    Of several statements on a line, the evidence of one that lowers a score takes precedence.
    """
    marks: dict[int, LineEvidence] = {}
    for line in lines:
        known = marks.get(line.first, line)
        worse = max(known, line, key=lambda one: (not one.exists, one.existence is not ExistenceReason.GLUE))
        ran = min((one.ran for one in (known, line) if one.ran is not None), default=None)
        marks[line.first] = replace(worse, ran=ran)
    return marks


def carried_over(marks: Marks, before: str, after: str) -> dict[int, LineEvidence]:
    """Return the marks on the lines that `before` and `after` share, by their line numbers in `after`."""
    if before == after:
        return dict(marks)
    old, new = before.split("\n"), after.split("\n")
    head = _common_start(old, new)
    tail = _common_start(old[head:][::-1], new[head:][::-1])
    matcher = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    moved = {head + a + n: head + b + n for a, b, size in matcher.get_matching_blocks() for n in range(size)}
    moved |= {n: n for n in range(head)} | {len(old) - n: len(new) - n for n in range(1, tail + 1)}
    moved = {a + 1: b + 1 for a, b in moved.items()}
    return {moved[line]: evidence for line, evidence in marks.items() if line in moved}


def _common_start(one: list[str], other: list[str]) -> int:
    """Return the number of equal lines at the start of two lists."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def glyphs(evidence: LineEvidence | None) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return two styled glyphs: one for whether a line ran, one for whether it is in the original."""
    if evidence is None:
        return (" ", ""), (" ", "")
    ran = {
        True: (RAN, "$text-success"),
        False: (NOT_RUN, "bold $text-warning"),
        None: (NO_RUN, "$foreground 60%"),
    }
    if evidence.exists:
        exists = (FOUND, "$text-success")
    elif evidence.existence is ExistenceReason.GLUE:
        exists = (GLUE, "$foreground 60%")
    else:
        exists = (INVENTED, "bold $text-error")
    return ran[evidence.ran], exists


def words_of(evidence: LineEvidence | None) -> str:
    """Return a sentence that describes the evidence on a line."""
    if evidence is None:
        return "nothing is counted on this line"
    ran = {True: "ran", False: "never ran", None: "counts neither as run nor as not run"}[evidence.ran]
    place = evidence.original
    where = f": {place.path}:{place.line} in {place.block or 'its top level'}" if place is not None else ""
    return f"this line {ran}; it {_EXISTENCE[evidence.existence]}{where}"


_EXISTENCE = {
    ExistenceReason.IN_BLOCK: "is in the original block",
    ExistenceReason.IN_TOP_LEVEL: "is at the original's top level",
    ExistenceReason.NOT_IN_BLOCK: "is not in the original block",
    ExistenceReason.NO_BLOCK: "is in a block that the original doesn't have",
    ExistenceReason.NOT_IN_TOP_LEVEL: "is not at the top level of the original",
    ExistenceReason.GLUE: "is glue that a flat file needs",
}


def missing_lines(lines: Iterable[LineEvidence], undefined: Iterable[tuple[int, str]]) -> list[MissingLine]:
    """Return the lines that lower the scores, in order.

    `undefined` are the undefined names, each as its line and the name.
    """
    found = [MissingLine(line, f"{name} is not defined") for line, name in undefined]
    for line in lines:
        if line.ran is False:
            found.append(MissingLine(line.first, "never ran"))
        if not line.exists and line.existence is not ExistenceReason.GLUE:
            found.append(MissingLine(line.first, _EXISTENCE[line.existence]))
    return sorted(found, key=lambda flaw: flaw.line)


def figures(score: Mapping[str, Any]) -> str:
    """Return a line with the figures of a score, which has the form that `core.kinds.gist.score` writes."""
    if not score:
        return "not scored yet"
    error = score.get("error")
    if isinstance(error, Mapping) and error.get("kind") == ErrorKind.SYNTAX:
        return f"not faithful  {does_not_parse(str(error.get('evidence', '')))}"
    words = ["faithful" if score.get("execution_fidelity") else "not faithful"]
    words.append("self-contained" if score.get("self_contained") else "not self-contained")
    if score.get("instances"):
        words.append(f"tests {score.get('passed', 0)}/{score['instances']}")
    words += [f"ran {rate(score.get('line_execution'))}", f"exists {rate(score.get('line_existence'))}"]
    if isinstance(error, Mapping):
        words.append(
            " ".join(str(error.get(key) or "") for key in ("category", "kind")).replace("_", " ").strip()
        )
    flags = score.get("flags")
    if isinstance(flags, Mapping):
        words += [name.replace("_", " ") for name, value in flags.items() if value]
    return "  ".join(words)


def does_not_parse(fault: Fault | str) -> str:
    """Return the message about code that is not a Python module. `fault` is the result of `fault_in`."""
    return f"does not parse: {fault}"


def rate(report: object) -> str:
    """Return the rate in a report as a percentage; `none` if there is no rate."""
    value = report.get("rate") if isinstance(report, Mapping) else None
    return f"{value:.1f}%" if isinstance(value, int | float) else "none"


class GistGutter(Widget):
    """A gutter next to an editor, with two glyphs for each line. It is hidden while there are no marks."""

    DEFAULT_CSS = """
    GistGutter { width: 3; height: 1fr; background: $background; }
    """

    def __init__(self, editor: TextArea, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._editor = editor
        self._marks: Marks = {}

    def on_mount(self) -> None:
        """Scroll with the editor."""
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
        """Draw the glyphs of a visible line."""
        ran, exists = glyphs(self._marks.get(round(self._editor.scroll_y) + y + 1))
        return Strip([self._segment(*ran), self._segment(*exists), Segment(" ", self._style(""))], 3)

    def _segment(self, text: str, style: str) -> Segment:
        return Segment(text, self._style(style))

    def _style(self, style: str) -> RichStyle:
        return laid_over(self.visual_style, style)


class GistView(CodeView):
    """A view of a gist with evidence in its gutter. Enter asks for the original of a line."""

    HELP = (
        f"{signs.FULL} ran, {signs.EMPTY} did not; = is in the original, + is not, ~ is glue."
        " Enter shows the original line."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "original", "Original line", show=False, id="gist.original_line"),
    ]

    class OriginalRequested(Message):
        """A request to show the original of the line at the cursor.

        `evidence` is None if the line has none.
        """

        def __init__(self, evidence: LineEvidence | None) -> None:
            super().__init__()
            self.evidence = evidence

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.evidence: Marks = {}

    def show_gist(self, text: str, evidence: Marks, *, title: str = "") -> None:
        """Show a gist with the evidence on its lines."""
        self.evidence = evidence
        self.load(text, title=title)

    def gutter_width(self) -> int:
        """Return the width of the code view's gutter and the glyphs before it."""
        return super().gutter_width() + 3

    def line_gutter(self, line: int, *, continued: bool) -> list[tuple[str, str]]:
        """Return the glyphs of a line, followed by the code view's gutter."""
        ran, exists = glyphs(None if continued else self.evidence.get(line + 1))
        return [ran, exists, (" ", ""), *super().line_gutter(line, continued=continued)]

    def action_original(self) -> None:
        """Ask to show the original of the line at the cursor."""
        self.post_message(self.OriginalRequested(self.evidence.get(self.cursor_index + 1)))


class ScoredGist(Vertical):
    """A scored gist with its figures.

    Enter on a line shows the original of the line, and Enter there goes back. Alt+N goes to the next flaw.
    """

    DEFAULT_CSS = """
    ScoredGist .gist-legend { height: auto; max-height: 2; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "Back to the gist", show=False, id="gist.back"),
        Binding("alt+n", "next_flaw", "Next flaw", show=False, id="gist.next_lack"),
    ]

    switcher = query_one(ContentSwitcher)
    gist = query_one("#scored-text", GistView)
    original = query_one("#scored-original", CodeView)
    figures = query_one("#scored-figures", Plain)
    legend = query_one("#scored-legend", Plain)

    def __init__(self, tree: SourceTree | None = None, *, id: str | None = None) -> None:
        """`tree` contains the originals; None if no tree is available."""
        super().__init__(id=id)
        self._tree = tree
        self._shown: tuple[str, Marks] | None = None

    def compose(self) -> ComposeResult:
        """Lay out the figures, the legend, and the views of the gist and the original."""
        yield Plain("", id="scored-figures", classes="gist-legend")
        yield Plain(LEGEND, id="scored-legend", classes="gist-legend")
        with ContentSwitcher(initial="scored-text"):
            yield GistView(id="scored-text")
            yield CodeView(id="scored-original")

    def on_mount(self) -> None:
        """Turn on line wrapping."""
        self.gist.wrap = self.original.wrap = True

    def show(self, text: str, marks: Marks, *, figures: str = "", tree: SourceTree | None = None) -> None:
        """Show a gist with the evidence on its lines; if the text is unchanged, keep the place."""
        self._tree = tree or self._tree
        found = self.flaws_of(text, marks)
        hint = f"  {len(found)} to fix: Alt+N" if found and figures else ""
        self.figures.display = bool(figures)
        self.figures.update(f"{figures}{hint}")
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
        """Focus the visible view, and return the widget."""
        (self.gist if self.switcher.current == "scored-text" else self.original).focus(scroll_visible)
        return self

    @staticmethod
    def flaws_of(text: str, marks: Marks) -> list[MissingLine]:
        """Return the lines that lower the scores of a gist; empty if the gist was not scored."""
        return missing_lines(marks.values(), undefined_names(text)) if marks else []

    @on(GistView.CursorMoved)
    def show_evidence(self) -> None:
        """Show the evidence on the line at the cursor, in place of the legend."""
        if self.switcher.current == "scored-text":
            evidence = self.gist.evidence.get(self.gist.cursor_index + 1)
            self.legend.update(words_of(evidence) if evidence is not None else LEGEND)

    @on(GistView.OriginalRequested)
    def original_requested(self, message: GistView.OriginalRequested) -> None:
        """Show the original of a line, if it has one."""
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
        """Show the gist in place of the original."""
        if self.switcher.current == "scored-original":
            self.switcher.current = "scored-text"
            self.gist.focus()
            self.show_evidence()

    def action_next_flaw(self) -> None:
        """Move to the next line that lowers a score, and show why."""
        found = self.flaws_of(*self._shown) if self._shown is not None else []
        if not found:
            self.app.notify("There are no known ways to raise the scores.")
            return
        self.action_back()
        here = self.gist.cursor_index + 1
        at = next((flaw for flaw in found if flaw.line > here), found[0])
        self.gist.go_to(at.line)
        same = [flaw.words for flaw in found if flaw.line == at.line]
        self.app.notify(f"line {at.line}: {', '.join(same)}")
