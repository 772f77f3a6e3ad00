"""The steps of a run, one per row, read when they become visible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from gistpoint.sessions.records.model import StepKind
from gistpoint.sessions.runs.rendering import GLYPHS
from gistpoint.tui.screens.review.loading import RowFact
from gistpoint.tui.widgets.record_list import Piece, RecordList

PATIENCE_S = 0.02
"""The longest time that a change is held back."""


class DrawnTogether:
    """Holds a change back until related changes are ready, which would otherwise be drawn up to two frames later."""

    def __init__(self, app: App[None], patience_s: float = PATIENCE_S) -> None:
        self._app = app
        self._patience_s = patience_s
        self._held = ExitStack()
        self._timer: Timer | None = None

    def hold(self) -> None:
        """Draw nothing until `release` or the longest time has passed."""
        if self._timer is None:
            self._held.enter_context(self._app.batch_update())
            self._timer = self._app.set_timer(self._patience_s, self.release)

    def release(self) -> None:
        """Draw."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self._held.close()
            self._app.screen.check_idle()


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
    """The step list; it requests rows that were not read yet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Step before", show=False, id="steps.previous"),
        Binding("right,l", "move(1)", "Next step", show=False, id="steps.next"),
    ]

    class RowsWanted(Message):
        """Visible rows were not read yet."""

        def __init__(self, rows: range) -> None:
            super().__init__()
            self.rows = rows

        def can_replace(self, message: Message) -> bool:
            """Only the last visible rows matter."""
            return isinstance(message, StepList.RowsWanted)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.facts: Mapping[int, RowFact] = {}
        self.unseen: Collection[int] | None = None
        self.seen: Collection[int] = ()
        self.signs: Mapping[int, str] = {}
        """The glyph after a step's number, for labels and comments."""
        self.badges: Mapping[int, str] = {}
        """The outcome of a step's replayed calls as a glyph; without any there is no column."""
        self._asked = range(0)
        self.together = DrawnTogether(self.app)
        """Released by whoever shows the step under the cursor."""

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
        """Draw again; request the rows that are still missing."""
        self._asked = range(0)
        self.refresh()
