"""The text of a step: a view with headings, whose `n` and `N` go from hit to hit of the run."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gistpoint.tui.screens.review.step_text import Part, StepText
from gistpoint.tui.widgets.text_view import TextView


class StepView(TextView):
    """Reads a `StepText`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "unfold", "Unfold", show=False, id="step.unfold"),
    ]

    class HitWanted(Message):
        """The next hit, or the one before, is to be gone to."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class UnfoldWanted(Message):
        """The folded parts are to be shown in full, or folded again."""

    def __init__(self, *, id: str) -> None:
        super().__init__(can_interpret=True, id=id)
        self.composed = StepText("", frozenset(), ())
        self.walks_hits = False
        """Whether `n` and `N` go through the hits of a search in the run instead of this text's."""

    def show(self, composed: StepText) -> None:
        """Show the text of a step, from its start."""
        self.composed = composed
        self.load(composed.text)

    def line_style(self, line: int) -> str:
        """Headings stand out."""
        return "bold $text-primary" if line in self.composed.headings else ""

    def action_next_match(self) -> None:
        """Go to the next hit."""
        self._walk(1)

    def action_previous_match(self) -> None:
        """Go to the hit before."""
        self._walk(-1)

    def _walk(self, by: int) -> None:
        if self.walks_hits:
            self.post_message(self.HitWanted(by))
        elif by > 0:
            self.next_match()
        else:
            self.previous_match()

    def action_unfold(self) -> None:
        """Ask for the folded parts."""
        self.post_message(self.UnfoldWanted())

    def place_of(self, line: int, column: int) -> tuple[Part, int] | None:
        """Return the part and the character in it that stand at a line (from 0) and column; None on a heading."""
        if self.terminal:
            return None
        return self.composed.part_at(self.lines.starts[line] + column)

    def go_to_offset(self, offset: int) -> None:
        """Put the cursor on a character of the whole text."""
        line = self.lines.line_of(offset)
        self.go_to(line + self.first_line, offset - self.lines.starts[line])
