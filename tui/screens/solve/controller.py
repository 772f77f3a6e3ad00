"""The controller of an attempt, which makes calls, records other events and plays recordings, for a screen.

The engine's methods wait for the disk, the sandbox and tests. The controller runs them in threads, one for
calls and one for everything else, and posts the results to the screen. It asks no questions and knows no pane
(decision 56).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from textual.message import Message

from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.attempts.events import JournalEvent, Pane
from gistpoint.core.attempts.harness import Judged
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.demo.play import play
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.outcomes import Outcome
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui.jobs import Job, JobOwner, Jobs

BATCH_SECONDS = 0.04
"""The shortest time between two progress messages to the screen: one or two frames."""

HEARTBEAT_SECONDS = 5.0
"""Seconds of working time that a crash can lose, even while an external editor has the terminal."""

_CLOSE_S = 10.0
"""The maximum number of seconds for which closing waits for a playback, and again for pending writes."""


class StateChanged(Message):
    """A message that the attempt's state has changed."""

    def can_replace(self, message: Message) -> bool:
        """Return whether `message` makes this one superfluous: handlers read the current state."""
        return isinstance(message, StateChanged)


class CallBegun(Message):
    """A message that a call has begun.

    `tool` is None if an earlier process began the call with a tool that no longer exists.
    """

    def __init__(self, tool: Tool | None, words: str) -> None:
        super().__init__()
        self.tool = tool
        self.words = words


@dataclass(frozen=True, slots=True)
class Failing:
    """The number of tests that have failed so far in a run, and the first of them."""

    count: int = 0
    first: str = ""
    """The id of the first failing test."""


class CallProgressed(Message):
    """A message that a run of tests has made progress."""

    def __init__(self, progress: RunProgress, failed: Failing) -> None:
        super().__init__()
        self.progress = progress
        self.failed = failed

    def can_replace(self, message: Message) -> bool:
        """Return whether `message` makes this one superfluous: only the latest progress counts."""
        return isinstance(message, CallProgressed)


class CallFinished(Message):
    """A message that a call has returned. `result` is None if there was no call to complete."""

    def __init__(self, result: ToolResult | None) -> None:
        super().__init__()
        self.result = result


