"""Re-execution on the screen: the calls are made again behind the keyboard's back, and badges appear as it goes."""

from __future__ import annotations

from textual import on

from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.tui.screens.review.re_executing import (
    CallReplayed,
    ReExecution,
    ReplayEnded,
    ReplayGoesOn,
    Replaying,
)
from gistpoint.tui.screens.review.walking import WalkingScreen


class ReplayingScreen(WalkingScreen):
    """A run whose calls can be made again."""

    re_execution: ReExecution | None = None
    """The replay of this run; None before it was asked for."""

    def replaying(self) -> Replaying | None:
        """Return what makes a replay of a run; None where there is no way here. For subclasses."""
        return None

    def action_replay(self) -> None:
        """Make the recorded calls again in a fresh workspace, or stop doing so."""
        going = self.re_execution
        if going is not None and going.running:
            going.stop()
            self.say("Stopping …")
            return
        replaying = self.replaying()
        if replaying is None:
            self.say("Calls can't be made again here: gistpoint replay does it.")
            return
        self.re_execution = ReExecution(self, self._opening, replaying)
        self.steps.badges = {}
        self.say("Making the calls again …")
        self.re_execution.start()

    @on(ReplayGoesOn)
    def replay_goes_on(self, message: ReplayGoesOn) -> None:
        """Say where it stands."""
        if self.re_execution is not None:
            self.say(f"Making the calls again: {self.re_execution.counts()}; {message.words}. a stops it.")

    @on(CallReplayed)
    def call_replayed(self, message: CallReplayed) -> None:
        """Put the badge at the step, and the files into its history."""
        going, document = self.re_execution, self.reader.document
        if going is None:
            return
        step = going.take(message.replayed)
        self.steps.badges = {**self.steps.badges, step: going.badge(step)}
        self.steps.refresh()
        self.say(f"Making the calls again: {going.counts()}. a stops it.")
        if document is not None:
            self.reader.do(lambda: self.history(document).put(step, message.files))
            if self.step is not None and step == self.step.index:
                self.show_step()

    @on(ReplayEnded)
    def replay_ended(self, message: ReplayEnded) -> None:
        """Say what it came to."""
        if message.error is not None and not isinstance(message.error, UserError):
            raise message.error
        if isinstance(message.error, UserError):
            from gistpoint.tui.screens.dialogs.ask import show_error

            show_error(self.app, message.error)
            self.say("")
        elif self.re_execution is not None:
            self.say(f"{self.re_execution.counts()}. {message.words}")

    def replayed_text(self, document: RunDocument, index: int) -> tuple[str, str]:
        """Return what the replay has to tell of a step, and a note above it."""
        going = self.re_execution
        if going is None:
            return "", "a makes the recorded calls again in a fresh workspace of the task."
        text = going.text(index)
        waiting = "Not made again yet." if going.running else "This step holds no call that was made again."
        return text, going.words(index) or waiting

    def on_unmount(self) -> None:
        """Leave no replay behind."""
        if self.re_execution is not None:
            self.re_execution.stop()
