"""What a screen records of its use beside tool calls: what has the focus, comforts, half-written code, notes."""

from __future__ import annotations

from typing import Literal

from textual import events, on
from textual.screen import Screen

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.tui.screens.solve.calls import CallFailed
from gistpoint.tui.screens.solve.code_pane import CodePane
from gistpoint.tui.screens.solve.console import Console
from gistpoint.tui.screens.solve.editor_pane import EditorPane
from gistpoint.tui.screens.solve.recording import Recording
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.writing_area import Pasted, WritingArea

How = Literal["ended", "left"]

PANE_EVENTS = {
    "brief": Pane.BRIEF,
    "files": Pane.TREE,
    "code": Pane.CODE,
    "console": Pane.CONSOLE,
    "editor": Pane.EDITOR,
    "results": Pane.RESULT,
    "notes": Pane.NOTES,
    "trace": Pane.RESULT,
}


class RecordedScreen(Screen[How]):
    """Hands everything that costs no budget to the recording."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__()
        self._attempt = attempt
        self._recording = Recording(attempt, self._failed_to_record)
        self._pane = ""
        """The pane that has the focus."""

    def _failed_to_record(self, error: Exception) -> None:
        self.post_message(CallFailed(error))

    def pane_entered(self, pane: str) -> None:
        """Another pane has the focus; for subclasses to show."""

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Record what has the focus: it decides which clock runs."""
        names = (node.id.removesuffix("-pane") for node in event.widget.ancestors_with_self if node.id is not None)
        pane = next((name for name in names if name in PANE_EVENTS), None)
        if pane is not None and pane != self._pane:
            self._pane = pane
            self.pane_entered(pane)
            self._recording.view(PANE_EVENTS[pane])

    @on(LineView.Comfort)
    def comfort(self, message: LineView.Comfort) -> None:
        """Count what a model does not have."""
        self._recording.comfort(message.kind)

    @on(CodePane.Comfort)
    @on(EditorPane.Comfort)
    def pane_comfort(self, message: CodePane.Comfort | EditorPane.Comfort) -> None:
        """Count what a pane offers beyond the tools."""
        self._recording.comfort(message.kind)

    @on(Console.Completed)
    def completed(self) -> None:
        """Count completion."""
        self._recording.comfort("completion")

    @on(Console.Questioned)
    def questioned(self) -> None:
        """Count questions: a model pays for the call instead."""
        self._recording.comfort("question")

    @on(FunctionEditor.Edited)
    def edited(self, message: FunctionEditor.Edited) -> None:
        """Keep half-written code."""
        if message.buffer:
            self._recording.edited(message.buffer, message.text)

    @on(WritingArea.Edited, "#notes")
    def noted(self, message: WritingArea.Edited) -> None:
        """Keep the notes."""
        self._recording.noted(message.text)

    @on(Pasted)
    def pasted(self, message: Pasted) -> None:
        """Record what was pasted."""
        self._recording.pasted(message.text, outside=message.outside)