class CallFailed(Message):
    """A message that a call raised an exception, or that an event could not be recorded."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class StepPlayed(Message):
    """A message that a step of a recorded attempt was played."""

    def __init__(self, step: Mapping[str, Any], result: ToolResult | None) -> None:
        super().__init__()
        self.step = step
        self.result = result


class EngineCall(Protocol):
    """A method of the engine that blocks until a call has been answered."""

    def __call__(self, *, run: RunContext) -> ToolResult | None:
        """Return the answer; None if there was no call to complete."""
        ...


class AttemptController:
    """A controller of an attempt, which runs one call at a time and records all other events in order.

    It posts messages to `owner`.
    """

    def __init__(
        self,
        owner: JobOwner,
        attempt: Attempt,
        hold_keys: Callable[[], Callable[[], None]] = lambda: lambda: None,
    ) -> None:
        """`hold_keys` holds the user's keys until the function that it returns is called."""
        self.attempt = attempt
        self._hold_keys = hold_keys
        self._owner = owner
        self._calls = Jobs(owner, "calls", failed=self._failed)
        self._writes = Jobs(owner, "recording", failed=self._not_written)
        self._call: Job | None = None
        self._playback: Job | None = None
        self._tool: Tool | None = None
        self._calls_before = 0
        self._yields = False
        self._waiting: Callable[[], None] | None = None
        self._holding: set[Callable[[], None]] = set()
        """Functions that release the user's keys, held for a screen that an action is about to open."""
        self._failing = Failing()
        self._progress_at = 0.0
        self._affordances: dict[str, int] = {}
        self._closed = False
        attempt.subscribe(self._event_written)
        self._beat_later()

    # The call under way

    @property
    def calling(self) -> bool:
        """Whether a call is under way."""
        return self._call is not None and self._call.running

    @property
    def playing(self) -> bool:
        """Whether a recorded attempt is playing."""
        return self._playback is not None and self._playback.running

    @property
    def busy(self) -> bool:
        """Whether a call is under way or a recorded attempt is playing."""
        return self.calling or self.playing

    @property
    def tool(self) -> Tool | None:
        """The tool of the call under way; None if there is no call or the tool no longer exists."""
        pending = self.attempt.state.pending
        if pending is not None:
            return next((tool for tool in self.attempt.tools if tool.name == pending.tool), None)
        return self._tool if self.calling else None

    @property
    def cancellable(self) -> bool:
        """Whether the call under way runs code, which can be stopped."""
        return self.calling and self._runs_code

    @property
    def yielding(self) -> bool:
        """Whether the call under way gives way to other calls."""
        return self.calling and self._yields

    @property
    def _runs_code(self) -> bool:
        tool = self.tool
        return tool is not None and tool.runs_code

    @property
    def _returns_soon(self) -> bool:
        """Whether the current call will return soon: it runs no code, or its answer is already recorded."""
        state = self.attempt.state
        answered = state.pending is None and len(state.calls) > self._calls_before
        return self.calling and (answered or not self._runs_code)

    def when_free(self, do: Callable[[], None]) -> bool:
        """Call `do` now, or after a call that will return soon. Return whether this was possible.

        It is impossible while code runs or a recording plays. The user may act on an answer before the call's
        thread has ended; of several such actions, the last is kept.
        """
        if self.playing:
            return False
        if self._returns_soon:
            self._wait_with(do)
        elif self.calling:
            return False
        else:
            do()
        return True

    def make_way(self, then: Callable[[], None]) -> None:
        """Call `then` now, or after stopping a call that gives way to others."""
        if self.yielding:
            self._wait_with(then)
            self.cancel()
        else:
            then()

    def run_waiting(self) -> None:
        """Run the action that waits for the end of a call, after the screen has shown that end."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._closed:
            waiting()

    def _wait_with(self, do: Callable[[], None]) -> None:
        """Make an action wait for the end of the call, in place of an action that is already waiting."""
        self._release_keys()
        self._waiting = self._before_keys(do)

    def _before_keys(self, do: Callable[[], object]) -> Callable[[], None]:
        """Hold the keys, and return a function that calls `do` and then releases them.

        The keys are meant for the screen that `do` opens. After the controller closes, no keys are held, and
        the returned function does nothing.
        """
        if self._closed:
            return lambda: None
        release_keys = self._hold_keys()
        self._holding.add(release_keys)

        def later() -> None:
            try:
                do()
            finally:
                self._holding.discard(release_keys)
                release_keys()

        return later

    def _release_keys(self) -> None:
        while self._holding:
            self._holding.pop()()

    # Calls

    def call(self, tool: Tool, arguments: Mapping[str, str], *, yields: bool = False) -> None:
        """Start a call; none may be under way. With `yields`, it is stopped to give way to another call."""
        words = spelled(tool.name, arguments)
        self._begin(tool, words, partial(self.attempt.call, tool.name, arguments), yields=yields)

    def finish_pending(self) -> None:
        """Start completing a call that an earlier process has left open."""
        self._begin(self.tool, "finishing the call under way", self.attempt.finish_pending)

    def cancel(self) -> None:
        """Ask the call under way to stop."""
        if self._call is not None:
            self._call.stop()

    def judgement_of(self, call_id: str) -> Judged | None:
        """Return the test run of a call in this process; None if there is none."""
        return self.attempt.found.get(call_id)

    def _begin(self, tool: Tool | None, words: str, call: EngineCall, *, yields: bool = False) -> None:
        state = self.attempt.state
        self._calls_before = len(state.calls) - (state.pending is not None)
        self._tool, self._yields = tool, yields
        self._failing, self._progress_at = Failing(), 0.0

        def body(job: Job) -> Message:
            try:
                return CallFinished(call(run=RunContext(job.cancel, self._progressed)))
            except Exception as error:
                return CallFailed(error)

        self._owner.post_message(CallBegun(tool, words))
        self._call = self._calls.do(body, self._post)

    def _progressed(self, progress: RunProgress) -> None:
        if progress.latest is not None and progress.latest.outcome in (Outcome.FAILED, Outcome.ERROR):
            self._failing = Failing(self._failing.count + 1, self._failing.first or progress.latest.id)
        now = time.monotonic()
        if now - self._progress_at >= BATCH_SECONDS or progress.done == progress.total:
            self._progress_at = now
            self._post(CallProgressed(progress, self._failing))

    def _event_written(self, event: JournalEvent, state: AttemptState) -> None:
        self._post(StateChanged())

    def _failed(self, error: Exception) -> None:
        self._post(CallFailed(error))

    def _post(self, message: Message) -> None:
        if not self._closed:
            self._owner.post_message(message)

    # Playing a recorded attempt

    def play(self, steps: Sequence[Mapping[str, Any]], speed: float) -> None:
        """Start playing recorded steps through the engine and the sandbox."""

        def body(job: Job) -> None:
            for step, result in play(self.attempt, steps, job.cancel.sleep, speed=speed, cancel=job.cancel):
                self._post(StepPlayed(step, result))

        self._playback = self._calls.do(body)

    # Other recorded events

    def write(
        self,
        action: Callable[[], object],
        then: Callable[[], object] | None = None,
        *,
        failed: Callable[[Exception], object] | None = None,
    ) -> None:
        """Run `action` after all waiting writes, then `then` on the UI thread.

        `failed` is called with an exception that `action` raised. Without `failed`, an `AttemptError` is
        ignored, because the attempt accepts no more events, and any other exception is posted as
        `CallFailed`. The user's keys wait for `then`.
        """
        if then is None:
            self._writes.do(lambda _: action(), failed=failed)
            return
        before_keys = self._before_keys(then)

        def fail(error: Exception) -> None:
            self._release_keys()
            (failed or self._not_written)(error)

        self._writes.do(lambda _: action(), lambda _: before_keys(), failed=fail)

    def after_writing(self, then: Callable[[], object]) -> None:
        """Call a function on the UI thread after all waiting writes."""
        self.write(lambda: None, then)

    def view(self, pane: Pane) -> None:
        """Record which pane has the focus."""
        self.write(lambda: self.attempt.view(pane))

    def suspect(self, function: str) -> None:
        """Mark a function as suspect, or unmark it."""
        marked = all(suspect.name != function for suspect in self.attempt.state.suspects)
        self.write(lambda: self.attempt.suspect(function, marked=marked))

    def heartbeat(self) -> None:
        """Record that the attempt is still open."""
        self.write(self.attempt.heartbeat)

    def use_affordance(self, kind: str) -> None:
        """Count the use of an affordance. The next flush records it."""
        self._affordances[kind] = self._affordances.get(kind, 0) + 1

    def pasted(self, text: str, *, outside: bool) -> None:
        """Record that text was pasted. `outside` means that it came through the terminal."""
        self.write(lambda: self.attempt.pasted(text, outside=outside))

    def edited(self, buffer: str, text: str) -> None:
        """Save unfinished code. May be called from any thread: an external editor may have the terminal."""
        self.write(lambda: self.attempt.edit(buffer, text))

    def noted(self, text: str) -> None:
        """Save the notes."""
        self.write(lambda: self.attempt.note(text))

    def flush(self) -> None:
        """Record the affordances used since the last flush."""
        used, self._affordances = self._affordances, {}
        for kind, times in used.items():
            self.write(partial(self.attempt.use_affordance, kind, times))

    def close(self) -> None:
        """Record everything pending, and post no more messages.

        A call under way is stopped without an answer. Nobody has cancelled it, so the next process repeats
        it.
        """
        if self._closed:
            return
        self._closed = True
        self._release_keys()
        if self.playing:
            self._calls.cancel()
            self._calls.finish(_CLOSE_S)
        self.flush()
        self._writes.finish(_CLOSE_S)
        if self.calling:
            self.attempt.leave()
        self._calls.stop()

    def _beat_later(self) -> None:
        self._writes.do(self._beat, delay=HEARTBEAT_SECONDS)

    def _beat(self, job: Job) -> None:
        self._beat_later()
        self.attempt.heartbeat()

    def _not_written(self, error: Exception) -> None:
        if not isinstance(error, AttemptError):
            self._failed(error)
