"""The gists of a task that is judged: the reference, or one of the validator's own, with gutter and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import ContentSwitcher

from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.kinds.gist.score import score_record
from gistpoint.core.kinds.gist.splicing import original_test
from gistpoint.core.kinds.gist.verdict import GistVerdict
from gistpoint.tui.gist_marks import figures, marks_of
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.screens.editing_pane import EditingPane
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.gist_view import ScoredGist
from gistpoint.tui.widgets.plain import Plain

OWN = "gist"
"""Under which name the draft of an own gist is kept."""


class GistPage(EditingPane):
    """The reference with what is known of its lines; Alt+E writes one's own, which begins as the reference does."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.VALIDATE_GIST)]

    def __init__(self) -> None:
        super().__init__(id="gist-page")
        self._dossier: Dossier | None = None
        self._verdicts: Mapping[str, GistVerdict] = {}
        self._kept: str | None = None
        self._showing = ""
        """The text in the scored view."""

    def compose(self) -> ComposeResult:
        """Lay out the title, and the scored view that the editor may take the place of."""
        yield Plain("", id="editor-title", classes="pane-title")
        with ContentSwitcher(initial="scored", id="editor-views"):
            yield ScoredGist(id="scored")
            yield FunctionEditor(id="function-editor")
            yield DiffView(id="editor-diff")

    def show(self, dossier: Dossier, draft: str | None, verdicts: Mapping[str, GistVerdict], *, first: bool) -> None:
        """Show the gists of a task. `verdicts` are the scores made here, the last one last, by text."""
        scored = next(reversed([*verdicts]), "")
        fresh = bool(scored) and verdicts.get(scored) is not self._verdicts.get(scored)
        self._dossier, self._verdicts = dossier, dict(verdicts)
        if first:
            self._kept = draft
            self.open(f"{dossier.task.id}/{OWN}")
            self._showing = self.reference
            self.switcher.current = "scored"
        if fresh and not first:
            self._showing = scored
            if self.switcher.current != "scored":
                self.switcher.current = "scored"
                self.focus()
        self._draw_scored()
        self._draw_title()

    @property
    def reference(self) -> str:
        """The reference gist; empty where there is none."""
        answer = self._answer
        return answer.reference.text if answer is not None and answer.reference is not None else ""

    @property
    def _answer(self) -> GistAnswer | None:
        return self._dossier.answer.gist if self._dossier is not None else None

    def focus(self, scroll_visible: bool = True) -> GistPage:
        """Give the keys to what is in sight."""
        (self.query_one(ScoredGist) if self.switcher.current == "scored" else self.editor).focus(scroll_visible)
        return self

    def _draw_scored(self) -> None:
        if self._dossier is None:
            return
        verdict, text = self._verdicts.get(self._showing), self._showing
        view = self.query_one(ScoredGist)
        score = score_record(verdict.score) if verdict is not None and verdict.score is not None else None
        marks = marks_of(verdict.lines) if verdict is not None else {}
        view.show(text, marks, figures=figures(score) if score is not None else "", tree=self._dossier.corrupted)

    def _draw_title(self) -> None:
        if self.switcher.current == "function-editor":
            self.title.update("your own gist   F9 scores it; Alt+E goes back, Alt+D compares it with the reference")
        elif self.switcher.current == "editor-diff":
            self.title.update("your own gist against the reference   Alt+D goes back")
        elif self._showing and self._showing != self.reference:
            self.title.update("your own gist, as it was scored   Alt+E goes on with it")
        else:
            self.title.update(f"{reference_words(self._answer)}   r scores it here, Alt+E writes your own")

    # What EditingPane asks

    def start_of(self, name: str) -> str:
        """Return the reference, else the original test."""
        answer = self._answer
        if self.reference or answer is None or answer.test is None:
            return self.reference
        return original_test(answer.test.source, answer.test.qualname)

    def kept(self, name: str) -> str | None:
        """Return what was written before."""
        return self._kept

    def begun(self) -> Sequence[str]:
        """Return the one text there is."""
        return [self.buffer]

    def show_writing(self) -> None:
        """Show the editor."""
        self.switcher.current = "function-editor"

    def note(self, buffer: str, code: str) -> None:
        """Note what was written by now."""
        if buffer == self.buffer:
            self._kept = code

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The buffer and its text, where that is other than what was kept or where it started."""
        known = self.start_of(self.buffer) if self._kept is None else self._kept
        return None if not self.buffer or self.editor.code == known else (self.buffer, self.editor.code)

    def action_own(self) -> None:
        """Write a gist of one's own, or go back to the reference."""
        if self.switcher.current == "scored":
            self.switcher.current = "function-editor"
        else:
            self.editor.flush()
            self._showing = self.reference
            self.switcher.current = "scored"
            self._draw_scored()
        self._draw_title()
        self.focus()


def reference_words(answer: GistAnswer | None) -> str:
    """Return what is known of a task's reference gist."""
    reference = answer.reference if answer is not None else None
    if reference is None:
        return "no reference gist: gistpoint gist reference makes one"
    if not reference.faithful:
        return f"no faithful reference gist: {reference.reason}"
    rates = [("ran", reference.line_execution), ("stands", reference.line_existence)]
    told = "  ".join(f"{name} {value:.1f} %" for name, value in rates if value is not None)
    return f"the reference gist, faithful  {told}"
