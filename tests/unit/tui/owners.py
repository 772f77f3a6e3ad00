"""A stand-in for a screen that records messages and runs jobs' and timers' results in the test's thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any

from textual import events
from textual.message import Message

PATIENCE_S = 10.0


@dataclass
class FakeTimer:
    """A timer that fires at the test's request."""

    seconds: float
    do: Callable[[], object]
    stopped: bool = False

    def stop(self) -> None:
        self.stopped = True

    def ring(self) -> None:
        assert not self.stopped
        self.stopped = True
        self.do()


@dataclass
class FakeOwner:
    """A `JobOwner` without an app."""

    messages: list[Message] = field(default_factory=list)
    timers: list[FakeTimer] = field(default_factory=list)
    gone: bool = False
    _queue: Queue[Message] = field(default_factory=Queue)

    @property
    def app(self) -> Any:
        raise AssertionError("There is no app here.")

    def post_message(self, message: Message) -> bool:
        if not self.gone:
            self._queue.put(message)
        return not self.gone

    def set_timer(self, delay: float, callback: Callable[[], object]) -> Any:
        self.timers.append(FakeTimer(delay, callback))
        return self.timers[-1]

    set_interval = set_timer

    def take(self, met: Callable[[], object]) -> None:
        """Handle messages in order until a condition holds."""
        until = time.monotonic() + PATIENCE_S
        while not met():
            assert time.monotonic() < until, f"never came about: {self.messages}"
            try:
                message = self._queue.get(timeout=0.02)
            except Empty:
                continue
            if isinstance(message, events.Callback):
                asyncio.run(message.callback())  # type: ignore[arg-type]
            else:
                self.messages.append(message)

    def of(self, kind: type[Message]) -> list[Any]:
        """Return the messages of a kind so far."""
        return [message for message in self.messages if isinstance(message, kind)]
