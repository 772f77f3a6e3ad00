"""A recorded attempt, played before one's eyes through the real engine and sandbox."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.cancel import CancelToken
from gistpoint.core.demo.play import play
from gistpoint.tui.screens.solve.calls import CallFailed


class StepPlayed(Message):
    """A step was done."""

    def __init__(self, step: Mapping[str, Any], result: ToolResult | None) -> None:
        super().__init__()
        self.step = step
        self.result = result


class Playback:
    """Plays steps in a thread of its own."""

    def __init__(self, owner: MessagePump, attempt: Attempt, steps: Sequence[Mapping[str, Any]], speed: float) -> None:
        self._owner, self._attempt, self._steps, self._speed = owner, attempt, steps, speed
        self._stop = threading.Event()
        self._cancel = CancelToken()
        self._thread = threading.Thread(target=self._work, name="playback", daemon=True)

    @property
    def running(self) -> bool:
        """Whether steps are still to come."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop before the next step, and wait for the one under way."""
        self._stop.set()
        self._cancel.cancel()
        self._thread.join(timeout=10)

    def _work(self) -> None:
        try:
            for step, result in play(self._attempt, self._steps, self._wait, speed=self._speed, cancel=self._cancel):
                self._owner.post_message(StepPlayed(step, result))
        except Exception as error:
            self._owner.post_message(CallFailed(error))

    def _wait(self, seconds: float) -> None:
        self._stop.wait(seconds)
