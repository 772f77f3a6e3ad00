"""The tour's screen: the solve screen of a practice attempt, with a card that says what to do next."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gistpoint.core.ports import TimeSource
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.solve.controller import StateChanged
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.tour import STEPS, Tour, step_at, with_keys
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.plain import Plain


class TourCard(Plain):
    """The step to do; beside the panes, where there is room, with the others in a list."""

    def __init__(self) -> None:
        super().__init__("", id="tour-card")
        self._shown: tuple[int, bool] | None = None

    def show_step(self, number: int, *, wide: bool) -> None:
        """Show a step by its number."""
        if self._shown == (number, wide):
            return
        self._shown = (number, wide)
        step = STEPS[number]
        keymap = getattr(self.app, "keymap", {})
        framed(self, f"Tour {number + 1} of {len(STEPS)}: {step.title}", with_keys("<attempt.leave> ends it", keymap))
        words = Content(with_keys(step.words, keymap))
        self.update(Content.assemble(words, "\n\n", self._listed(number)) if wide else words)

    @staticmethod
    def _listed(now: int) -> Content:
        signs = ("✔ ", "$text-success"), ("▸ ", "$text-warning"), ("· ", "")
        lines = []
        for number, step in enumerate(STEPS):
            sign, style = signs[0 if number < now else 1 if number == now else 2]
            lines.append(Content.assemble((sign, style), (step.title, "bold" if number == now else "")))
        return Content("\n").join(lines)


class TourScreen(SolveScreen):
    """A practice attempt; Esc ends it where nothing else takes that key."""

    CSS_PATH: ClassVar[Any] = ["solve/solve.tcss", "tour.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TOUR)]
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.TOUR, *SolveScreen.SCOPES)

    def __init__(self, tour: Tour, clock: TimeSource) -> None:
        super().__init__(tour.held.attempt, clock)
        self._practice = tour.held.attempt

    def compose(self) -> ComposeResult:
        """Lay out the solve screen and the card."""
        yield from super().compose()
        yield TourCard()

    def on_resize(self) -> None:
        """Show the list of steps where there is room."""
        self.call_after_refresh(self.tour_on)

    @on(StateChanged)
    def tour_on(self) -> None:
        """Go on once the step was done."""
        if self.is_mounted and not self._practice.state.ended:
            self.query_one(TourCard).show_step(step_at(self._practice.state), wide=self.has_class("-wide"))

    def action_leave_tour(self) -> None:
        """Go home."""
        self.action_leave()
