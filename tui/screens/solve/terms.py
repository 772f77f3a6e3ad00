"""The terms that a study sets for the solve screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.widget import Widget

from gistpoint.core.attempts.clock import ASK_MS
from gistpoint.core.attempts.events import PauseReason
from gistpoint.core.attempts.state import AttemptState
from gistpoint.tui.view_models import allowed
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.writing_area import WritingArea, WritingLine

if TYPE_CHECKING:
    from gistpoint.core.assist.exchange import Assistant

Then = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an attempt. The defaults apply outside of a study."""

    ask_ms: int = ASK_MS
    """Milliseconds without input after which the solver is asked."""
    brief_first: bool = False
    """Whether only the brief is shown until the solver has read it."""
    after_brief: Callable[[Then], None] | None = None
    """A function that asks the questions after the brief, resumes the clock, and calls its argument."""
    paused: Then | None = None
    """Called after the solver has paused."""
    withdraw: Then | None = None
    """A function that asks whether the solver wants to leave the study."""
    assistant: Assistant | None = None
    """The assistant of an assisted condition; None under any other condition."""
    gist_help: str = ""
    """The gist shown along with a repair; empty if there is none."""


OUTSIDE_OF_A_STUDY = Terms()


def switch_off(part: Widget, state: AttemptState) -> None:
    """Disable pasting and copying in a part of the screen if the study does not allow them."""
    for area in (*part.query(WritingArea), *part.query(WritingLine)):
        area.may_paste = allowed(state, "paste")
    for view in part.query(LineView):
        view.may_copy = allowed(state, "copy")


def brief_is_first(state: AttemptState) -> bool:
    """Return whether the solver has not left the brief yet, or not answered the questions after it."""
    asked = state.pause is not None and state.pause.reason == PauseReason.QUESTIONNAIRE
    return asked or not (state.left_brief or state.calls)
