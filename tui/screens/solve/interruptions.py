"""Pauses, the question after a period without input, and the endings of an attempt."""

from __future__ import annotations

from functools import partial
from typing import Literal

from textual._time import get_time  # the clock of the events' own timestamps
from textual.message import Message
from textual.widget import Widget

from gistpoint.core.attempts.clock import ASK_MS, COVER_MS
from gistpoint.core.attempts.events import GiveUpCode, PauseReason
from gistpoint.core.attempts.reasons import SOLVER_GIVE_UP_CODES, SOLVER_PAUSE_REASONS
from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.screens.dialogs.ask import GRACE_S, ReasonAnswer, ReasonDialog, show_error
from gistpoint.tui.screens.dialogs.cover import IdleCover, PauseCover
from gistpoint.tui.screens.solve.controller import AttemptController
from gistpoint.tui.screens.solve.terms import OUTSIDE_OF_A_STUDY, Terms

How = Literal["ended", "left"]
"""The ways to leave the solve screen: the attempt has ended, or it can be resumed."""

_REASONS = {
    PauseReason.BREAK: "A break",
    PauseReason.INTERRUPTED: "Interrupted by others",
    PauseReason.QUESTION_TO_ORGANISER: "A question for the organiser",
    PauseReason.ENVIRONMENT_FAILURE: "Something does not work",
}
_CODES = {
    GiveUpCode.TOO_HARD: "Too hard for me",
    GiveUpCode.UNCLEAR: "The task is unclear",
    GiveUpCode.BROKEN_TASK: "The task is broken",
    GiveUpCode.TIRED: "Tired",
    GiveUpCode.OUT_OF_TIME: "Out of time",
    GiveUpCode.OTHER: "Something else",
}


_WITHDRAW = "withdraw"


class LeaveRequested(Message):
    """A request to the screen to leave the attempt, which can be resumed."""


class Interruptions:
    """The part of the solve screen that asks about pauses, idle periods and endings, and covers the screen.

    It records the answers.
    """

    def __init__(
        self,
        screen: BaseScreen[How],
        controller: AttemptController,
        clock: TimeSource,
        terms: Terms = OUTSIDE_OF_A_STUDY,
    ) -> None:
        self._screen, self._controller, self._time, self._terms = screen, controller, clock, terms
        self._attempt = controller.attempt
        self._last_input = clock.mono_ms()
        self._pressed_at = 0.0
        self._asking = self._covered = False
        self._shown_at = 0.0
        """The time at which the last question was shown, in seconds on the clock of Textual's events."""
        self._focused: Widget | None = None

    # Pauses

    def pause(self) -> None:
        """Ask for a reason, stop the clock, and cover the screen."""
        choices = [(reason.value, _REASONS[reason]) for reason in SOLVER_PAUSE_REASONS]
        text = "Code and instructions are hidden until you continue."
        dialog = ReasonDialog("Pause: why?", text, choices, yes="Pause", at_once=True)

        def answered(answer: ReasonAnswer | None) -> None:
            if answer is not None:
                stop = partial(self._attempt.pause, PauseReason(answer.code), answer.text)
                self._controller.write(stop, self._paused, failed=self._failed)

        self._screen.app.push_screen(dialog, answered)

    def _paused(self) -> None:
        self.cover()
        if self._terms.paused is not None:
            self._terms.paused()

    def cover(self) -> None:
        """Cover the screen while the attempt is paused."""
        pause = self._attempt.state.pause
        if pause is None:
            return
        self._focused = self._screen.focused or self._focused
        self._screen.add_class("-covered")

        def answered(go_on: bool | None) -> None:
            if go_on:
                self._controller.write(self._attempt.resume, self._uncover, failed=self._failed)
            else:
                self._screen.post_message(LeaveRequested())

        self._screen.app.push_screen(PauseCover(pause.reason, pause.text), answered)

    def _uncover(self) -> None:
        self._screen.remove_class("-covered")
        if self._focused is not None:
            self._screen.focus_later(self._focused)
        self.input_happened()

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        show_error(self._screen.app, error)

    # Periods without input

    def input_happened(self, at: float | None = None) -> None:
        """Record that a key or the mouse was used, at the time `at` on the clock of Textual's events."""
        self._last_input = self._time.mono_ms()
        self._pressed_at = get_time() if at is None else at
        if self._asking and not self._covered:
            self._asking = False
            self._controller.write(self._attempt.input_again)

    def check_idle(self) -> None:
        """Ask after a period without input, and cover the screen after a longer one.

        Pauses and calls under way don't count as periods without input.
        """
        state, now = self._attempt.state, self._time.mono_ms()
        if state.ended or self._covered:
            return
        if state.pause is not None or state.pending is not None:
            self._last_input = now
        elif not self._asking and now - self._last_input >= self._terms.ask_ms:
            self._asking, self._shown_at = True, get_time()
            self._controller.write(partial(self._attempt.ask_idle, self._last_input))
        if self._asking and now - self._last_input >= self._terms.ask_ms * COVER_MS // ASK_MS:
            self._cover_idle(now - self._last_input)

    def _cover_idle(self, idle_ms: int) -> None:
        self._covered = True
        self._controller.write(self._attempt.cover_idle)
        self._focused = self._screen.focused or self._focused
        self._screen.add_class("-covered")

        def answered(answer: Literal["worked", "away"] | None) -> None:
            self._asking = self._covered = False
            self._uncover()
            self._controller.write(partial(self._attempt.answer_idle, away=answer != "worked"))

        self._screen.app.push_screen(IdleCover(idle_ms), answered)

    def answer_idle(self, *, away: bool) -> None:
        """Record the answer to the question next to the code. `away` means that the solver was not working.

        An answer that is given before the question could be read is ignored.
        """
        doubt = self._attempt.state.doubt
        if doubt and self._pressed_at >= self._shown_at + GRACE_S:
            self._controller.write(partial(self._attempt.answer_idle, away=away))
        elif doubt:
            self._screen.app.bell()

    # Ending the attempt

    def end(self) -> None:
        """Ask for the reason, then give up the task, or record it as skipped if no call was made.

        In a study, a task is always given up, as models do, and the solver can withdraw instead.
        """
        skipping = not self._attempt.state.calls and self._terms.withdraw is None
        text = "The attempt ends and can't be resumed. Please give the reason: it is part of the result."
        if skipping:
            text += " You have made no call, so the task is recorded as skipped."
        choices = [(code.value, _CODES[code]) for code in SOLVER_GIVE_UP_CODES]
        withdraw = self._terms.withdraw
        if withdraw is not None:
            choices.append((_WITHDRAW, "I want to leave the study"))
        dialog = ReasonDialog(
            "Give up this task?",
            text,
            choices,
            yes="Give up this task",
            words="More details, in your own words",
        )

        def answered(answer: ReasonAnswer | None) -> None:
            if answer is None:
                return
            if answer.code == _WITHDRAW and withdraw is not None:
                withdraw()
                return
            end = self._attempt.skip if skipping else self._attempt.give_up
            self._controller.flush()
            giving_up = partial(end, GiveUpCode(answer.code), answer.text)
            # `write` holds the keys typed meanwhile, which are meant for the summary.
            self._controller.write(giving_up, lambda: None, failed=self._failed)

        self._screen.app.push_screen(dialog, answered)
