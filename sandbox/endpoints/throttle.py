"""Makes one gate for each host, which all conversations of a process share.

A rate limit that one conversation hits holds all of them back, because each would otherwise waste its
attempts on it (decision 75).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.endpoints.retrying import Backoff

_SPREAD = 0.1
"""The maximum share by which waits are extended, so that not all requests arrive at the same moment."""


class HostGate:
    """A gate that determines how long requests to one host have to wait; safe for any number of threads."""

    def __init__(self, backoff: Backoff | None = None, now: Callable[[], float] = time.monotonic) -> None:
        """`backoff` determines the waits for which the host does not ask; `now` returns seconds."""
        self.backoff = backoff or Backoff()
        self._now = now
        self._lock = threading.Lock()
        self._held_until = 0.0
        self._refusals = 0

    def wait_s(self) -> float:
        """Return the seconds until the gate opens; 0 if it is open."""
        with self._lock:
            return max(0.0, self._held_until - self._now())

    def refused(self, requested_s: float | None) -> None:
        """Close the gate after a rate limit, for `requested_s` or, if that is None, longer each time."""
        with self._lock:
            now = self._now()
            if now >= self._held_until:  # otherwise the request was sent before the gate closed
                self._refusals += 1
            seconds = (
                requested_s if requested_s is not None else self.backoff.seconds(self._refusals, None) or 0.0
            )
            self._held_until = max(self._held_until, now + seconds)

    def answered(self) -> None:
        """Record that the host has answered a request, so that the next wait is short again."""
        with self._lock:
            self._refusals = 0


def _sleep(seconds: float, cancel: CancelToken) -> None:
    cancel.sleep(seconds)


@dataclass(frozen=True, slots=True)
class ThrottledModel:
    """A model whose requests wait until its host's gate is open; implements `ChatModel`."""

    model: ChatModel
    gate: HostGate
    sleep: Callable[[float, CancelToken], None] = _sleep

    @property
    def name(self) -> str:
        """The model's name as it is requested."""
        return self.model.name

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        """Wait for the gate, then ask once, and return the reply or the failure.

        If the wait exceeds the gate's patience, that is a failure, and nothing is sent. Raises
        `CancelledError` if stopped, even during a wait.
        """
        while (seconds := self.gate.wait_s()) > 0:
            if seconds > self.gate.backoff.patience_s:
                return ChatFailure(
                    ChatProblem.RATE_LIMITED,
                    f"The endpoint asks to wait for another {seconds:.0f} s.",
                    seconds,
                )
            # Checked again after the wait, because another request may have closed the gate for longer.
            self.sleep(seconds * random.uniform(1.0, 1.0 + _SPREAD), cancel)
        answer = self.model.complete(messages, tools, cancel=cancel)
        if isinstance(answer, ChatReply):
            self.gate.answered()
        elif answer.problem is ChatProblem.RATE_LIMITED:
            self.gate.refused(answer.retry_after_s)
        return answer


class Throttle:
    """The gates of a process, by host and port."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self._backoff = backoff
        self._gates: dict[str, HostGate] = {}
        self._lock = threading.Lock()

    def gate(self, place: str) -> HostGate:
        """Return the gate of a host; it is always the same gate."""
        with self._lock:
            return self._gates.setdefault(place, HostGate(self._backoff))
