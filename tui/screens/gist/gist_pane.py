"""The gist that is written, with its gutter, its figures, and the original line of the one at the cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.getters import query_one
from textual.widgets import ContentSwitcher

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.code.parsing import fault_in
from gistpoint.core.kinds.gist.evidence import read_evidence
from gistpoint.core.kinds.gist.reference.making import undefined_names
from gistpoint.core.kinds.gist.text import GIST_BUFFER
from gistpoint.core.trees import SourceTree
from gistpoint.tui.gist_marks import LEGEND, Lack, Marks, carried, does_not_parse, figures, lacks, marks_of, words_of
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.dialogs.ask import PickDialog
from gistpoint.tui.screens.solve.editor_pane import EditorPane
from gistpoint.tui.view_models import shows_evidence
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.gist_view import GistGutter
from gistpoint.tui.widgets.plain import Plain

WRITING = ("write_gist", "edit_gist", "edit_and_execute")
"""Tools that give the gist another text."""


class GistPane(EditorPane):
    """One buffer. The gutter and the figures are there only where evidence may be shown."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.GIST)]

    beside = query_one(GistGutter)
    figures = query_one("#gist-figures", Plain)
    original = query_one("#gist-original", CodeView)

    def compose(self) -> ComposeResult:
        """Lay out title, figures, gutter and editor, and what may stand in their place."""
        yield Plain("", id="editor-title", classes="pane-title")
        yield Plain("", id="gist-figures", classes="pane-title")
        editor = FunctionEditor(id="function-editor")
        with ContentSwitcher(initial="gist-writing", id="editor-views"):
            with Horizontal(id="gist-writing"):
                yield GistGutter(editor)
                yield editor
            yield DiffView(id="editor-diff")
            yield CodeView(id="gist-original")

    def open_first(self) -> None:
        """Open the gist as it was left."""
        self._scored = self._figures = self._looked_at = self._fault = ""
        self._marks: Marks = {}
        self._taken = len(self._state.calls)
        self.editor.load_buffer(GIST_BUFFER, self._state.gist.now)
        self.beside.marks = {}
        self._take_evidence()
        self._draw_title()

    def update_from(self, state: AttemptState) -> None:
        """Take up a new state: a text that a tool wrote, and evidence."""
        scored = _last_score(state) is not _last_score(self._state)
        super().update_from(state)
        answered = [call for call in state.calls[self._taken :] if call.text is not None]
        self._taken += len(answered)
        if any(call.tool in WRITING for call in answered) and state.gist.now != self.code:
            self.editor.load_buffer(GIST_BUFFER, state.gist.now)
        if scored:
            self._take_evidence()
        self._draw_title()

    # What EditorPane asks

    @property
    def code(self) -> str:
        """The gist as it stands."""
        return self.editor.code

    @property
    def changed(self) -> bool:
        """Whether the text is other than the state has it."""
        return self.code != self._state.gist.now

    def start_of(self, name: str) -> str:
        """Return the gist as a step saved it last: what the diff compares with."""
        return self._state.gist.text

    def show_writing(self) -> None:
        """Show the editor."""
        self.switcher.current = "gist-writing"

    def _draw_title(self) -> None:
        if self.switcher.current == "gist-original":
            return
        state, code = self._state.gist, self.code
        lines = code.count("\n") + (not code.endswith("\n") and bool(code))
        if self.switcher.current == "editor-diff":
            kept = "diff against what the last step saved"
        elif code == state.text:
            kept = "saved by a step"
        else:
            kept = "kept as you type; the next call saves it by a step"
        self.title.update(f"gist  {lines} {'line' if lines == 1 else 'lines'}, {kept}   F9 hands in")

    # Evidence

    @property
    def may_show(self) -> bool:
        """Whether scores and evidence may be shown now."""
        return shows_evidence(self._state)

    def _take_evidence(self) -> None:
        found = _last_score(self._state)
        self.figures.display = self.may_show
        if not self.may_show:
            return
        if found is not None:
            self._scored, score = found
            self._marks = marks_of(read_evidence(score.get("lines", ())))
            self._figures = figures(score)
        self.draw_evidence()

    def draw_evidence(self) -> None:
        """Put the marks beside the lines that are still the same, and the figures above."""
        if not self.may_show:
            return
        if self._scored:
            self.beside.marks = carried(self._marks, self._scored, self.code)
        self.figures.update(self._figures_now())
        self.figures.set_class(bool(self._scored) and self.code != self._scored, "-stale")

    def _figures_now(self) -> str:
        if self._fault:
            return does_not_parse(self._fault)
        if not self._scored:
            return "not scored yet: Alt+S scores it"
        found = self.lacks()
        stale = "" if self.code == self._scored else "  (of an earlier text)"
        what = f"  {len(found)} to mend: Alt+N" if found else ""
        return f"{self._figures}{stale}{what}"

    def fault(self) -> str:
        """Return why the text as it stands is no Python module, and say so above it if scores may be shown."""
        if self.code != self._looked_at:
            self._looked_at = self.code
            self._fault = fault_in(self.code)
            self.draw_evidence()
        return self._fault

    def lacks(self) -> list[Lack]:
        """Return what would raise the scores, as far as that may be shown."""
        if not self.may_show:
            return []
        return lacks(self.beside.marks.values(), undefined_names(self.code)) if self._scored else []

    @on(FunctionEditor.Edited)
    def text_edited(self) -> None:
        """Follow the text."""
        self.draw_evidence()
        self._draw_title()

    def action_lack(self) -> None:
        """Go to the next line that keeps a score down, and say why."""
        found = self.lacks()
        if not found:
            self.app.notify("Nothing is known that would raise the scores." if self.may_show else _AFTER)
            return
        here = self.editor.cursor_location[0] + 1
        at = next((lack for lack in found if lack.line > here), found[0])
        self.show_writing()
        self.editor.move_cursor((min(at.line, self.editor.document.line_count) - 1, 0), center=True)
        same = [lack.words for lack in found if lack.line == at.line]
        self.app.notify(f"line {at.line}: {', '.join(same)}")

    def action_lacks(self) -> None:
        """Choose among all of them."""
        found = self.lacks()
        if not found:
            self.action_lack()
            return

        def answered(line: str | None) -> None:
            if line is not None:
                self.show_writing()
                self.editor.move_cursor((int(line.partition(" ")[0]) - 1, 0), center=True)
                self.editor.focus()

        choices = [(f"{lack.line} {n}", f"{lack.line:>5}  {lack.words}") for n, lack in enumerate(found)]
        self.app.push_screen(PickDialog(f"What would raise the scores   {LEGEND}", choices), answered)

    def action_original(self) -> None:
        """Show the original line of the one at the cursor, or the gist again."""
        if self.switcher.current == "gist-original":
            self.show_writing()
            self.editor.focus()
            self._draw_title()
            return
        if not self.may_show:
            self.app.notify(_AFTER)
            return
        evidence = self.beside.marks.get(self.editor.cursor_location[0] + 1)
        place = evidence.original if evidence is not None else None
        if place is None:
            self.app.notify(words_of(evidence))
            return
        tree = SourceTree.open(self._repair.tree_path)
        text = tree.read(place.path).decode("utf-8", "replace") if tree.is_file(place.path) else ""
        self.switcher.current = "gist-original"
        self.original.load(text, title=place.path)
        self.original.go_to(place.line)
        self.original.focus()
        self.title.update(f"{place.path}:{place.line}   {words_of(evidence)}   Alt+O goes back")
        self.post_message(self.Comfort("original_line"))


_AFTER = "Scores and evidence are shown after the hand-in."


def _last_score(state: AttemptState) -> tuple[str, Mapping[str, Any]] | None:
    """Return the text that was scored last, and its score; None where nothing was."""
    if state.submissions and state.submissions[-1].metrics:
        last = state.submissions[-1]
        return last.gist, last.metrics
    trials = state.gist.trials
    return (trials[-1].text, trials[-1].score) if trials else None
