"""The bridge between the engine and the screen: calls run in threads, and what they say comes back as messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from textual.message import Message
from textual.message_pump import MessagePump
from textual.worker import Worker

from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.attempts.events import Event
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.cancel import CancelToken
from gistpoint.core.outcomes import Outcome
from gistpoint.core.ports import RunProgress
from gistpoint.core.tools.registry import named

BATCH_SECONDS = 0.04
"""Progress and changes of state reach the screen at most this often, one frame or two."""


class StateChanged(Message):
    """The attempt's state has moved on; one message stands for all that wait."""

    def can_replace(self, message: Message) -> bool:
        """Coalesce with an earlier one that was not handled yet."""
        return isinstance(message, StateChanged)


class CallProgressed(Message):
    """A run of tests has got further."""

    def __init__(self, progress: RunProgress, failed: int) -> None:
        super().__init__()
        self.progress = progress
        self.failed = failed

    def can_replace(self, message: Message) -> bool:
        """Only the newest progress counts."""
        return isinstance(message, CallProgressed)


class CallFinished(Message):
    """A call was answered."""

    def __init__(self, tool: str, arguments: Mapping[str, str], result: ToolResult | None) -> None:
        super().__init__()
        self.tool = tool
        self.arguments = arguments
        self.result = result


class CallFailed(Message):
    """A call raised instead of being answered."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class CallBridge:
    """Runs one engine call at a time in a thread of `owner`, which gets the messages of this module."""

    def __init__(self, owner: MessagePump, attempt: Attempt, run: Callable[[Callable[[], None]], Worker[None]]) -> None:
        self._owner, self._attempt, self._run = owner, attempt, run
        self._cancel: CancelToken | None = None
        self._calls_before = 0
        self._runs_code = False
        self._waiting: Callable[[], None] | None = None
        self._posted = 0.0
        self._failed = 0
        self._state_posted = 0.0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._closed = False
        attempt.subscribe(self._on_event)

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._cancel is not None

    @property
    def cancellable(self) -> bool:
        """Whether a call is under way that runs code."""
        return self.busy and self._runs_code

    @property
    def back_soon(self) -> bool:
        """Whether the call under way runs no code, or is answered already."""
        state = self._attempt.state
        answered = state.pending is None and len(state.calls) > self._calls_before
        return self.busy and (answered or not self._runs_code)

    def when_free(self, do: Callable[[], None]) -> bool:
        """Do something now, or as soon as a call that is back soon has come back; False while code runs.

        Who sees an answer goes on at once, and the thread may take its time on a busy machine. The last one waits.
        """
        if self.back_soon:
            self._waiting = do
        elif self.busy:
            return False
        else:
            do()
        return True

    def came_back(self) -> None:
        """Do what waited; its owner says so when it has shown how the call ended."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._closed:
            waiting()

    def call(self, tool: str, arguments: Mapping[str, str]) -> None:
        """Start a call; the screen makes sure that none is under way."""
        self._runs_code = named(self._attempt.tools, tool).runs_code
        self._begin(lambda cancel: self._attempt.call(tool, arguments, on_progress=self._progress, cancel=cancel))

    def finish_pending(self) -> None:
        """Start to complete the call that a process before this one left."""
        pending = self._attempt.state.pending
        self._runs_code = any(tool.runs_code for tool in self._attempt.tools if pending and tool.name == pending.tool)
        self._begin(lambda cancel: self._attempt.finish_pending(on_progress=self._progress, cancel=cancel))

    def cancel(self) -> None:
        """Ask the call under way to stop."""
        if self._cancel is not None:
            self._cancel.cancel()

    def close(self) -> None:
        """Send nothing from now on, and stop what is under way."""
        self._closed = True
        self.cancel()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _begin(self, call: Callable[[CancelToken], ToolResult | None]) -> None:
        state = self._attempt.state
        self._calls_before = len(state.calls) - (state.pending is not None)
        token = self._cancel = CancelToken()
        self._failed, self._posted = 0, 0.0

        def body() -> None:
            try:
                result = call(token)
            except Exception as error:
                self._cancel = None
                self._post(CallFailed(error))
                return
            done = self._attempt.state.calls[-1]
            self._cancel = None
            self._post(CallFinished(done.tool, {k: str(v) for k, v in done.arguments.items()}, result))

        self._run(body)

    def _progress(self, progress: RunProgress) -> None:
        if progress.latest is not None and progress.latest.outcome in (Outcome.FAILED, Outcome.ERROR):
            self._failed += 1
        now = time.monotonic()
        if now - self._posted >= BATCH_SECONDS or progress.done == progress.total:
            self._posted = now
            self._post(CallProgressed(progress, self._failed))

    def _on_event(self, event: Event, state: AttemptState) -> None:
        """Post at once after a quiet time; in a burst, once at its end."""
        with self._lock:
            wait = self._state_posted + BATCH_SECONDS - time.monotonic()
            if wait <= 0:
                self._state_posted = time.monotonic()
            elif self._timer is None:
                self._timer = threading.Timer(wait, self._late)
                self._timer.daemon = True
                self._timer.start()
                return
            else:
                return
        self._post(StateChanged())

    def _late(self) -> None:
        with self._lock:
            self._timer = None
            self._state_posted = time.monotonic()
        self._post(StateChanged())

    def _post(self, message: Message) -> None:
        if not self._closed:
            self._owner.post_message(message)
