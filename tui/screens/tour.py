"""The tour: a practice attempt that is not kept, its steps, and the screen with a card for each step."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.ports import TimeSource
from gistpoint.core.running import Opening
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.services import Services
from gistpoint.tui import signs
from gistpoint.tui.keys import KeyScope, bindings_of, key_named, shown_keys
from gistpoint.tui.screens.solve.controller import StateChanged
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.screens.solve.terms import Terms
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.plain import Plain

_TASK = "seats-together"


@dataclass(frozen=True, slots=True)
class TourStep:
    """A step of the tour: its text, and whether an attempt's state completes it.

    A binding's id in angle brackets is replaced with the user's key for it.
    """

    title: str
    words: str
    done: Callable[[AttemptState], bool]


def _called(*tools: str) -> Callable[[AttemptState], bool]:
    return lambda state: any(
        call.tool in tools and call.text is not None and not call.refused for call in state.calls
    )


STEPS: tuple[TourStep, ...] = (
    TourStep(
        "Read the brief",
        "This is the task: one function has lost its body, so tests fail. The clock runs while you read. "
        "When you have read it, press <pane.files>.",
        lambda state: state.pane is not Pane.BRIEF or bool(state.calls),
    ),
    TourStep(
        "Open a file",
        "These are the files. Move with the arrows; Enter lists a folder or reads a file, for one tool use"
        " each. Read one; reading it again is free.",
        _called("read_file"),
    ),
    TourStep(
        "Search",
        "Press <solve.search>, type a word such as seat, and press Enter: the whole repository is searched"
        " for one tool use, and Enter on a hit goes there.",
        _called("search_code"),
    ),
    TourStep(
        "Edit",
        "Press <pane.editor>: there is the function, and what you type replaces pass. Type a line, whatever "
        "comes to mind. Typing is free, and everything is saved.",
        lambda state: bool(state.buffers),
    ),
    TourStep(
        "Submit",
        "Press <attempt.submit> and say yes: the tests run on your code, for one tool use and one submission."
        " It need not pass: this is practice.",
        _called("submit_attempt"),
    ),
    TourStep(
        "Pause",
        "Press <attempt.pause> and choose why: the clock stops and the code is hidden, since breaks"
        " are not work. "
        "Enter continues.",
        lambda state: state.pause is None and state.clock.of(ClockActivity.PAUSED) > 0,
    ),
    TourStep(
        "Leave",
        "Press <attempt.leave> to go home. An attempt waits there with its clock, its budgets and your code;"
        " this one is thrown away.",
        lambda state: False,
    ),
)
"""The steps in their order. The last one is never done, because leaving the attempt ends the tour."""
END = (
    "You have read, searched, edited, submitted and paused: that is all there is to an attempt. Choose a task"
    " and press Enter to start one; those at the demo's tasks never count. F1 explains the keys of any"
    " screen, Ctrl+P finds any command."
)


def step_at(state: AttemptState) -> int:
    """Return the index of the first step that is not done yet."""
    return next(number for number, step in enumerate(STEPS) if not step.done(state))


def with_keys(words: str, keymap: Mapping[str, str]) -> str:
    """Return the text of a card, with each binding id in angle brackets replaced by the user's first key."""

    def shown(match: re.Match[str]) -> str:
        id = match.group(1)
        return shown_keys(keymap.get(id, key_named(id).keys).partition(",")[0])

    return re.sub(r"<([a-z_.]+)>", shown, words)


@dataclass(frozen=True, slots=True)
class Tour:
    """A practice attempt in a temporary folder. It appears in no list and no result."""

    held: OpenAttempt
    folder: Path

    @classmethod
    def begin(cls, services: Services, opening: Opening) -> Tour:
        """Begin the practice attempt, and return its tour.

        Raises `CancelledError` if the user cancels the opening, and `UserError` if the code can't be isolated
        or the task can't be unpacked.
        """
        folder = Path(tempfile.mkdtemp(prefix="gistpoint-tour-"))
        try:
            attempts = AttemptStore(folder, services.clock, "tour")
            apart = replace(services, attempts=attempts, enrolment=Enrolment(role=Role.TRAINING))
            opening.step("unpacking the practice task")
            return cls(apart.start(demo_task(_TASK, services.locations.demo), opening=opening), folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def end(self) -> None:
        """Close the attempt, and delete its folder as far as possible."""
        self.held.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class TourCard(Plain):
    """The card with the current step, across the whole width. If there is room, a line lists all steps."""

    def __init__(self) -> None:
        super().__init__("", id="tour-card")
        self._shown: tuple[int, bool] | None = None

    def show_step(self, number: int, *, wide: bool) -> None:
        """Show a step by its index, with a list of all steps if `wide` is set."""
        if self._shown == (number, wide):
            return
        self._shown = (number, wide)
        step = STEPS[number]
        keymap = getattr(self.app, "keymap", {})
        framed(
            self,
            f"Tour {number + 1} of {len(STEPS)}: {step.title}",
            with_keys("<tour.leave> ends it", keymap),
        )
        words = Content(with_keys(step.words, keymap))
        self.update(Content.assemble(words, "\n", self._listed(number)) if wide else words)

    @staticmethod
    def _listed(now: int) -> Content:
        marks = (f"{signs.GOOD} ", "$text-success"), (f"{signs.HERE} ", "$text-warning"), ("· ", "")
        lines = []
        for number, step in enumerate(STEPS):
            sign, style = marks[0 if number < now else 1 if number == now else 2]
            lines.append(Content.assemble((sign, style), (step.title, "bold" if number == now else "")))
        return Content("   ").join(lines)


class TourScreen(SolveScreen):
    """The solve screen with a practice attempt.

    The user is not asked about periods without input, because nothing is counted.
    """

    CSS_PATH: ClassVar[Any] = ["solve/solve.tcss", "tour.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TOUR)]
    SCOPES: ClassVar[tuple[KeyScope, ...]] = (KeyScope.TOUR, *SolveScreen.SCOPES)

    def __init__(self, tour: Tour, clock: TimeSource) -> None:
        super().__init__(tour.held.attempt, clock, terms=Terms(ask_ms=sys.maxsize))
        self._practice = tour.held.attempt

    def compose(self) -> ComposeResult:
        """Lay out the solve screen and the card."""
        yield from super().compose()
        yield TourCard()

    def on_resize(self) -> None:
        """Draw the card again for the new size."""
        self.call_after_refresh(self.tour_on)

    @on(StateChanged)
    def tour_on(self) -> None:
        """Show the first step that is not done yet."""
        if self.is_mounted and not self._practice.state.ended:
            self.query_one(TourCard).show_step(step_at(self._practice.state), wide=self.has_class("-wide"))
