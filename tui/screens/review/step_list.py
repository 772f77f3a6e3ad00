"""The steps of a run, a row each, read when they come into sight."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gistpoint.sessions.runs.model import StepKind
from gistpoint.sessions.runs.rendering import GLYPHS
from gistpoint.tui.drawing import DrawnTogether
from gistpoint.tui.screens.review.reader import RowFact
from gistpoint.tui.widgets.record_list import Piece, RecordList

KIND_STYLES = {
    StepKind.EDIT: "$text-warning",
    StepKind.SUBMIT: "bold $text-accent",
    StepKind.TEST: "$text-secondary",
    StepKind.EXECUTE: "$text-primary",
    StepKind.ERROR: "bold $text-error",
    StepKind.DAMAGED: "bold $text-error",
    StepKind.VIEW: "$text-success",
    StepKind.SEARCH: "$text-success",
    StepKind.SYSTEM: "$foreground 60%",
    StepKind.STATE: "$foreground 60%",
}


BADGE_STYLES = {"=": "$text-success", "≠": "bold $text-error", "∅": "$text-warning", "?": "$foreground 60%"}


class StepList(RecordList):
    """The step list; rows that were not read yet are asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Step before", show=False, id="steps.previous"),
        Binding("right,l", "move(1)", "Next step", show=False, id="steps.next"),
    ]

    class RowsWanted(Message):
        """Rows in sight were not read yet."""

        def __init__(self, rows: range) -> None:
            super().__init__()
            self.rows = rows

        def can_replace(self, message: Message) -> bool:
            """Only what is in sight last matters."""
            return isinstance(message, StepList.RowsWanted)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.facts: Mapping[int, RowFact] = {}
        self.unseen: Collection[int] | None = None
        self.seen: Collection[int] = ()
        self.signs: Mapping[int, str] = {}
        """What stands behind a step's number: labels and comments as a glyph."""
        self.badges: Mapping[int, str] = {}
        """What became of a step whose calls were made again, as a glyph; no column where there is none."""
        self._asked = range(0)
        self.together = DrawnTogether(self.app)
        """Who shows the step under the cursor releases it."""

    def watch_cursor(self, old: int, new: int) -> None:
        """Draw both rows along with the step, if it is read soon."""
        self.together.hold()
        super().watch_cursor(old, new)

    def row(self, index: int, width: int) -> list[Piece]:
        """Return seen mark, glyph, number, sign and words of a step."""
        fact = self.facts.get(index)
        digits = max(3, len(str(self.count)))
        seen = " " if index in self.seen else "•"
        number = f"{index + 1:>{digits}}"
        sign = self.signs.get(index, " ")
        if fact is None:
            self._ask()
            return [
                (seen, "$text-primary"),
                ("   ", ""),
                (number, "$foreground 60%"),
                (f" {sign} …", "$foreground 60%"),
            ]
        style = "bold $text-error" if fact.error else KIND_STYLES.get(fact.kind, "")
        return [
            (seen, "$text-primary"),
            (f" {GLYPHS[fact.kind.value]} ", style),
            (number, "$foreground 60%"),
            (f" {sign} ", "bold $text-accent"),
            *self._badge(index),
            ("↳ " if fact.starts else "", "bold $text-accent"),
            (fact.words, style if fact.error or fact.kind in (StepKind.EDIT, StepKind.SUBMIT) else ""),
        ]

    def _badge(self, index: int) -> list[Piece]:
        if not self.badges:
            return []
        badge = self.badges.get(index, " ")
        return [(f"{badge} ", BADGE_STYLES.get(badge, ""))]

    def _ask(self) -> None:
        rows = self.in_sight
        if rows != self._asked:
            self._asked = rows
            self.post_message(self.RowsWanted(rows))

    def rows_read(self) -> None:
        """Draw again; ask for what is still missing."""
        self._asked = range(0)
        self.refresh()
